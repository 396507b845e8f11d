#include "tools/simulate/simulated_memory.h"

#include <algorithm>
#include <new>

#include "base/counted.h"
#include "tools/common/failure.h"
#include "tools/common/host.h"
#include "tools/common/output.h"

namespace espalier::tools {
namespace {

// Approximate state of the machines and the network; docs/results/simulate.md has the measured
// values.
constexpr std::uint64_t kBytesPerNode = 1600, kBytesPerLink = 800;  // each way

std::uint64_t state_bytes(const StoredSchedule& schedule) {
  std::uint64_t bytes = schedule.nodes() * kBytesPerNode;
  for (const auto& links : schedule.links()) bytes += links.size() * kBytesPerLink;
  return bytes;
}

}  // namespace

SimulatedMemory::SimulatedMemory(const StoredSchedule& schedule,
                                 const reference::ReferenceInput& run, const Layout& layout,
                                 bool data)
    : schedule_(schedule), run_(run), layout_(layout), counts_(run) {
  check_available(data);
  if (!data) {
    std::uint64_t most = 0;
    for (std::uint32_t node = 0; node < schedule.nodes(); ++node) {
      const Program& program = schedule.program(node);
      most = std::max(most, sim::AddressRange::bytes_for(program, layout_at(program)));
    }
    try {
      addresses_ = std::make_unique<sim::AddressRange>(most);
    } catch (const std::bad_alloc&) {
      bad_input(counted(run.bytes, "byte") + ": a node's buffers take " +
                std::to_string(most / 1'000'000) +
                " MB of addresses, more than the system gives; expected fewer bytes");
    }
    return;
  }
  nodes_.resize(schedule.nodes());
  for (std::uint32_t node = 0; node < schedule.nodes(); ++node) {
    const Program& program = schedule.program(node);
    nodes_[node].allocate(program, layout_at(program));
    const std::span<std::uint8_t> input = nodes_[node].input();
    const std::uint64_t expected = node < run.ranks ? reference::input_bytes(run, node) : 0;
    if (input.size() != expected) {
      bad_input("node " + std::to_string(node) + "'s program has " + counted(input.size(), "byte") +
                " of input; expected " + std::to_string(expected) + ", by the program of node 0");
    }
    if (expected > 0) reference::fill_input(run, node, 0, input.data());
  }
}

void SimulatedMemory::check_available(bool data) const {
  std::uint64_t needed = state_bytes(schedule_);
  for (std::uint32_t node = 0; node < schedule_.nodes() && data; ++node) {
    const Program& program = schedule_.program(node);
    needed += scratch_needed(program, layout_);
    if (is_router(program)) continue;
    needed += reference::input_bytes(run_, node) + reference::result_bytes(run_, node);
  }
  const std::uint64_t there = available_memory();
  if (needed <= there) return;
  bad_input(counted(run_.bytes, "byte") + " on " + counted(schedule_.nodes(), "node") + " need " +
            std::to_string(needed / 1'000'000) + " MB, " + std::to_string(there / 1'000'000) +
            " MB are available here; expected fewer " +
            (data ? "bytes (blocks, not bytes, make steps), or --no-data" : "nodes"));
}

Layout SimulatedMemory::layout_at(const Program& program) {
  if (run_.counts.empty()) return layout_;
  Layout layout;
  const Status status =
      make_layout(program, counts_.of(program.node), element_bytes(run_.op), layout);
  if (status == Status::kOk) return layout;
  bad_input("node " + std::to_string(program.node) +
            " takes no such counts: " + status_name(status));
}

void SimulatedMemory::poison_results() {
  for (sim::NodeMemory& node : nodes_) node.poison_output();
}

Buffers SimulatedMemory::of(const Program& program) {
  if (!has_data()) return addresses_->buffers(program, layout_at(program));
  return nodes_[program.node].buffers();
}

RankMemory SimulatedMemory::rank(std::uint32_t rank) const {
  return {nodes_[rank].input().data(), nodes_[rank].output().data()};
}

std::string SimulatedMemory::wrong() {
  if (!has_data()) return "";
  if (results_ == nullptr || !results_->same_for_all()) {
    results_ = std::make_unique<reference::Results>(run_, 0);
  }
  for (std::uint32_t rank = 0; rank < run_.ranks; ++rank) {
    if (reference::result_bytes(run_, rank) == 0) continue;
    const std::span<std::uint8_t> output = nodes_[rank].output();
    const std::vector<std::uint8_t>& expected = results_->of(rank);
    if (!std::equal(output.begin(), output.end(), expected.begin(), expected.end())) {
      return "wrong result on rank " + std::to_string(rank);
    }
  }
  return "";
}

}  // namespace espalier::tools
