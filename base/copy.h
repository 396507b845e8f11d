#pragma once
// Copies blocks. Freestanding.

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace espalier {

// Copies `size` bytes, which may overlap. On x86-64 C libraries copy long blocks by `rep movsb`. On
// some processors that takes ten times as long if `to` is a few bytes above `from` modulo 4096, and
// a buffer of malloc() is easily a few bytes above a page. There the block is copied in parts that
// are too short for `rep movsb`.
inline void copy_bytes(std::uint8_t* to, const std::uint8_t* from, std::size_t size) {
#ifdef __x86_64__
  constexpr std::uintptr_t kFew = 64, kPage = 4096;
  const std::uintptr_t above =
      reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from);
  if (above >= size && above % kPage < kFew && above % kPage != 0) {
    std::size_t part = 2048;
    asm("" : "+r"(part));  // or a compiler makes a `rep movsq` of a constant
    for (; size > part; size -= part, to += part, from += part) std::memcpy(to, from, part);
  }
#endif
  std::memmove(to, from, size);
}

}  // namespace espalier
