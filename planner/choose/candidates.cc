#include "planner/choose/candidates.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "base/one_line.h"
#include "collectives/predict/block_rules.h"
#include "collectives/schedule/expand.h"
#include "espalier/collectives/embed/place.h"
#include "planner/board/board_limits.h"
#include "planner/make/blocks.h"
#include "planner/make/bound.h"
#include "planner/workload/reference.h"

namespace espalier::planner {
namespace {

// Above this number of nodes, programs are not kept, and only some of them are read.
constexpr std::uint32_t kMaxKept = 1024;
constexpr std::uint32_t kSampled = 16;
// Run lengths and radices that are tried among all algorithms.
constexpr std::uint32_t kRunLengths[] = {1, 2, 4, 8, 16};
constexpr std::uint32_t kRadices[] = {3, 4, 8};
constexpr std::uint32_t kMaxFlatRanks = 16;

// The ticks L/S nearest above lambda, for S = 1 and S = 2; without, first.
std::vector<Fraction> lambdas(const predict::Model& model, const topology::Topology& topology) {
  const std::uint32_t permille = predict::slowest(model, topology, 0).lambda_permille;
  std::vector<Fraction> all = {{}};
  if (permille <= 1000) return all;
  all.push_back({(permille + 999) / 1000, 1});
  const std::uint32_t halves = (permille + 499) / 500;
  if (halves % 2 != 0) all.push_back({halves, 2});
  return all;
}

// Whether a tree is tried in which the root sends to every other rank: over memory, no rank waits
// twice for its turn. Not of sums: they would be rounded in another order than elsewhere.
bool has_flat_tree(const PlanRequest& plan) {
  const std::uint32_t ranks = plan.topology->ranks();
  return plan.collective == Collective::kBroadcast && ranks > 2 && ranks <= kMaxFlatRanks;
}

// The k of k-nomial trees; 0: the algorithm's own.
std::vector<std::uint32_t> radices(const PlanRequest& plan) {
  std::vector<std::uint32_t> all = {0};
  for (const std::uint32_t radix : kRadices) {
    if (radix < plan.topology->ranks()) all.push_back(radix);
  }
  if (has_flat_tree(plan)) all.push_back(plan.topology->ranks());
  return all;
}

// The algorithm's own run length, 0, and a few others; all that differ if the algorithm `is_named`,
// for then they are all that can be chosen.
std::vector<std::uint32_t> run_lengths(const AlgorithmEntry& entry, bool is_named,
                                       std::uint32_t ranks) {
  const std::uint32_t longest = std::min(entry.max_run_length, ranks - 1);
  std::vector<std::uint32_t> all;
  if (!is_named || longest == 0) all.push_back(0);
  for (std::uint32_t length = 1; length <= longest; ++length) {
    if (is_named || std::find(std::begin(kRunLengths), std::end(kRunLengths), length) !=
                        std::end(kRunLengths)) {
      all.push_back(length);
    }
  }
  return all;
}

// The plan with each value that is tried of a parameter, unless the user gave one.
std::vector<PlanRequest> with_values(const PlanRequest& plan, const std::string& parameter,
                                     const ChoiceRequest& request) {
  std::vector<PlanRequest> all;
  const auto add = [&all, &plan]() -> PlanRequest& { return all.emplace_back(plan); };
  if (parameter == "--lambda" && !plan.lambda.is_given()) {
    for (const Fraction& lambda : lambdas(request.model, *plan.topology)) add().lambda = lambda;
  } else if (parameter == "--radix" && plan.radix == 0) {
    for (const std::uint32_t radix : radices(plan)) add().radix = radix;
  } else if (parameter == "--run-length" && plan.run_length == 0 && !plan.has_own_run_length) {
    for (const std::uint32_t length :
         run_lengths(*plan.algorithm, request.plan.algorithm != nullptr, plan.topology->ranks())) {
      PlanRequest& one = add();
      one.run_length = length;
      one.has_own_run_length = length == 0;
    }
  } else {
    add();
  }
  return all;
}

// The plans of one algorithm, with all values of its parameters that the user left open.
std::vector<PlanRequest> plans_of(const AlgorithmEntry& entry, const ChoiceRequest& request) {
  std::vector<PlanRequest> all = {request.plan};
  all.front().algorithm = &entry;
  for (const std::string& parameter : entry.parameters) {
    std::vector<PlanRequest> more;
    for (const PlanRequest& plan : all) {
      for (PlanRequest& one : with_values(plan, parameter, request)) more.push_back(std::move(one));
    }
    all = std::move(more);
  }
  return all;
}

bool is_plain(const PlanRequest& plan) {
  return plan.run_length == 0 && plan.radix == 0 && !plan.lambda.is_given() &&
         !plan.ratio.is_given();
}

// Port models by what they need, least first.
std::uint32_t ports_needed(PortModel ports) {
  switch (ports) {
    case PortModel::kSimplex: return 0;
    case PortModel::kOnePortDuplex: return 1;
    case PortModel::kSingleSend: return 2;
    default: return 3;
  }
}

// Whether the schedule has programs for routers that may only route. Routers of fat trees run
// programs, those of other topologies only if the schedule must be hop by hop.
bool asks_routers_to_run(const ChoiceRequest& request, const Candidate& candidate) {
  const topology::Topology& topology = *candidate.schedule->topology;
  return request.plan.algorithm == nullptr && !request.plan.is_hop_by_hop &&
         candidate.schedule->nodes > topology.ranks() && topology.shape().height == 0;
}

// The reason why the nodes cannot have the schedule; empty if they can.
std::string refusal(const ChoiceRequest& request, const Candidate& candidate) {
  if (ports_needed(candidate.programs.front().port_model) > ports_needed(request.ports)) {
    return "it needs more ports than the nodes have (--node-ports)";
  }
  if (asks_routers_to_run(request, candidate)) {
    return "its routers run programs; expected --links hop-by-hop, or its name";
  }
  const bool in_order = request.op.op == Op::kCustom && !request.op.commutes;
  for (const Program& program : candidate.programs) {
    if (in_order && program.needs_commutative) {
      return "it does not keep the order of ranks, and operator '" +
             reference::operator_name(request.op) + "' does not commute";
    }
    if (request.limits == nullptr) continue;
    const auto checked = check_limits(*request.limits, program);
    if (!checked) return "on this board: " + checked.error().message;
  }
  return "";
}

Result<void> generate_programs(Candidate& candidate) {
  const PlannedSchedule& schedule = *candidate.schedule;
  candidate.has_all_programs = schedule.nodes <= kMaxKept;
  std::vector<std::uint32_t> nodes;
  for (std::uint32_t i = 0; candidate.has_all_programs && i < schedule.nodes; ++i) {
    nodes.push_back(i);
  }
  for (std::uint32_t i = 0; !candidate.has_all_programs && i < kSampled; ++i) {
    nodes.push_back(static_cast<std::uint32_t>(std::uint64_t{schedule.nodes} * i / kSampled));
  }
  if (!candidate.has_all_programs) nodes.push_back(schedule.parameters.root);
  candidate.programs.resize(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    auto made = generate(schedule, nodes[i], candidate.programs[i]);
    if (!made) return made;
  }
  return {};
}

// The rows that a node's block table has room for.
std::uint32_t max_rules(const ChoiceRequest& request) {
  if (request.limits == nullptr) return predict::kMaxBlockRules;
  return std::clamp(request.limits->blocks(), 1u, predict::kMaxBlockRules);
}

std::vector<verify::LowerBound> volume_bounds(const topology::Topology& topology,
                                              const Programs& programs) {
  OwnedProgram one_segment;
  return bounds_of(topology, [&](std::uint32_t node) -> const Program& {
    one_segment = programs.at(node);
    for (std::uint32_t i = 0; i < one_segment.actions_count; ++i) {
      one_segment.actions[i].a.segment_count = one_segment.actions[i].into.segment_count = 0;
    }
    return one_segment;
  });
}

// A number of blocks with which a pipeline uses all its links.
std::int64_t many_blocks(const Program& program) {
  constexpr std::int64_t kMany = 16;
  if (!cuts_messages(program)) return 1;
  const auto mod = static_cast<std::int64_t>(std::max<std::uint32_t>(1, program.residue_mod));
  return program.residue + (kMany + mod - 1) / mod * mod;
}

// Whether a node sends only what it has from the start, and receives in each of its steps: a short
// window keeps it from running ahead of the others, and delays nothing else.
bool is_exchange(const std::vector<Instance>& instances) {
  std::int64_t step = -1;
  bool receives = true;  // in `step`
  for (const Instance& instance : instances) {
    const bool waits = instance.kind == ActionKind::kSend && instance.after > 0;
    if (waits || instance.kind == ActionKind::kCombine) return false;
    if (instance.step != step) {
      if (!receives) return false;
      step = instance.step;
      receives = false;
    }
    receives = receives || instance.kind == ActionKind::kReceive;
  }
  return receives;
}

Crowd crowd_of(const std::vector<OwnedProgram>& programs) {
  Crowd crowd{.is_exchange = true};
  const std::int64_t blocks = many_blocks(programs.front());
  for (const Program& program : programs) {
    std::set<std::int64_t> senders;
    const std::vector<Instance> instances = expand(program, blocks);
    for (const Instance& instance : instances) {
      if (instance.kind == ActionKind::kReceive) senders.insert(instance.peer);
      if (instance.kind == ActionKind::kSend) crowd.segments += instance.a.segment_count;
    }
    crowd.fan_in = std::max(crowd.fan_in, static_cast<std::uint32_t>(senders.size()));
    crowd.is_exchange = crowd.is_exchange && is_exchange(instances);
  }
  const std::uint64_t shares = programs.size() * static_cast<std::uint64_t>(blocks);
  crowd.segments = (crowd.segments + shares - 1) / shares;
  return crowd;
}

// Messages of few peers take turns by themselves.
std::uint32_t max_block_bytes(const predict::Crowding& crowding, const Crowd& crowd) {
  const bool cuts = crowding.known() && crowd.fan_in > 2;
  return cuts ? crowding.max_block_bytes : predict::kMaxBlockBytes;
}

// Makes the candidate's schedule, or sets `dropped`.
void add_schedule(const ChoiceRequest& request, Candidate& candidate) {
  auto made = make_schedule(candidate.plan);
  if (!made) {
    candidate.dropped = one_line(made.error().message);
    return;
  }
  candidate.schedule = std::make_unique<PlannedSchedule>(*std::move(made));
  PlannedSchedule& schedule = *candidate.schedule;
  candidate.is_placed = schedule.embedding.has_value();
  if (const auto generated = generate_programs(candidate); !generated) {
    candidate.dropped = one_line(generated.error().message);
    return;
  }
  const auto program = [&candidate](std::uint32_t i) -> const Program& {
    return candidate.programs.at(i);
  };
  candidate.lengths = std::make_unique<predict::StepLengths>(
      static_cast<std::uint32_t>(candidate.programs.size()), program);
  const predict::LinkCost cost =
      predict::pipeline_cost(request.model, *schedule.topology, 4096,
                             predict::ranks_on_host(*schedule.topology, request.conditions));
  if (request.model.crowding.known()) candidate.crowd = crowd_of(candidate.programs);
  schedule.rules =
      predict::block_rules(candidate.programs.front(), *candidate.lengths, cost, max_rules(request),
                           max_block_bytes(request.model.crowding, candidate.crowd));
  for (OwnedProgram& one : candidate.programs) predict::set_block_rules(schedule.rules, one);
  candidate.dropped = refusal(request, candidate);
  if (candidate.dropped.empty() && candidate.has_all_programs) {
    candidate.bounds = bounds_of(*schedule.topology, program);
    candidate.volume_bounds = volume_bounds(*schedule.topology, candidate.programs);
  }
}

// The placements to try for an algorithm: the best one known, and if that is one, none; a chain or
// ring on a mesh also as a snake, halving also in Z-order. The last two are dropped if the operator
// of a reduction does not commute.
std::vector<Placement> placements(const ChoiceRequest& request, const Candidate& best) {
  using Kind = Placement::Kind;
  if (request.plan.placement.kind != Kind::kBest) return {};
  std::vector<Placement> more;
  const AlgorithmEntry& entry = *best.plan.algorithm;
  const topology::Topology& topology = *best.plan.topology;
  // Programs of groups are made for the placement.
  const bool has_groups = best.schedule != nullptr && entry.has_groups;
  if (best.is_placed && !has_groups) more.push_back({Kind::kAsNumbered});
  if (best.schedule == nullptr) return more;
  const topology::Shape shape = topology.shape();
  if (entry.is_chain && shape.rows > 0 && !best.schedule->embedding &&
      embed::check_placeable(entry.collective)) {
    more.push_back({Kind::kSnake});
  }
  if (entry.name == "rabenseifner" && shape.rows > 1 && shape.columns > 1 &&
      topology::z_order(topology)) {
    more.push_back({Kind::kZOrder});
  }
  return more;
}

bool tries_short_window(const Candidate& candidate) {
  return candidate.plan.window == 0 && candidate.crowd.is_exchange &&
         candidate.crowd.fan_in > kShortWindow;
}

Candidate make_candidate(const ChoiceRequest& request, PlanRequest plan) {
  Candidate candidate;
  candidate.name = candidate_name(plan);
  candidate.plan = std::move(plan);
  add_schedule(request, candidate);
  if (!candidate.dropped.empty()) {
    candidate.programs.clear();
    candidate.schedule = nullptr;
  }
  return candidate;
}

// Whether `auto` must not take the algorithm because the fabric may route.
bool needs_own_links(const AlgorithmEntry& entry, const ChoiceRequest& request) {
  const bool own_links = entry.search != nullptr && entry.search->own_links;
  return own_links && request.plan.algorithm == nullptr && !request.plan.is_hop_by_hop;
}

}  // namespace

const predict::Tuning* tuning_of(const predict::Model& model, const PlanRequest& request) {
  const bool by_default =
      request.window == 0 && !request.is_hop_by_hop && request.ports == PortModel::kMultiport;
  if (model.tunings.empty() || !by_default) return nullptr;
  return model.tuning(request.topology->spec(), collective_name(request.collective));
}

Result<PlannedSchedule> fit_named(const ChoiceRequest& request) {
  Candidate candidate;
  candidate.plan = request.plan;
  add_schedule(request, candidate);
  if (candidate.dropped.empty()) return std::move(*candidate.schedule);
  // The error of an algorithm that makes no schedule names it.
  if (candidate.lengths == nullptr) return fail(candidate.dropped);
  return fail("algorithm '" + candidate_name(request.plan) + "': " + candidate.dropped +
              "; expected another algorithm, or auto");
}

std::vector<Candidate> make_candidates(const ChoiceRequest& request) {
  std::vector<Candidate> all;
  for (const AlgorithmEntry& entry : algorithm_entries()) {
    if (entry.collective != request.plan.collective) continue;
    if (request.plan.algorithm != nullptr && request.plan.algorithm != &entry) continue;
    std::vector<PlanRequest> plans = plans_of(entry, request);
    if (needs_own_links(entry, request)) {
      Candidate& candidate = all.emplace_back();
      candidate.name = candidate_name(plans.front());
      candidate.plan = plans.front();
      candidate.dropped = "its nodes use all their links in a step; expected --links hop-by-hop";
      continue;
    }
    for (const PlanRequest& plan : plans) {
      Candidate candidate = make_candidate(request, plan);
      // One candidate is enough if the algorithm can do nothing here.
      const bool is_useless = !candidate.dropped.empty() && &plan != &plans.front();
      std::vector<Placement> more;
      if (is_plain(plan)) more = placements(request, candidate);
      const bool is_crowded = tries_short_window(candidate);
      if (!is_useless) all.push_back(std::move(candidate));
      const auto add = [&](PlanRequest other) {
        Candidate added = make_candidate(request, std::move(other));
        if (added.dropped.empty()) all.push_back(std::move(added));
      };
      for (const Placement& placement : more) {
        PlanRequest other = plan;
        other.placement = placement;
        add(std::move(other));
      }
      if (is_crowded) {
        PlanRequest other = plan;
        other.window = kShortWindow;
        add(std::move(other));
      }
    }
  }
  return all;
}

}  // namespace espalier::planner
