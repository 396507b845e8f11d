#include "planner/choose/chosen_schedules.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "base/try.h"
#include "collectives/machine/affine.h"
#include "collectives/schedule/selection_writer.h"
#include "planner/choose/sizes.h"

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

// The choice for a class of operators, and the sizes that were ranked, which refer to it.
struct OperatorClass {
  Choice choice;
  std::optional<Sizes> sizes = {};

  [[nodiscard]] static Result<std::unique_ptr<OperatorClass>> make(ChoiceRequest request) {
    ESPALIER_TRY_TO(auto choice, Choice::make(std::move(request)));
    auto one = std::make_unique<OperatorClass>(OperatorClass{std::move(choice)});
    ESPALIER_TRY_TO(one->sizes, Sizes::make(one->choice, most_bytes(one->choice)));
    return one;
  }
};

// A candidate of one of the classes.
struct Member {
  OperatorClass* of = nullptr;
  std::size_t candidate = 0;

  [[nodiscard]] const Candidate& get() const { return of->choice.candidates()[candidate]; }
};

// The rows of both classes, and the schedules that they name.
struct Rows {
  struct Row {
    std::uint64_t from_bytes = 0;
    bool needs_commutative = false;
    std::size_t schedule = 0;
  };
  std::vector<Row> rows;
  std::vector<Member> schedules;  // each once, also if both classes chose it

  void add(OperatorClass& one, const std::vector<SizeRow>& more, bool needs_commutative) {
    for (const SizeRow& row : more) {
      const Member member{&one, row.candidate};
      const auto known = std::find_if(
          schedules.begin(), schedules.end(),
          [&member](const Member& other) { return other.get().plan == member.get().plan; });
      rows.push_back(
          {row.from_bytes, needs_commutative, static_cast<std::size_t>(known - schedules.begin())});
      if (known == schedules.end()) schedules.push_back(member);
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

Result<Rows> rows_of(OperatorClass& first, OperatorClass* in_order, std::uint64_t percent) {
  Rows all;
  ESPALIER_TRY_TO(const auto rows, first.sizes->rows(percent));
  const bool needs_commutative = any_needs_commutative(first, rows);
  if (needs_commutative && in_order != nullptr) {
    ESPALIER_TRY_TO(const auto more, in_order->sizes->rows(percent));
    all.add(*in_order, more, false);
  }
  all.add(first, rows, needs_commutative);
  return all;
}

// The choice for operators that do not commute; null: no schedule keeps the order of ranks.
std::unique_ptr<OperatorClass> in_order_class(ChoiceRequest request) {
  request.op = affine();
  // The same request with an operator that commutes has been granted.
  auto made = OperatorClass::make(std::move(request));
  return made ? *std::move(made) : nullptr;
}

// The schedules that an image of the board, or a selection, has room for.
std::size_t room(const ChoiceRequest& request) {
  if (request.limits == nullptr) return kMaxSelected;
  if (request.limits->selections() == 0) return 1;
  return std::min<std::size_t>(kMaxSelected, request.limits->programs());
}

// Takes a schedule from the first class, unless only the other one has it.
void take(const Member& member, OperatorClass& first, ChosenSchedules& chosen) {
  const std::vector<Candidate>& all = first.choice.candidates();
  const PlanRequest plan = member.get().plan;
  const auto same = std::find_if(all.begin(), all.end(), [&plan](const Candidate& one) {
    return one.dropped.empty() && one.plan == plan;
  });
  chosen.names.push_back(member.get().name);
  chosen.origins.push_back({plan, same == all.end()});
  chosen.schedules.push_back(same == all.end()
                                 ? member.of->choice.take(member.candidate)
                                 : first.choice.take(static_cast<std::size_t>(same - all.begin())));
}

Result<void> make_table(const Rows& rows, std::uint64_t model_digest, ChosenSchedules& chosen) {
  SelectionTable& table = chosen.table;
  const PlannedSchedule& first = chosen.schedules.front();
  table.format_version = kSelectionVersion;
  table.topology_digest = first.topology->digest();
  table.model_digest = model_digest;
  table.collective = first.algorithm.collective;
  table.root = first.parameters.root;
  const auto program = std::make_unique<OwnedProgram>();
  for (const PlannedSchedule& schedule : chosen.schedules) {
    if (auto made = generate(schedule, 0, *program); !made) return made;
    table.schedules[table.schedules_count++] = program->schedule_digest;
  }
  for (const Rows::Row& row : rows.rows) {
    table.rows[table.rows_count++] = {row.from_bytes, row.needs_commutative,
                                      static_cast<std::uint8_t>(row.schedule)};
  }
  const std::vector<std::uint8_t> bytes = selection_bytes(table);
  if (bytes.empty()) {
    return fail(
        "the table of the selection breaks the format's rules, which is a fault of this "
        "espalier; expected --bytes, the message to choose for");
  }
  const std::uint64_t digest = selection_digest(bytes.data(), bytes.size());
  for (PlannedSchedule& schedule : chosen.schedules) schedule.selection_digest = digest;
  return {};
}

}  // namespace

Result<ChosenSchedules> choose_for_all_sizes(const ChoiceRequest& request, std::uint64_t percent) {
  ESPALIER_TRY_TO(const auto first, OperatorClass::make(request));
  std::unique_ptr<OperatorClass> in_order;
  const bool commutes = request.op.op != Op::kCustom || request.op.commutes;
  // A board without selections has no operators that do not commute either.
  if (commutes && combines_operands(request.plan.collective) && room(request) > 1) {
    in_order = in_order_class(request);
  }
  ChosenSchedules chosen;
  chosen.found_by = request.model.found_by;
  Rows rows;
  // Ends: if the tolerance is large enough, a class has one row.
  for (chosen.percent = request.plan.algorithm == nullptr ? percent : kRunTolerance;;
       chosen.percent *= 2) {
    ESPALIER_TRY_TO(rows, rows_of(*first, in_order.get(), chosen.percent));
    if (rows.schedules.size() <= room(request) && rows.rows.size() <= kMaxSelectionRows) break;
  }
  for (const Member& member : rows.schedules) take(member, *first, chosen);
  if (chosen.schedules.size() > 1) {
    ESPALIER_TRY(make_table(rows, request.model.digest(), chosen));
  }
  return chosen;
}

Result<PlannedSchedule> make_chosen(const ChosenOrigin& origin, ChoiceRequest request) {
  request.plan = origin.plan;
  if (origin.in_order) request.op = affine();
  return fit_named(request);
}

}  // namespace espalier::planner
