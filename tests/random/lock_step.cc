// The memory of every node in a lock-step run. Part of brute.h.

#include <algorithm>

#include "tests/random/brute.h"

namespace espalier::random {
namespace {

using mutation::Data;

class LockStep {
 public:
  LockStep(const std::vector<NodeEvents>& nodes, InPlace in_place)
      : nodes_(nodes),
        common_(mutation::contract_of(*nodes[0].program)),
        blocks_(nodes[0].blocks),
        memory_(nodes.size()),
        channels_(nodes.size() * nodes.size()) {
    const auto places = static_cast<std::size_t>(common_.segments * blocks_);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      memory_[i].caller.resize(places);
      memory_[i].scratch.resize(nodes[i].program->scratch_blocks);
      memory_[i].heard = mutation::Contract::arrival(static_cast<std::int64_t>(i));
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
    std::vector<Data> caller, scratch;  // `caller`: the output; in place the input, too
    std::uint64_t heard = 0;            // barrier: ranks known to have arrived, one bit each
    bool aliased = false;
  };
  // The data sent over a link, in order. Both ends agree on every message's length.
  struct Channel {
    std::vector<Data> data;
    std::size_t received = 0;
  };
  Channel& channel_of(std::size_t from, std::size_t to) {
    return channels_[from * nodes_.size() + to];
  }

  // In place: puts the input into the output's memory.
  void fill(std::size_t at) {
    const auto [first, end] = given_segments(*nodes_[at].program, Buffer::kInput);
    const auto [out_first, out_end] = given_segments(*nodes_[at].program, Buffer::kOutput);
    for (std::int64_t segment = std::max(first, out_first); segment < std::min(end, out_end);
         ++segment) {
      for (std::int64_t block = 0; block < blocks_; ++block) {
        memory_[at].caller[static_cast<std::size_t>(segment * blocks_ + block)] =
            common_.own(static_cast<std::int64_t>(at), segment, block);
      }
    }
  }

  Data& cell(std::size_t at, const Memory& place, std::int32_t part) {
    NodeMemory& node = memory_[at];
    if (place.buffer == Buffer::kScratch) {
      return node.scratch[static_cast<std::size_t>(place.slot + part)];
    }
    const std::int64_t position = (place.segment + part) * blocks_ + place.block;
    return node.caller[static_cast<std::size_t>(position)];
  }

  Data load(std::size_t at, const Memory& place, std::int32_t part) {
    if (place.buffer == Buffer::kInput) {
      const auto [first, end] = given_segments(*nodes_[at].program, Buffer::kOutput);
      const std::int32_t segment = place.segment + part;
      const bool shared = memory_[at].aliased && segment >= first && segment < end;
      if (!shared) return common_.own(static_cast<std::int64_t>(at), segment, place.block);
    }
    return cell(at, place, part);
  }

  void store(std::size_t at, const Memory& place, std::int32_t part, const Data& datum) {
    cell(at, place, part) = datum;
    if (common_.is_barrier() && datum.length > 0) memory_[at].heard |= datum.ranks;
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
      Data datum = load(at, event.a, part);
      if (event.b.buffer != 0) datum = common_.combined(datum, load(at, event.b, part));
      results_.push_back(datum);
    }
    for (std::int32_t part = 0; part < event.into.segment_count; ++part) {
      store(at, event.into, part, results_[static_cast<std::size_t>(part)]);
    }
  }

  [[nodiscard]] std::string wrong_result() const {
    for (std::size_t i = 0; i < static_cast<std::size_t>(common_.ranks); ++i) {
      const auto me = static_cast<std::int64_t>(i);
      const auto who = [&] { return "rank " + std::to_string(i); };
      if (common_.is_barrier()) {
        if (memory_[i].heard == common_.all_arrivals()) continue;
        return who() + " ends before it has heard of all";
      }
      const auto [first, end] = given_segments(*nodes_[i].program, Buffer::kOutput);
      for (std::int64_t place = first * blocks_; place < end * blocks_; ++place) {
        const std::int64_t segment = place / blocks_, block = place % blocks_;
        const Data& found = memory_[i].caller[static_cast<std::size_t>(place)];
        if (found == common_.wanted(me, segment, block)) continue;
        return who() + " ends with a wrong result in block " + std::to_string(block) +
               " of segment " + std::to_string(segment);
      }
    }
    return {};
  }

  const std::vector<NodeEvents>& nodes_;
  const mutation::Contract common_;
  std::int64_t blocks_;
  std::vector<NodeMemory> memory_;
  std::vector<Channel> channels_;
  std::vector<Data> results_;  // of one operation
};

}  // namespace

std::string run_in_lock_step(const std::vector<NodeEvents>& nodes, InPlace in_place) {
  return LockStep(nodes, in_place).run();
}

}  // namespace espalier::random
