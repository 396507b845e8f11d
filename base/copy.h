#pragma once
// Copies blocks. Freestanding.

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace espalier {

// Copies `size` bytes, which may overlap. C libraries copy long blocks by `rep movsb` on x86-64,
// which takes ten times as long on some processors if `to` is a few bytes above `from` modulo 4096,
// as a program's buffer from malloc() easily is above the start of a page. Blocks there are copied
// in parts that are too short for it.
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
