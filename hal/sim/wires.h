#pragma once
// The real links below the channels: which legs hold or await them, and what they carried.

#include <cstdint>
#include <vector>

#include "hal/sim/large_memory.h"
#include "hal/sim/sim.h"

namespace espalier::sim {

using Picoseconds = std::uint64_t;

// The demand on a real link in lock step.
struct Asked {
  std::int64_t step = 0;     // the last step with demand
  std::uint64_t number = 0;  // number of the block on its channel, for the last demand
  std::uint32_t channel = 0;
  std::uint32_t load = 0;  // blocks posted in the step
};

// A real link. Legs wait for it, the longest-waiting first.
struct alignas(64) Wire {
  std::uint32_t lanes = 1;
  std::uint32_t taken = 0;  // lanes in use
  std::uint32_t first_waiter = 0;
  Asked asked;  // as the first hop of a route
  std::uint64_t blocks = 0;
  Picoseconds held = 0;
};

// Data of a wire that is rarely read.
struct WireDetails {
  std::uint32_t from = 0, to = 0;
  double slower = 0;  // every block takes longer by this fraction
  std::uint64_t waits = 0;
  Picoseconds waited = 0;
};

// The wires that a block takes at once on its route: all wires of the route (cut-through), or one
// of them (store and forward). The blocks of a channel pass a leg in order.
struct alignas(64) Leg {
  std::uint32_t channel = 0;
  std::uint16_t hop = 0;  // position among the channel's legs
  bool last = false;
  bool waiting = false;               // its next block waits for a wire
  std::uint32_t first = 0, end = 0;   // its wires, in Wires::path
  std::uint32_t wire = 0;             // the first of them
  std::uint32_t next_waiter = 0;      // the next leg that waits for the same wire
  std::uint64_t turn = 0;             // first come, first served
  std::uint64_t come = 0, begun = 0;  // numbers of blocks
  Picoseconds since = 0;              // when the wait began
  Picoseconds end_of_last = 0;        // when the previous block has passed
};
static_assert(sizeof(Wire) == 64 && sizeof(Leg) == 64, "a cache line each");

struct Channel;
class WireNumbers;

class Wires {
 public:
  static constexpr std::uint32_t kNone = 0xffffffffu;

  // Throws std::invalid_argument for an invalid route.
  Wires(const Model& model, const LargeVector<Channel>& channels);

  [[nodiscard]] std::uint32_t first_leg(std::uint32_t channel) const {
    return hops_ == 1 ? channel : first_leg_[channel];
  }
  // Takes a lane of every wire of the leg. If a wire has no free lane, takes nothing and returns
  // false; the leg then waits for that wire in turn.
  [[nodiscard]] bool take(Leg& leg, Picoseconds now);
  // Makes the next block of the leg wait for the wire in turn.
  void wait(Leg& leg, Wire& wire, Picoseconds now);
  // Returns the longest-waiting leg of the wire, which then no longer waits. kNone if no leg waits
  // or no lane is free.
  [[nodiscard]] std::uint32_t next_waiter(Wire& wire, Picoseconds now);
  void give_back(const Leg& leg);
  void held(const Leg& leg, Picoseconds time);
  // Returns the fraction by which the slowest wire of the leg delays a block.
  [[nodiscard]] double slower(const Leg& leg);

  // Lock step: the channel's block `number` is posted in this step. Returns how many steps it must
  // wait for other blocks of the step.
  std::uint32_t ask(std::uint32_t channel, std::uint64_t number, std::int64_t step);

  LargeVector<Wire> wires;
  LargeVector<WireDetails> details;  // of the wires
  LargeVector<Leg> legs;             // the legs of each channel are consecutive
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
  std::uint32_t ticks_;                   // steps for which a block holds a wire in lock step
  std::uint32_t hops_ = 1;                // the maximum number of legs of a channel
  LargeVector<Asked> further_;            // demand as a later hop of a route: by wire and hop
  LargeVector<std::uint32_t> loads_;      // if ticks_ > 1: by wire, hop and tick
};

}  // namespace espalier::sim
