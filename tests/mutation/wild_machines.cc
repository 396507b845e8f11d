#include "tests/mutation/wild_machines.h"

#include <algorithm>
#include <memory>

#include "collectives/simulation/cluster.h"
#include "collectives/simulation/node_memory.h"
#include "espalier/collectives/schedule/file.h"
#include "espalier/hal/sim/network.h"

namespace espalier::mutation {
namespace {

constexpr std::uint32_t kMaxNodes = 64;
constexpr std::int64_t kMaxSteps = 4096;
constexpr std::int64_t kMaxInstances = 1 << 14;
constexpr std::uint64_t kMaxBytes = 1 << 22;  // of the scratch of a node
constexpr std::uint64_t kElements = 250;

// Whether a run of the program with N = `blocks` ends soon.
bool small(const Program& program, const Layout& layout) {
  if (phase_steps(program, layout.blocks) > kMaxSteps) return false;
  std::int64_t instances = 0;
  for (std::uint32_t k = 0; k < program.actions_count; ++k) {
    const Count& count = program.counts[program.actions[k].instances_ref];
    instances += std::clamp<std::int64_t>(count_value(count, layout.blocks), 0, kMaxInstances);
  }
  return instances <= kMaxInstances && scratch_needed(program, layout) <= kMaxBytes;
}

}  // namespace

std::string run_machines(const std::vector<std::uint8_t>& bytes) {
  ScheduleFile file;
  if (file.open(bytes.data(), bytes.size()) != Status::kOk || file.nodes() > kMaxNodes) return {};
  const std::uint32_t nodes = file.nodes();
  std::vector<std::unique_ptr<DecodedProgram>> programs(nodes);
  std::vector<sim::NodeMemory> memory(nodes);
  sim::LinkCollector links;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    programs[node] = std::make_unique<DecodedProgram>();
    DecodedProgram& program = *programs[node];
    if (file.program(node, program) != Status::kOk) return {};
    const bool is_barrier = program.collective == Collective::kBarrier;
    Layout layout;
    if (make_layout(program, is_barrier ? 0 : kElements, 4, layout) != Status::kOk) return {};
    if (!small(program, layout)) return {};
    links.add(node, program);
    memory[node].allocate(program, layout);
  }
  auto network = sim::Network::create({}, links.links(nodes));
  if (!network) return {};
  sim::Cluster cluster(*std::move(network), {});
  const Operator sum{.op = Op::kSum, .type = Type::kU32};
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const Program& program = *programs[node];
    const bool is_barrier = program.collective == Collective::kBarrier;
    // A node that cannot start leaves the others to their deadlines.
    (void)cluster.start(node, program, memory[node].buffers(), sum,
                        is_barrier ? std::uint64_t{0} : kElements);
  }
  (void)cluster.run();
  for (std::uint32_t node = 0; node < nodes; ++node) {
    if (cluster.machine(node).poll() == Status::kBusy) {
      return "node " + std::to_string(node) + " is still busy";
    }
    if (!memory[node].guards_are_intact()) {
      return "node " + std::to_string(node) + " wrote outside of its buffers";
    }
  }
  return {};
}

}  // namespace espalier::mutation
