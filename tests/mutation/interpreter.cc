#include "tests/mutation/interpreter.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tests/mutation/skew.h"

namespace espalier::mutation {
namespace {

bool is_transfer(const Move& move) { return move.kind == kSend || move.kind == kReceive; }

bool inside(const Play& play, const Part& part, const Spot& spot) {
  const bool rotated = spot.after_own >= 0;
  const std::int64_t ahead = rotated ? spot.after_own : spot.segment;
  if (spot.segment < 0 || spot.segment >= play.segments ||
      ahead + spot.segment_count > play.segments || (rotated && spot.slot < ahead)) {
    return false;
  }
  if (spot.block < 0 || spot.block >= play.blocks) return false;
  if (spot.segment_count > 1 && play.blocks > 1) return false;
  return spot.buffer != Buffer::kScratch ||
         (spot.slot >= 0 && spot.slot + spot.segment_count <= part.scratch);
}

// Empty if the place exists and its caller gives it.
std::string check_spot(const Play& play, std::size_t me, const Spot& spot) {
  if (spot.buffer == 0) return {};
  const std::string who = "node " + std::to_string(me);
  if (!inside(play, play.parts[me], spot)) return who + " uses memory that is not there";
  if (spot.buffer == Buffer::kScratch) return {};
  const auto [first, end] = play.given(static_cast<std::int64_t>(me), spot.buffer);
  if (spot.segment < first || spot.segment + spot.segment_count > end) {
    return who + " uses a buffer that its caller does not give";
  }
  return {};
}

// Rotated scratch is packed: the segments of an area, which begins with the node's own, follow each
// other without gaps. So different slots are different memory only if each area has its own slots,
// one after the other.
std::string check_packing(const Part& part, std::size_t me) {
  std::map<std::int64_t, std::int64_t> area_of;  // by slot
  const auto wrong = [me] { return "node " + std::to_string(me) + " mixes areas of its scratch"; };
  for (const Move& move : part.moves) {
    for (const Spot* spot : {&move.into, &move.a, &move.b}) {
      if (spot->after_own < 0) continue;
      for (std::int64_t k = 0; k < spot->segment_count; ++k) {
        const std::int64_t area = spot->slot - spot->after_own;
        if (area_of.try_emplace(spot->slot + k, area).first->second != area) return wrong();
      }
    }
  }
  for (auto next = area_of.begin(), slot = next; next != area_of.end(); slot = next) {
    if (++next != area_of.end() && next->second != slot->second && next->second <= slot->first) {
      return wrong();
    }
  }
  return {};
}

// The checks that need no run: ranks and places exist and belong to the node; ports, links and
// claimed steps.
std::string check_statically(const Play& play) {
  if (play.ranks > static_cast<std::int64_t>(play.parts.size())) {
    return "there are fewer nodes than ranks";
  }
  for (std::size_t me = 0; me < play.parts.size(); ++me) {
    const Part& part = play.parts[me];
    if (!part.keeps_pace) return "node " + std::to_string(me) + " stalls at a pace";
    for (std::size_t k = 0; k < part.moves.size(); ++k) {
      const Move& move = part.moves[k];
      if (move.step >= part.claimed) {
        return "node " + std::to_string(me) + " works past the claimed steps";
      }
      std::string wrong;
      for (const Spot* spot : {&move.into, &move.a, &move.b}) {
        if (wrong.empty()) wrong = check_spot(play, me, *spot);
      }
      if (wrong.empty() && is_transfer(move)) {
        wrong = play.check_ports(part.moves, k, me, play.parts.size(),
                                 [&](auto from, auto to) { return lanes_between(play, from, to); });
      }
      if (!wrong.empty()) return wrong;
    }
    const std::string wrong = check_packing(part, me);
    if (!wrong.empty()) return wrong;
  }
  return {};
}

// Checks that both ends of each transfer are in the same step (in the postal model:
// latency_ticks - 1 apart). Only then do the steps that pass in lock step not exceed the claimed
// ones.
std::string check_meetings(const Play& play) {
  std::map<std::pair<std::int64_t, std::int64_t>,
           std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>>
      ends;
  for (std::size_t me = 0; me < play.parts.size(); ++me) {
    const auto mine = static_cast<std::int64_t>(me);
    for (const Move& move : play.parts[me].moves) {
      if (move.kind == kSend) {
        ends[{mine, move.peer}].first.push_back(move.step + play.latency_ticks - 1);
      }
      if (move.kind == kReceive) ends[{move.peer, mine}].second.push_back(move.step);
    }
  }
  for (const auto& [link, steps] : ends) {
    if (steps.first != steps.second) {
      return "node " + std::to_string(link.first) + " and node " + std::to_string(link.second) +
             " do not meet step by step";
    }
  }
  return {};
}

}  // namespace

std::int64_t lanes_between(const Play& play, std::int64_t from, std::int64_t to) {
  const auto link = play.lanes.find({from, to});
  if (link != play.lanes.end()) return link->second;
  // If routers have no programs, the fabric takes a message to any rank.
  return static_cast<std::int64_t>(play.parts.size()) > play.ranks ? 0 : 1;
}

std::string check_limits(const Play& play) {
  std::string wrong = check_statically(play);
  return wrong.empty() ? check_meetings(play) : wrong;
}

std::string run_skews(const Play& play, std::uint32_t skews) {
  // With a window of one step (in ticks: the flight of a message) no node is ahead of its step:
  // lock step.
  Play lock_step = play;
  for (Part& part : lock_step.parts) part.window = std::min(part.window, play.latency_ticks);
  std::string wrong = run_skew(lock_step, 0);
  for (std::uint32_t seed = 1; seed <= skews && wrong.empty(); ++seed) {
    wrong = run_skew(play, seed);
  }
  return wrong;
}

std::string interpret(const Play& play, std::uint32_t skews) {
  std::string wrong = check_limits(play);
  return wrong.empty() ? run_skews(play, skews) : wrong;
}

}  // namespace espalier::mutation
