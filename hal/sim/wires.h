#pragma once
// The real links below the channels: who holds them, who waits for one, what they carried.

#include <cstdint>
#include <vector>

#include "espalier/hal/sim/sim.h"
#include "hal/sim/large_memory.h"

namespace espalier::sim {

using Picoseconds = std::uint64_t;

// What a real link was asked for in lock step.
struct Asked {
  std::int64_t step = 0;     // the last one
  std::uint64_t number = 0;  // of the channel's block that asked last
  std::uint32_t channel = 0;
  std::uint32_t load = 0;  // blocks posted in the step
};

// A real link. What waits for it are legs, the one that has waited longest first.
struct alignas(64) Wire {
  std::uint32_t lanes = 1;
  std::uint32_t taken = 0;  // lanes
  std::uint32_t first_waiter = 0;
  Asked asked;  // as the first hop of a way
  std::uint64_t blocks = 0;
  Picoseconds held = 0;
};

// What is seldom asked of a wire.
struct WireDetails {
  std::uint32_t from = 0, to = 0;
  double slower = 0;  // every block takes this fraction longer
  std::uint64_t waits = 0;
  Picoseconds waited = 0;
};

// What a block takes at once on its way: all wires of the route (cut-through), or one of them
// (store and forward). The blocks of a channel pass a leg in their order.
struct alignas(64) Leg {
  std::uint32_t channel = 0;
  std::uint16_t hop = 0;  // of the channel's legs
  bool last = false;
  bool waiting = false;               // its next block waits for a wire
  std::uint32_t first = 0, end = 0;   // its wires, in Wires::path
  std::uint32_t wire = 0;             // the first of them
  std::uint32_t next_waiter = 0;      // behind it, for the same wire
  std::uint64_t turn = 0;             // first come, first served
  std::uint64_t come = 0, begun = 0;  // blocks
  Picoseconds since = 0;              // when the wait began
  Picoseconds end_of_last = 0;        // when the block before is through
};
static_assert(sizeof(Wire) == 64 && sizeof(Leg) == 64, "a cache line each");

struct Channel;
class WireNumbers;

class Wires {
 public:
  static constexpr std::uint32_t kNone = 0xffffffffu;

  // Throws std::invalid_argument where a route is none.
  Wires(const Model& model, const LargeVector<Channel>& channels);

  [[nodiscard]] std::uint32_t first_leg(std::uint32_t channel) const {
    return hops_ == 1 ? channel : first_leg_[channel];
  }
  // Takes a lane of each wire of the leg. False, and nothing is taken, if one has none free: the
  // leg waits for that one, by its turn.
  [[nodiscard]] bool take(Leg& leg, Picoseconds now);
  // Its next block is to wait for the wire, by its turn.
  void wait(Leg& leg, Wire& wire, Picoseconds now);
  // The leg that has waited longest for the wire, which waits no more; kNone if there is none, or
  // no lane is free.
  [[nodiscard]] std::uint32_t next_waiter(Wire& wire, Picoseconds now);
  void give_back(const Leg& leg);
  void held(const Leg& leg, Picoseconds time);
  // How much longer the slowest of its wires makes a block.
  [[nodiscard]] double slower(const Leg& leg);

  // Lock step: the channel's block of that number is posted in this step. How many steps it has to
  // wait for others of the step.
  std::uint32_t ask(std::uint32_t channel, std::uint64_t number, std::int64_t step);

  LargeVector<Wire> wires;
  LargeVector<WireDetails> details;  // of the wires
  LargeVector<Leg> legs;             // of a channel one after the other
  LargeVector<std::uint32_t> path;   // wires
  Contention contention;

 private:
  void add_channel(const Model& model, std::uint32_t channel, WireNumbers& numbers);
  void add_legs(const Model& model, std::uint32_t channel, const std::vector<std::uint32_t>& route);
  [[nodiscard]] std::uint32_t add_wire(const Model& model, std::uint32_t from, std::uint32_t to);
  template <typename F>
  void for_each_wire(const Leg& leg, F f) {
    f(leg.wire);
    for (std::uint32_t at = leg.first + 1; at < leg.end; ++at) f(path[at]);
  }
  [[nodiscard]] Asked& asked_of(std::uint32_t wire, std::uint32_t hop) {
    return hop == 0 ? wires[wire].asked : further_[std::size_t{wire} * (hops_ - 1) + hop - 1];
  }
  void note(std::uint32_t wire, std::uint32_t load, const Asked& before, const Asked& now);

  const LargeVector<Channel>& channels_;
  bool jitter_;
  LargeVector<std::uint32_t> first_leg_;  // by channel, and the end
  std::uint32_t ticks_;                   // that a block holds a wire, in lock step
  std::uint32_t hops_ = 1;                // the most legs of a channel
  LargeVector<Asked> further_;            // as further hops of a way: by wire and hop
  LargeVector<std::uint32_t> loads_;      // where ticks_ > 1: by wire, hop and tick
};

}  // namespace espalier::sim
