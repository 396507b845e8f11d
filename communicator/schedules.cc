#include "communicator/schedules.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <iterator>
#include <span>

#include "base/counted.h"
#include "base/digest.h"
#include "base/one_line.h"
#include "base/process/variables.h"
#include "base/read_file.h"
#include "base/try.h"
#include "collectives/machine/affine.h"
#include "collectives/schedule/selection.h"
#include "communicator/cables/cable_model.h"
#include "communicator/cables/fixed_algorithms.h"
#include "communicator/cables/rank_graph.h"
#include "communicator/cache/chosen_cache.h"
#include "communicator/cache/proven_cache.h"
#include "communicator/image_programs.h"
#include "espalier/collectives/verify/verify.h"
#include "espalier/internal/base/assert.h"
#include "espalier/internal/base/limits.h"
#include "planner/choose/chosen_schedules.h"
#include "planner/files/loaded_schedule.h"
#include "planner/workload/reference.h"

namespace espalier::communicator {
namespace {

// Above this number of ranks, ranking all candidates takes seconds, and fixed algorithms with
// logarithmically many links serve every size.
constexpr std::uint32_t kMaxRankedRanks = 64;

// Schedules of the fewest messages, all between the root, or rank 0, and the others.
struct Star {
  Collective::Value collective;
  const char* algorithm;
};
constexpr Star kStars[] = {
    {Collective::kBroadcast, "breadth-first"},
    {Collective::kScatter, "linear"},
    {Collective::kGather, "linear"},
    {Collective::kBarrier, "breadth-first"},
};

// The taken candidate is predicted to be within so much of the best.
constexpr std::uint64_t kPercent = 5, kNetworkPercent = 1;

std::string text_of(Collective collective, std::uint32_t root) {
  std::string text = collective_name(collective);
  if (has_root(collective)) text += " from or to root " + std::to_string(root);
  return text;
}

bool breaks_order(const PlannedProgram& planned, const ScheduleRequest& request) {
  return breaks_order(planned.program, request.commutes);
}

// All programs of a schedule, read once.
struct Facts {
  std::uint64_t digest = kDigestSeed;  // of all programs
  bool unequal_counts = true;          // every node's program can have a count for each rank
  std::uint32_t links = 0;             // maximum of a node
};

Result<Facts> read_facts(const planner::PlannedSchedule& schedule) {
  Facts facts;
  std::vector<std::uint8_t> bytes(1 << 12);
  OwnedProgram one;
  for (std::uint32_t node = 0; node < schedule.nodes; ++node) {
    ESPALIER_TRY(planner::generate(schedule, node, one));
    SlotGroups groups;
    facts.links = std::max(facts.links, links_count(one));
    facts.unequal_counts = facts.unequal_counts && counts_per_rank(one.collective) &&
                           takes_unequal_counts(one, groups);
    std::size_t written = 0;
    while (encode_program(one, bytes.data(), bytes.size(), written) == Status::kTooLarge &&
           bytes.size() < (std::size_t{1} << 24)) {
      bytes.resize(bytes.size() * 2);
    }
    facts.digest = digest_bytes(digest_u64(facts.digest, written), bytes.data(), written);
  }
  return facts;
}

}  // namespace

// The candidates of one collective: those of the model's choice, and the table that chooses.
struct Schedules::Chosen {
  std::vector<planner::PlannedSchedule> schedules;
  std::vector<std::string> names;
  SelectionTable table = {};                // of several schedules
  std::vector<planner::PlanRequest> plans;  // what they are made from
};

Schedules::Schedules(std::uint32_t rank, const Costs& costs, std::optional<predict::Model> model,
                     std::shared_ptr<const topology::Topology> topology,
                     std::shared_ptr<const ImagePrograms> image)
    : rank_(rank),
      ranks_(topology->ranks()),
      has_hosts_(topology->shape().hosts > 0),
      graph_(costs.graph),
      topology_(std::move(topology)),
      image_(std::move(image)),
      is_measuring_(costs.is_measuring),
      is_verbose_(rank == 0 && is_set(Variable::kVerbose)) {
  if (model) {
    model_ = *std::move(model);
  } else if (graph_ != nullptr) {
    set_network(costs.network.value_or(NetworkCost()));
  } else if (costs.memory_cores != 0) {
    model_ = predict::memory_model(costs.memory_cores, ranks_);
    conditions_.ranks_on_host = ranks_;
  } else if (costs.network) {
    set_network(*costs.network);
  }
}

Schedules::~Schedules() = default;

void Schedules::set_network(const NetworkCost& cost) {
  network_ = cost;
  if (graph_ != nullptr) {
    model_ = cable_model(cost, graph_->lane_mbits());
  } else if (cost.message_ps != 0) {
    model_ = predict::network_model(cost);
  }
  if (cost.shared_cores != 0) conditions_.ranks_on_host = ranks_;
}

void Schedules::measured(const NetworkCost& cost) {
  set_network(cost);
  is_measuring_ = false;
}

Schedules::ChoiceKey Schedules::choice_key(const ScheduleRequest& request) {
  return {request.collective, !request.commutes && combines_operands(request.collective) &&
                                  has_root(request.collective) && request.root != 0};
}

Schedules::Key Schedules::key_of(const Choice& choice, const ScheduleRequest& request) {
  const Source source = choice.index == kFixedChoice ? Source::kFixed
                        : choice_key(request).second ? Source::kChosenInOrder
                                                     : Source::kChosen;
  return {choice.name, source, request.collective, request.root};
}

bool Schedules::has_fixed_choice(const ScheduleRequest& request) const {
  return is_measuring_ || ranks_ > kMaxRankedRanks || request.collective == Collective::kBarrier ||
         find_star(request) != nullptr;
}

Result<planner::PlanRequest> Schedules::request_of(const ScheduleRequest& request,
                                                   const std::string& algorithm) const {
  planner::PlanRequest plan{
      .topology = topology_, .collective = request.collective, .root = request.root};
  plan.is_hop_by_hop = graph_ != nullptr;
  if (algorithm.empty()) return plan;
  ESPALIER_TRY_TO(plan.algorithm, planner::find_entry(request.collective, algorithm));
  return plan;
}

Result<void> Schedules::add_file(const std::string& path) {
  const auto contents = read_file(path, FileKind::kSchedule);
  if (!contents) return fail("the schedule: " + contents.error().message);
  std::vector<std::uint8_t> bytes(contents->begin(), contents->end());
  ESPALIER_TRY_TO(const auto loaded, planner::load_schedule(path, std::move(bytes), "", {}));
  const Program& first = loaded.programs.front();
  if (first.ranks != ranks_ || program_nodes(first) != ranks_) {
    return fail("the schedule '" + path + "' is for " + counted(first.ranks, "rank") + " and " +
                counted(program_nodes(first), "node") + "; expected one for the " +
                counted(ranks_, "rank") + " of this job, without programs for routers");
  }
  ESPALIER_ASSERT(loaded.programs.size() == ranks_);
  ESPALIER_TRY(check_links("the schedule '" + path + "'", loaded.programs));
  const verify::Verdict verdict = verify::verify(*loaded.topology, planner::programs_of(loaded),
                                                 {.links = false, .progress = {}});
  if (!verdict.valid) {
    return fail("the schedule '" + path + "' is not valid: " + verdict.counterexample.message);
  }
  const Key key{"", Source::kFile, Collective(first.collective), first.root};
  if (planned_.contains(key)) {
    return fail("the schedule '" + path + "': another file already serves " +
                text_of(first.collective, first.root));
  }
  const PlannedProgram* served = nullptr;
  if (image_ != nullptr && image_->find({.collective = first.collective, .root = first.root},
                                        served) != Status::kBadArgument) {
    return fail("the schedule '" + path + "': the image already serves " +
                text_of(first.collective, first.root));
  }
  planned_[key].program = {loaded.programs.at(rank_), path, verdict.in_place};
  return {};
}

Result<Schedules::Chosen*> Schedules::choose(const ScheduleRequest& request) {
  const ChoiceKey key = choice_key(request);
  const auto found = chosen_.find(key);
  if (found != chosen_.end()) return found->second.get();
  const bool in_order = key.second;
  ScheduleRequest example = request;
  example.root = in_order ? ranks_ / 2 : 0;
  ESPALIER_TRY_TO(auto plan, request_of(example, ""));
  planner::ChoiceRequest wanted;
  wanted.plan = std::move(plan);
  wanted.op = in_order ? affine() : reference::default_operator(request.collective);
  wanted.model = model_;
  wanted.conditions = conditions_;
  const std::string name = std::string("chosen-") + collective_name(request.collective) + "-" +
                           (in_order ? "in-order-" : "") + topology_name() + "-" +
                           std::to_string(model_.digest());
  auto chosen = std::make_unique<Chosen>();
  const auto make = [&](const KeptChoice& choice) -> Result<void> {
    *chosen = {};
    for (const planner::ChosenOrigin& origin : choice.origins) {
      ESPALIER_TRY_TO(auto schedule, planner::make_chosen(origin, wanted));
      chosen->names.push_back(planner::candidate_name(origin.plan));
      chosen->plans.push_back(origin.plan);
      chosen->schedules.push_back(std::move(schedule));
    }
    ESPALIER_ASSERT(choice.rows.size() <= kMaxSelectionRows);
    ESPALIER_ASSERT(choice.origins.size() == 1 || !choice.rows.empty());
    std::copy(choice.rows.begin(), choice.rows.end(), chosen->table.rows);
    chosen->table.rows_count = static_cast<pb_size_t>(choice.rows.size());
    return {};
  };
  bool is_made = false;
  // Not, if the file names a schedule that does not exist.
  const auto can_make = [&](const KeptChoice& choice) {
    is_made = make(choice).has_value();
    return is_made;
  };
  const auto kept = obtain_choice(name, wanted.plan, can_make, [&]() -> Result<KeptChoice> {
    ESPALIER_TRY_TO(auto all, planner::choose_for_all_sizes(
                                  wanted, network_.message_ps > 0 ? kNetworkPercent : kPercent));
    const std::span rows(all.table.rows, all.table.rows_count);
    return KeptChoice{std::move(all.origins), {rows.begin(), rows.end()}};
  });
  if (!kept) return fail(kept.error());
  if (!is_made) {
    ESPALIER_TRY(make(*kept));
  }
  const std::lock_guard lock(mutex_);
  return (chosen_[key] = std::move(chosen)).get();
}

const PlannedProgram* Schedules::known(const Key& key, const ScheduleRequest& request) const {
  const auto found = planned_.find(key);
  if (found == planned_.end()) return nullptr;
  const Planned& planned = found->second;
  return request.unequal_counts && !planned.takes_unequal_counts ? nullptr : &planned.program;
}

// Proves the schedule and keeps this rank's program.
Result<const PlannedProgram*> Schedules::plan(planner::PlannedSchedule& schedule, const Key& key,
                                              const ScheduleRequest& request) {
  ESPALIER_TRY_TO(const auto facts, read_facts(schedule));
  // Every rank must refuse it, not only the one with too many links.
  if (facts.links > kMaxLinks) {
    return fail("the schedule of " + text_of(request.collective, request.root) + " by '" +
                std::get<0>(key) + "' has " + counted(facts.links, "link") +
                " at one rank; a rank has at most " + std::to_string(kMaxLinks));
  }
  OwnedProgram scratch;
  // read_facts() has generated every program.
  const verify::Programs program = [&](std::uint32_t node) -> const Program& {
    const auto made = planner::generate(schedule, node, scratch);
    ESPALIER_ASSERT(made.has_value());
    return scratch;
  };
  std::string reason;
  // Programs have the digest of their topology, so a proof says whether links were regarded.
  const Proof proof = obtain_proof(facts.digest, [&] {
    verify::VerifyOptions options{.links = graph_ != nullptr};
    const verify::Verdict verdict = verify::verify(*schedule.topology, program, options);
    reason = verdict.counterexample.message;
    if (!verdict.valid) return Proof::kInvalid;
    return verdict.in_place ? Proof::kValidInPlace : Proof::kValid;
  });
  if (proof == Proof::kInvalid) {
    return fail("the schedule of " + text_of(request.collective, request.root) + " by '" +
                std::get<0>(key) + "' is not valid: " + reason);
  }
  OwnedProgram own;
  ESPALIER_ASSERT(rank_ < schedule.nodes && (graph_ == nullptr || schedule.nodes == ranks_));
  ESPALIER_TRY(planner::generate(schedule, rank_, own));
  const std::lock_guard lock(mutex_);
  // Calls keep pointers to one that is there.
  const auto [planned, is_new] = planned_.try_emplace(key);
  if (is_new) {
    planned->second = {{own, std::get<0>(key), proof == Proof::kValidInPlace},
                       facts.unequal_counts};
  }
  return &planned->second.program;
}

Result<const PlannedProgram*> Schedules::plan_fixed(const std::string& name,
                                                    const ScheduleRequest& request) {
  const Key key = fixed_key(name, request);
  if (const PlannedProgram* program = known(key, request)) return program;
  ESPALIER_TRY_TO(const auto wanted, request_of(request, name));
  ESPALIER_TRY_TO(auto schedule, planner::make_schedule(wanted));
  return plan(schedule, key, request);
}

// Returns the star if the message count, not the step count, decides: the ranks share few
// processors. A star has p - 1 messages (barrier: 2 (p - 1)), a tree exchange up to p log2(p). All
// its bytes cross the root's link, within half a burst, so that calls can follow each other. Null:
// none.
const char* Schedules::find_star(const ScheduleRequest& request) const {
  const std::uint32_t cores = network_.shared_cores;
  const bool counts_messages =
      cores > 0 && cores < static_cast<std::uint32_t>(std::bit_width(ranks_));
  if (is_measuring_ || has_hosts_ || graph_ != nullptr || !counts_messages ||
      ranks_ > kMaxRankedRanks) {
    return nullptr;
  }
  ESPALIER_ASSERT(ranks_ > 1 && network_.byte_fs > 0);
  const std::uint64_t most =
      network_.burst_bytes / 2 + network_.message_ps * 1000 / network_.byte_fs;
  if (request.bytes > most / (ranks_ - 1)) return nullptr;
  const auto star = std::find_if(std::begin(kStars), std::end(kStars), [&](const Star& one) {
    return one.collective == request.collective;
  });
  return star == std::end(kStars) ? nullptr : star->algorithm;
}

// Requires choose() before, unless has_fixed_choice().
Schedules::Choice Schedules::find_choice(const ScheduleRequest& request) const {
  const FixedAlgorithms& fixed = named(request.collective);
  // The fewest steps between hosts; and rings that cross them in a known way.
  if (has_hosts_ && request.collective == Collective::kBarrier) return {"hosts-dissemination"};
  if (has_hosts_ && is_measuring_ && request.collective == Collective::kAllgather) {
    return {"hosts-ring"};
  }
  if (const char* const star = find_star(request)) return {star};
  // As many steps as dissemination, and partners answer each other: fewer acknowledgments.
  if (request.collective == Collective::kBarrier && std::has_single_bit(ranks_) &&
      graph_ == nullptr) {
    return {"recursive-doubling"};
  }
  if (has_fixed_choice(request)) return {request.commutes ? fixed.commutes : fixed.in_order};
  ESPALIER_ASSERT(chosen_.contains(choice_key(request)));
  const Chosen& chosen = *chosen_.at(choice_key(request));
  std::size_t index = 0;
  if (chosen.schedules.size() > 1) {
    const SelectionRow* row = find_row(chosen.table, request.bytes, request.commutes);
    if (row == nullptr) return {fixed.in_order};
    index = row->program;
  }
  ESPALIER_ASSERT(index < chosen.names.size() && chosen.names.size() == chosen.schedules.size());
  return {chosen.names[index], index};
}

const PlannedProgram* Schedules::find_planned(const ScheduleRequest& request) const {
  const FixedAlgorithms& fixed = named(request.collective);
  if (request.own_counts && !is_direct()) return nullptr;
  if (request.own_counts) return known(fixed_key(fixed.unequal, request), request);
  const PlannedProgram* given = nullptr;
  if (find_given(request, given) != Status::kBadArgument) return given;
  if (!has_fixed_choice(request) && !chosen_.contains(choice_key(request))) return nullptr;
  const Key key = key_of(find_choice(request), request);
  if (!planned_.contains(key)) return nullptr;
  const PlannedProgram* program = known(key, request);
  if (program == nullptr) program = known(fixed_key(fixed.unequal, request), request);
  if (program == nullptr || !breaks_order(*program, request)) return program;
  program = known(fixed_key(fixed.in_order, request), request);
  return program == nullptr || breaks_order(*program, request) ? nullptr : program;
}

Result<const PlannedProgram*> Schedules::serve(const ScheduleRequest& request) {
  if (request.own_counts && !is_direct()) {
    return fail(
        "the ranks that pass parts on would have to know all counts, and cables do not "
        "join all ranks to each other");
  }
  if (request.own_counts) return plan_fixed(named(request.collective).unequal, request);
  Chosen* chosen = nullptr;
  if (!has_fixed_choice(request)) {
    ESPALIER_TRY_TO(chosen, choose(request));
  }
  const Choice choice = find_choice(request);
  const Key key = key_of(choice, request);
  ESPALIER_ASSERT(choice.index == kFixedChoice ||
                  (chosen != nullptr && choice.index < chosen->schedules.size()));
  if (!planned_.contains(key)) {
    ESPALIER_TRY(choice.index == kFixedChoice ? plan_fixed(choice.name, request)
                                              : plan_chosen(*chosen, choice.index, key, request));
  }
  const PlannedProgram* program = known(key, request);
  if (program == nullptr) {
    const auto made = plan_fixed(named(request.collective).unequal, request);
    if (!made) return made;
    program = *made;
  }
  if (!breaks_order(*program, request)) return program;
  // An algorithm keeps the order of ranks for some roots only: the program for this one decides.
  const char* const in_order = named(request.collective).in_order;
  const auto made = plan_fixed(in_order, request);
  if (!made) return made;
  if (breaks_order(**made, request) || known(fixed_key(in_order, request), request) == nullptr) {
    return fail(std::string("no schedule of ") + text_of(request.collective, request.root) +
                (request.unequal_counts ? " with a count for each rank" : "") +
                " keeps the order of ranks, and the operator does not commute");
  }
  return *made;
}

Result<const PlannedProgram*> Schedules::plan_chosen(Chosen& chosen, std::size_t index,
                                                     const Key& key,
                                                     const ScheduleRequest& request) {
  planner::PlannedSchedule& schedule = chosen.schedules[index];
  if (graph_ != nullptr) return plan_on_graph(schedule, chosen.plans[index], key, request);
  if (schedule.algorithm.generator != nullptr || request.root == 0) {
    schedule.parameters.root = request.root;
    return plan(schedule, key, request);
  }
  // A searched schedule is for its root only.
  ESPALIER_TRY_TO(const auto wanted, request_of(request, schedule.algorithm.name));
  ESPALIER_TRY_TO(auto for_root, planner::make_schedule(wanted));
  for_root.rules = schedule.rules;
  return plan(for_root, key, request);
}

Status Schedules::find_given(const ScheduleRequest& request, const PlannedProgram*& found) const {
  found = nullptr;
  if (is_measuring_ || request.own_counts) return Status::kBadArgument;
  const auto file = planned_.find({"", Source::kFile, request.collective, request.root});
  if (file == planned_.end()) {
    return image_ == nullptr ? Status::kBadArgument : image_->find(request, found);
  }
  if (breaks_order(file->second.program, request)) return Status::kBadOperator;
  found = &file->second.program;
  return Status::kOk;
}

Result<const PlannedProgram*> Schedules::obtain(const ScheduleRequest& request) {
  if (const PlannedProgram* const planned = find(request)) return planned;
  const std::lock_guard lock(planning_);
  if (const PlannedProgram* const planned = find(request)) return planned;
  const PlannedProgram* given = nullptr;
  if (find_given(request, given) == Status::kBadOperator) {
    return fail("no given schedule of " + text_of(request.collective, request.root) +
                " keeps the order of ranks, and the operator does not commute");
  }
  auto served = serve(request);
  const std::lock_guard maps(mutex_);
  if (served) print_algorithm(request, **served);
  return served;
}

const PlannedProgram* Schedules::find(const ScheduleRequest& request) const {
  const std::lock_guard lock(mutex_);
  const PlannedProgram* const planned = find_planned(request);
  if (planned != nullptr) print_algorithm(request, *planned);
  return planned;
}

void Schedules::print_algorithm(const ScheduleRequest& request,
                                const PlannedProgram& program) const {
  if (!is_verbose_ || is_measuring_) return;
  const std::string& name = program.algorithm;
  if (!printed_.emplace(request.collective, name, std::bit_width(request.bytes)).second) return;
  const std::string size =
      request.bytes == 0 ? "" : " of " + counted(request.bytes, "byte");  // 0: not known, or none
  std::fprintf(stderr, "espalier: %s%s among %s: %s\n", collective_name(request.collective),
               size.c_str(), counted(ranks_, "rank").c_str(), one_line(name).c_str());
}

Result<std::unique_ptr<Schedules>> Schedules::make(std::uint32_t rank, std::uint32_t ranks,
                                                   const std::vector<std::string>& files,
                                                   const Costs& costs,
                                                   std::shared_ptr<const ImagePrograms> image) {
  std::optional<predict::Model> model;
  if (!costs.model.empty()) {
    auto read = predict::read_model(costs.model);
    if (!read) return fail(one_line(read.error().message));
    model = *std::move(read);
  }
  const std::uint32_t hosts = ranks / costs.ranks_per_host;
  const bool has_hosts = costs.ranks_per_host > 1 && hosts > 1;
  std::shared_ptr<const topology::Topology> topology;
  if (costs.graph != nullptr) {
    topology = costs.graph->topology();
  } else {
    ESPALIER_TRY_TO(topology, topology::parse(has_hosts ? "hosts:" + std::to_string(hosts) + "x" +
                                                              std::to_string(costs.ranks_per_host)
                                                        : "complete:" + std::to_string(ranks)));
  }
  std::unique_ptr<Schedules> schedules(
      new Schedules(rank, costs, std::move(model), std::move(topology), std::move(image)));
  for (const std::string& file : files) {
    ESPALIER_TRY(schedules->add_file(file));
  }
  return schedules;
}

}  // namespace espalier::communicator
