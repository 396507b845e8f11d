#include "communicator/schedules.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <mutex>
#include <span>
#include <tuple>
#include <utility>

#include "base/counted.h"
#include "base/one_line.h"
#include "base/read_file.h"
#include "communicator/chosen_cache.h"
#include "communicator/image_programs.h"
#include "communicator/proven_cache.h"
#include "espalier/base/digest.h"
#include "espalier/base/limits.h"
#include "espalier/collectives/schedule/selection.h"
#include "espalier/collectives/verify/verify.h"
#include "planner/choose/chosen_schedules.h"
#include "planner/failure.h"
#include "planner/files/loaded_schedule.h"

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

// Algorithms that serve every number of ranks: with an operator that commutes, with one that does
// not, whatever the root is, and with a count for each rank.
struct FixedAlgorithms {
  Collective::Value collective;
  const char* commutes;
  const char* in_order;
  const char* unequal;
};
constexpr FixedAlgorithms kFixed[] = {
    {Collective::kBroadcast, "circulant", "circulant", ""},
    {Collective::kReduce, "circulant", "rabenseifner", ""},
    {Collective::kAllreduce, "circulant", "two-tree", ""},
    {Collective::kScan, "recursive-doubling", "recursive-doubling", ""},
    {Collective::kExscan, "recursive-doubling", "recursive-doubling", ""},
    {Collective::kScatter, "binomial", "binomial", "linear"},
    {Collective::kGather, "binomial", "binomial", "linear"},
    {Collective::kAllgather, "circulant", "circulant", "ring"},
    {Collective::kReduceScatter, "circulant", "recursive-halving", "ring"},
    {Collective::kAllToAll, "bruck", "bruck", "pairwise"},
    {Collective::kBarrier, "dissemination", "dissemination", ""},
};

const FixedAlgorithms& fixed(Collective collective) {
  return *std::find_if(std::begin(kFixed), std::end(kFixed),
                       [collective](const auto& row) { return row.collective == collective; });
}

std::string text_of(Collective collective, std::uint32_t root) {
  std::string text = collective_name(collective);
  if (has_root(collective)) text += " from or to root " + std::to_string(root);
  return text;
}

bool breaks_order(const PlannedProgram& planned, const ScheduleRequest& request) {
  return !request.commutes && planned.program.needs_commutative;
}

// The candidates of one collective: those of the model's choice, and the table that chooses.
struct Chosen {
  std::vector<planner::SelectedAlgorithm> schedules;
  std::vector<std::string> names;
  SelectionTable table = {};  // of several schedules
};

// All programs of a schedule, read once.
struct Facts {
  std::uint64_t digest = kDigestSeed;  // of all programs
  bool unequal_counts = true;          // every node's program can have a count for each rank
  std::uint32_t links = 0;             // maximum of a node
};

Facts read_facts(const verify::Programs& program, std::uint32_t nodes) {
  Facts facts;
  std::vector<std::uint8_t> bytes(1 << 12);
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const Program& one = program(node);
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

class ChosenByModel : public Schedules {
 public:
  // `model`: that of the costs' file; nothing: there is none.
  ChosenByModel(std::uint32_t rank, std::uint32_t ranks, const Costs& costs,
                std::optional<predict::Model> model, std::shared_ptr<const ImagePrograms> image)
      : rank_(rank), ranks_(ranks), image_(std::move(image)), is_measuring_(costs.is_measuring) {
    const std::uint32_t hosts = ranks / costs.ranks_per_host;
    if (costs.ranks_per_host > 1 && hosts > 1) {
      has_hosts_ = true;
      topology_ = "hosts:" + std::to_string(hosts) + "x" + std::to_string(costs.ranks_per_host);
    }
    if (model) {
      model_ = *std::move(model);
    } else if (costs.memory_cores != 0) {
      model_ = predict::memory_model(costs.memory_cores, ranks);
      conditions_.ranks_on_host = ranks;
    } else if (costs.network) {
      set_network(*costs.network);
    }
  }

  [[nodiscard]] Result<void> add_file(const std::string& path);
  [[nodiscard]] Result<const PlannedProgram*> obtain(const ScheduleRequest& request) override;
  [[nodiscard]] bool is_known(const ScheduleRequest& request) const override {
    const std::lock_guard lock(mutex_);
    return has_plan(request);
  }
  [[nodiscard]] const PlannedProgram* find(const ScheduleRequest& request) override;
  void measured(const NetworkCost& cost) override {
    set_network(cost);
    is_measuring_ = false;
  }

 private:
  // Where an algorithm comes from. The same one has other blocks if a choice fitted it.
  enum Source : std::uint8_t { kFixed, kChosen, kChosenInOrder };
  // A program must not depend on earlier requests: ranks that share it with other communicators
  // have other ones. So the key has all that it depends on: name, source, collective, root.
  using Key = std::tuple<std::string, Source, Collective::Value, std::uint32_t>;
  [[nodiscard]] static Key fixed_key(const std::string& name, const ScheduleRequest& request) {
    return {name, kFixed, request.collective, request.root};
  }

  // The algorithm for a request, unless it cannot have unequal counts. `index`: in Chosen, or
  // kFixedChoice.
  struct Choice {
    std::string name;
    std::size_t index = kFixedChoice;
  };
  static constexpr std::size_t kFixedChoice = SIZE_MAX;
  [[nodiscard]] bool has_fixed_choice(const ScheduleRequest& request) const {
    return is_measuring_ || ranks_ > kMaxRankedRanks ||
           request.collective == Collective::kBarrier || find_star(request) != nullptr;
  }
  void set_network(const NetworkCost& cost) {
    network_ = cost;
    if (cost.message_ps != 0) model_ = predict::network_model(cost);
    if (cost.shared_cores != 0) conditions_.ranks_on_host = ranks_;
  }
  [[nodiscard]] const char* find_star(const ScheduleRequest& request) const;
  [[nodiscard]] const PlannedProgram* find_given(const ScheduleRequest& request) const;
  [[nodiscard]] Choice find_choice(const ScheduleRequest& request) const;
  // Which of the choices serves a request: one per collective. A reduce to another root than 0 has
  // one of its own for operators that do not commute: there, programs of fewer algorithms keep the
  // order of ranks.
  using ChoiceKey = std::pair<Collective::Value, bool>;
  [[nodiscard]] static ChoiceKey choice_key(const ScheduleRequest& request) {
    return {request.collective, !request.commutes && combines_operands(request.collective) &&
                                    has_root(request.collective) && request.root != 0};
  }
  // All below: with mutex_.
  [[nodiscard]] bool has_plan(const ScheduleRequest& request) const;
  [[nodiscard]] Result<const PlannedProgram*> obtain_locked(const ScheduleRequest& request);
  [[nodiscard]] static Key key_of(const Choice& choice, const ScheduleRequest& request) {
    const Source source = choice.index == kFixedChoice ? kFixed
                          : choice_key(request).second ? kChosenInOrder
                                                       : kChosen;
    return {choice.name, source, request.collective, request.root};
  }
  [[nodiscard]] Chosen& choose(const ScheduleRequest& request);
  [[nodiscard]] Result<const PlannedProgram*> serve(const ScheduleRequest& request);
  [[nodiscard]] PlannedProgram* known(const Key& key, const ScheduleRequest& request) const;
  [[nodiscard]] const PlannedProgram& plan(planner::SelectedAlgorithm& selected, const Key& key,
                                           const ScheduleRequest& request);
  void plan_chosen(planner::SelectedAlgorithm& selected, const Key& key,
                   const ScheduleRequest& request);
  [[nodiscard]] const PlannedProgram& plan_fixed(const char* name, const ScheduleRequest& request);
  [[nodiscard]] planner::Selection selection_of(const ScheduleRequest& request,
                                                const std::string& algorithm) const;

  std::uint32_t rank_, ranks_;
  bool has_hosts_ = false;  // of several ranks each
  std::string topology_ = "complete:" + std::to_string(ranks_);
  predict::Model model_ = predict::default_model();
  predict::Conditions conditions_;
  NetworkCost network_ = {};                    // a message_ps of 0: not known
  std::shared_ptr<const ImagePrograms> image_;  // null: none
  bool is_measuring_;
  mutable std::mutex mutex_;  // of what is chosen and planned
  std::map<ChoiceKey, Chosen> chosen_;
  std::map<Key, std::unique_ptr<PlannedProgram>> planned_;
  std::map<Key, bool> takes_unequal_;
  std::map<std::pair<Collective::Value, std::uint32_t>, PlannedProgram> from_files_;
};

planner::Selection ChosenByModel::selection_of(const ScheduleRequest& request,
                                               const std::string& algorithm) const {
  planner::Selection selection;
  selection.topology = topology_;
  selection.collective = collective_name(request.collective);
  selection.algorithm = algorithm;
  selection.root = std::to_string(request.root);
  return selection;
}

Result<void> ChosenByModel::add_file(const std::string& path) {
  const auto contents = read_file(path, FileKind::kSchedule);
  if (!contents) return fail("the schedule: " + contents.error().message);
  std::vector<std::uint8_t> bytes(contents->begin(), contents->end());
  const auto loaded = planner::load_schedule(path, std::move(bytes), "", {});
  if (!loaded) return fail(loaded.error());
  const Program& first = loaded->programs.front();
  if (first.ranks != ranks_ || program_nodes(first) != ranks_) {
    return fail("the schedule '" + path + "' is for " + counted(first.ranks, "rank") + " and " +
                counted(program_nodes(first), "node") + "; expected one for the " +
                counted(ranks_, "rank") + " of this job, without programs for routers");
  }
  verify::VerifyOptions options;
  options.links = false;
  const verify::Verdict verdict = verify::verify(
      *loaded->topology,
      [&loaded](std::uint32_t node) -> const Program& { return loaded->programs.at(node); },
      options);
  if (!verdict.valid) {
    return fail("the schedule '" + path + "' is not valid: " + verdict.counterexample.message);
  }
  const auto key = std::pair{Collective::Value{first.collective}, std::uint32_t{first.root}};
  if (from_files_.contains(key)) {
    return fail("the schedule '" + path + "': another file already serves " +
                text_of(first.collective, first.root));
  }
  if (image_ != nullptr && image_->find({.collective = key.first, .root = key.second}) != nullptr) {
    return fail("the schedule '" + path + "': the image already serves " +
                text_of(first.collective, first.root));
  }
  from_files_[key] = {loaded->programs.at(rank_), path, verdict.in_place};
  return {};
}

Chosen& ChosenByModel::choose(const ScheduleRequest& request) {
  const ChoiceKey key = choice_key(request);
  const auto found = chosen_.find(key);
  if (found != chosen_.end()) return found->second;
  const bool in_order = key.second;
  ScheduleRequest example = request;
  example.root = in_order ? ranks_ / 2 : 0;
  planner::ChoiceRequest wanted;
  wanted.selection = selection_of(example, planner::kAuto);
  if (in_order) wanted.combining.op = planner::kInOrderOperator;
  wanted.model = model_;
  wanted.conditions = conditions_;
  const std::string name = std::string("chosen-") + collective_name(request.collective) + "-" +
                           (in_order ? "in-order-" : "") + topology_ + "-" +
                           std::to_string(model_.digest());
  Chosen chosen;
  const auto make = [&](const KeptChoice& choice) {
    chosen = {};
    for (const planner::ChosenOrigin& origin : choice.origins) {
      chosen.names.push_back(planner::candidate_name(origin.selection));
      chosen.schedules.push_back(planner::make_chosen(origin, wanted));
    }
    std::copy(choice.rows.begin(), choice.rows.end(), chosen.table.rows);
    chosen.table.rows_count = static_cast<pb_size_t>(choice.rows.size());
  };
  bool is_made = false;
  const auto can_make = [&](const KeptChoice& choice) {
    try {
      make(choice);
      is_made = true;
    } catch (const planner::Failure&) {
      // The file names a schedule that does not exist.
    }
    return is_made;
  };
  const KeptChoice kept = obtain_choice(name, can_make, [&] {
    planner::ChosenSchedules all =
        planner::choose_for_all_sizes(wanted, network_.message_ps > 0 ? kNetworkPercent : kPercent);
    const std::span rows(all.table.rows, all.table.rows_count);
    return KeptChoice{std::move(all.origins), {rows.begin(), rows.end()}};
  });
  if (!is_made) make(kept);
  return chosen_[key] = std::move(chosen);
}

PlannedProgram* ChosenByModel::known(const Key& key, const ScheduleRequest& request) const {
  const auto found = planned_.find(key);
  if (found == planned_.end()) return nullptr;
  return request.unequal_counts && !takes_unequal_.at(key) ? nullptr : found->second.get();
}

// Proves the schedule and keeps this rank's program.
const PlannedProgram& ChosenByModel::plan(planner::SelectedAlgorithm& selected, const Key& key,
                                          const ScheduleRequest& request) {
  OwnedProgram scratch;
  const verify::Programs program = [&](std::uint32_t node) -> const Program& {
    planner::generate(selected, node, scratch);
    return scratch;
  };
  const Facts facts = read_facts(program, selected.nodes);
  // Every rank must refuse it, not only the one with too many links.
  if (facts.links > kMaxLinks) {
    planner::negative("the schedule of " + text_of(request.collective, request.root) + " by '" +
                      std::get<0>(key) + "' has " + counted(facts.links, "link") +
                      " at one rank; a rank has at most " + std::to_string(kMaxLinks));
  }
  std::string reason;
  const Proof proof = obtain_proof(facts.digest, [&] {
    verify::VerifyOptions options;
    options.links = false;
    const verify::Verdict verdict = verify::verify(*selected.topology, program, options);
    reason = verdict.counterexample.message;
    if (!verdict.valid) return Proof::kInvalid;
    return verdict.in_place ? Proof::kValidInPlace : Proof::kValid;
  });
  if (proof == Proof::kInvalid) {
    planner::negative("the schedule of " + text_of(request.collective, request.root) + " by '" +
                      std::get<0>(key) + "' is not valid: " + reason);
  }
  auto planned = std::make_unique<PlannedProgram>();
  planner::generate(selected, rank_, planned->program);
  planned->algorithm = std::get<0>(key);
  planned->in_place = proof == Proof::kValidInPlace;
  takes_unequal_[key] = facts.unequal_counts;
  // Calls keep pointers to one that is there.
  return *planned_.try_emplace(key, std::move(planned)).first->second;
}

const PlannedProgram& ChosenByModel::plan_fixed(const char* name, const ScheduleRequest& request) {
  const Key key = fixed_key(name, request);
  if (const PlannedProgram* program = known(key, request)) return *program;
  planner::SelectedAlgorithm selected = planner::select_algorithm(selection_of(request, name));
  return plan(selected, key, request);
}

// Returns the star if the message count, not the step count, decides: the ranks share few
// processors. A star has p - 1 messages (barrier: 2 (p - 1)), a tree exchange up to p log2(p). All
// its bytes cross the root's link, within half a burst, so that calls can follow each other. Null:
// none.
const char* ChosenByModel::find_star(const ScheduleRequest& request) const {
  const std::uint32_t cores = network_.shared_cores;
  const bool counts_messages =
      cores > 0 && cores < static_cast<std::uint32_t>(std::bit_width(ranks_));
  if (is_measuring_ || has_hosts_ || !counts_messages || ranks_ > kMaxRankedRanks) return nullptr;
  const std::uint64_t most =
      network_.burst_bytes / 2 + network_.message_ps * 1000 / network_.byte_fs;
  if (request.bytes > most / (ranks_ - 1)) return nullptr;
  const auto star = std::find_if(std::begin(kStars), std::end(kStars), [&](const Star& one) {
    return one.collective == request.collective;
  });
  return star == std::end(kStars) ? nullptr : star->algorithm;
}

// Requires choose() before, unless has_fixed_choice().
ChosenByModel::Choice ChosenByModel::find_choice(const ScheduleRequest& request) const {
  const FixedAlgorithms& named = fixed(request.collective);
  // The fewest steps between hosts; and rings that cross them in a known way.
  if (has_hosts_ && request.collective == Collective::kBarrier) return {"hosts-dissemination"};
  if (has_hosts_ && is_measuring_ && request.collective == Collective::kAllgather) {
    return {"hosts-ring"};
  }
  if (const char* const star = find_star(request)) return {star};
  // As many steps as dissemination, and partners answer each other: fewer acknowledgments.
  if (request.collective == Collective::kBarrier && std::has_single_bit(ranks_)) {
    return {"recursive-doubling"};
  }
  if (has_fixed_choice(request)) return {request.commutes ? named.commutes : named.in_order};
  const Chosen& chosen = chosen_.at(choice_key(request));
  std::size_t index = 0;
  if (chosen.schedules.size() > 1) {
    const SelectionRow* row = find_row(chosen.table, request.bytes, request.commutes);
    if (row == nullptr) return {named.in_order};
    index = row->program;
  }
  return {chosen.names[index], index};
}

bool ChosenByModel::has_plan(const ScheduleRequest& request) const {
  if (request.own_counts) {
    return planned_.contains(fixed_key(fixed(request.collective).unequal, request));
  }
  if (find_given(request) != nullptr) return true;
  if (!has_fixed_choice(request) && !chosen_.contains(choice_key(request))) return false;
  const auto planned = [&](const std::string& name) -> const PlannedProgram* {
    const auto found = planned_.find(fixed_key(name, request));
    return found == planned_.end() ? nullptr : found->second.get();
  };
  const Key first = key_of(find_choice(request), request);
  if (!planned_.contains(first)) return false;
  const PlannedProgram* program = known(first, request);
  if (program == nullptr) program = planned(fixed(request.collective).unequal);
  if (program != nullptr && breaks_order(*program, request)) {
    program = planned(fixed(request.collective).in_order);
  }
  return program != nullptr;
}

Result<const PlannedProgram*> ChosenByModel::serve(const ScheduleRequest& request) {
  if (request.own_counts) return &plan_fixed(fixed(request.collective).unequal, request);
  Chosen* const chosen = has_fixed_choice(request) ? nullptr : &choose(request);
  const Choice choice = find_choice(request);
  const Key key = key_of(choice, request);
  if (!planned_.contains(key)) {
    if (choice.index == kFixedChoice) {
      (void)plan_fixed(choice.name.c_str(), request);
    } else {
      plan_chosen(chosen->schedules[choice.index], key, request);
    }
  }
  const PlannedProgram* program = known(key, request);
  if (program == nullptr) program = &plan_fixed(fixed(request.collective).unequal, request);
  if (!breaks_order(*program, request)) return program;
  // An algorithm keeps the order of ranks for some roots only: the program for this one decides.
  const char* const in_order = fixed(request.collective).in_order;
  program = &plan_fixed(in_order, request);
  const Key in_order_key = fixed_key(in_order, request);
  if (breaks_order(*program, request) || known(in_order_key, request) == nullptr) {
    return fail(std::string("no schedule of ") + text_of(request.collective, request.root) +
                (request.unequal_counts ? " with a count for each rank" : "") +
                " keeps the order of ranks, and the operator does not commute");
  }
  return program;
}

void ChosenByModel::plan_chosen(planner::SelectedAlgorithm& selected, const Key& key,
                                const ScheduleRequest& request) {
  if (selected.algorithm.generator == nullptr && request.root != 0) {
    // A searched schedule is for its root only.
    planner::SelectedAlgorithm for_root =
        planner::select_algorithm(selection_of(request, selected.algorithm.name));
    for_root.rules = selected.rules;
    (void)plan(for_root, key, request);
  } else {
    selected.parameters.root = request.root;
    (void)plan(selected, key, request);
  }
}

// The program of the image or of a file; null if none serves the request.
const PlannedProgram* ChosenByModel::find_given(const ScheduleRequest& request) const {
  if (is_measuring_ || request.own_counts) return nullptr;
  const auto file = from_files_.find({request.collective, request.root});
  if (file != from_files_.end()) return &file->second;
  return image_ == nullptr ? nullptr : image_->find(request);
}

Result<const PlannedProgram*> ChosenByModel::obtain(const ScheduleRequest& request) {
  const std::lock_guard lock(mutex_);
  return obtain_locked(request);
}

const PlannedProgram* ChosenByModel::find(const ScheduleRequest& request) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || !has_plan(request)) return nullptr;
  const auto found = obtain_locked(request);
  return found ? *found : nullptr;
}

Result<const PlannedProgram*> ChosenByModel::obtain_locked(const ScheduleRequest& request) {
  if (const PlannedProgram* const given = find_given(request)) {
    if (breaks_order(*given, request)) {
      return fail("the schedule '" + given->algorithm +
                  "' does not keep the order of ranks, and the operator does not commute");
    }
    return given;
  }
  try {
    return serve(request);
  } catch (const planner::Failure& failure) {
    return fail(failure.line);
  }
}

}  // namespace

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
  auto schedules =
      std::make_unique<ChosenByModel>(rank, ranks, costs, std::move(model), std::move(image));
  for (const std::string& file : files) {
    if (auto added = schedules->add_file(file); !added) return fail(added.error());
  }
  return schedules;
}

}  // namespace espalier::communicator
