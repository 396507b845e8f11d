#pragma once
// The real links below the channels: who holds them, who waits for one, what they carried.

#include <cstdint>
#include <vector>

#include "hal/sim/large_memory.h"
#include "hal/sim/sim.h"

namespace espalier::sim {

using Picoseconds = std::uint64_t;

// A real link. What waits for it are legs, the one that has waited longest first.
struct Wire {
  std::uint32_t from = 0, to = 0;
  std::uint32_t lanes = 1;
  std::uint32_t taken = 0;  // lanes
  std::uint32_t first_waiter = 0;
  double slower = 0;  // every block takes this fraction longer
  std::uint64_t blocks = 0, waits = 0;
  Picoseconds held = 0, waited = 0;
};

// What a block takes at once on its way: all wires of the route (cut-through), or one of them
// (store and forward). The blocks of a channel pass a leg in their order.
struct Leg {
  std::uint32_t channel = 0;
  std::uint32_t hop = 0;             // of the channel's legs
  std::uint32_t first = 0, end = 0;  // its wires, in Wires::path
  bool last = false;
  bool waiting = false;               // its next block waits for a wire
  std::uint32_t next_waiter = 0;      // behind it, for the same wire
  std::uint64_t turn = 0;             // first come, first served
  std::uint64_t come = 0, begun = 0;  // blocks
  Picoseconds since = 0;              // when the wait began
  Picoseconds end_of_last = 0;        // when the block before is through
};

struct Channel;

class Wires {
 public:
  static constexpr std::uint32_t kNone = 0xffffffffu;

  // Throws std::invalid_argument where a route is none.
  Wires(const Model& model, const LargeVector<Channel>& channels);

  [[nodiscard]] std::uint32_t first_leg(std::uint32_t channel) const { return first_leg_[channel]; }
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
  [[nodiscard]] double slower(const Leg& leg) const;

  // Lock step: the channel's block is posted in this step. How many steps it has to wait for
  // others of the step.
  std::uint32_t ask(std::uint32_t channel, const Transfer& transfer, std::int64_t step);

  LargeVector<Wire> wires;
  LargeVector<Leg> legs;            // of a channel one after the other
  LargeVector<std::uint32_t> path;  // wires
  Contention contention;

 private:
  // What a wire was asked for as the hop-th of a way (always 0 where a leg is a whole way).
  struct Asked {
    std::int64_t step = 0;  // the last one
    Transfer last;
  };
  void add_legs(const Model& model, std::uint32_t channel, const std::vector<std::uint32_t>& route);
  void note(const Wire& wire, std::uint32_t asked, const Asked& before, const Transfer& transfer,
            std::int64_t step);

  LargeVector<std::uint32_t> first_leg_;  // by channel, and the end
  std::uint32_t ticks_;                   // that a block holds a wire, in lock step
  std::uint32_t hops_ = 1;                // the most legs of a channel
  LargeVector<Asked> asked_;              // by wire and hop
  LargeVector<std::uint32_t> loads_;      // and tick: how many were posted then
};

}  // namespace espalier::sim
