#include "planner/board/board_limits.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "collectives/schedule/table_limits.h"
#include "espalier/internal/base/limits.h"

namespace espalier::planner {
namespace {

template <typename Row, std::size_t Size>
constexpr std::uint32_t rows(const Row (&)[Size]) {
  return Size;
}

constexpr Program kNone{};
constexpr Limit kLimits[] = {
    {"links", kMaxLinks, 128},
    {"window", kMaxWindow, 64},
    {"programs", kMaxPrograms, kMaxPrograms},
    {"selections", 0, kMaxSelections},
    {"cursors", kMaxCursors, 1024},
    {"blocks", rows(kNone.blocks), rows(kNone.blocks)},
    {"peers", rows(kNone.peers), rows(kNone.peers)},
    {"counts", rows(kNone.counts), rows(kNone.counts)},
    {"terms", kBoardTerms, kBoardTerms},
    {"indices", kBoardIndices, kBoardIndices},
    {"actions", rows(kNone.actions), rows(kNone.actions)},
    {"phases", rows(kNone.phases), rows(kNone.phases)},
};

// Finds the first number that proto/narrow.options has no room for.
class Narrow {
 public:
  template <typename Small>
  void fits(std::int64_t value, const char* what) {
    using Range = std::numeric_limits<Small>;
    if (excess_ || (value >= Range::min() && value <= Range::max())) return;
    excess_ = Error{"has " + std::string(what) + " of " + std::to_string(value) +
                    ", and numbers are narrow: " + std::to_string(Range::min()) + " to " +
                    std::to_string(Range::max())};
  }
  void header(const Program& program);
  void tables(const Program& program);
  void action(const Action& action);
  // The first field that is too large.
  [[nodiscard]] Result<void> result() const {
    if (excess_) return fail(*excess_);
    return {};
  }

 private:
  std::optional<Error> excess_;
};

void Narrow::header(const Program& program) {
  fits<std::uint16_t>(program.ranks, "ranks");
  fits<std::uint16_t>(program.nodes, "nodes");
  fits<std::uint16_t>(program.node, "a node");
  fits<std::uint16_t>(program.root, "a root");
  fits<std::uint16_t>(program.window, "a window");
  fits<std::uint16_t>(program.scratch_blocks, "scratch blocks");
  fits<std::uint8_t>(program.send_ticks, "send ticks");
  fits<std::uint8_t>(program.latency_ticks, "latency ticks");
  fits<std::uint16_t>(program.segments, "segments");
  fits<std::uint16_t>(program.residue_mod, "a residue's modulus");
  fits<std::uint16_t>(program.residue, "a residue");
  fits<std::uint16_t>(program.ring_peers, "ring peers");
}

void Narrow::action(const Action& action) {
  fits<std::uint8_t>(action.after, "an after");
  fits<std::uint8_t>(action.into.segment_count, "a segment count");
  fits<std::uint8_t>(action.a.segment_count, "a segment count");
  fits<std::uint8_t>(action.b.segment_count, "a segment count");
}

void Narrow::tables(const Program& program) {
  for (std::uint32_t i = 0; i < program.blocks_count; ++i) {
    const auto from = std::min<std::uint64_t>(program.blocks[i].from_bytes, INT64_MAX);
    fits<std::uint32_t>(static_cast<std::int64_t>(from), "a block rule from bytes");
  }
  for (std::uint32_t i = 0; i < program.peers_count; ++i) {
    fits<std::uint16_t>(program.peers[i], "a peer");
  }
  for (std::uint32_t i = 0; i < program.counts_count; ++i) {
    const Count& count = program.counts[i];
    for (const std::int32_t part : {count.a, count.b, count.c, count.d}) {
      fits<std::int16_t>(part, "a count's coefficient");
    }
    fits<std::uint16_t>(count.e, "a count's divisor");
  }
  for (std::uint32_t i = 0; i < program.terms_count; ++i) {
    const Term& term = program.terms[i];
    for (const std::int32_t part : {term.mul, term.add}) fits<std::int16_t>(part, "a term's part");
    for (const std::uint32_t part : {term.div, term.mod, term.table}) {
      fits<std::uint16_t>(part, "a term's div, mod or table");
    }
    for (const std::uint32_t part : {term.base, term.digits}) {
      fits<std::uint8_t>(part, "a term's base or digits");
    }
  }
  for (std::uint32_t i = 0; i < program.indices_count; ++i) {
    const Index& index = program.indices[i];
    for (const std::int32_t part : {index.base, index.coef, index.off}) {
      fits<std::int16_t>(part, "an index' coefficient");
    }
    for (const std::uint32_t part : {index.div, index.mod}) {
      fits<std::uint16_t>(part, "an index' div or mod");
    }
  }
  for (std::uint32_t i = 0; i < program.actions_count; ++i) action(program.actions[i]);
  for (std::uint32_t i = 0; i < program.phases_count; ++i) {
    fits<std::uint16_t>(program.phases[i].period, "a period");
  }
}

}  // namespace

std::span<const Limit> limits_of_boards() { return kLimits; }

Result<void> check_limits(const board::BoardFile::Limits& limits, const Program& program) {
  const struct {
    const char* what;
    std::uint32_t has, most;
  } tables[] = {
      {"actions", program.actions_count, limits.actions()},
      {"indices", program.indices_count, limits.indices()},
      {"counts", program.counts_count, limits.counts()},
      {"terms", program.terms_count, limits.terms()},
      {"peers", program.peers_count, limits.peers()},
      {"blocks", program.blocks_count, limits.blocks()},
      {"phases", program.phases_count, limits.phases()},
  };
  for (const auto& table : tables) {
    if (table.has <= table.most) continue;
    return fail("has " + std::to_string(table.has) + " " + table.what + ", of at most " +
                std::to_string(table.most));
  }
  if (!limits.rotated_scratch() && has_rotated_scratch(program)) {
    return fail("has rotated scratch, which needs rotated_scratch: true");
  }
  Narrow narrow;
  if (limits.narrow()) {
    narrow.header(program);
    narrow.tables(program);
  }
  return narrow.result();
}

}  // namespace espalier::planner
