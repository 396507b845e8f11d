#pragma once
// The memory regions that the caller prepared, registered so that peers can write large messages.

#include <array>
#include <cstdint>

#include "espalier/hal/endpoint.h"
#include "hal/ofi/domain.h"

namespace espalier::ofi {

class PreparedRegions {
 public:
  // Replaces the prepared regions by `count` others, at most kMaxRegions. A region that was
  // prepared before keeps its registration; empty and repeated regions are ignored. If the provider
  // sends from registered memory only, all are registered here; kBackEnd: it refused one; this
  // region and those after it are not usable.
  [[nodiscard]] Status prepare(Domain& domain, const Region* regions, std::uint32_t count);

  // Finds the address and key under which a peer can write `size` bytes at `bytes`. Registers the
  // region unless it is: collectives of short messages register nothing. kBadArgument: the bytes
  // are not inside one prepared region; kBackEnd: the provider refused.
  [[nodiscard]] Status find(Domain& domain, const void* bytes, std::uint64_t size,
                            std::uint64_t& address, std::uint64_t& key);

  // Ends all registrations: no peer can write to the regions any more.
  void clear(Domain& domain);

 private:
  struct Prepared {
    Region region;
    Registration registration;
  };
  std::array<Prepared, Endpoint::kMaxRegions> prepared_;
};

}  // namespace espalier::ofi
