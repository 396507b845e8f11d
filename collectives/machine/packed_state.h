#pragma once
// The state of a machine between two polls, packed into few bytes. A host that simulates very many
// nodes keeps these bytes per node, and one Machine for many nodes. A Machine has room for the
// largest number of links and steps that a node may have; its packed state has room only for those
// in use. Host only; the machine's code does not depend on it.
//
// Packed bytes contain addresses inside the Machine and its program, and only the differences from
// a model state. They are valid only for the PackedState object that wrote them, and only while the
// same program is at the same address.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "espalier/collectives/machine/machine.h"

namespace espalier {

class PackedState {
 public:
  // Packs the successive states of `machine`, which must outlive this object.
  explicit PackedState(Machine& machine) : machine_(machine) {}

  // Resets the machine to its newly constructed state, for an endpoint with `links` links.
  void clear(std::uint32_t links);
  // Packs the machine's state at bytes(), and returns its size in bytes. The size grows with the
  // node's links and actions, and with the steps and messages in flight.
  std::size_t pack();
  [[nodiscard]] const std::uint8_t* bytes() const { return packed_.data(); }
  // Sets the machine to the state in `bytes`, which are 8-byte aligned.
  void unpack(const std::uint8_t* bytes);

 private:
  struct PackedLink;
  struct Layout;
  struct Writer;
  struct Reader;
  void pack_fixed(Writer& out);
  void unpack_fixed(Reader& in);
  void pack_steps(Writer& out);
  void unpack_steps(Reader& in);
  void pack_links(Writer& out);
  void unpack_links(Reader& in);
  // side: 0 for the message ring of sends, 1 for the ring of receives.
  static void pack_ring(const MessageRing& ring, int side, PackedLink& link, Writer& out);
  static void unpack_ring(const PackedLink& link, int side, Reader& in, MessageRing& ring);

  Machine& machine_;
  std::vector<std::uint8_t> model_;   // the fixed part of the first state that was packed
  std::vector<std::uint8_t> packed_;  // has room for any state
};

}  // namespace espalier
