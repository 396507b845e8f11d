// Runs the collectives of `espalier run` and checks the results.

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "firmware/image/sha256.h"
#include "planner/make/bound.h"
#include "tools/common/failure.h"
#include "tools/options/resolve.h"
#include "tools/run/run.h"

namespace espalier::run_command {
namespace {

// The SHA-256 of the bytes, in hexadecimal.
std::string hex_sha256(const std::uint8_t* bytes, std::uint64_t size) {
  std::uint8_t digest[kSha256Bytes];
  sha256(bytes, size, nullptr, 0, digest);
  std::string text;
  for (const std::uint8_t byte : digest) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", byte);
    text += two;
  }
  return text;
}

// How late one rank comes to a barrier that is checked, if all nodes have one clock.
constexpr std::uint64_t kLate = 5'000'000;  // ns

// One size's repetitions.
class SizeRun {
 public:
  SizeRun(const RunOptions& options, const planner::LoadedSchedule& schedule,
          const reference::ReferenceInput& what, const std::string* input,
          const std::vector<verify::LowerBound>& bounds, cluster::NodeProcesses& cluster)
      : options_(options),
        bounds_(bounds),
        schedule_(schedule),
        what_(what),
        barrier_(what.collective == Collective::kBarrier),
        input_(input),
        cluster_(cluster) {}

  SizeResult run() {
    SizeResult size;
    size.bytes = what_.bytes;
    predict(size);
    for (std::uint32_t node = 0; node < schedule_.programs.size(); ++node) {
      NodeResult result{
          .node = node, .name = schedule_.topology->node_name(node), .router = node >= what_.ranks};
      result.checked = !result.router && (barrier_ || reference::has_result(what_, node));
      result.right = result.checked;
      size.nodes.push_back(result);
    }
    size.right = true;
    if (barrier_) check_barrier(size);
    tools::Progress progress("running " + tools::counted(what_.bytes, "byte"));
    for (std::uint32_t i = 0; i < options_.warmup + options_.repeat && size.right; ++i) {
      progress.show(static_cast<double>(i) / (options_.warmup + options_.repeat));
      repetition(i, size);
    }
    finish(size);
    return size;
  }

 private:
  void predict(SizeResult& size) const {
    const Program& program = schedule_.programs[0];
    const Layout layout = tools::or_bad_input(planner::layout_of(program, what_));
    const predict::Model model = tools::model_of({options_.model, ""});
    const auto nodes = static_cast<std::uint32_t>(schedule_.programs.size());
    predict::Conditions conditions = run_conditions(options_, model, nodes);
    conditions.op = what_.op;
    size.blocks = layout.blocks;
    size.block_bytes = slot_bytes(layout);
    size.steps = phase_steps(program, layout.blocks);
    size.bound_steps = planner::bound_steps(bounds_, program, layout.blocks);
    const predict::CostLine& line =
        predict::slowest(model, *schedule_.topology, size.block_bytes).line(size.block_bytes);
    size.alpha = static_cast<double>(line.alpha_ps) * 1e-12;
    size.beta = static_cast<double>(line.beta_fs) * 1e-15;
    const predict::Prediction found =
        predict::predict(*schedule_.topology, schedule_.programs, layout, model, conditions);
    predict::Picoseconds time = found.time;
    if (!options_.candidate.empty()) {
      const tools::PlanOptions& plan = options_.plan;
      const bool by_default = plan.window.empty() && plan.links.empty() && plan.ports.empty();
      const predict::Tuning* runs =
          by_default ? model.tuning(schedule_.topology->spec(), collective_name(what_.collective))
                     : nullptr;
      if (runs != nullptr) time = runs->tuned(options_.candidate, what_.bytes, time);
    }
    size.predicted = static_cast<double>(time) * 1e-12;
  }

  void prepare(std::uint32_t number) {
    for (std::uint32_t rank = 0; rank < what_.ranks; ++rank) {
      const cluster::SharedMemory& memory = cluster_.members()[rank].memory;
      if (input_ != nullptr && rank == what_.root) {
        std::copy(input_->begin(), input_->end(), memory.input());
      } else if (reference::input_bytes(what_, rank) != 0) {
        reference::fill_input(what_, rank, number, memory.input());
      }
      // No result of an earlier repetition may pass for a new one.
      const std::uint64_t bytes = reference::result_bytes(what_, rank);
      if (bytes != 0) std::memset(memory.output(), 0xa5, bytes);
    }
  }

  void compare(std::uint32_t number, SizeResult& size) {
    reference::Results results(what_, number);
    for (NodeResult& node : size.nodes) {
      if (!node.checked || node.router) continue;
      const std::uint64_t bytes = reference::result_bytes(what_, node.node);
      if (bytes == 0) continue;
      const std::uint8_t* expected = input_ != nullptr
                                         ? reinterpret_cast<const std::uint8_t*>(input_->data())
                                         : results.of(node.node).data();
      node.right = std::memcmp(cluster_.members()[node.node].memory.output(), expected, bytes) == 0;
      size.right = size.right && node.right;
    }
  }

  control::RunRequest order() const {
    control::RunRequest order;
    // With a selection every node chooses by itself; it must be the same schedule that is here.
    order.schedule = options_.selection_digest != 0 ? options_.selection_digest
                                                    : schedule_.programs.front().schedule_digest;
    order.op = what_.op.op;
    order.type = what_.op.type;
    order.count = reference::count(what_);
    order.counts = what_.counts.size();
    return order;
  }

  // A barrier has no bytes to compare: each rank once enters late, and no rank may leave before it
  // entered. Times of other hosts' clocks are known up to an error only, which a first run shows. A
  // late rank is late by more than that.
  void check_barrier(SizeResult& size) {
    size.right = tools::or_negative(cluster_.run(order()));
    std::uint64_t error_ns = 0;
    for (const cluster::Member& member : cluster_.members()) {
      error_ns = std::max(error_ns, member.report.clock_error_ns);
    }
    for (std::uint32_t late = 0; late < what_.ranks && size.right; ++late) {
      const cluster::Late lateness{late, kLate + 4 * error_ns};
      size.right = tools::or_negative(cluster_.run(order(), lateness));
      if (!size.right) return;
      const control::Report& entered = cluster_.members()[late].report;
      for (NodeResult& node : size.nodes) {
        if (node.router) continue;
        const control::Report& left = cluster_.members()[node.node].report;
        const std::uint64_t latest_end_ns =
            left.end_ns + left.clock_error_ns + entered.clock_error_ns;
        node.right = node.right && latest_end_ns >= entered.begin_ns;
        size.right = size.right && node.right;
      }
    }
  }

  void repetition(std::uint32_t number, SizeResult& size) {
    prepare(number);
    control::RunRequest run = order();
    run.repetitions = options_.back_to_back;
    size.right = tools::or_negative(cluster_.run(run));
    double slowest = 0;
    std::uint64_t last_begin = 0, last_end = 0;
    for (NodeResult& node : size.nodes) {
      const cluster::Member& member = cluster_.members()[node.node];
      if (member.state != cluster::Member::State::kReported) continue;
      const control::Report& report = member.report;
      node.seconds = static_cast<double>(report.end_ns - report.begin_ns) * 1e-9;
      slowest = std::max(slowest, node.seconds);
      last_begin = std::max(last_begin, report.begin_ns);
      last_end = std::max(last_end, report.end_ns);
    }
    if (!size.right) return;
    compare(number, size);
    if (number >= options_.warmup) {
      const double collectives = options_.back_to_back;
      size.times.push_back(slowest / collectives);
      size.spans.push_back((static_cast<double>(last_end) - static_cast<double>(last_begin)) *
                           1e-9 / collectives);
    }
  }

  void finish(SizeResult& size) {
    std::uint64_t disturbed_ns = 0;
    for (const cluster::Disturbance& disturbance : cluster_.disturbances()) {
      disturbed_ns = std::max(disturbed_ns, disturbance.at_ns);
      if (disturbance.at_ns == 0) continue;
      for (NodeResult& node : size.nodes) {
        node.disturbed = node.disturbed || cluster_.share(node.node, disturbance.node);
      }
    }
    for (NodeResult& node : size.nodes) {
      const cluster::Member& member = cluster_.members()[node.node];
      node.pid = member.pid;
      node.status = cluster_.describe(node.node);
      node.failed =
          member.state != cluster::Member::State::kReported || member.report.status != Status::kOk;
      if (node.failed) {
        node.right = false;
        if (member.state == cluster::Member::State::kReported) {
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
      const bool source = what_.collective == Collective::kBroadcast && !node.router;
      if (barrier_ || (!node.checked && !source)) continue;
      node.has_bytes = true;
      node.bytes = node.checked ? reference::result_bytes(what_, node.node) : what_.bytes;
      if (!options_.ranks && options_.format == tools::Format::kText) continue;  // not printed
      node.sha256 =
          hex_sha256(node.checked ? member.memory.output() : member.memory.input(), node.bytes);
    }
  }

  const RunOptions& options_;
  const std::vector<verify::LowerBound>& bounds_;
  const planner::LoadedSchedule& schedule_;
  const reference::ReferenceInput what_;
  const bool barrier_;
  const std::string* input_;
  cluster::NodeProcesses& cluster_;
};

// Gives every node the memory of the longest message; routers have none.
void give_memory(const RunOptions& options, const planner::LoadedSchedule& schedule,
                 reference::ReferenceInput what, cluster::NodeProcesses& cluster) {
  what.bytes = *std::max_element(options.bytes.begin(), options.bytes.end());
  const std::vector<std::uint32_t> rooms = log_rooms(options, schedule, what);
  for (std::uint32_t node = 0; node < schedule.programs.size(); ++node) {
    std::uint64_t input = 0, output = 0;
    if (node < what.ranks) {
      // Never none at all: a message of 0 bytes has buffers too.
      const bool gives = reference::has_input(what, node);
      const bool gets = reference::has_result(what, node);
      input = gives ? std::max<std::uint64_t>(1, reference::input_bytes(what, node)) : 0;
      output = gets ? std::max<std::uint64_t>(1, reference::result_bytes(what, node)) : 0;
    }
    tools::or_bad_input(cluster.give_memory(node, input, output, rooms[node], what.counts));
  }
  tools::or_negative(cluster.await_memory());
}

}  // namespace

predict::Conditions run_conditions(const RunOptions& options, const predict::Model& model,
                                   std::uint32_t nodes) {
  predict::Conditions conditions;
  conditions.ranks_on_host = tools::ranks_per_host(options.ranks_per_host, model);
  if (conditions.ranks_on_host == 0 && options.all_here()) conditions.ranks_on_host = nodes;
  return conditions;
}

void execute(const RunOptions& options, const planner::LoadedSchedule& schedule,
             reference::ReferenceInput what, const std::string* input,
             cluster::NodeProcesses& cluster, RunResult& result) {
  give_memory(options, schedule, what, cluster);
  result.right = true;
  for (const std::uint64_t bytes : options.bytes) {
    what.bytes = bytes;
    result.sizes.push_back(SizeRun(options, schedule, what, input, result.bounds, cluster).run());
    result.right = result.sizes.back().right;
    if (!result.right) break;  // the nodes' machines cannot be used after a failure
  }
}

}  // namespace espalier::run_command
