#include "tests/storm/tally.h"

#include <string_view>

namespace espalier::storm {
namespace {

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

}  // namespace

void Tally::add(const Outcome& outcome) {
  ++seeds;
  wrong += outcome.wrong.empty() ? 0 : 1;
  messages += outcome.messages;
  collectives += outcome.collectives;
  for (std::uint32_t kind = 0; kind < kKinds; ++kind) struck[kind] += outcome.struck[kind];
  for (const auto& [name, number] : outcome.verdicts) verdicts[name] += number;
}

std::string tally_text(const Tally& tally) {
  std::string text = std::string("tally over ") + over_name(tally.over) + "\n";
  const auto line = [&text](std::string_view before, std::string_view name, std::uint64_t number) {
    text += std::string(before) + std::string(name) + ": " + std::to_string(number) + "\n";
  };
  for (const Count& count : kCounts) line("", count.name, tally.*count.value);
  for (std::uint32_t kind = 0; kind < kKinds; ++kind) {
    if (!is_possible(static_cast<Kind>(kind), tally.over)) continue;
    line("fault ", kind_name(static_cast<Kind>(kind)), tally.struck[kind]);
  }
  for (const auto& [name, number] : tally.verdicts) line("ended with ", name, number);
  return text + "end of the tally\n";
}

}  // namespace espalier::storm
