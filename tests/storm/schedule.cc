#include "tests/storm/schedule.h"

#include <algorithm>

#include "collectives/algorithms/testing/generate_all.h"
#include "collectives/algorithms/testing/parameters.h"
#include "collectives/machine/affine.h"
#include "collectives/simulation/testing/job_cluster.h"
#include "espalier/collectives/lower/lower.h"
#include "espalier/collectives/search.h"
#include "planner/make/shape.h"

namespace espalier::storm {
namespace {

std::string text(std::uint32_t number) { return std::to_string(number); }

std::uint32_t divisor(Dice& dice, std::uint32_t number) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t d = 1; d <= number; ++d) {
    if (number % d == 0) all.push_back(d);
  }
  return all[dice.number(0, static_cast<std::uint32_t>(all.size()) - 1)];
}

std::string fat_tree(Dice& dice, std::uint32_t ranks) {
  std::vector<std::uint32_t> arities;
  for (std::uint32_t rest = ranks; rest > 1;) {
    std::uint32_t arity = divisor(dice, rest);
    if (arity == 1 || arities.size() == 4) arity = rest;
    arities.push_back(arity);
    rest /= arity;
  }
  std::string spec = "fattree:k=";
  const auto height = static_cast<std::uint32_t>(arities.size());
  if (std::all_of(arities.begin(), arities.end(), [&](auto k) { return k == arities[0]; })) {
    spec += text(arities[0]) + ",h=" + text(height);
  } else {
    for (std::uint32_t level = 0; level < height; ++level) {
      spec += (level == 0 ? "" : "x") + text(arities[level]);
    }
  }
  spec += ",c=";
  if (ranks / arities.back() <= 8 && dice.one_in(3) && spec.find('x') == std::string::npos) {
    return spec + "k";
  }
  for (std::uint32_t level = 0; level < height; ++level) {
    spec += (level == 0 ? "" : ",") + text(dice.one_in(3) ? dice.number(1, 1 + level) : 1);
  }
  return spec;
}

// A torus, a ring, a hyperx, a three-dimensional mesh or a dragonfly.
std::string other_grid(Dice& dice, std::uint32_t ranks) {
  const std::uint32_t rows = divisor(dice, ranks), planes = divisor(dice, rows);
  const std::string plane = text(rows) + "x" + text(ranks / rows);
  const std::string space = text(planes) + "x" + text(rows / planes) + "x" + text(ranks / rows);
  switch (dice.number(0, 4)) {
    case 0: return "torus:" + plane;
    case 1: return "ring:" + text(ranks);
    case 2: return "hyperx:" + plane;
    case 3: return "mesh:" + space;
    default: return "dragonfly:" + space;
  }
}

std::string draw_topology(Dice& dice, std::uint32_t ranks) {
  switch (dice.number(0, 9)) {
    case 0: return other_grid(dice, ranks);
    case 1:
    case 2: return "complete:" + text(ranks);
    case 3:
    case 4: {
      const std::uint32_t rows = divisor(dice, ranks);
      return "mesh:" + text(rows) + "x" + text(ranks / rows);
    }
    case 5:
    case 6: return fat_tree(dice, ranks);
    case 7: {
      const std::uint32_t modules = divisor(dice, ranks);
      return "crossbar:" + text(modules) + "x" + text(ranks / modules);
    }
    case 8: {
      const std::uint32_t hosts = divisor(dice, ranks);
      return "hosts:" + text(hosts) + "x" + text(ranks / hosts);
    }
    default: return contention::irregular_topology(dice, ranks, dice.number(0, 1 + ranks / 4));
  }
}

Result<Programs> routed_programs(const ScheduleSpec& spec, const topology::Topology& topology,
                                 const CollectiveParameters& parameters) {
  if (const auto* searched = searched::find_searched(spec.collective, spec.algorithm);
      searched != nullptr) {
    if (!searched->applies(topology)) return fail("not on this topology");
    return searched->search(topology, parameters);
  }
  const Algorithm* algorithm = find_algorithm(spec.collective, spec.algorithm.c_str());
  if (algorithm == nullptr) return fail("no algorithm " + spec.algorithm);
  if (algorithm->where != Where::kAnywhere && !runs_on(*algorithm, parameters)) {
    return fail("not on this topology");
  }
  Programs programs;
  const Status status = generate_all(*algorithm, parameters, programs);
  if (status != Status::kOk) return fail(status_name(status));
  return programs;
}

}  // namespace

Result<Schedule> make_schedule(const ScheduleSpec& spec) {
  Schedule schedule;
  schedule.spec = spec;
  auto topology = topology::parse(spec.topology);
  if (!topology) return fail(topology.error());
  schedule.topology = *std::move(topology);
  const topology::Shape shape = schedule.topology->shape();
  const BlockRule blocks = {0, spec.block_bytes};
  CollectiveParameters parameters = topology_parameters(*schedule.topology, spec.root, &blocks);
  parameters.window = spec.window;
  parameters.run_length = spec.run_length;
  parameters.radix = spec.radix;
  parameters.send_ticks = spec.send_ticks;
  parameters.latency_ticks = spec.latency_ticks;
  parameters.ratio_numerator = spec.ratio_numerator;
  parameters.ratio_denominator = spec.ratio_denominator;
  set_shape(shape, parameters);
  auto programs = routed_programs(spec, *schedule.topology, parameters);
  if (!programs) return fail(programs.error());
  if (spec.links != Links::kRouted) {
    lower::Report report;
    programs = lower::lower(
        *schedule.topology, parameters,
        spec.links == Links::kMultiport ? PortModel::kMultiport : PortModel::kSingleSend, *programs,
        report);
    if (!programs) return fail(programs.error());
  }
  schedule.programs = *std::move(programs);
  std::vector<const Program*> list;
  SlotGroups groups;
  schedule.unequal = counts_per_rank(spec.collective);
  for (const Program& program : schedule.programs) {
    if (const Status status = check_program(program); status != Status::kOk) {
      return fail(status_name(status));
    }
    list.push_back(&program);
    schedule.commutative = schedule.commutative || program.needs_commutative;
    schedule.unequal = schedule.unequal && takes_unequal_counts(program, groups);
  }
  schedule.peers = sim::links_of(list);
  return schedule;
}

Schedule draw_schedule(Dice& dice, std::uint32_t most_ranks) {
  const std::uint32_t ranks = dice.number(2, most_ranks);
  const AlgorithmList table = algorithms();
  const auto searched = searched::searched_algorithms();
  constexpr std::uint32_t kWindows[] = {1, 2, 3, 4, 6, 8, 8, 8, 12, 16};
  constexpr std::uint32_t kBlocks[] = {16, 32, 64, 64, 96, 256};
  for (;;) {
    ScheduleSpec spec{.topology = draw_topology(dice, ranks),
                      .root = dice.number(0, ranks - 1),
                      .window = kWindows[dice.number(0, 9)],
                      .block_bytes = kBlocks[dice.number(0, 5)],
                      .run_length = dice.number(0, 3)};
    spec.radix = spec.run_length == 1 ? 0 : spec.run_length;
    spec.ratio_numerator = spec.run_length;
    spec.ratio_denominator = spec.run_length == 0 ? 0 : 4;
    spec.send_ticks = dice.number(1, 2);
    spec.latency_ticks = spec.send_ticks + dice.number(0, 2);
    const std::uint32_t pick =
        dice.number(0, static_cast<std::uint32_t>(table.size() + searched.size()) - 1);
    spec.algorithm = pick < table.size() ? table[pick].name : searched[pick - table.size()].name;
    spec.collective =
        pick < table.size() ? table[pick].collective : searched[pick - table.size()].collective;
    if (!spec.topology.starts_with("complete") && dice.one_in(2)) {
      spec.links = dice.one_in(3) ? Links::kSingleSend : Links::kMultiport;
    }
    // A window of less than L does not run.
    if (spec.window < spec.latency_ticks) continue;
    auto schedule = make_schedule(spec);
    // A rounded number of blocks that is large makes messages too long for a storm.
    if (schedule && schedule->programs[0].residue_mod <= 8) return *std::move(schedule);
  }
}

Result<void> check_faults(const Plan& plan, const Schedule& schedule) {
  const std::size_t nodes = schedule.peers.size();
  for (const Fault& fault : plan.faults) {
    const std::string name = std::string(kind_name(fault.kind)) + ": ";
    for (const std::uint32_t node : {fault.node, fault.peer}) {
      if (node < nodes) continue;
      return fail(name + "there is no node " + text(node) + "; expected 0 to " +
                  std::to_string(nodes - 1));
    }
    if (!is_of_link(fault.kind)) continue;
    const auto& peers = schedule.peers[fault.node];
    if (std::find(peers.begin(), peers.end(), fault.peer) == peers.end()) {
      return fail(name + "node " + text(fault.node) + " has no link to node " + text(fault.peer));
    }
  }
  return {};
}

testing::Job job_of(const Plan& plan, const Schedule& schedule, std::uint32_t round) {
  const Program& program = schedule.programs[0];
  testing::Job job{
      .collective = program.collective, .programs = &schedule.programs, .root = plan.schedule.root};
  if (plan.op == Op::kCustom) {
    job.op = affine();
  } else {
    job.op.op = plan.op;
    job.op.type = plan.type;
  }
  job.in_place = plan.in_place;
  job.seed = static_cast<unsigned>(plan.seed * 64 + round);
  if (job.collective == Collective::kBarrier) return job;
  job.count = testing::count_of_blocks(program, job.op, plan.blocks);
  job.count -= std::min(job.count, plan.missing);
  // The rounds differ, so that a message of another round is not taken for one of this.
  if (round % 2 == 1) job.count -= std::min<std::uint64_t>(job.count, 1 + job.count / 3);
  if (!plan.unequal) return job;
  const std::uint64_t entries = unequal_entries(job.collective, program.ranks);
  for (std::uint64_t k = 0; k < entries; ++k) {
    job.counts.push_back(job.count * ((k + round) * 7 % 5) / 4);
  }
  job.counts[entries / 2] = job.count;
  return job;
}

}  // namespace espalier::storm
