#pragma once
// The state of a machine between two polls, in as few bytes as it needs. A host that runs very many
// nodes keeps these bytes for each node, and one Machine for many of them: a Machine has room for
// the most links and steps that any node may have, its packed state only for those in use. Host
// only; the machine's code does not know.
//
// Packed bytes hold addresses inside the Machine and its program. They are valid only in the
// Machine object that they were taken from, and only while the same program is at the same address.

#include <cstddef>
#include <cstdint>

#include "collectives/machine/machine.h"

namespace espalier {

class PackedState {
 public:
  // Makes `machine` as if it had just been constructed, for an endpoint of `links` links.
  static void clear(Machine& machine, std::uint32_t links);
  // Bytes that pack() writes now. The number grows with the node's links and actions, and with the
  // steps and messages in flight.
  [[nodiscard]] static std::size_t size(const Machine& machine);
  // `out` and `bytes` are aligned as 8 bytes are.
  static void pack(const Machine& machine, std::uint8_t* out);
  static void unpack(const std::uint8_t* bytes, Machine& machine);

 private:
  struct LaneHead;
  struct Link;
  struct Layout;
  static void pack_lane(const Lane& lane, LaneHead& head, std::uint8_t*& out);
  static void unpack_lane(const std::uint8_t*& bytes, const LaneHead& head, Lane& lane);
};

}  // namespace espalier
