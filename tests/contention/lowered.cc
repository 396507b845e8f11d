#include "tests/contention/lowered.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "collectives/verify/testing/verdict_of.h"
#include "espalier/collectives/lower/lower.h"
#include "espalier/collectives/verify/verify.h"

namespace espalier::contention {
namespace {

constexpr int kTries = 60;
constexpr std::uint32_t kMaxBlocksARound = 6;

// The same topology with enough lanes on each link for any case here.
class Thick final : public topology::Topology {
 public:
  explicit Thick(const Topology& real) : real_(real) {}
  [[nodiscard]] std::string spec() const override { return real_.spec(); }
  [[nodiscard]] std::uint32_t ranks() const override { return real_.ranks(); }
  [[nodiscard]] std::uint32_t nodes() const override { return real_.nodes(); }
  [[nodiscard]] std::uint64_t link_count() const override { return real_.link_count(); }
  [[nodiscard]] std::vector<topology::Link> links() const override {
    std::vector<topology::Link> links = real_.links();
    for (topology::Link& link : links) link.capacity = kLanes;
    return links;
  }
  [[nodiscard]] std::uint32_t capacity(std::uint32_t from, std::uint32_t to) const override {
    return real_.capacity(from, to) == 0 ? 0 : kLanes;
  }
  [[nodiscard]] std::vector<std::uint32_t> route(std::uint32_t from,
                                                 std::uint32_t to) const override {
    return real_.route(from, to);
  }
  [[nodiscard]] Position position(std::uint32_t node) const override {
    return real_.position(node);
  }
  [[nodiscard]] std::string node_name(std::uint32_t node) const override {
    return real_.node_name(node);
  }

 private:
  static constexpr std::uint32_t kLanes = 16;
  const Topology& real_;
};

bool valid_but_for_lanes(const ContentionCase& contention_case, Programs programs) {
  // Removes the bounds that count on the lanes.
  for (Program& program : programs) {
    if (program.counts_count == std::size(program.counts)) return false;
    program.counts[program.counts_count] = Count{};
    program.bound_ref = program.counts_count++;
  }
  return verify::verdict_of(
             Thick(*contention_case.topology), programs,
             {.method = verify::Method::kExhaustive, .max_blocks = contention_case.blocks})
      .valid;
}

// A hop with its own actions at both ends, always in the same step of the period.
struct Hop {
  std::uint32_t from = 0, to = 0;
  std::uint32_t send = 0, receive = 0;  // actions
  std::int32_t step = 0;
};

bool is_plain(const Program& program, const Action& action, ActionKind kind) {
  const Count& t0 = program.counts[action.t0_ref];
  return action.kind == kind && action.pace_ref == 0 && t0.b == 0 && t0.c == 0;
}

std::uint32_t peer_at(const Program& program, const Action& action) {
  return peer_of(program, static_cast<std::uint32_t>(index_value(program, action.link_ref, 0)));
}

std::int64_t block_at(const Program& program, const Operand& operand) {
  return index_value(program, operand.block_ref, 0);
}

std::vector<Hop> hops_of(const Programs& programs) {
  std::vector<Hop> hops;
  for (std::uint32_t from = 0; from < programs.size(); ++from) {
    for (std::uint32_t send = 0; send < programs[from].actions_count; ++send) {
      const Action& out = programs[from].actions[send];
      if (!is_plain(programs[from], out, ActionKind::kSend)) continue;
      const std::uint32_t to = peer_at(programs[from], out);
      const std::int32_t step = programs[from].counts[out.t0_ref].a;
      for (std::uint32_t receive = 0; receive < programs[to].actions_count; ++receive) {
        const Action& in = programs[to].actions[receive];
        if (is_plain(programs[to], in, ActionKind::kReceive) && peer_at(programs[to], in) == from &&
            programs[to].counts[in.t0_ref].a == step &&
            block_at(programs[to], in.into) == block_at(programs[from], out.a)) {
          hops.push_back({from, to, send, receive, step});
          break;
        }
      }
    }
  }
  return hops;
}

// Returns false if the program has no room for another count.
bool set_step(Program& program, std::uint32_t action, std::int32_t step) {
  if (program.counts_count == std::size(program.counts)) return false;
  Count& count = program.counts[program.counts_count];
  count = program.counts[program.actions[action].t0_ref];
  count.a = step;
  program.actions[action].t0_ref = program.counts_count++;
  return true;
}

struct Move {
  Hop hop;
  std::int32_t step = 0;
};

// Moves to steps in which another hop uses the link, in random order; then some other moves.
std::vector<Move> moves_of(Dice& dice, const std::vector<Hop>& hops, std::int32_t period) {
  std::vector<Move> moves, others;
  for (const Hop& hop : hops) {
    others.push_back({hop, hop.step + static_cast<std::int32_t>(dice.number(0, 6)) - 3});
    for (const Hop& other : hops) {
      if (other.from != hop.from || other.to != hop.to || other.step == hop.step) continue;
      for (const std::int32_t rounds : {-1, 0, 1}) {
        moves.push_back({hop, other.step + rounds * period});
      }
    }
  }
  dice.shuffle(moves);
  dice.shuffle(others);
  moves.resize(std::min<std::size_t>(moves.size(), kTries));
  moves.insert(moves.end(), others.begin(), others.end());
  moves.resize(std::min<std::size_t>(moves.size(), 2 * kTries));
  return moves;
}

// Moves both ends of the hop to that step; the send still waits for the same receive.
bool put(const Move& move, Programs& programs) {
  const Hop& hop = move.hop;
  if (move.step < 0 || move.step == hop.step) return false;
  if (!set_step(programs[hop.from], hop.send, move.step) ||
      !set_step(programs[hop.to], hop.receive, move.step)) {
    return false;
  }
  Action& send = programs[hop.from].actions[hop.send];
  if (send.after == 0) return true;
  const std::int32_t after = static_cast<std::int32_t>(send.after) + move.step - hop.step;
  const bool in_window = after < static_cast<std::int32_t>(programs[0].window);
  send.after = in_window ? static_cast<std::uint32_t>(after) : 0;
  return after > 0;
}

}  // namespace

std::string lower_case(Dice& dice, ContentionCase& contention_case) {
  if (lower::is_hop_by_hop(*contention_case.topology, contention_case.programs)) return "";
  CollectiveParameters parameters{.ranks = contention_case.topology->ranks(),
                                  .root = contention_case.root,
                                  .topology_digest = contention_case.topology->digest(),
                                  .blocks = contention_case.programs[0].blocks,
                                  .blocks_count = contention_case.programs[0].blocks_count};
  const PortModel ports = dice.one_in(3) ? PortModel::kSingleSend : PortModel::kMultiport;
  lower::Report report;
  auto lowered =
      lower::lower(*contention_case.topology, parameters, ports, contention_case.programs, report);
  if (!lowered || (*lowered)[0].residue_mod > kMaxBlocksARound) return "";
  contention_case.programs = *std::move(lowered);
  contention_case.links = "lowered";
  return ports == PortModel::kSingleSend ? ", lowered for single sends" : ", lowered";
}

std::string move_hop(Dice& dice, ContentionCase& contention_case) {
  const auto period = static_cast<std::int32_t>(contention_case.programs[0].phases[0].period);
  for (const Move& move : moves_of(dice, hops_of(contention_case.programs), period)) {
    Programs moved = contention_case.programs;
    if (!put(move, moved) || !valid_but_for_lanes(contention_case, moved)) continue;
    std::copy(moved.begin(), moved.end(), contention_case.programs.begin());
    contention_case.links = "lowered, a hop moved";
    return ", " + std::to_string(move.hop.from) + " -> " + std::to_string(move.hop.to) +
           " moved from step " + std::to_string(move.hop.step) + " to " + std::to_string(move.step);
  }
  return "";
}

}  // namespace espalier::contention
