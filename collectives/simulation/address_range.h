#pragma once
// Addresses without memory, for machines without data (MachineConfig::no_data). The machine
// computes where its blocks would be and accesses none of them; an access would end the process.
// All nodes may have the same addresses, because no node sees another's. Host only.

#include <sys/mman.h>

#include <cstdint>
#include <new>

#include "espalier/collectives/machine/machine.h"
#include "espalier/internal/base/assert.h"

namespace espalier::sim {

class AddressRange {
 public:
  // std::bad_alloc if the system has no such range.
  explicit AddressRange(std::uint64_t bytes) : bytes_(bytes == 0 ? 1 : bytes) {
    base_ = mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base_ == MAP_FAILED) throw std::bad_alloc();
  }
  AddressRange(const AddressRange&) = delete;
  AddressRange& operator=(const AddressRange&) = delete;
  ~AddressRange() { munmap(base_, bytes_); }

  // Returns the disjoint buffers of a node with this program. Requires that bytes_for() is at most
  // the range's size.
  [[nodiscard]] Buffers buffers(const Program& program, const Layout& layout) const {
    ESPALIER_ASSERT(bytes_for(program, layout) <= bytes_);
    auto* end = static_cast<std::uint8_t*>(base_);
    const auto next = [&end](std::uint64_t bytes) {
      void* const begin = end;
      end += padded(bytes);
      return begin;
    };
    Buffers buffers{.input = next(buffer_bytes(program, layout, Buffer::kInput)),
                    .output = next(buffer_bytes(program, layout, Buffer::kOutput)),
                    .scratch_bytes = scratch_needed(program, layout)};
    buffers.scratch = next(buffers.scratch_bytes);
    return buffers;
  }
  [[nodiscard]] static std::uint64_t bytes_for(const Program& program, const Layout& layout) {
    return padded(buffer_bytes(program, layout, Buffer::kInput)) +
           padded(buffer_bytes(program, layout, Buffer::kOutput)) +
           padded(scratch_needed(program, layout));
  }

 private:
  // The padding gives blocks of 0 bytes an address too, and aligns scratch.
  static std::uint64_t padded(std::uint64_t bytes) { return bytes / 16 * 16 + 32; }
  std::uint64_t bytes_;
  void* base_;
};

}  // namespace espalier::sim
