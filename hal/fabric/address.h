#pragma once
// The addresses that a launcher carries from endpoint to endpoint. Needs no libfabric.

#include <array>
#include <cstdint>
#include <string>

#include "espalier/internal/base/little_endian.h"

namespace espalier::ofi {

// The fixed part of an address: what one end of a lane tells the other. The endpoint's name in
// libfabric follows.
struct AddressHead {
  // Random bytes, used once.
  using Nonce = std::array<std::uint8_t, 16>;

  Little<std::uint32_t> magic = 0x35495045;  // "EPI5"
  Little<std::uint32_t> node = 0;            // whose address it is
  Little<std::uint32_t> peer = 0;            // the node that it is for; kAny: every node
  Little<std::uint32_t> lane = 0;  // number of the lane at `node`; kAny: the greeting tells it
  Little<std::uint32_t> window = 0;
  Little<std::uint32_t> eager_bytes = 0;
  Little<std::uint32_t> authenticates_data = 0;  // 1: Config.authenticate_data
  Little<std::uint32_t> member = 0;              // number of the endpoint in its process
  Little<std::uint64_t> base = 0;                // address of the node's arena
  Little<std::uint64_t> key = 0;                 // key of the node's arena
  Little<std::uint64_t> greetings = 0;           // address of the place for greetings
  Little<std::uint64_t> greetings_key = 0;       // its key
  Little<std::uint32_t> greetings_count = 0;     // how many it has room for, a power of two
  Little<std::uint32_t> unused = 0;
  Nonce nonce = {};  // random, of the endpoint; the keys of its lanes depend on it

  // See `peer` and `lane`.
  static constexpr std::uint32_t kAny = 0xffffffff;
};

// The fixed part of an address of the provider "mem+NAME"; the memory's address follows, then the
// fabric's.
struct MixedHead {
  Little<std::uint32_t> magic = 0x31585045;  // "EPX1"
  Little<std::uint32_t> memory_bytes = 0;
  std::array<std::uint8_t, 16> host = {};  // equal where processes can share memory
};
// The fixed part of an address of an endpoint with cables; the lanes follow, each with its head.
struct CabledHead {
  Little<std::uint32_t> magic = 0x31435045;  // "EPC1"
  Little<std::uint32_t> lanes = 0;
};
// What precedes the address of a lane.
struct CabledLaneHead {
  Little<std::uint32_t> cable = 0;  // its number
  Little<std::uint32_t> lane = 0;   // of the cable
  Little<std::uint32_t> node = 0;   // to which it leads
  Little<std::uint32_t> bytes = 0;  // of the address that follows
};
// Returns the fabric's part of an address of any provider; empty, if that is cables.
[[nodiscard]] std::string fabric_part(const std::string& address);

// Returns the libfabric address in an address as text: "127.0.0.1:4000", "fi_shm://17:0:2".
[[nodiscard]] std::string address_text(const std::string& address);

}  // namespace espalier::ofi
