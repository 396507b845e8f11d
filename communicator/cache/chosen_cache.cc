#include "communicator/cache/chosen_cache.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/parse_number.h"
#include "collectives/build/builder.h"
#include "communicator/cache/cache_file.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/verify/verify.h"
#include "espalier/internal/base/assert.h"
#include "espalier/internal/base/limits.h"

namespace espalier::communicator {
namespace {

using planner::Placement;
using planner::PlanRequest;

// Lines: how many origins; for each whether it keeps the order, and what candidates differ in, one
// a line; how many rows; for each its three numbers. Plain text, because a library's objects may
// need memory to end.
std::string text_of(const KeptChoice& choice) {
  ESPALIER_ASSERT(!choice.origins.empty() && choice.origins.size() <= UINT8_MAX + 1);
  ESPALIER_ASSERT(choice.rows.empty() == (choice.origins.size() == 1));
  std::string text = std::to_string(choice.origins.size()) + "\n";
  for (const planner::ChosenOrigin& origin : choice.origins) {
    const PlanRequest& plan = origin.plan;
    text += (origin.in_order ? "1\n" : "0\n") + plan.algorithm->name + "\n";
    for (const std::uint32_t number :
         {plan.run_length, plan.has_own_run_length ? 1u : 0u, plan.radix, plan.lambda.above,
          plan.lambda.below, static_cast<std::uint32_t>(plan.placement.kind), plan.window}) {
      text += std::to_string(number) + "\n";
    }
  }
  text += std::to_string(choice.rows.size()) + "\n";
  for (const SelectionRow& row : choice.rows) {
    ESPALIER_ASSERT(row.program < choice.origins.size());
    text += std::to_string(row.from_bytes) + "\n" + (row.needs_commutative ? "1\n" : "0\n") +
            std::to_string(row.program) + "\n";
  }
  return text;
}

// The lines of a text, one after the other. After the first fault all are empty.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}
  [[nodiscard]] std::string_view next() {
    const std::size_t end = rest_.find('\n');
    if (end == std::string_view::npos) is_good_ = false;
    if (!is_good_) return "";
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return line;
  }
  // A number up to `max`.
  [[nodiscard]] std::uint64_t number(std::uint64_t max) {
    std::uint64_t value = 0;
    if (!parse_number(next(), value) || value > max) is_good_ = false;
    return is_good_ ? value : 0;
  }
  // Whether there was no fault, and nothing is left.
  [[nodiscard]] bool is_over() const { return is_good_ && rest_.empty(); }
  [[nodiscard]] bool is_good() const { return is_good_; }

 private:
  std::string_view rest_;
  bool is_good_ = true;
};

// Sets what candidates differ in. False: they do not differ in that.
bool read_plan(Lines& lines, PlanRequest& plan) {
  const auto number = [&lines](std::uint64_t max) {
    return static_cast<std::uint32_t>(lines.number(max));
  };
  const auto entry = planner::find_entry(plan.collective, std::string(lines.next()));
  if (!entry) return false;
  plan.algorithm = *entry;
  plan.run_length = number(kMaxFieldWindow);
  plan.has_own_run_length = number(1) == 1;
  plan.radix = number(kMaxLinearRanks);
  plan.lambda.above = number(kMaxTicks);
  plan.lambda.below = number(plan.lambda.above);
  plan.placement.kind =
      static_cast<Placement::Kind>(number(static_cast<std::uint64_t>(Placement::Kind::kZOrder)));
  plan.window = number(verify::kMaxVerifiedWindow);
  return plan.radix != 1 && plan.lambda.is_given() == (plan.lambda.above != 0);
}

// Nothing: the text is not that of a choice, for instance because a process was killed while it
// wrote.
std::optional<KeptChoice> parse(const std::string& text, const PlanRequest& wanted) {
  KeptChoice choice;
  Lines lines(text);
  for (std::uint64_t left = lines.number(UINT8_MAX + 1); left > 0 && lines.is_good(); --left) {
    planner::ChosenOrigin origin{wanted};
    origin.in_order = lines.number(1) == 1;
    if (!read_plan(lines, origin.plan)) return {};
    choice.origins.push_back(std::move(origin));
  }
  for (std::uint64_t left = lines.number(kMaxSelectionRows); left > 0 && lines.is_good(); --left) {
    SelectionRow row = {};
    row.from_bytes = lines.number(UINT64_MAX);
    row.needs_commutative = lines.number(1) == 1;
    row.program = static_cast<std::uint8_t>(lines.number(UINT8_MAX));
    if (row.program >= choice.origins.size()) return {};
    choice.rows.push_back(row);
  }
  const bool is_one = choice.origins.size() == 1;
  if (!lines.is_over() || choice.origins.empty() || choice.rows.empty() != is_one) return {};
  return choice;
}

}  // namespace

Result<KeptChoice> obtain_choice(const std::string& name, const PlanRequest& wanted,
                                 const std::function<bool(const KeptChoice&)>& is_good,
                                 const std::function<Result<KeptChoice>()>& choose) {
  const CacheFile file(cache_path(name));
  if (!file.is_open()) return choose();
  if (auto kept = parse(file.read(), wanted); kept && is_good(*kept)) return *std::move(kept);
  auto choice = choose();
  if (choice) file.replace(text_of(*choice));
  return choice;
}

}  // namespace espalier::communicator
