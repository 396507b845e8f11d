#pragma once
// The real links below the channels: the path segments that hold or await them, and their traffic.

#include <cstdint>
#include <vector>

#include "espalier/hal/sim/network.h"
#include "hal/sim/large_memory.h"

namespace espalier::sim {

using Picoseconds = std::uint64_t;

// The demand on a real link in lock step.
struct LinkDemand {
  std::int64_t step = 0;     // the last step with demand
  std::uint64_t number = 0;  // number of the block on its channel, for the last demand
  std::uint32_t channel = 0;
  std::uint32_t load = 0;  // blocks posted in the step
};

// A real link. Path segments wait for it, the longest-waiting first.
struct alignas(64) PhysicalLink {
  std::uint32_t lanes = 1;
  std::uint32_t lanes_taken = 0;
  std::uint32_t first_waiter = 0;
  LinkDemand demand;  // as the first hop of a route
  std::uint64_t blocks = 0;
  Picoseconds held = 0;
};

// Data of a link that is rarely read.
struct PhysicalLinkDetails {
  std::uint32_t from = 0, to = 0;
  double slower = 0;  // every block takes longer by this fraction
  std::uint64_t waits = 0;
  Picoseconds waited = 0;
};

// The links that a block takes at once on its route: all links of the route (cut-through), or one
// of them (store and forward). The blocks of a channel pass a path segment in order.
struct alignas(64) PathSegment {
  std::uint32_t channel = 0;
  std::uint16_t hop = 0;  // position among the channel's path segments
  bool last = false;
  bool waiting = false;                  // its next block waits for a link
  std::uint32_t first = 0, end = 0;      // its links, in PhysicalLinks::path
  std::uint32_t first_link = 0;          // the first of them
  std::uint32_t next_waiter = 0;         // the next path segment that waits for the same link
  std::uint64_t turn = 0;                // first come, first served
  std::uint64_t arrived = 0, begun = 0;  // numbers of blocks
  Picoseconds since = 0;                 // when the wait began
  Picoseconds end_of_last = 0;           // when the previous block has passed
};
static_assert(sizeof(PhysicalLink) == 64 && sizeof(PathSegment) == 64, "a cache line each");

struct Channel;
class LinkNumbers;

class PhysicalLinks {
 public:
  static constexpr std::uint32_t kNone = 0xffffffffu;

  PhysicalLinks(const Model& model, const LargeVector<Channel>& channels);
  // Adds the links of all channels' routes. Errors: an invalid route, or a link without lanes.
  // Called once.
  [[nodiscard]] Result<void> build(const Model& model);

  [[nodiscard]] std::uint32_t first_segment(std::uint32_t channel) const {
    return hops_ == 1 ? channel : first_segment_[channel];
  }
  // Takes a lane of every link of the path segment. If a link has no free lane, takes nothing and
  // returns false; the path segment then waits for that link in turn.
  [[nodiscard]] bool take(PathSegment& segment, Picoseconds now);
  // Makes the next block of the path segment wait for the link in turn.
  void wait(PathSegment& segment, PhysicalLink& link, Picoseconds now);
  // Returns the longest-waiting path segment of the link, which then no longer waits. kNone if no
  // path segment waits or no lane is free.
  [[nodiscard]] std::uint32_t next_waiter(PhysicalLink& link, Picoseconds now);
  void give_back(const PathSegment& segment);
  void add_held(const PathSegment& segment, Picoseconds time);
  // Returns the fraction by which the slowest link of the path segment delays a block.
  [[nodiscard]] double slower(const PathSegment& segment);

  // Lock step: the channel's block `number` is posted in this step. Returns how many steps it must
  // wait for other blocks of the step.
  std::uint32_t ask(std::uint32_t channel, std::uint64_t number, std::int64_t step);

  LargeVector<PhysicalLink> links;
  LargeVector<PhysicalLinkDetails> details;  // of the links
  LargeVector<PathSegment> segments;         // the path segments of each channel are consecutive
  LargeVector<std::uint32_t> path;           // links
  Contention contention;

 private:
  [[nodiscard]] Result<void> add_channel(const Model& model, std::uint32_t channel,
                                         LinkNumbers& numbers);
  [[nodiscard]] Result<void> add_segments(const Model& model, std::uint32_t channel,
                                          const std::vector<std::uint32_t>& route);
  [[nodiscard]] Result<std::uint32_t> add_link(const Model& model, std::uint32_t from,
                                               std::uint32_t to);
  template <typename F>
  void for_each_link(const PathSegment& segment, F f) {
    f(segment.first_link);
    for (std::uint32_t i = segment.first + 1; i < segment.end; ++i) f(path[i]);
  }
  [[nodiscard]] LinkDemand& demand_of(std::uint32_t link, std::uint32_t hop) {
    return hop == 0 ? links[link].demand : further_[std::size_t{link} * (hops_ - 1) + hop - 1];
  }
  void note(std::uint32_t link, std::uint32_t load, const LinkDemand& before,
            const LinkDemand& now);

  const LargeVector<Channel>& channels_;
  bool jitter_;
  LargeVector<std::uint32_t> first_segment_;  // by channel, and the end
  std::uint32_t ticks_;                       // steps for which a block holds a link in lock step
  std::uint32_t hops_ = 1;                    // the maximum number of path segments of a channel
  LargeVector<LinkDemand> further_;           // demand as a later hop of a route: by link and hop
  LargeVector<std::uint32_t> loads_;          // if ticks_ > 1: by link, hop and tick
};

}  // namespace espalier::sim
