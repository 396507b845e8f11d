#include "planner/choose/candidates.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "collectives/predict/block_rules.h"
#include "espalier/collectives/embed/place.h"
#include "espalier/collectives/schedule/expand.h"
#include "planner/board/board_limits.h"
#include "planner/failure.h"
#include "planner/make/blocks.h"
#include "planner/make/bound.h"

namespace espalier::planner {
namespace {

// Above this number of nodes, programs are not kept, and only some of them are read.
constexpr std::uint32_t kMaxKept = 1024;
constexpr std::uint32_t kSampled = 16;
// Run lengths and radices that are tried among all algorithms.
constexpr std::uint32_t kRunLengths[] = {1, 2, 4, 8, 16};
constexpr std::uint32_t kRadices[] = {3, 4, 8};
constexpr std::uint32_t kMaxFlatRanks = 16;

// The ticks L/S nearest above lambda, for S = 1 and S = 2.
std::vector<std::string> lambdas(const predict::Model& model, const topology::Topology& topology) {
  const std::uint32_t permille = predict::slowest(model, topology, 0).lambda_permille;
  std::vector<std::string> all = {""};
  if (permille <= 1000) return all;
  all.push_back(std::to_string((permille + 999) / 1000));
  const std::uint32_t halves = (permille + 499) / 500;
  if (halves % 2 != 0) all.push_back(std::to_string(halves) + "/2");
  return all;
}

// Where a selection has the value of a parameter.
std::string& value_of(Selection& selection, const std::string& parameter) {
  if (parameter == "--lambda") return selection.lambda;
  if (parameter == "--ratio") return selection.ratio;
  return parameter == "--radix" ? selection.radix : selection.run_length;
}

// The algorithm's own run length and a few others; all that differ if the algorithm `is_named`, for
// then they are all that can be chosen.
std::vector<std::string> run_lengths(const AlgorithmEntry& entry, bool is_named,
                                     std::uint32_t ranks) {
  const std::uint32_t longest = std::min(entry.max_run_length, ranks - 1);
  std::vector<std::string> all;
  if (!is_named || longest == 0) all.emplace_back(kOwnRunLength);
  for (std::uint32_t length = 1; length <= longest; ++length) {
    if (is_named || std::find(std::begin(kRunLengths), std::end(kRunLengths), length) !=
                        std::end(kRunLengths)) {
      all.push_back(std::to_string(length));
    }
  }
  return all;
}

// Whether a tree is tried in which the root sends to every other rank: over memory, no rank waits
// twice for its turn. Not of sums: they would be rounded in another order than elsewhere.
bool has_flat_tree(const ChoiceRequest& request, const topology::Topology& topology) {
  return request.selection.collective == collective_name(Collective::kBroadcast) &&
         topology.ranks() > 2 && topology.ranks() <= kMaxFlatRanks;
}

// The values that are tried of one parameter; empty, or kOwnRunLength: the algorithm's own choice.
std::vector<std::string> values_of(const std::string& parameter, const AlgorithmEntry& entry,
                                   const ChoiceRequest& request,
                                   const topology::Topology& topology) {
  if (parameter == "--lambda") return lambdas(request.model, topology);
  if (parameter == "--ratio") return {""};
  if (parameter == "--radix") {
    std::vector<std::string> all = {""};
    for (const std::uint32_t radix : kRadices) {
      if (radix < topology.ranks()) all.push_back(std::to_string(radix));
    }
    if (has_flat_tree(request, topology)) all.push_back(std::to_string(topology.ranks()));
    return all;
  }
  return run_lengths(entry, request.selection.algorithm != kAuto, topology.ranks());
}

// The selections of one algorithm, with all values of its parameters that the user left open.
std::vector<Selection> selections_of(const AlgorithmEntry& entry, const ChoiceRequest& request,
                                     const topology::Topology& topology) {
  std::vector<Selection> all = {request.selection};
  all.front().algorithm = entry.name;
  for (const std::string& parameter : entry.parameters) {
    if (!value_of(all.front(), parameter).empty()) continue;
    std::vector<Selection> more;
    for (const Selection& selection : all) {
      for (const std::string& value : values_of(parameter, entry, request, topology)) {
        more.push_back(selection);
        value_of(more.back(), parameter) = value;
      }
    }
    all = std::move(more);
  }
  return all;
}

bool is_plain(const Selection& selection) {
  const bool own = selection.run_length.empty() || selection.run_length == kOwnRunLength;
  return own && selection.radix.empty() && selection.lambda.empty() && selection.ratio.empty();
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
  const topology::Topology& topology = *candidate.selected->topology;
  return request.selection.algorithm == kAuto && request.selection.links != "hop-by-hop" &&
         candidate.selected->nodes > topology.ranks() && topology.shape().height == 0;
}

// The reason why the nodes cannot have the schedule; empty if they can.
std::string refusal(const ChoiceRequest& request, const Candidate& candidate, const Operator& op) {
  const Program& first = candidate.programs.front();
  if (ports_needed(first.port_model) > ports_needed(request.ports)) {
    return "it needs more ports than the nodes have (--node-ports)";
  }
  if (asks_routers_to_run(request, candidate)) {
    return "its routers run programs; expected --links hop-by-hop, or its name";
  }
  const bool in_order = op.op == Op::kCustom && !op.commutes;
  for (const Program& program : candidate.programs) {
    if (in_order && program.needs_commutative) {
      return "it does not keep the order of ranks, and operator '" + request.combining.op +
             "' does not commute";
    }
    if (request.limits == nullptr) continue;
    const auto checked = check_limits(*request.limits, program);
    if (!checked) return "on this board: " + checked.error().message;
  }
  return "";
}

void generate_programs(Candidate& candidate) {
  const SelectedAlgorithm& selected = *candidate.selected;
  candidate.has_all_programs = selected.nodes <= kMaxKept;
  if (candidate.has_all_programs) {
    candidate.programs.resize(selected.nodes);
    for (std::uint32_t node = 0; node < selected.nodes; ++node) {
      generate(selected, node, candidate.programs[node]);
    }
    return;
  }
  candidate.programs.resize(kSampled + 1);
  for (std::uint32_t i = 0; i < kSampled; ++i) {
    generate(selected, static_cast<std::uint32_t>(std::uint64_t{selected.nodes} * i / kSampled),
             candidate.programs[i]);
  }
  generate(selected, selected.parameters.root, candidate.programs[kSampled]);
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
  Crowd crowd;
  crowd.is_exchange = true;
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

void add_schedule(const ChoiceRequest& request, const Operator& op, Candidate& candidate) {
  candidate.selected = std::make_unique<SelectedAlgorithm>(select_algorithm(candidate.selection));
  SelectedAlgorithm& selected = *candidate.selected;
  candidate.is_placed = selected.embedding.has_value();
  generate_programs(candidate);
  const auto program = [&candidate](std::uint32_t i) -> const Program& {
    return candidate.programs.at(i);
  };
  candidate.lengths = std::make_unique<predict::StepLengths>(
      static_cast<std::uint32_t>(candidate.programs.size()), program);
  const predict::LinkCost cost =
      predict::pipeline_cost(request.model, *selected.topology, 4096,
                             predict::ranks_on_host(*selected.topology, request.conditions));
  if (request.model.crowding.known()) candidate.crowd = crowd_of(candidate.programs);
  selected.rules =
      predict::block_rules(candidate.programs.front(), *candidate.lengths, cost, max_rules(request),
                           max_block_bytes(request.model.crowding, candidate.crowd));
  for (OwnedProgram& one : candidate.programs) predict::set_block_rules(selected.rules, one);
  candidate.dropped = refusal(request, candidate, op);
  if (candidate.dropped.empty() && candidate.has_all_programs) {
    candidate.bounds = bounds_of(*selected.topology, program);
    candidate.volume_bounds = volume_bounds(*selected.topology, candidate.programs);
  }
}

// The placements to try for an algorithm: the best one known, and if that is one, none; a chain or
// ring on a mesh also as a snake, halving also in Z-order. The last two are dropped if the operator
// of a reduction does not commute.
std::vector<std::string> placements(const ChoiceRequest& request, const Candidate& best) {
  if (!request.selection.embedding.empty()) return {};
  std::vector<std::string> more;
  // Programs of groups are made for the placement.
  const bool has_groups = best.selected != nullptr && best.selected->algorithm.has_groups;
  if (best.is_placed && !has_groups) more.emplace_back("none");
  if (best.selected != nullptr && best.selected->algorithm.is_chain &&
      best.selected->topology->shape().rows > 0 && !best.selected->embedding &&
      embed::check_placeable(best.selected->algorithm.collective)) {
    more.emplace_back("snake");
  }
  if (best.selected != nullptr && best.selected->algorithm.name == "rabenseifner" &&
      best.selected->topology->shape().rows > 1 && best.selected->topology->shape().columns > 1 &&
      topology::z_order(*best.selected->topology)) {
    more.emplace_back("z-order");
  }
  return more;
}

bool tries_short_window(const Candidate& candidate) {
  return candidate.selection.window.empty() && candidate.crowd.is_exchange &&
         candidate.crowd.fan_in > kShortWindow;
}

Candidate make_candidate(const ChoiceRequest& request, const Operator& op, Selection selection) {
  Candidate candidate;
  candidate.name = candidate_name(selection);
  candidate.selection = std::move(selection);
  try {
    add_schedule(request, op, candidate);
  } catch (const Failure& failure) {
    candidate.dropped = failure.line;
  }
  if (!candidate.dropped.empty()) {
    candidate.programs.clear();
    candidate.selected = nullptr;
  }
  return candidate;
}

// Whether `auto` must not take the algorithm because the fabric may route.
bool needs_own_links(const AlgorithmEntry& entry, const ChoiceRequest& request) {
  const bool own_links = entry.search != nullptr && entry.search->own_links;
  return own_links && request.selection.algorithm == kAuto &&
         request.selection.links != "hop-by-hop";
}

}  // namespace

std::string candidate_name(const Selection& selection) {
  std::string name = selection.algorithm;
  if (!selection.run_length.empty() && selection.run_length != kOwnRunLength) {
    name += ", run length " + selection.run_length;
  }
  if (!selection.radix.empty()) name += ", radix " + selection.radix;
  if (!selection.lambda.empty()) name += ", lambda " + selection.lambda;
  if (!selection.ratio.empty()) name += ", ratio " + selection.ratio;
  if (!selection.embedding.empty()) name += ", embedding " + selection.embedding;
  if (!selection.window.empty()) name += ", window " + selection.window;
  return name;
}

const predict::Tuning* tuning_of(const predict::Model& model, const Selection& selection) {
  const bool by_default =
      selection.window.empty() && selection.links.empty() && selection.ports.empty();
  if (model.tunings.empty() || !by_default) return nullptr;
  return model.tuning(check_selection(selection)->spec(), selection.collective);
}

SelectedAlgorithm fit_named(const ChoiceRequest& request) {
  Candidate candidate;
  candidate.name = candidate_name(request.selection);
  candidate.selection = request.selection;
  add_schedule(request, operator_of(request), candidate);
  if (!candidate.dropped.empty()) {
    bad_input("algorithm '" + candidate.name + "': " + candidate.dropped +
              "; expected another algorithm, or auto");
  }
  return std::move(*candidate.selected);
}

Operator operator_of(const ChoiceRequest& request) {
  Collective collective = Collective::kNone;
  if (!parse_collective(request.selection.collective.c_str(), collective)) return {};
  Program program;
  program.clear();
  program.collective = collective;
  program.ranks = 1;
  return or_bad_input(case_of(program, request.combining)).op;
}

std::vector<Candidate> make_candidates(const ChoiceRequest& request) {
  const std::unique_ptr<topology::Topology> topology = check_selection(request.selection);
  const Operator op = operator_of(request);
  std::vector<Candidate> all;
  for (const AlgorithmEntry& entry : algorithm_entries()) {
    if (collective_name(entry.collective) != request.selection.collective) continue;
    if (request.selection.algorithm != kAuto && request.selection.algorithm != entry.name) continue;
    std::vector<Selection> selections = selections_of(entry, request, *topology);
    if (needs_own_links(entry, request)) {
      Candidate& candidate = all.emplace_back();
      candidate.name = candidate_name(selections.front());
      candidate.selection = selections.front();
      candidate.dropped = "its nodes use all their links in a step; expected --links hop-by-hop";
      continue;
    }
    for (Selection& selection : selections) {
      Candidate candidate = make_candidate(request, op, selection);
      // One candidate is enough if the algorithm can do nothing here.
      const bool is_useless = !candidate.dropped.empty() && &selection != &selections.front();
      std::vector<std::string> more;
      if (is_plain(selection)) more = placements(request, candidate);
      const bool is_crowded = tries_short_window(candidate);
      if (!is_useless) all.push_back(std::move(candidate));
      const auto add = [&](std::string Selection::*field, const std::string& value) {
        Selection other = selection;
        other.*field = value;
        Candidate added = make_candidate(request, op, std::move(other));
        if (added.dropped.empty()) all.push_back(std::move(added));
      };
      for (const std::string& placement : more) add(&Selection::embedding, placement);
      if (is_crowded) add(&Selection::window, std::to_string(kShortWindow));
    }
  }
  return all;
}

}  // namespace espalier::planner
