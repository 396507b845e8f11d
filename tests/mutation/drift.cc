#include "tests/mutation/drift.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace espalier::mutation {
namespace {

constexpr std::uint8_t kSend = espalier_Kind_SEND;
constexpr std::uint8_t kReceive = espalier_Kind_RECEIVE;
constexpr std::uint8_t kCombine = espalier_Kind_COMBINE;
constexpr std::uint8_t kInput = espalier_Buffer_INPUT;

// Whose data a block of memory is the combination of, in order: a rank's number + 1 a nibble, the
// first combined in the highest. Empty: nothing of use. In a barrier a bit for each rank heard of.
struct Data {
  std::uint64_t ranks = 0;
  std::uint32_t length = 0;               // nibbles
  std::int64_t segment = -1, block = -1;  // in an all-to-all the segment is for whom it is
};

Data combined(const Data& left, const Data& right) {
  const bool usable = left.length > 0 && right.length > 0 && left.segment == right.segment &&
                      left.block == right.block && left.length + right.length <= 15;
  if (!usable) return {};
  return {left.ranks << (4 * right.length) | right.ranks, left.length + right.length, left.segment,
          left.block};
}

// The nibbles in ascending order.
std::uint64_t sorted(const Data& data) {
  std::array<std::uint64_t, 16> nibbles{};
  for (std::uint32_t k = 0; k < data.length; ++k) nibbles[k] = (data.ranks >> (4 * k)) & 15;
  std::sort(nibbles.begin(), nibbles.begin() + data.length);
  std::uint64_t result = 0;
  for (std::uint32_t k = 0; k < data.length; ++k) result = result << 4 | nibbles[k];
  return result;
}

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

// The events of a rank. Each has a weight, drawn for each drift: so that some drifts land late,
// some send late, and so on.
enum Event { kLetIn, kPost, kRead, kSent, kLand, kReceived, kOperate, kEvents };

constexpr std::uint32_t kMostWeight = 512;

struct Message {
  std::vector<Data> data;  // of each segment of its run
  std::int64_t segment, block;
};

struct Wire {
  std::vector<Message> read;  // messages whose bytes have left the sender
  std::size_t sends = 0;      // sends posted
  std::size_t posted = 0;     // receives let in at the other end
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
  std::size_t first_outside = 0;  // the first move of a step that is not in
  std::vector<State> states;
  std::vector<Data> output, scratch;
  std::size_t operation = 0;  // the next combine or copy
  std::uint64_t heard = 0;    // barrier: of whom, a bit each
  bool stuck = false;         // nothing can happen here before something does at a peer
};

class Drift {
 public:
  Drift(const Play& play, std::uint64_t seed) : play_(play), random_(seed) {
    const auto places = static_cast<std::size_t>(play.segments * play.blocks);
    ranks_.resize(play.parts.size());
    for (std::size_t me = 0; me < ranks_.size(); ++me) {
      Rank& rank = ranks_[me];
      const Part& part = play.parts[me];
      rank.steps = part.phase_ends.empty() ? 0 : part.phase_ends.back();
      rank.output.resize(places);
      rank.heard = mine_only(me);
      rank.scratch.resize(static_cast<std::size_t>(part.scratch));
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
    for (std::uint32_t& weight : weights_) weight = kMostWeight >> (3 * random_.below(4));
    favourite_ = random_.below(2) == 0 ? random_.below(static_cast<std::uint32_t>(ranks_.size()))
                                       : ranks_.size();
  }

  std::string run() {
    for (;;) {
      // A random rank, or the favourite as often as not; if nothing can happen there, all others.
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
    return results();
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
      if (choice.event == kEvents || random_.below(kMostWeight) >= weights_[choice.event]) continue;
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

  // What can happen with move `at`; with the first move outside: letting in its step. kEvents:
  // nothing.
  Choice possible(const Rank& rank, const Part& part, std::size_t at) const {
    if (at == rank.first_outside) return {may_let_in(rank, part) ? kLetIn : kEvents, at};
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

  static bool may_let_in(const Rank& rank, const Part& part) {
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

  // The bytes leave: when the other end has let its receive in, or, eager, into one of the
  // window's landing slots there.
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
    const bool slots = a.buffer == espalier_Buffer_SCRATCH;
    const std::int64_t first = slots ? a.slot : a.segment, other = slots ? b.slot : b.segment;
    return first < other + b.run && other < first + a.run && (slots || a.block == b.block);
  }

  void perform(std::size_t me, const Choice& choice) {
    Rank& rank = ranks_[me];
    const std::vector<Move>& moves = play_.parts[me].moves;
    if (choice.event == kLetIn) {
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
          state.wire->read.push_back({load(me, move.a), move.a.segment, move.a.block});
          wake(move.peer);
          break;
        case kLand:
          land(me, move, state);
          wake(move.peer);
          break;
        case kOperate:
          operate(me, move);
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
    const bool same = message.segment == receive.into.segment || is_all_to_all();
    const auto run = static_cast<std::int64_t>(message.data.size());
    if (!same || message.block != receive.into.block || run != receive.into.run) {
      wrong_ = "node " + std::to_string(me) + " gets another block than it awaits in step " +
               std::to_string(receive.step);
      return;
    }
    store(me, receive.into, message.data);
  }

  void operate(std::size_t me, const Move& move) {
    std::vector<Data> result = load(me, move.a);
    if (move.kind == kCombine) {
      const std::vector<Data> right = load(me, move.b);
      for (std::size_t k = 0; k < result.size() && k < right.size(); ++k) {
        result[k] = is_barrier() ? heard_of(result[k], right[k]) : combined(result[k], right[k]);
      }
    }
    const bool alike =
        move.a.run == move.into.run && (move.kind != kCombine || move.b.run == move.into.run);
    if (!alike) wrong_ = "node " + std::to_string(me) + " combines or copies unlike runs";
    if (alike) store(me, move.into, result);
  }

  [[nodiscard]] bool is_all_to_all() const {
    return play_.collective == espalier_Collective_ALL_TO_ALL;
  }
  [[nodiscard]] bool is_barrier() const { return play_.collective == espalier_Collective_BARRIER; }
  static std::uint64_t mine_only(std::size_t me) { return std::uint64_t{1} << (me % 64); }
  static Data heard_of(const Data& left, const Data& right) {
    if (left.length == 0 || right.length == 0) return {};
    return {left.ranks | right.ranks, 1, 0, 0};
  }

  Data& place(std::size_t me, const Spot& spot, std::int64_t part) {
    Rank& rank = ranks_[me];
    if (spot.buffer == espalier_Buffer_SCRATCH) {
      return rank.scratch[static_cast<std::size_t>(spot.slot + part)];
    }
    const std::int64_t segment = spot.segment + part;
    return rank.output[static_cast<std::size_t>(segment * play_.blocks + spot.block)];
  }
  void store(std::size_t me, const Spot& spot, const std::vector<Data>& all) {
    for (std::int64_t part = 0; part < spot.run; ++part) {
      Data& into = place(me, spot, part);
      into = all[static_cast<std::size_t>(part)];
      // Nothing of use has been read: it says of nobody that he has come.
      if (is_barrier() && into.length > 0) ranks_[me].heard |= into.ranks;
    }
  }
  std::vector<Data> load(std::size_t me, const Spot& spot) {
    std::vector<Data> all;
    for (std::int64_t part = 0; part < spot.run; ++part) {
      const std::uint64_t mine = is_barrier() ? mine_only(me) : me + 1;
      all.push_back(spot.buffer == kInput ? Data{mine, 1, spot.segment + part, spot.block}
                                          : place(me, spot, part));
    }
    return all;
  }

  // What the collective must leave in a segment of a rank's output.
  [[nodiscard]] Data wanted(std::int64_t me, std::int64_t segment) const {
    std::int64_t first = 0, last = play_.ranks - 1, carried = segment;
    switch (play_.collective) {
      case espalier_Collective_BROADCAST:
      case espalier_Collective_SCATTER: first = last = play_.root; break;
      case espalier_Collective_SCAN: last = me; break;
      case espalier_Collective_EXSCAN: last = me - 1; break;
      case espalier_Collective_GATHER:
      case espalier_Collective_ALLGATHER: first = last = segment; break;
      case espalier_Collective_ALL_TO_ALL:
        first = last = segment;
        carried = me;
        break;
      default: break;
    }
    Data data;
    for (std::int64_t rank = first; rank <= last; ++rank) {
      data.ranks = data.ranks << 4 | static_cast<std::uint64_t>(rank + 1);
    }
    data.length = static_cast<std::uint32_t>(last - first + 1);
    data.segment = carried;
    return data;
  }

  std::string results() const {
    for (std::int64_t me = 0; me < play_.ranks; ++me) {
      const Rank& rank = ranks_[static_cast<std::size_t>(me)];
      if (is_barrier()) {
        if (rank.heard == (std::uint64_t{1} << play_.ranks) - 1) continue;
        return "rank " + std::to_string(me) + " ends before it has heard of all";
      }
      const auto [first, end] = segments_given(play_, me, espalier_Buffer_OUTPUT);
      for (std::int64_t place = first * play_.blocks; place < end * play_.blocks; ++place) {
        const Data right = wanted(me, place / play_.blocks);
        const Data& data = rank.output[static_cast<std::size_t>(place)];
        const std::uint64_t ranks = play_.ordered ? data.ranks : sorted(data);
        if (ranks != right.ranks || data.length != right.length || data.segment != right.segment ||
            data.block != place % play_.blocks) {
          return "rank " + std::to_string(me) + " ends with a wrong result in block " +
                 std::to_string(place % play_.blocks) + " of segment " +
                 std::to_string(place / play_.blocks);
        }
      }
    }
    return {};
  }

  const Play& play_;
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

std::string run_drift(const Play& play, std::uint64_t seed) { return Drift(play, seed).run(); }

}  // namespace espalier::mutation
