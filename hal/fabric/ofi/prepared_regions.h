#pragma once
// The memory regions that the caller prepared, registered so that peers can write large messages.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "espalier/hal/endpoint.h"
#include "hal/fabric/ofi/domain.h"

namespace espalier::ofi {

class PreparedRegions {
 public:
  // Replaces the prepared regions by `count` others, at most kMaxRegions. A region that was
  // prepared before keeps its registration; empty and repeated regions are ignored. If the provider
  // sends from registered memory only, all are registered here. kBackEnd: the provider refused a
  // region; this region and all later ones are not usable.
  [[nodiscard]] Status prepare(Domain& domain, const Region* regions, std::uint32_t count);

  // Registers regions until forget(), so that no collective that uses them has to. kBackEnd: the
  // provider refused one; none of them is kept.
  [[nodiscard]] Status keep(Domain& domain, std::span<const Region> regions);
  // Ends what keep() of the same regions began. A registration that the prepared regions may use
  // ends when these are replaced or released.
  void forget(Domain& domain, std::span<const Region> regions);

  // Finds the address and key under which the peer of `port` can write `size` bytes at `bytes`.
  // Registers the region unless it is: collectives of short messages register nothing.
  // kBadArgument: the bytes are not inside one prepared region; kBackEnd: the provider refused.
  [[nodiscard]] Status find(Domain& domain, std::uint32_t port, const void* bytes,
                            std::uint64_t size, std::uint64_t& address, std::uint64_t& key);

  // Ends the registrations of the prepared regions, which no collective uses any more.
  void release(Domain& domain);
  // Whether prepare() of regions that need no registration, or release(), may end one.
  [[nodiscard]] bool has_registrations() const { return has_registrations_; }
  // Ends all registrations, also those of keep(): no peer can write to the regions any more.
  void clear(Domain& domain);

 private:
  struct Prepared {
    Region region;
    Registration registration;
  };
  struct Kept : Prepared {
    bool is_over = false;  // forgotten, but in use
  };
  [[nodiscard]] bool is_used(const Region& region) const;
  [[nodiscard]] const Kept* kept_around(const void* bytes, std::uint64_t size) const;
  void end_forgotten(Domain& domain);

  std::array<Prepared, Endpoint::kMaxRegions> prepared_;
  std::vector<Kept> kept_;
  bool has_registrations_ = false;  // since the last release() that left none
};

}  // namespace espalier::ofi
