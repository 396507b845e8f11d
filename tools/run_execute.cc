// Running the collectives of `espalier run` and checking what came out.

#include <openssl/evp.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "tools/failure.h"
#include "tools/run.h"

namespace espalier::run {
namespace {

std::string sha256(const std::uint8_t* bytes, std::uint64_t size) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  if (EVP_Digest(bytes, size, digest, &length, EVP_sha256(), nullptr) != 1) return "";
  std::string text;
  for (unsigned int i = 0; i < length; ++i) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", digest[i]);
    text += two;
  }
  return text;
}

bool uses(const Program& program, Buffer buffer) {
  for (std::uint32_t i = 0; i < program.actions_count; ++i) {
    const Action& action = program.actions[i];
    if ((action.has_into && action.into.buffer == buffer) ||
        (action.has_a && action.a.buffer == buffer) ||
        (action.has_b && action.b.buffer == buffer)) {
      return true;
    }
  }
  return false;
}

// Which buffers a node must have: what its program touches, and what will be looked at.
struct Needs {
  bool input = false;
  bool output = false;
};

Needs needs_of(const Program& program, std::uint32_t node, const reference::Case& what) {
  const bool rank = node < what.ranks;
  return {uses(program, espalier_Buffer_INPUT) || (rank && reference::has_input(what, node)),
          uses(program, espalier_Buffer_OUTPUT) || (rank && reference::has_result(what, node))};
}

// One size's repetitions.
class SizeRun {
 public:
  SizeRun(const Options& options, const tools::LoadedSchedule& schedule,
          const reference::Case& what, const std::string* input, launch::Cluster& cluster)
      : options_(options), schedule_(schedule), what_(what), input_(input), cluster_(cluster) {}

  SizeResult run() {
    SizeResult size;
    size.bytes = what_.bytes;
    predict(size);
    for (std::uint32_t node = 0; node < schedule_.programs.size(); ++node) {
      NodeResult result;
      result.node = node;
      result.checked = node < what_.ranks && reference::has_result(what_, node);
      result.right = result.checked;
      size.nodes.push_back(result);
    }
    size.right = true;
    tools::Progress progress("running " + tools::counted(what_.bytes, "byte"));
    for (std::uint32_t i = 0; i < options_.warmup + options_.repeat && size.right; ++i) {
      progress.at(static_cast<double>(i) / (options_.warmup + options_.repeat));
      repetition(i, size);
    }
    finish(size);
    return size;
  }

 private:
  void predict(SizeResult& size) const {
    const Program& program = schedule_.programs[0];
    const std::uint32_t element = element_bytes({what_.op, what_.type});
    Layout layout;
    const Status status = make_layout(program, what_.bytes / element, element, layout);
    if (status != Status::kOk) {
      tools::bad_input("the schedule cannot cut " + tools::counted(what_.bytes, "byte") +
                       " into blocks: " + status_name(status));
    }
    size.blocks = layout.blocks;
    size.block_bytes = layout.block_elements * element;
    size.steps = phase_steps(program, layout.blocks);
    size.predicted = static_cast<double>(size.steps) *
                     (options_.alpha + options_.beta * static_cast<double>(size.block_bytes));
  }

  // What every rank with a result must hold.
  const std::uint8_t* prepare(std::uint32_t number) {
    for (std::uint32_t node = 0; node < what_.ranks; ++node) {
      const launch::SharedMemory& memory = cluster_.members()[node].memory;
      if (reference::has_input(what_, node) && what_.bytes != 0) {
        if (input_ != nullptr) {
          std::memcpy(memory.input(), input_->data(), what_.bytes);
        } else {
          reference::fill_input(what_, node, number, memory.input());
        }
      }
      // Nothing of a repetition before may pass for a result.
      if (memory.output_bytes() != 0) std::memset(memory.output(), 0xa5, what_.bytes);
    }
    if (input_ != nullptr) return reinterpret_cast<const std::uint8_t*>(input_->data());
    expected_ = reference::expected(what_, number);
    return expected_.data();
  }

  void repetition(std::uint32_t number, SizeResult& size) {
    const std::uint8_t* expected = prepare(number);
    control::Run order;
    order.op = what_.op;
    order.type = what_.type;
    order.count = what_.bytes / element_bytes({what_.op, what_.type});
    order.repetitions = options_.back_to_back;
    std::string error;
    size.right = cluster_.run(order, error);
    if (!error.empty()) tools::negative(error);
    double slowest = 0;
    std::uint64_t last_begin = 0;
    std::uint64_t last_end = 0;
    for (NodeResult& node : size.nodes) {
      const launch::Member& member = cluster_.members()[node.node];
      if (member.state != launch::Member::State::kReported) continue;
      const control::Report& report = member.report;
      node.seconds = static_cast<double>(report.end_ns - report.begin_ns) * 1e-9;
      slowest = std::max(slowest, node.seconds);
      last_begin = std::max(last_begin, report.begin_ns);
      last_end = std::max(last_end, report.end_ns);
    }
    if (!size.right) return;
    for (NodeResult& node : size.nodes) {
      if (!node.checked || what_.bytes == 0) continue;
      const launch::SharedMemory& memory = cluster_.members()[node.node].memory;
      node.right = std::memcmp(memory.output(), expected, what_.bytes) == 0;
      size.right = size.right && node.right;
    }
    if (number >= options_.warmup) {
      const double collectives = options_.back_to_back;
      size.times.push_back(slowest / collectives);
      size.spans.push_back((static_cast<double>(last_end) - static_cast<double>(last_begin)) *
                           1e-9 / collectives);
    }
  }

  void finish(SizeResult& size) {
    std::uint64_t disturbed_ns = 0;
    for (const launch::Disturbance& disturbance : cluster_.disturbances()) {
      disturbed_ns = std::max(disturbed_ns, disturbance.at_ns);
      if (disturbance.at_ns != 0) size.nodes[disturbance.node].disturbed = true;
    }
    for (NodeResult& node : size.nodes) {
      const launch::Member& member = cluster_.members()[node.node];
      node.pid = member.pid;
      node.status = launch::describe(member);
      node.failed =
          member.state != launch::Member::State::kReported || member.report.status != Status::kOk;
      if (node.failed) {
        node.right = false;
        if (member.state == launch::Member::State::kReported) {
          const Cause& cause = member.report.cause;
          node.cause =
              status_name(cause.status != Status::kOk ? cause.status : member.report.status);
          node.detector = cause.detector;
          node.peer = cause.peer;
          if (disturbed_ns != 0 && member.report.end_ns > disturbed_ns) {
            node.after_disturbance =
                static_cast<double>(member.report.end_ns - disturbed_ns) * 1e-9;
          }
        }
        continue;
      }
      if (!node.checked &&
          !(node.node < what_.ranks && what_.collective == espalier_Collective_BROADCAST)) {
        continue;
      }
      node.has_bytes = true;
      node.sha256 =
          sha256(node.checked ? member.memory.output() : member.memory.input(), what_.bytes);
    }
  }

  const Options& options_;
  const tools::LoadedSchedule& schedule_;
  const reference::Case what_;
  const std::string* input_;
  launch::Cluster& cluster_;
  std::vector<std::uint8_t> expected_;
};

// Bytes that processes can have without swapping; "most" where the system does not say.
std::uint64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  std::string unit;
  std::uint64_t kib = 0;
  while (file >> name >> kib) {
    if (name == "MemAvailable:") return kib * 1024;
    std::getline(file, unit);
  }
  return UINT64_MAX;
}

// Gives every node the memory of the longest message.
void give_memory(const Options& options, const tools::LoadedSchedule& schedule,
                 const reference::Case& what, launch::Cluster& cluster) {
  // Never none at all: a message of 0 bytes has buffers too.
  const std::uint64_t most =
      std::max<std::uint64_t>(1, *std::max_element(options.bytes.begin(), options.bytes.end()));
  std::string error;
  for (std::uint32_t node = 0; node < schedule.programs.size(); ++node) {
    const Needs needs = needs_of(schedule.programs[node], node, what);
    const std::uint64_t input = needs.input ? most : 0;
    const std::uint64_t output = needs.output ? most : 0;
    if (!cluster.give_memory(node, input, output, error)) tools::negative(error);
  }
  if (!cluster.await_memory(error)) tools::negative(error);
}

}  // namespace

void check_memory(const tools::LoadedSchedule& schedule, const reference::Case& what,
                  std::uint64_t most) {
  // The reference and one more for scratch and the fabric.
  std::uint64_t copies = 2;
  for (std::uint32_t node = 0; node < schedule.programs.size(); ++node) {
    const Needs needs = needs_of(schedule.programs[node], node, what);
    copies += (needs.input ? 1u : 0u) + (needs.output ? 1u : 0u);
  }
  const std::uint64_t available = available_memory();
  if (most <= available / copies) return;
  tools::bad_input(tools::counted(most, "byte") + " on " + tools::counted(what.ranks, "rank") +
                   " need " + std::to_string(copies) + " times as much memory; expected at most " +
                   std::to_string(available / copies) + " bytes here");
}

void execute(const Options& options, const tools::LoadedSchedule& schedule, reference::Case what,
             const std::string* input, launch::Cluster& cluster, RunResult& result) {
  give_memory(options, schedule, what, cluster);
  result.right = true;
  for (const std::uint64_t bytes : options.bytes) {
    what.bytes = bytes;
    result.sizes.push_back(SizeRun(options, schedule, what, input, cluster).run());
    result.right = result.sizes.back().right;
    if (!result.right) break;  // the nodes' machines are not to be used after a failure
  }
}

}  // namespace espalier::run
