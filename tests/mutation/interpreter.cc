#include "tests/mutation/interpreter.h"

#include <map>
#include <utility>

#include "tests/mutation/drift.h"

namespace espalier::mutation {
namespace {

constexpr std::uint8_t kSend = espalier_Kind_SEND;
constexpr std::uint8_t kReceive = espalier_Kind_RECEIVE;
constexpr std::uint8_t kInput = espalier_Buffer_INPUT;
constexpr std::uint8_t kOutput = espalier_Buffer_OUTPUT;

bool inside(const Play& play, const Part& part, const Spot& spot) {
  if (spot.buffer == 0) return true;
  if (spot.segment < 0 || spot.segment >= play.segments) return false;
  if (spot.block < 0 || spot.block >= play.blocks) return false;
  return spot.buffer != espalier_Buffer_SCRATCH || (spot.slot >= 0 && spot.slot < part.scratch);
}

// What needs no run: places that exist and belong to the rank, ports, links, claimed steps.
std::string check_statically(const Play& play) {
  const bool broadcast = play.collective == espalier_Collective_BROADCAST;
  const bool reduce = play.collective == espalier_Collective_REDUCE;
  for (std::size_t me = 0; me < play.parts.size(); ++me) {
    const Part& part = play.parts[me];
    const bool root = me == play.root;
    const std::string who = "rank " + std::to_string(me);
    for (std::size_t k = 0; k < part.moves.size(); ++k) {
      const Move& move = part.moves[k];
      if (move.step >= part.claimed) return who + " works past the claimed steps";
      const bool transfer = move.kind == kSend || move.kind == kReceive;
      const auto many = static_cast<std::int64_t>(play.parts.size());
      if (transfer && (move.peer < 0 || move.peer >= many)) return who + " has no such peer";
      for (const Spot* spot : {&move.into, &move.a, &move.b}) {
        if (!inside(play, part, *spot)) return who + " uses memory that is not there";
        const bool absent = (broadcast && !root && spot->buffer == kInput) ||
                            (broadcast && root && spot->buffer == kOutput) ||
                            (reduce && !root && spot->buffer == kOutput);
        if (absent) return who + " uses a buffer that its caller does not give";
      }
      for (std::size_t j = k; transfer && j-- > 0 && part.moves[j].step == move.step;) {
        const Move& other = part.moves[j];
        if (other.kind != kSend && other.kind != kReceive) continue;
        const bool alike = other.kind == move.kind;
        const bool clash =
            (alike && other.peer == move.peer) ||
            (play.port_model == espalier_PortModel_ONE_PORT_DUPLEX && alike) ||
            play.port_model == espalier_PortModel_SIMPLEX ||
            (play.port_model == espalier_PortModel_SINGLE_SEND && alike && move.kind == kSend);
        if (clash) return who + " breaks its ports in step " + std::to_string(move.step);
      }
    }
  }
  return {};
}

// That both ends of each transfer stand in the same step is what makes a step one step: then no
// more steps pass in lock step than are claimed.
std::string check_meetings(const Play& play) {
  std::map<std::pair<std::int64_t, std::int64_t>,
           std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>>
      ends;
  for (std::size_t me = 0; me < play.parts.size(); ++me) {
    const auto mine = static_cast<std::int64_t>(me);
    for (const Move& move : play.parts[me].moves) {
      if (move.kind == kSend) ends[{mine, move.peer}].first.push_back(move.step);
      if (move.kind == kReceive) ends[{move.peer, mine}].second.push_back(move.step);
    }
  }
  for (const auto& [link, steps] : ends) {
    if (steps.first != steps.second) {
      return "rank " + std::to_string(link.first) + " and rank " + std::to_string(link.second) +
             " do not meet step by step";
    }
  }
  return {};
}

}  // namespace

std::string check_limits(const Play& play) {
  std::string wrong = check_statically(play);
  return wrong.empty() ? check_meetings(play) : wrong;
}

std::string run_drifts(const Play& play, std::uint32_t drifts) {
  // With a window of one no rank is ahead of the step that it is in: lock step.
  Play lock_step = play;
  for (Part& part : lock_step.parts) part.window = 1;
  std::string wrong = run_drift(lock_step, 0);
  for (std::uint32_t seed = 1; seed <= drifts && wrong.empty(); ++seed) {
    wrong = run_drift(play, seed);
  }
  return wrong;
}

std::string interpret(const Play& play, std::uint32_t drifts) {
  std::string wrong = check_limits(play);
  return wrong.empty() ? run_drifts(play, drifts) : wrong;
}

}  // namespace espalier::mutation
