#include "tests/storm/tally.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <string_view>

namespace espalier::storm {
namespace {

constexpr std::string_view kHead = "tally over ";
constexpr std::string_view kEnd = "end of the tally";
constexpr std::string_view kFault = "fault ";
constexpr std::string_view kVerdict = "ended with ";

// A count of a tally, and its name in the text.
struct Count {
  std::string_view name;
  std::uint64_t Tally::*value;
};
constexpr Count kCounts[] = {
    {"first seed", &Tally::from},
    {"seeds", &Tally::seeds},
    {"seeds that broke a promise", &Tally::wrong},
    {"collectives, counted on each node", &Tally::collectives},
    {"block messages", &Tally::messages},
    {"ms of the processor", &Tally::milliseconds},
};

bool read_line(const std::string& line, Tally& tally) {
  const std::size_t colon = line.rfind(": ");
  if (colon == std::string::npos) return false;
  const std::string name = line.substr(0, colon);
  std::uint64_t value = 0;
  const char* const end = line.data() + line.size();
  if (std::from_chars(line.data() + colon + 2, end, value).ptr != end) return false;
  for (const Count& count : kCounts) {
    if (name == count.name) tally.*count.value = value;
  }
  for (std::uint32_t kind = 0; kind < kKinds; ++kind) {
    if (name == std::string(kFault) + kind_name(static_cast<Kind>(kind))) {
      tally.struck[kind] = value;
    }
  }
  if (name.starts_with(kVerdict)) tally.verdicts[name.substr(kVerdict.size())] = value;
  return true;
}

auto refused(const std::string& line) { return fail("\"" + line + "\" is not a line of a tally"); }

}  // namespace

void Tally::add(const Outcome& outcome) {
  ++seeds;
  wrong += outcome.wrong.empty() ? 0 : 1;
  messages += outcome.messages;
  collectives += outcome.collectives;
  for (std::uint32_t kind = 0; kind < kKinds; ++kind) struck[kind] += outcome.struck[kind];
  for (const auto& [name, number] : outcome.verdicts) verdicts[name] += number;
}

void Tally::add(const Tally& other) {
  for (const Count& count : kCounts) {
    if (count.value != &Tally::from) this->*count.value += other.*count.value;
  }
  for (std::uint32_t kind = 0; kind < kKinds; ++kind) struck[kind] += other.struck[kind];
  for (const auto& [name, number] : other.verdicts) verdicts[name] += number;
}

std::uint64_t Tally::faults() const {
  std::uint64_t sum = 0;
  for (const std::uint64_t number : struck) sum += number;
  return sum;
}

std::string tally_text(const Tally& tally) {
  std::string text = std::string(kHead) + over_name(tally.over) + "\n";
  const auto line = [&text](std::string_view before, std::string_view name, std::uint64_t number) {
    text += std::string(before) + std::string(name) + ": " + std::to_string(number) + "\n";
  };
  for (const Count& count : kCounts) line("", count.name, tally.*count.value);
  for (std::uint32_t kind = 0; kind < kKinds; ++kind) {
    if (tally.struck[kind] > 0)
      line(kFault, kind_name(static_cast<Kind>(kind)), tally.struck[kind]);
  }
  for (const auto& [name, number] : tally.verdicts) line(kVerdict, name, number);
  return text + std::string(kEnd) + "\n";
}

Result<std::vector<Tally>> parse_tallies(const std::string& text) {
  std::vector<Tally> tallies;
  std::istringstream lines(text);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kHead)) {
      Tally tally;
      if (inside || !parse_over(line.substr(kHead.size()), tally.over)) return refused(line);
      tallies.push_back(tally);
      inside = true;
    } else if (line == kEnd) {
      inside = false;
    } else if (inside && !read_line(line, tallies.back())) {
      return refused(line);
    }
  }
  if (inside || tallies.empty()) return fail("expected a run's tally, to its end");
  return tallies;
}

}  // namespace espalier::storm
