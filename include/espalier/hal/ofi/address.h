#pragma once
// The addresses that a launcher carries from endpoint to endpoint. Needs no libfabric.

#include <cstdint>
#include <string>
#include <vector>

namespace espalier::ofi {

// The fixed part of an address, which is what one end of a lane tells the other; libfabric's name
// of the endpoint follows.
struct AddressHead {
  std::uint32_t magic = 0x32495045;  // "EPI2"
  std::uint32_t node = 0;
  std::uint32_t peer = 0;  // node at the other end
  std::uint32_t lane = 0;  // number of the lane at `node`
  std::uint32_t window = 0;
  std::uint32_t eager_bytes = 0;
  std::uint64_t base = 0;  // of the node's arena
  std::uint64_t key = 0;
};

// peers[v]: the node at the other end of each lane of node v. The number, there, of lane `lane` of
// node `node`: the i-th lane from a to b is the i-th from b to a. What is not there is the number
// of its lanes.
[[nodiscard]] std::uint32_t other_end(const std::vector<std::vector<std::uint32_t>>& peers,
                                      std::uint32_t node, std::uint32_t lane);

// The libfabric address in an address, for people: "127.0.0.1:4000", "fi_shm://17:0:2".
[[nodiscard]] std::string address_text(const std::string& address);

}  // namespace espalier::ofi
