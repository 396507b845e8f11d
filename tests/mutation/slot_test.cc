// ContentionGuarantee SLOT against brute force on meshes: every schedule that the library makes,
// its ranks placed at random, is walked along XY routes step by step for each N. The proof for
// every N, the check of each N and the loads counted here must agree.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "base/testing/results.h"
#include "collectives/schedule/expand.h"
#include "collectives/verify/testing/verdict_of.h"
#include "espalier/collectives/verify/verify.h"
#include "tests/contention/placed.h"
#include "tests/mutation/schedules.h"

namespace espalier::mutation {
namespace {

struct Mesh {
  std::uint32_t rows, columns;
  std::vector<std::uint32_t> place;  // node of rank r, in row place[r] / columns
};

// Whether some link carries two blocks in a step: first along the row, then along the column.
bool overloaded(const Mesh& mesh, const Programs& programs, std::int64_t blocks) {
  std::map<std::tuple<std::int64_t, std::uint32_t, std::uint32_t>, int> loads;
  for (std::uint32_t rank = 0; rank < programs.size(); ++rank) {
    for (const Instance& send : expand(programs[rank], blocks)) {
      if (send.kind != ActionKind::kSend) continue;
      const std::int64_t held = std::max(1u, programs[rank].send_ticks);
      std::uint32_t at = mesh.place[rank];
      const std::uint32_t end = mesh.place[static_cast<std::size_t>(send.peer)];
      while (at != end) {
        const std::uint32_t column = at % mesh.columns, target = end % mesh.columns;
        std::uint32_t next = at < end ? at + mesh.columns : at - mesh.columns;
        if (column != target) next = column < target ? at + 1 : at - 1;
        for (std::int64_t tick = 0; tick < held; ++tick) {
          if (++loads[{send.step + tick, at, next}] > 1) return true;
        }
        at = next;
      }
    }
  }
  return false;
}

struct SlotTally {
  int free = 0, conflicting = 0, at_once = 0;
};

// Schedules that the proof for every N accepts are checked for no more blocks than this.
constexpr std::int64_t kMaxSlotBlocks = 48;

void compare(const Mesh& mesh, const topology::Topology& topology, const Made& made,
             SlotTally& tally) {
  Programs programs = made.programs;
  for (Program& program : programs) program.contention = ContentionGuarantee::kSlot;
  const auto verdict_by = [&](verify::Method method, std::int64_t most) {
    return verify::verdict_of(topology, programs, {.method = method, .max_blocks = most});
  };
  const verify::Verdict at_once = verdict_by(verify::Method::kPeriodic, 0);
  const verify::Verdict verdict =
      verdict_by(verify::Method::kExhaustive, at_once.valid ? kMaxSlotBlocks : 0);
  if (at_once.limited.empty()) {
    ++tally.at_once;
    ASSERT_EQ(at_once.valid, verdict.valid) << made.name << at_once.counterexample.message;
  }
  ++(verdict.valid ? tally.free : tally.conflicting);
  const verify::Counterexample& wrong = verdict.counterexample;
  if (!verdict.valid) {
    ASSERT_EQ(wrong.property, verify::Property::kLinks) << made.name << ": " << wrong.message;
  }
  const std::int64_t last = verdict.valid ? verdict.proven_blocks : wrong.blocks;
  const std::int64_t mod = std::max(1u, programs[0].residue_mod);
  std::int64_t first = programs[0].residue % mod;
  if (first == 0) first = mod;
  for (std::int64_t blocks = first; blocks <= last; blocks += mod) {
    ASSERT_EQ(overloaded(mesh, programs, blocks), !verdict.valid && blocks == last)
        << made.name << ", N = " << blocks << ": " << wrong.message;
  }
}

// Along rows, every other one backwards.
std::vector<std::uint32_t> snake(std::uint32_t rows, std::uint32_t columns) {
  std::vector<std::uint32_t> place;
  for (std::uint32_t row = 0; row < rows; ++row) {
    for (std::uint32_t i = 0; i < columns; ++i) {
      place.push_back(row * columns + (row % 2 == 0 ? i : columns - 1 - i));
    }
  }
  return place;
}

TEST(Slot, IsWhatIsCountedOnTheRoutes) {
  SlotTally tally;
  std::mt19937 random(1);
  for (const auto& [rows, columns] : {std::pair(1u, 5u), std::pair(2u, 2u), std::pair(2u, 3u),
                                      std::pair(3u, 3u), std::pair(2u, 4u), std::pair(4u, 3u)}) {
    for (int kind = 0; kind < 3; ++kind) {
      Mesh mesh{rows, columns, snake(rows, columns)};
      if (kind == 1) std::swap(mesh.place[random() % mesh.place.size()], mesh.place[0]);
      if (kind == 2) std::shuffle(mesh.place.begin(), mesh.place.end(), random);
      const std::string spec = "mesh:" + std::to_string(rows) + "x" + std::to_string(columns);
      const contention::Placed topology(or_throw(topology::parse(spec)), mesh.place);
      const auto root = static_cast<std::uint32_t>(random() % mesh.place.size());
      for_schedules(topology, {root}, 3, [&](const Made& made) {
        if (!HasFatalFailure()) compare(mesh, topology, made, tally);
      });
    }
  }
  std::printf("%d free, %d with conflicts; %d of them for every N at once\n", tally.free,
              tally.conflicting, tally.at_once);
  EXPECT_GT(tally.free, 100);
  EXPECT_GT(tally.conflicting, 300);
  EXPECT_GT(tally.at_once, 300);
}

}  // namespace
}  // namespace espalier::mutation
