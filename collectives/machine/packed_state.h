#pragma once
// The state of a machine between two polls, in as few bytes as it needs. A host that runs very many
// nodes keeps these bytes for each node, and one Machine for many of them: a Machine has room for
// the most links and steps that any node may have, its packed state only for those in use. Host
// only; the machine's code does not know.
//
// Packed bytes hold addresses inside the Machine and its program, and only what differs from a
// model state. They are valid only for the PackedState object that wrote them, and only while the
// same program is at the same address.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "espalier/collectives/machine/machine.h"

namespace espalier {

class PackedState {
 public:
  // Packs the states that `machine` has in turn; it outlives this object.
  explicit PackedState(Machine& machine) : machine_(machine) {}

  // Makes the machine as if it had just been constructed, for an endpoint of `links` links.
  void clear(std::uint32_t links);
  // Packs the machine's state into bytes() .. bytes() + the size that it returns: it grows with the
  // node's links and actions, and with the steps and messages in flight.
  std::size_t pack();
  [[nodiscard]] const std::uint8_t* bytes() const { return packed_.data(); }
  // Gives the machine the state that these bytes hold, aligned as 8 bytes are.
  void unpack(const std::uint8_t* bytes);

 private:
  struct Link;
  struct Layout;
  struct Writer;
  struct Reader;
  void pack_fixed(Writer& out);
  void unpack_fixed(Reader& in);
  void pack_steps(Writer& out);
  void unpack_steps(Reader& in);
  void pack_links(Writer& out);
  void unpack_links(Reader& in);
  // side: 0 the lane of sends, 1 that of receives.
  static void pack_lane(const Lane& lane, int side, Link& link, Writer& out);
  static void unpack_lane(const Link& link, int side, Reader& in, Lane& lane);

  Machine& machine_;
  std::vector<std::uint8_t> model_;   // the fixed part of the state that was packed first
  std::vector<std::uint8_t> packed_;  // long enough for any state
};

}  // namespace espalier
