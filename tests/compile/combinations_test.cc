// `espalier compile` with every algorithm, on small topologies of each kind, routed and hop by hop,
// with each port model. Compiling twice gives the same bytes, which verify, or the same refusal.

#include <gtest/gtest.h>

#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "planner/files/prove.h"
#include "tests/directory_test.h"
#include "tests/whole.h"
#include "tools/common/failure.h"
#include "tools/common/schedules.h"
#include "tools/options/plan_options.h"

namespace espalier::tools {
namespace {

namespace fs = std::filesystem;

// Two triangles of ranks with a router between them.
constexpr char kTriangles[] =
    "name: \"triangles\"\nranks: 6\nrouters: 1\n"
    "link { from: 0 to: 1 } link { from: 1 to: 2 } link { from: 0 to: 2 }\n"
    "link { from: 3 to: 4 } link { from: 4 to: 5 } link { from: 3 to: 5 }\n"
    "link { from: 2 to: 6 capacity: 2 } link { from: 6 to: 3 capacity: 2 }\n";

// A sanitizer makes proofs ten times slower, so only one in kProofs combinations is proven, and all
// are compiled once instead of twice.
#ifdef __SANITIZE_ADDRESS__
constexpr int kProofs = 20;
constexpr bool kTwice = false;
#else
constexpr int kProofs = 1;
constexpr bool kTwice = true;
#endif

// The bytes of a schedule, or the line of a refusal.
struct Outcome {
  std::vector<std::uint8_t> bytes;
  std::string refusal;
  [[nodiscard]] bool operator==(const Outcome&) const = default;
};

Outcome compiled(const PlanOptions& selection) {
  try {
    return {compile(make_schedule(selection)), ""};
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.exit_status, kBadInput) << failure.line;
    return {{}, failure.line};
  }
}

std::string text_of(const PlanOptions& selection) {
  std::string text = selection.topology + " " + selection.collective + " " + selection.algorithm;
  for (const auto& [option, value] : {std::pair{" --root ", selection.root},
                                      {" --run-length ", selection.run_length},
                                      {" --radix ", selection.radix},
                                      {" --lambda ", selection.lambda},
                                      {" --ratio ", selection.ratio},
                                      {" --links ", selection.links},
                                      {" --ports ", selection.ports}}) {
    if (!value.empty()) text += option + value;
  }
  return text;
}

bool has_word(const std::string& line, const std::string& word) {
  const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  for (std::size_t position = line.find(word); position != std::string::npos;
       position = line.find(word, position + 1)) {
    const bool begins = position == 0 || !is_letter(line[position - 1]);
    const std::size_t end = position + word.size();
    if (begins && (end == line.size() || !is_letter(line[end]))) return true;
  }
  return false;
}

// The refusal must be one line that names the refused algorithm, collective or option, without a
// bare status name.
void expect_clear(const std::string& line, const PlanOptions& selection) {
  EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  const bool names = line.find(selection.algorithm) != std::string::npos ||
                     line.find(selection.collective) != std::string::npos ||
                     line.find("--ports") != std::string::npos;
  EXPECT_TRUE(names) << line;
  for (const char* status : {"unsupported", "malformed", "bad argument", "too large", "unknown"}) {
    EXPECT_FALSE(has_word(line, status)) << text_of(selection) << ": " << line;
  }
}

// Proves the compiled schedule; `hop_by_hop`: it runs hop by hop, or its routers have programs.
void expect_valid(Outcome outcome, bool hop_by_hop) {
  try {
    EXPECT_NE(prove_compiled("it", outcome.bytes, hop_by_hop), "");
  } catch (const Failure& failure) {
    ADD_FAILURE() << failure.line;
  }
}

// Values of --links and --ports; empty: option not given.
struct Way {
  const char* links;
  const char* ports;
};
constexpr Way kWays[] = {{"", ""},
                         {"hop-by-hop", ""},
                         {"hop-by-hop", "multiport"},
                         {"hop-by-hop", "single-send"},
                         {"routed", "single-send"}};

class Combinations : public DirectoryTest {
 protected:
  struct Tally {
    int compiled = 0, refused = 0, proven = 0;
    std::set<std::string> algorithms;  // compiled
  };

  void SetUp() override {
    DirectoryTest::SetUp();
    std::ofstream(directory_ / "triangles.textproto") << kTriangles;
  }

  // Compiles with every algorithm on this topology.
  void all_on(const std::string& topology, Tally& tally) {
    for (const planner::AlgorithmEntry& entry : planner::algorithm_entries()) {
      const std::uint32_t last = parse_topology(topology)->ranks() - 1;
      std::set<std::uint32_t> roots = {0};
      if (has_root(entry.collective)) roots.insert(last);
      // In the small sample one of both.
      if (roots.size() == 2 && small_sample()) roots.erase(sampled(rooted_++, 2) ? 0 : last);
      for (const std::uint32_t root : roots) {
        for (const Way& way : kWays) {
          // In the small sample one of the others beside the first, in turn.
          if (small_sample() && &way != kWays && !sampled(turn_++, std::size(kWays) - 1)) continue;
          PlanOptions selection{.topology = topology,
                                .collective = collective_name(entry.collective),
                                .algorithm = entry.name,
                                .root = std::to_string(root)};
          selection.links = way.links;
          selection.ports = way.ports;
          one(selection, tally);
          for (const std::string& parameter : entry.parameters) {
            if (parameter == "--run-length") selection.run_length = "2";
            if (parameter == "--radix") selection.radix = "3";
            if (parameter == "--lambda") selection.lambda = "3/2";
            if (parameter == "--ratio") selection.ratio = "2/3";
            one(selection, tally);
          }
        }
      }
    }
  }

 private:
  static void one(const PlanOptions& selection, Tally& tally) {
    SCOPED_TRACE(text_of(selection));
    const Outcome first = compiled(selection);
    if (kTwice) {
      EXPECT_EQ(compiled(selection), first);
    }
    if (first.bytes.empty()) {
      ++tally.refused;
      expect_clear(first.refusal, selection);
      return;
    }
    tally.algorithms.insert(selection.collective + " " + selection.algorithm);
    if (tally.compiled++ % kProofs != 0) return;
    ++tally.proven;
    expect_valid(first, selection.links == "hop-by-hop");
  }

  std::uint64_t turn_ = 0, rooted_ = 0;
};

TEST_F(Combinations, AreTheSameTwiceAndVerify) {
  std::vector<std::string> topologies = {
      "complete:6",          "mesh:2x4",
      "crossbar:2x4",        "torus:2x3",
      "hosts:3x2",           "hosts:2x3",
      "fattree:k=3,h=2,c=1", "fattree:k=3,h=2,c=k",
      "fattree:k=2,h=3,c=1", "fattree:k=2,h=3,c=k",
      "fattree:k=2x3,c=1,2", "file:" + (directory_ / "triangles.textproto").string()};
#ifndef __SANITIZE_ADDRESS__  // searches take fifteen times as long with it
  topologies.insert(topologies.end(), {"complete:1", "complete:2", "complete:9", "mesh:3x3",
                                       "mesh:1x5", "crossbar:2x2x2", "dragonfly:2x2x1"});
  if (whole()) {
    topologies.insert(topologies.end(), {"mesh:2x2x2", "torus:2x2x2", "ring:6", "hypercube:3",
                                         "hyperx:2x3", "dragonfly:2x2x2"});
  }
#endif
  const int least = small_sample() ? 10 : 40;
  Tally all;
  for (const std::string& topology : topologies) {
    Tally tally;
    all_on(topology, tally);
    std::printf("%s: %d compiled%s, %d of them proven; %d refused\n",
                parse_topology(topology)->title().c_str(), tally.compiled, kTwice ? " twice" : "",
                tally.proven, tally.refused);
    EXPECT_GT(tally.compiled, least);
    EXPECT_GT(tally.refused, least);
    all.compiled += tally.compiled;
    all.algorithms.merge(tally.algorithms);
  }
  EXPECT_GT(all.compiled, 25 * least);
  EXPECT_EQ(all.algorithms.size(), planner::algorithm_entries().size());
}

// The leaf algorithms' claimed bounds count the lanes of the branches.
TEST_F(Combinations, OfAllCapacitiesVerify) {
  int compiled_ones = 0, proven_ones = 0;
  for (const auto& [arities, height, most] : {std::tuple{"2", 1, 4},
                                              {"3", 1, 4},
                                              {"2x2", 2, 4},
                                              {"3x3", 2, 3},
                                              {"2x2x2", 3, 3},
                                              {"2x3", 2, 4},
                                              {"4x2", 2, 3},
                                              {"3x2x2", 3, 2},
                                              {"3x12x2", 3, 2}}) {
    std::vector<int> lanes(static_cast<std::size_t>(height), 1);
    for (bool more = true; more;) {
      std::string spec = std::string("fattree:k=") + arities + ",h=" + std::to_string(height);
      for (std::size_t level = 0; level < lanes.size(); ++level) {
        spec += (level == 0 ? ",c=" : ",") + std::to_string(lanes[level]);
      }
      for (const planner::AlgorithmEntry& entry : planner::algorithm_entries()) {
        const bool leaf = entry.name.starts_with("leaf");
        // The other algorithms claim the bound that the verifier's own provable_bound() computes.
        if (!leaf && entry.name != "two-tree" && entry.name != "ring") continue;
        PlanOptions selection{.topology = spec,
                              .collective = collective_name(entry.collective),
                              .algorithm = entry.name,
                              .root = "0"};
        selection.links = leaf ? "" : "hop-by-hop";
        SCOPED_TRACE(text_of(selection));
        const Outcome outcome = compiled(selection);
        if (outcome.bytes.empty()) {
          expect_clear(outcome.refusal, selection);
          continue;
        }
        if (compiled_ones++ % kProofs != 0) continue;
        ++proven_ones;
        expect_valid(outcome, true);
      }
      more = false;
      for (int& count : lanes) {
        if (++count <= most) {
          more = true;
          break;
        }
        count = 1;
      }
    }
  }
  std::printf("%d compiled, %d of them proven\n", compiled_ones, proven_ones);
  EXPECT_GT(compiled_ones, 500);
}

}  // namespace
}  // namespace espalier::tools
