#include "planner/choose/chosen_schedules.h"

#include <algorithm>
#include <memory>

#include "espalier/collectives/schedule/selection_writer.h"
#include "planner/choose/sizes.h"
#include "planner/failure.h"

namespace espalier::planner {
namespace {

constexpr std::uint64_t kRunTolerance = 2;  // %, of run lengths of one algorithm

// A candidate that is not dropped.
const Candidate& any_candidate(const Choice& choice) {
  return *std::find_if(choice.candidates().begin(), choice.candidates().end(),
                       [](const Candidate& one) { return one.dropped.empty(); });
}

std::uint64_t most_bytes(const Choice& choice) {
  const Program& program = any_candidate(choice).programs.front();
  const std::uint64_t parts = counts_per_rank(program.collective) ? program.ranks : 1;
  return std::min(kMaxChosenBytes, kMaxMessageBytes / parts);
}

// The choice for a class of operators, and the sizes that were ranked.
struct OperatorClass {
  Choice choice;
  Sizes sizes;

  explicit OperatorClass(ChoiceRequest request)
      : choice(std::move(request)), sizes(choice, most_bytes(choice)) {}
};

// The rows of both classes, by the names of candidates.
struct NamedRows {
  struct Row {
    std::uint64_t from_bytes = 0;
    bool needs_commutative = false;
    std::string name;
  };
  std::vector<Row> rows;
  std::vector<std::string> names;

  void add(const OperatorClass& one, const std::vector<SizeRow>& more, bool needs_commutative) {
    for (const SizeRow& row : more) {
      const std::string& name = one.choice.candidates()[row.candidate].name;
      rows.push_back({row.from_bytes, needs_commutative, name});
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
};

bool any_needs_commutative(const OperatorClass& one, const std::vector<SizeRow>& rows) {
  return std::any_of(rows.begin(), rows.end(), [&one](const SizeRow& row) {
    const Programs& programs = one.choice.candidates()[row.candidate].programs;
    return std::any_of(programs.begin(), programs.end(),
                       [](const Program& program) { return program.needs_commutative; });
  });
}

NamedRows rows_of(const OperatorClass& first, const OperatorClass* in_order,
                  std::uint64_t percent) {
  NamedRows all;
  const std::vector<SizeRow> rows = first.sizes.rows(percent);
  const bool needs_commutative = any_needs_commutative(first, rows);
  if (needs_commutative && in_order != nullptr) {
    all.add(*in_order, in_order->sizes.rows(percent), false);
  }
  all.add(first, rows, needs_commutative);
  return all;
}

// The choice for operators that do not commute; null: no schedule keeps the order of ranks.
std::unique_ptr<OperatorClass> in_order_class(ChoiceRequest request) {
  request.combining = {kInOrderOperator, ""};
  try {
    return std::make_unique<OperatorClass>(std::move(request));
  } catch (const Failure&) {
    // The same request with an operator that commutes has been granted.
    return nullptr;
  }
}

// The schedules that an image of the board, or a selection, has room for.
std::size_t room(const ChoiceRequest& request) {
  if (request.limits == nullptr) return kMaxSelected;
  if (request.limits->selections() == 0) return 1;
  return std::min<std::size_t>(kMaxSelected, request.limits->programs());
}

void take(const std::string& name, OperatorClass& first, OperatorClass* in_order,
          ChosenSchedules& chosen) {
  for (OperatorClass* one : {&first, in_order}) {
    if (one == nullptr) continue;
    for (std::size_t i = 0; i < one->choice.candidates().size(); ++i) {
      const Candidate& candidate = one->choice.candidates()[i];
      if (!candidate.dropped.empty() || candidate.name != name) continue;
      chosen.names.push_back(name);
      chosen.origins.push_back({candidate.selection, one == in_order});
      chosen.schedules.push_back(one->choice.take({i, 0, 0, 0, false}));
      return;
    }
  }
  bad_input("candidate '" + name + "' is lost, which is a fault of this espalier");
}

std::uint64_t digest_alone(const SelectedAlgorithm& selected) {
  const auto program = std::make_unique<OwnedProgram>();
  generate(selected, 0, *program);
  return program->schedule_digest;
}

void make_table(const NamedRows& rows, std::uint64_t model_digest, ChosenSchedules& chosen) {
  SelectionTable& table = chosen.table;
  const SelectedAlgorithm& first = chosen.schedules.front();
  table.format_version = kSelectionVersion;
  table.topology_digest = first.topology->digest();
  table.model_digest = model_digest;
  table.collective = first.algorithm.collective;
  table.root = first.parameters.root;
  for (const SelectedAlgorithm& schedule : chosen.schedules) {
    table.schedules[table.schedules_count++] = digest_alone(schedule);
  }
  for (const NamedRows::Row& row : rows.rows) {
    const auto number = std::find(rows.names.begin(), rows.names.end(), row.name);
    table.rows[table.rows_count++] = {row.from_bytes, row.needs_commutative,
                                      static_cast<std::uint8_t>(number - rows.names.begin())};
  }
  const std::vector<std::uint8_t> bytes = selection_bytes(table);
  if (bytes.empty()) {
    bad_input(
        "the table of the selection breaks the format's rules, which is a fault of this "
        "espalier; expected --bytes, the message to choose for");
  }
  const std::uint64_t digest = selection_digest(bytes.data(), bytes.size());
  for (SelectedAlgorithm& schedule : chosen.schedules) schedule.selection_digest = digest;
}

}  // namespace

ChosenSchedules choose_for_all_sizes(const ChoiceRequest& request, std::uint64_t percent) {
  OperatorClass first(request);
  std::unique_ptr<OperatorClass> in_order;
  const Operator& op = first.choice.op();
  const bool commutes = op.op != Op::kCustom || op.commutes;
  const Collective collective = any_candidate(first.choice).programs.front().collective;
  // A board without selections has no operators that do not commute either.
  if (commutes && combines_operands(collective) && room(request) > 1) {
    in_order = in_order_class(request);
  }
  ChosenSchedules chosen;
  chosen.found_by = request.model.found_by;
  NamedRows rows;
  // Ends: if the tolerance is large enough, a class has one row.
  for (chosen.percent = request.selection.algorithm == kAuto ? percent : kRunTolerance;;
       chosen.percent *= 2) {
    rows = rows_of(first, in_order.get(), chosen.percent);
    if (rows.names.size() <= room(request) && rows.rows.size() <= kMaxSelectionRows) break;
  }
  for (const std::string& name : rows.names) take(name, first, in_order.get(), chosen);
  if (chosen.schedules.size() > 1) make_table(rows, request.model.digest(), chosen);
  return chosen;
}

SelectedAlgorithm make_chosen(const ChosenOrigin& origin, ChoiceRequest request) {
  request.selection = origin.selection;
  if (origin.in_order) request.combining = {kInOrderOperator, ""};
  return fit_named(request);
}

}  // namespace espalier::planner
