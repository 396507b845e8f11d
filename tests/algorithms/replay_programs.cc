#include "collectives/schedule/expand.h"
#include "tests/algorithms/replay.h"

namespace espalier::replay {
namespace {

// Whether the values that must be equal in all programs of a schedule are equal.
bool agrees(const Program& a, const Program& b) {
  return a.schedule_digest == b.schedule_digest && a.topology_digest == b.topology_digest &&
         a.ranks == b.ranks && a.root == b.root && a.window == b.window &&
         a.segments == b.segments && a.collective == b.collective &&
         a.needs_commutative == b.needs_commutative && a.phases_count == b.phases_count &&
         a.nodes == b.nodes && a.port_model == b.port_model && a.send_ticks == b.send_ticks &&
         a.latency_ticks == b.latency_ticks;
}

}  // namespace

Result<Programs> generate(const Algorithm& algorithm, const CollectiveParameters& parameters) {
  const std::uint32_t nodes = algorithm_nodes(algorithm, parameters);
  Programs programs(nodes);
  for (std::uint32_t rank = 0; rank < nodes; ++rank) {
    Program& program = programs[rank];
    Status status = algorithm.generate(parameters, rank, program);
    if (status == Status::kOk) status = check_program(program);
    const bool wrong =
        program.node != rank || program_nodes(program) != nodes || !agrees(program, programs[0]);
    if (status == Status::kOk && !wrong) continue;
    return fail(std::string(algorithm.name) + " p " + std::to_string(parameters.ranks) + " rank " +
                std::to_string(rank) + ": " +
                (status == Status::kOk ? "header differs" : status_name(status)));
  }
  return programs;
}

Result<int> neighbours(const Algorithm& algorithm, const CollectiveParameters& parameters,
                       std::uint32_t me) {
  int transfers = 0;
  Program mine;
  if (algorithm.generate(parameters, me, mine) != Status::kOk) return fail("does not generate");
  const std::int64_t blocks = mine.blocks[0].block_bytes == 0 ? 1 : 3;
  const std::int64_t delay = mine.latency_ticks == 0 ? 0 : mine.latency_ticks - 1;
  const bool all_to_all = mine.collective == Collective::kAllToAll;
  for (const Instance& instance : expand(mine, blocks)) {
    if (instance.peer < 0) continue;
    Program other;
    const auto peer = static_cast<std::uint32_t>(instance.peer);
    if (algorithm.generate(parameters, peer, other) != Status::kOk)
      return fail("does not generate");
    const bool sends = instance.kind == ActionKind::kSend;
    const std::int64_t step = sends ? instance.step + delay : instance.step - delay;
    int found = 0;
    for (const Instance& there : expand(other, blocks)) {
      if (there.peer != me || there.step != step) continue;
      if (there.kind != (sends ? ActionKind::kReceive : ActionKind::kSend)) continue;
      const OperandAt& a = sends ? instance.a : instance.into;
      const OperandAt& b = sends ? there.into : there.a;
      found += (all_to_all || a.segment == b.segment) && a.block == b.block &&
               a.segment_count == b.segment_count;
    }
    if (found != 1) return fail("rank " + std::to_string(peer) + " does not know a transfer");
    ++transfers;
  }
  return transfers;
}

}  // namespace espalier::replay
