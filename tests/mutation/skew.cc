#include "tests/mutation/skew.h"

#include <array>
#include <map>
#include <utility>

#include "tests/mutation/memory.h"

namespace espalier::mutation {
namespace {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 1) {}
  std::uint32_t below(std::uint32_t limit) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<std::uint32_t>((state_ >> 32) * limit >> 32);
  }

 private:
  std::uint64_t state_;
};

// The events of a rank. Each has a weight, drawn anew for each skew, so that in some skews
// messages land late, in others they are sent late, and so on.
enum Event { kIssue, kPost, kRead, kSent, kLand, kReceived, kOperate, kEvents };

constexpr std::uint32_t kMaxWeight = 512;

struct Message {
  std::vector<Data> data;  // of each segment of its run
  std::int64_t segment, block;
};

struct Wire {
  std::vector<Message> read;  // messages whose bytes have left the sender
  std::size_t sends = 0;      // sends posted
  std::size_t posted = 0;     // receives issued at the peer
  std::size_t landed = 0;
  std::int64_t lanes = 1;
};

struct State {  // of a move
  bool posted = false, read = false, done = false;
  std::size_t number = 0;  // of the message on its wire
  Wire* wire = nullptr;
};

struct Rank {  // or router
  std::int64_t in = 0, retired = -1, steps = 0;
  std::size_t first_open = 0;     // the first move of a step that has not retired
  std::size_t first_outside = 0;  // the first move of a step that is not issued
  std::vector<State> states;
  std::size_t operation = 0;  // the next combine or copy
  bool stuck = false;         // nothing can happen here before an event at a peer
};

class SkewedRun {
 public:
  SkewedRun(const Play& play, std::uint64_t seed) : play_(play), memory_(play), random_(seed) {
    ranks_.resize(play.parts.size());
    for (std::size_t me = 0; me < ranks_.size(); ++me) {
      Rank& rank = ranks_[me];
      const Part& part = play.parts[me];
      rank.steps = part.phase_ends.empty() ? 0 : part.phase_ends.back();
      rank.states.resize(part.moves.size());
      std::map<std::pair<std::int64_t, bool>, std::size_t> numbers;
      for (std::size_t k = 0; k < part.moves.size(); ++k) {
        const Move& move = part.moves[k];
        if (move.kind != kSend && move.kind != kReceive) continue;
        const auto mine = static_cast<std::int64_t>(me);
        const bool send = move.kind == kSend;
        rank.states[k].number = numbers[{move.peer, send}]++;
        const auto ends = send ? std::pair{mine, move.peer} : std::pair{move.peer, mine};
        rank.states[k].wire = &wires_[ends];
        rank.states[k].wire->lanes = lanes_between(play, ends.first, ends.second);
      }
      next_operation(me, 0);
    }
    eager_ = random_.below(2) == 0;
    for (std::uint32_t& weight : weights_) weight = kMaxWeight >> (3 * random_.below(4));
    favourite_ = random_.below(2) == 0 ? random_.below(static_cast<std::uint32_t>(ranks_.size()))
                                       : ranks_.size();
  }

  std::string run() {
    for (;;) {
      // A random rank, or in half of the cases the favourite; if nothing can happen there, all
      // others.
      const auto many = static_cast<std::uint32_t>(ranks_.size());
      std::size_t me = random_.below(many);
      if (favourite_ < ranks_.size() && random_.below(2) == 0) me = favourite_;
      bool moved = false;
      for (std::size_t tried = 0; tried < many && !moved; ++tried) {
        moved = !ranks_[me].stuck && happen(me);
        ranks_[me].stuck = !moved;
        if (!moved) me = (me + 1) % many;
      }
      if (!wrong_.empty()) return wrong_;
      if (!moved) break;
    }
    for (std::size_t me = 0; me < ranks_.size(); ++me) {
      if (ranks_[me].retired + 1 < ranks_[me].steps) {
        return "node " + std::to_string(me) + " waits for ever in step " +
               std::to_string(ranks_[me].retired + 1);
      }
    }
    for (const auto& [ends, wire] : wires_) {
      if (wire.read.size() != wire.posted) {
        return "messages from node " + std::to_string(ends.first) + " to node " +
               std::to_string(ends.second) + " that nobody awaits";
      }
    }
    return memory_.wrong_result();
  }

 private:
  struct Choice {
    Event event;
    std::size_t move;
  };

  // One random event of rank `me`, if any can happen. A few guesses first, which mostly hit: asking
  // for all that can happen takes much longer.
  bool happen(std::size_t me) {
    Rank& rank = ranks_[me];
    const Part& part = play_.parts[me];
    const auto open = static_cast<std::uint32_t>(rank.first_outside - rank.first_open);
    for (int guess = 0; guess < 4; ++guess) {
      const Choice choice = possible(rank, part, rank.first_open + random_.below(open + 1));
      if (choice.event == kEvents || random_.below(kMaxWeight) >= weights_[choice.event]) continue;
      perform(me, choice);
      return true;
    }
    choices_.clear();
    std::uint32_t total = 0;
    for (std::size_t k = rank.first_open; k <= rank.first_outside; ++k) {
      const Choice choice = possible(rank, part, k);
      if (choice.event == kEvents) continue;
      choices_.push_back(choice);
      total += weights_[choice.event];
    }
    if (choices_.empty()) return false;
    std::uint32_t pick = random_.below(total);
    std::size_t at = 0;
    while (pick >= weights_[choices_[at].event]) pick -= weights_[choices_[at++].event];
    perform(me, choices_[at]);
    return true;
  }

  // The event that move `at` allows now; for the first move outside, it is issuing the step of that
  // move. kEvents: no event.
  Choice possible(const Rank& rank, const Part& part, std::size_t at) const {
    if (at == rank.first_outside) return {may_issue(rank, part) ? kIssue : kEvents, at};
    const State& state = rank.states[at];
    if (state.done) return {kEvents, at};
    switch (part.moves[at].kind) {
      case kSend:
        if (!state.posted) return {may_post(rank, part, at) ? kPost : kEvents, at};
        if (!state.read) return {may_read(state, part) ? kRead : kEvents, at};
        return {kSent, at};
      case kReceive:
        if (state.read) return {kReceived, at};
        return {state.wire->read.size() > state.number ? kLand : kEvents, at};
      default:
        return {at == rank.operation && may_operate(rank, part, at) ? kOperate : kEvents, at};
    }
  }

  static bool may_issue(const Rank& rank, const Part& part) {
    if (rank.in >= rank.steps || rank.in - part.window > rank.retired) return false;
    for (const std::int64_t end : part.phase_ends) {
      if (rank.in >= end && rank.retired < end - 1) return false;
    }
    return true;
  }

  // Whether all receives of `step` are complete, and, if asked, its operations have run.
  static bool ready(const Rank& rank, const Part& part, std::int64_t step, bool operations) {
    if (step <= rank.retired) return true;
    for (std::size_t k = rank.first_open; k < part.moves.size() && part.moves[k].step <= step;
         ++k) {
      if (part.moves[k].step != step || part.moves[k].kind == kSend) continue;
      if (!rank.states[k].done && (operations || part.moves[k].kind == kReceive)) return false;
    }
    return true;
  }

  static bool may_post(const Rank& rank, const Part& part, std::size_t at) {
    const Move& send = part.moves[at];
    if (rank.states[at].number != rank.states[at].wire->sends) return false;
    return send.after == 0 || ready(rank, part, send.step - send.after, true);
  }

  // Whether the bytes can leave: once the peer has issued its receive, or, eager, once one of the
  // window's landing slots there is free.
  bool may_read(const State& state, const Part& part) const {
    const Wire& wire = *state.wire;
    if (wire.read.size() != state.number) return false;  // in the order of their posting
    if (!eager_) return wire.posted > state.number;
    return wire.read.size() < wire.landed + static_cast<std::size_t>(part.window * wire.lanes);
  }

  static bool may_operate(const Rank& rank, const Part& part, std::size_t at) {
    const Move& operation = part.moves[at];
    if (!ready(rank, part, operation.step - operation.after, false)) return false;
    for (std::size_t k = rank.first_open; k < rank.first_outside; ++k) {
      if (part.moves[k].kind != kSend) continue;
      const State& send = rank.states[k];
      if (!send.posted && part.moves[k].step <= operation.step) return false;
      if (send.posted && !send.done && same_memory(part.moves[k].a, operation.into)) return false;
    }
    return true;
  }

  static bool same_memory(const Spot& a, const Spot& b) {
    if (a.buffer != b.buffer) return false;
    const bool slots = a.buffer == Buffer::kScratch;
    const std::int64_t first = slots ? a.slot : a.segment, other = slots ? b.slot : b.segment;
    return first < other + b.segment_count && other < first + a.segment_count &&
           (slots || a.block == b.block);
  }

  void perform(std::size_t me, const Choice& choice) {
    Rank& rank = ranks_[me];
    const std::vector<Move>& moves = play_.parts[me].moves;
    if (choice.event == kIssue) {
      while (rank.first_outside < moves.size() && moves[rank.first_outside].step == rank.in) {
        if (moves[rank.first_outside].kind == kReceive) {
          ++rank.states[rank.first_outside].wire->posted;
          wake(moves[rank.first_outside].peer);
        }
        ++rank.first_outside;
      }
      ++rank.in;
    } else {
      const Move& move = moves[choice.move];
      State& state = rank.states[choice.move];
      switch (choice.event) {
        case kPost:
          state.posted = true;
          ++state.wire->sends;
          break;
        case kRead:
          state.read = true;
          state.wire->read.push_back({memory_.load(me, move.a), move.a.segment, move.a.block});
          wake(move.peer);
          break;
        case kLand:
          land(me, move, state);
          wake(move.peer);
          break;
        case kOperate:
          if (!memory_.operate(me, move)) wrong_ = unlike(me);
          next_operation(me, choice.move + 1);
          state.done = true;
          break;
        default: state.done = true;
      }
    }
    while (rank.retired + 1 < rank.in) {
      std::size_t k = rank.first_open;
      while (k < moves.size() && moves[k].step == rank.retired + 1 && rank.states[k].done) ++k;
      if (k < moves.size() && moves[k].step == rank.retired + 1) break;
      rank.first_open = k;
      ++rank.retired;
    }
  }

  void wake(std::int64_t rank) { ranks_[static_cast<std::size_t>(rank)].stuck = false; }

  void next_operation(std::size_t me, std::size_t from) {
    const std::vector<Move>& moves = play_.parts[me].moves;
    while (from < moves.size() && (moves[from].kind == kSend || moves[from].kind == kReceive)) {
      ++from;
    }
    ranks_[me].operation = from;
  }

  void land(std::size_t me, const Move& receive, State& state) {
    const Message& message = state.wire->read[state.number];
    state.read = true;
    ++state.wire->landed;
    // In an all-to-all each end counts segments its own way.
    const bool all_to_all = play_.collective == Collective::kAllToAll;
    const bool same = message.segment == receive.into.segment || all_to_all;
    const auto segment_count = static_cast<std::int64_t>(message.data.size());
    if (!same || message.block != receive.into.block ||
        segment_count != receive.into.segment_count) {
      wrong_ = "node " + std::to_string(me) + " gets another block than it awaits in step " +
               std::to_string(receive.step);
      return;
    }
    memory_.store(me, receive.into, message.data);
  }

  static std::string unlike(std::size_t me) {
    return "node " + std::to_string(me) + " combines or copies unlike runs";
  }

  const Play& play_;
  Memory memory_;
  Random random_;
  std::vector<Rank> ranks_;
  std::map<std::pair<std::int64_t, std::int64_t>, Wire> wires_;
  std::array<std::uint32_t, kEvents> weights_{};
  std::vector<Choice> choices_;
  std::size_t favourite_ = 0;
  bool eager_ = false;
  std::string wrong_;
};

}  // namespace

std::string run_skew(const Play& play, std::uint64_t seed) { return SkewedRun(play, seed).run(); }

}  // namespace espalier::mutation
