#pragma once
// Writes to the peer of a lane, and spaces the retries when libfabric refuses.

#include <cstddef>
#include <cstdint>

#include "hal/fabric/ofi/lanes/endpoint_state.h"

namespace espalier::ofi {

// Each function returns false if libfabric refused the write: the caller must try again later.
class LaneWriter {
 public:
  explicit LaneWriter(EndpointState& state) : state_(state) {}

  // Writes the message lane.out.sent to `address` at the peer.
  [[nodiscard]] bool write_message(Lane& lane, Domain::Target to, const Immediate& immediate,
                                   const void* bytes, std::uint64_t size, std::uint64_t address,
                                   std::uint64_t key);
  // Writes an entry (at most 64 bytes) to `offset` in the peer's arena, with its immediate data.
  [[nodiscard]] bool write_entry(Lane& lane, const Immediate& immediate, std::uint64_t offset,
                                 const void* bytes, std::size_t size);
  // Writes to the peer's arena without immediate data.
  [[nodiscard]] bool write_header(Lane& lane, Domain::Target to, std::uint64_t offset,
                                  const void* bytes, std::size_t size);
  [[nodiscard]] bool write_greeting(Lane& lane, const GreetingEntry& entry);
  // Writes immediate data only.
  [[nodiscard]] bool write_immediate(Lane& lane, Opcode opcode, std::uint64_t number);

 private:
  [[nodiscard]] bool accepted(Lane& lane, Domain::Result result);

  EndpointState& state_;
};

}  // namespace espalier::ofi
