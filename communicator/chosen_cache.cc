#include "communicator/chosen_cache.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "communicator/cache_file.h"

namespace espalier::communicator {
namespace {

// The fields of a selection that candidates differ in.
constexpr std::string planner::Selection::*kFields[] = {
    &planner::Selection::topology, &planner::Selection::collective, &planner::Selection::algorithm,
    &planner::Selection::root,     &planner::Selection::run_length, &planner::Selection::radix,
    &planner::Selection::lambda,   &planner::Selection::ratio,      &planner::Selection::embedding,
    &planner::Selection::window};

// Lines: how many origins; for each whether it keeps the order, and its fields, one a line; how
// many rows; for each its three numbers. Plain text, because a library's objects may need memory to
// end.
std::string text_of(const KeptChoice& choice) {
  std::string text = std::to_string(choice.origins.size()) + "\n";
  for (const planner::ChosenOrigin& origin : choice.origins) {
    text += origin.in_order ? "1\n" : "0\n";
    for (const auto field : kFields) text += origin.selection.*field + "\n";
  }
  text += std::to_string(choice.rows.size()) + "\n";
  for (const SelectionRow& row : choice.rows) {
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
    const std::string_view line = next();
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (error != std::errc() || end != line.data() + line.size() || value > max) is_good_ = false;
    return is_good_ ? value : 0;
  }
  // Whether there was no fault, and nothing is left.
  [[nodiscard]] bool is_over() const { return is_good_ && rest_.empty(); }
  [[nodiscard]] bool is_good() const { return is_good_; }

 private:
  std::string_view rest_;
  bool is_good_ = true;
};

// Nothing: the text is not that of a choice, for instance because a process was killed while it
// wrote.
std::optional<KeptChoice> parse(const std::string& text) {
  KeptChoice choice;
  Lines lines(text);
  for (std::uint64_t left = lines.number(UINT8_MAX + 1); left > 0 && lines.is_good(); --left) {
    planner::ChosenOrigin origin;
    origin.in_order = lines.number(1) == 1;
    for (const auto field : kFields) origin.selection.*field = lines.next();
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

KeptChoice obtain_choice(const std::string& name,
                         const std::function<bool(const KeptChoice&)>& is_good,
                         const std::function<KeptChoice()>& choose) {
  const CacheFile file(cache_path(name));
  if (!file.is_open()) return choose();
  if (auto kept = parse(file.read()); kept && is_good(*kept)) return *std::move(kept);
  KeptChoice choice = choose();
  file.replace(text_of(choice));
  return choice;
}

}  // namespace espalier::communicator
