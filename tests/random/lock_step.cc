// The memory of every node in a lock-step run. Part of brute.h.

#include <algorithm>

#include "tests/random/brute.h"

namespace espalier::random {
namespace {

// The origin of the data that a block combines: in their order, rank + 1, one nibble per rank; if
// the order does not count, how often each rank is in it, one nibble per rank. Length 0: never
// written.
struct Datum {
  std::uint64_t ranks = 0;
  std::uint32_t length = 0;
  std::int32_t segment = -1, block = -1;  // in an all-to-all, segment: the receiver
  friend bool operator==(const Datum&, const Datum&) = default;
};

class LockStep {
 public:
  LockStep(const std::vector<NodeEvents>& nodes, InPlace in_place)
      : nodes_(nodes),
        common_(*nodes[0].program),
        blocks_(nodes[0].blocks),
        ordered_(!common_.needs_commutative),
        barrier_(common_.collective == Collective::kBarrier),
        memory_(nodes.size()),
        channels_(nodes.size() * nodes.size()) {
    const auto places = static_cast<std::size_t>(common_.segments * blocks_);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      memory_[i].caller.resize(places);
      memory_[i].scratch.resize(nodes[i].program->scratch_blocks);
      memory_[i].heard = std::uint64_t{1} << i;
      memory_[i].aliased = in_place == InPlace::kYes;
      if (in_place == InPlace::kYes) fill(i);
    }
  }

  std::string run() {
    std::vector<std::size_t> next(nodes_.size(), 0);
    for (;;) {
      std::int64_t step = INT64_MAX;
      for (std::size_t i = 0; i < nodes_.size(); ++i) {
        const std::vector<Event>& events = nodes_[i].events;
        if (next[i] < events.size()) step = std::min(step, events[next[i]].step);
      }
      if (step == INT64_MAX) return wrong_result();
      for (int turn = 0; turn < 3; ++turn) {
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
          const std::vector<Event>& events = nodes_[i].events;
          std::size_t& k = next[i];
          for (; k < events.size() && events[k].step == step && events[k].turn() == turn; ++k) {
            perform(i, events[k]);
          }
        }
      }
    }
  }

 private:
  struct NodeMemory {
    std::vector<Datum> caller, scratch;  // `caller`: the output; in place the input, too
    std::uint64_t heard = 0;             // barrier: ranks known to have arrived, one bit each
    bool aliased = false;
  };
  // The data sent over a link, in order. Both ends agree on every message's length.
  struct Channel {
    std::vector<Datum> data;
    std::size_t received = 0;
  };
  Channel& channel_of(std::size_t from, std::size_t to) {
    return channels_[from * nodes_.size() + to];
  }

  [[nodiscard]] Datum own(std::size_t at, std::int32_t segment, std::int32_t block) const {
    if (barrier_) return {std::uint64_t{1} << at, 1, segment, block};
    return {ordered_ ? at + 1 : std::uint64_t{1} << (4 * at), 1, segment, block};
  }

  // In place: puts the input into the output's memory.
  void fill(std::size_t at) {
    const auto [first, end] = given_segments(*nodes_[at].program, Buffer::kInput);
    const auto [out_first, out_end] = given_segments(*nodes_[at].program, Buffer::kOutput);
    for (std::int64_t segment = std::max(first, out_first); segment < std::min(end, out_end);
         ++segment) {
      for (std::int64_t block = 0; block < blocks_; ++block) {
        memory_[at].caller[static_cast<std::size_t>(segment * blocks_ + block)] =
            own(at, static_cast<std::int32_t>(segment), static_cast<std::int32_t>(block));
      }
    }
  }

  Datum& cell(std::size_t at, const Memory& place, std::int32_t part) {
    NodeMemory& node = memory_[at];
    if (place.buffer == Buffer::kScratch) {
      return node.scratch[static_cast<std::size_t>(place.slot + part)];
    }
    const std::int64_t position = (place.segment + part) * blocks_ + place.block;
    return node.caller[static_cast<std::size_t>(position)];
  }

  Datum load(std::size_t at, const Memory& place, std::int32_t part) {
    if (place.buffer == Buffer::kInput) {
      const auto [first, end] = given_segments(*nodes_[at].program, Buffer::kOutput);
      const std::int32_t segment = place.segment + part;
      const bool shared = memory_[at].aliased && segment >= first && segment < end;
      if (!shared) return own(at, segment, place.block);
    }
    return cell(at, place, part);
  }

  void store(std::size_t at, const Memory& place, std::int32_t part, const Datum& datum) {
    cell(at, place, part) = datum;
    if (barrier_ && datum.length > 0) memory_[at].heard |= datum.ranks;
  }

  [[nodiscard]] Datum combined(const Datum& left, const Datum& right) const {
    if (left.length == 0 || right.length == 0) return {};
    if (barrier_) return {left.ranks | right.ranks, 1, 0, 0};
    const bool usable = left.segment == right.segment && left.block == right.block &&
                        left.length + right.length <= 15;
    if (!usable) return {};
    const std::uint64_t ranks =
        ordered_ ? left.ranks << (4 * right.length) | right.ranks : left.ranks + right.ranks;
    return {ranks, left.length + right.length, left.segment, left.block};
  }

  // A step's sends read, then its receives write, then its operations run.
  void perform(std::size_t at, const Event& event) {
    if (event.is_send()) {
      Channel& channel = channel_of(at, static_cast<std::size_t>(event.peer));
      for (std::int32_t part = 0; part < event.a.segment_count; ++part) {
        channel.data.push_back(load(at, event.a, part));
      }
    } else if (event.is_receive()) {
      Channel& channel = channel_of(static_cast<std::size_t>(event.peer), at);
      for (std::int32_t part = 0; part < event.into.segment_count; ++part) {
        store(at, event.into, part, channel.data[channel.received++]);
      }
    } else {
      operate(at, event);
    }
  }

  void operate(std::size_t at, const Event& event) {
    results_.clear();
    for (std::int32_t part = 0; part < event.into.segment_count; ++part) {
      Datum datum = load(at, event.a, part);
      if (event.b.buffer != 0) datum = combined(datum, load(at, event.b, part));
      results_.push_back(datum);
    }
    for (std::int32_t part = 0; part < event.into.segment_count; ++part) {
      store(at, event.into, part, results_[static_cast<std::size_t>(part)]);
    }
  }

  [[nodiscard]] Datum wanted(std::size_t at, std::int64_t segment, std::int64_t block) const {
    auto first = std::int64_t{0}, last = static_cast<std::int64_t>(common_.ranks) - 1;
    std::int64_t carried = segment;
    const auto me = static_cast<std::int64_t>(at);
    switch (common_.collective) {
      case Collective::kBroadcast:
      case Collective::kScatter: first = last = common_.root; break;
      case Collective::kScan: last = me; break;
      case Collective::kExscan: last = me - 1; break;
      case Collective::kAllToAll: carried = me; [[fallthrough]];
      case Collective::kGather:
      case Collective::kAllgather: first = last = segment; break;
      default: break;
    }
    Datum datum{0, static_cast<std::uint32_t>(last - first + 1), static_cast<std::int32_t>(carried),
                static_cast<std::int32_t>(block)};
    for (std::int64_t rank = first; rank <= last; ++rank) {
      const std::uint64_t one = own(static_cast<std::size_t>(rank), 0, 0).ranks;
      datum.ranks = ordered_ ? datum.ranks << 4 | one : datum.ranks + one;
    }
    return datum;
  }

  [[nodiscard]] std::string wrong_result() const {
    for (std::size_t i = 0; i < common_.ranks; ++i) {
      const auto who = [&] { return "rank " + std::to_string(i); };
      if (barrier_) {
        if (memory_[i].heard == (std::uint64_t{1} << common_.ranks) - 1) continue;
        return who() + " ends before it has heard of all";
      }
      const auto [first, end] = given_segments(*nodes_[i].program, Buffer::kOutput);
      for (std::int64_t place = first * blocks_; place < end * blocks_; ++place) {
        const std::int64_t segment = place / blocks_, block = place % blocks_;
        if (memory_[i].caller[static_cast<std::size_t>(place)] == wanted(i, segment, block)) {
          continue;
        }
        return who() + " ends with a wrong result in block " + std::to_string(block) +
               " of segment " + std::to_string(segment);
      }
    }
    return {};
  }

  const std::vector<NodeEvents>& nodes_;
  const espalier_Program& common_;
  std::int64_t blocks_;
  bool ordered_, barrier_;
  std::vector<NodeMemory> memory_;
  std::vector<Channel> channels_;
  std::vector<Datum> results_;  // of one operation
};

}  // namespace

std::string run_in_lock_step(const std::vector<NodeEvents>& nodes, InPlace in_place) {
  return LockStep(nodes, in_place).run();
}

}  // namespace espalier::random
