// docs/results/storm.md

#include <algorithm>
#include <functional>

#include "tests/storm/draw.h"
#include "tests/storm/tally.h"

namespace espalier::storm {
namespace {

constexpr const char* kIntroduction =
    "# Storm\n\n"
    "Written by `build/tests/storm/storm --page FILE... >docs/results/storm.md`, which adds up "
    "what "
    "runs of `storm [--over CARRIER] SEEDS FROM` printed.\n"
    "Each seed is a cluster with any collective, algorithm, topology, window and pace, up to three "
    "collectives one after the other, and up to five faults.\n"
    "After each seed these promises are checked:\n\n"
    "- Each survivor has the right result, or a named error.\n"
    "- Survivors that can talk to each other have the same cause "
    "([two exceptions](../architecture.md#failure)).\n"
    "- The cause names a culprit that a fault explains.\n"
    "- A collective ends within twice the deadline.\n"
    "- No byte outside of the caller's buffers is written.\n"
    "- Nothing is posted after `release()`.\n\n"
    "A seed that breaks a promise prints its command, and a shorter one that fails in the same "
    "way.\n\n";

struct Column {
  Over over;
  const char* name;
  const char* text;
};
constexpr Column kColumns[] = {
    {Over::kNetwork, "simulated network",
     "in virtual time; 2 to 64 ranks, jitter, with and without eager copies"},
    {Over::kFrames, "framed links",
     "in virtual time; 2 to 64 ranks, with and without a key, over frames or bytes that a line "
     "loses, duplicates, damages and delays. A node that restarts has another session, and begins "
     "with the first collective"},
    {Over::kTcp, "tcp",
     "libfabric, all nodes in one process, in real time; 2 to 6 ranks, with and without "
     "authentication. A node that restarts cannot connect"},
    {Over::kMem, "mem", "the same over Espalier's shared memory, without authentication"},
    {Over::kMixed, "mem+tcp",
     "the same on two emulated hosts, over mem within them and tcp between them"},
};

// What the storm found. The tests must fail without the correction.
constexpr const char* kFound =
    "\n## Found\n\n"
    "Errors of the library:\n\n"
    "| seed | error | regression test |\n| --- | --- | --- |\n"
    "| `--over frames 1 30001777` | A released framed link replied to data, and its peer sent the "
    "data again at once, without end | "
    "[`SerialLinks2.AReleasedEndDoesNotMakeThePeerSendAgainAtOnce`](../../hal/serial/"
    "serial_link_test.cc) |\n"
    "| `--over frames 1 241` | `SerialPort::wait()` did not sleep while the carrier had no "
    "room "
    "| [`SerialPort.SleepsWhileItsCarrierHasNoRoom`](../../hal/serial/serial_link_test.cc) |\n\n"
    "Errors of the checks, and of the sentences in [architecture.md](../architecture.md#failure) "
    "that they check:\n\n"
    "| seed | error | regression test |\n| --- | --- | --- |\n"
    "| `1 10069905`, `1 10037813` | Two failures that are found D/4 apart may give two causes | "
    "[`JudgeTest.RefusesTwoCausesUnlessTheyWereFoundAQuarterApart`](../../tests/storm/"
    "storm_test.cc) |\n"
    "| `1 21996` | A node that wakes up passes on the cause of another part | "
    "[`JudgeTest.RefusesTwoCausesUnlessAPartWokeUp`](../../tests/storm/storm_test.cc) |\n"
    "| `1 713197` | A node that sleeps when two causes come ends later than its neighbours, with "
    "theirs | [`JudgeTest.RefusesALaterCauseUnlessItsNodeSlept`](../../tests/storm/storm_test.cc) "
    "|\n"
    "| `1 52764` | The copy of a message may take the place of one that was dropped | "
    "[`JudgeTest.RefusesALostMessageThatNobodyMisses`](../../tests/storm/storm_test.cc) |\n"
    "| `1 27860` | Hiccups stop the clock that finds a death, so a stall may be found before | "
    "[`JudgeTest.RefusesAStallWithoutPauses`](../../tests/storm/storm_test.cc) |\n"
    "| `1 11254` | A node that awaits no message learns of a failure when it is told | "
    "[`JudgeTest.RefusesALateCause`](../../tests/storm/storm_test.cc) |\n"
    "| `--over frames 1 2643783040` | All messages of a large cluster pass one router, and take "
    "longer than the deadline of small ones | "
    "[`Trial.ARouterHasTheTimeThatItsCollectiveTakes`](../../tests/storm/storm_test.cc) |\n";

// A table with a column per carrier.
class Table {
 public:
  explicit Table(const std::vector<Tally>& sums) : sums_(sums) {}
  void head(const std::string& name) {
    text_ += "\n| " + name + " |";
    for (const Tally& sum : sums_) text_ += std::string(" ") + column(sum).name + " |";
    text_ += "\n| --- |";
    for (std::size_t i = 0; i < sums_.size(); ++i) text_ += " ---: |";
    text_ += "\n";
  }
  void row(const std::string& name, const std::function<std::string(const Tally&)>& cell) {
    text_ += "| " + name + " |";
    for (const Tally& sum : sums_) text_ += " " + cell(sum) + " |";
    text_ += "\n";
  }
  void count(const std::string& name, const std::function<std::uint64_t(const Tally&)>& number) {
    row(name, [&](const Tally& sum) { return std::to_string(number(sum)); });
  }
  [[nodiscard]] static const Column& column(const Tally& sum) {
    return *std::find_if(std::begin(kColumns), std::end(kColumns),
                         [&](const Column& column) { return column.over == sum.over; });
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  const std::vector<Tally>& sums_;
  std::string text_;
};

std::uint64_t per_second(std::uint64_t number, const Tally& sum) {
  return number * 1000 / std::max<std::uint64_t>(1, sum.milliseconds);
}

// Adds up the runs of each carrier, which must have other seeds; `ranges`: those of each.
Result<std::vector<Tally>> sums_of(std::vector<Tally>& tallies, std::vector<std::string>& ranges) {
  std::sort(tallies.begin(), tallies.end(),
            [](const Tally& a, const Tally& b) { return a.from < b.from; });
  std::vector<Tally> sums;
  for (const Column& column : kColumns) {
    Tally sum;
    sum.over = column.over;
    std::string range;
    std::uint64_t next = 0;
    for (const Tally& tally : tallies) {
      if (tally.over != column.over) continue;
      if (!range.empty() && tally.from < next) {
        return fail("two runs over " + std::string(over_name(tally.over)) + " had seed " +
                    std::to_string(tally.from));
      }
      const std::string last = std::to_string(tally.from + tally.seeds - 1);
      if (!range.empty() && tally.from == next) {
        range.erase(range.rfind(' ') + 1);
        range += last;
      } else {
        range += (range.empty() ? "" : ", ") + std::to_string(tally.from) + " to " + last;
      }
      next = tally.from + tally.seeds;
      sum.add(tally);
    }
    if (range.empty()) continue;
    sums.push_back(sum);
    ranges.push_back(range);
  }
  return sums;
}

}  // namespace

Result<std::string> page_text(std::vector<Tally> tallies) {
  std::vector<std::string> ranges;
  const auto sums = sums_of(tallies, ranges);
  if (!sums) return fail(sums.error());
  std::string text = kIntroduction;
  for (const Tally& sum : *sums) {
    const Column& column = Table::column(sum);
    text += "- **" + std::string(column.name) + "** (`--over " + over_name(column.over) +
            "`): " + column.text + ".\n";
  }
  Table table(*sums);
  table.head("");
  table.row("seeds", [&](const Tally& sum) { return ranges[&sum - sums->data()]; });
  table.count("number of seeds", [](const Tally& sum) { return sum.seeds; });
  table.count("seeds that broke a promise", [](const Tally& sum) { return sum.wrong; });
  table.count("collectives, counted on each node",
              [](const Tally& sum) { return sum.collectives; });
  table.count("block messages", [](const Tally& sum) { return sum.messages; });
  table.count("faults that struck", [](const Tally& sum) { return sum.faults(); });
  table.count("seeds per second of one core",
              [](const Tally& sum) { return per_second(sum.seeds, sum); });
  table.count("faults per second of one core",
              [](const Tally& sum) { return per_second(sum.faults(), sum); });
  table.head("fault that struck");
  for (std::uint32_t kind = 0; kind < kKinds; ++kind) {
    table.row(kind_name(static_cast<Kind>(kind)), [kind](const Tally& sum) {
      if (!is_possible(static_cast<Kind>(kind), sum.over)) return std::string("-");
      return std::to_string(sum.struck[kind]);
    });
  }
  table.head("seeds that ended with");
  std::map<std::string, std::uint64_t> verdicts;
  for (const Tally& sum : *sums) verdicts.insert(sum.verdicts.begin(), sum.verdicts.end());
  for (const auto& [name, number] : verdicts) {
    table.count(name, [&name](const Tally& sum) {
      const auto verdict = sum.verdicts.find(name);
      return verdict == sum.verdicts.end() ? 0 : verdict->second;
    });
  }
  return text + table.text() + kFound;
}

}  // namespace espalier::storm
