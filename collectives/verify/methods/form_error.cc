// Property form alone, for what opens a schedule without proving it.

#include "collectives/verify/properties/checks.h"
#include "collectives/verify/properties/expanded_schedule.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/collectives/verify/verify.h"

namespace espalier::verify {
namespace {

// Instances of one N that any schedule may have, and as many per node: expanding them takes
// seconds.
constexpr std::int64_t kMaxExpandedPerNode = 1 << 12;

}  // namespace

std::string form_error(const topology::Topology& topology, const Programs& programs) {
  OwnedProgram common;
  for (std::uint32_t node = 0; node == 0 || node < program_nodes(common); ++node) {
    const Program& program = programs(node);
    if (node == 0) common = program;
    if (const Finding finding = check_agreement(topology, common, node, program)) {
      return finding->message;
    }
  }
  return {};
}

std::string form_error(const topology::Topology& topology, const Programs& programs,
                       std::int64_t blocks) {
  const OwnedProgram common = programs(0);
  const std::uint32_t nodes = program_nodes(common);
  ExpandedSchedule schedule{.topology = &topology, .common = &common};
  schedule.max_instances += kMaxExpandedPerNode * nodes;
  schedule.max_instances_total = schedule.max_instances;
  set_blocks(schedule, blocks);
  add_steps(schedule);
  schedule.instances.resize(nodes);
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const Program& program = programs(node);
    Finding finding = check_size(schedule, node, program);
    if (!finding) {
      schedule.instances[node] = expand(program, blocks);
      finding = check_instances(schedule, node, program);
      std::vector<Instance>().swap(schedule.instances[node]);
    }
    if (finding) return finding->message;
  }
  return {};
}

}  // namespace espalier::verify
