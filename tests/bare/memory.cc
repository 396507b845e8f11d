// memcpy, memmove and memset at every alignment and many sizes change the right bytes and no
// others. Boards have their own (firmware/bare/memory.cc).

#include <cstring>

#include "tests/bare/check.h"

namespace espalier {
namespace {

constexpr std::uint32_t kBytes = 128, kLongest = 80;
std::uint8_t from[kBytes], to[kBytes], expected[kBytes];

void fill() {
  for (std::uint32_t i = 0; i < kBytes; ++i) {
    from[i] = static_cast<std::uint8_t>(i * 7 + 1);
    to[i] = expected[i] = static_cast<std::uint8_t>(i ^ 0xa5);
  }
}

bool as_expected(const std::uint8_t* bytes) {
  std::uint32_t same = 0;
  while (same < kBytes && bytes[same] == expected[same]) ++same;
  return same == kBytes;
}

// Keeps the compiler from knowing a size, and so from using code of its own.
std::uint32_t unknown(std::uint32_t size) {
  asm volatile("" : "+r"(size));
  return size;
}

void copy(std::uint32_t out, std::uint32_t in, std::uint32_t size) {
  fill();
  for (std::uint32_t i = 0; i < size; ++i) expected[out + i] = from[in + i];
  CHECK(std::memcpy(to + out, from + in, unknown(size)) == to + out && as_expected(to));
}

// Within one buffer.
void move(std::uint32_t out, std::uint32_t in, std::uint32_t size) {
  fill();
  for (std::uint32_t i = 0; i < kBytes; ++i) expected[i] = from[i];
  for (std::uint32_t i = 0; i < size; ++i)
    expected[out + i] = static_cast<std::uint8_t>((in + i) * 7 + 1);
  CHECK(std::memmove(from + out, from + in, unknown(size)) == from + out && as_expected(from));
}

void set(std::uint32_t out, std::uint32_t size) {
  fill();
  for (std::uint32_t i = 0; i < size; ++i) expected[out + i] = 0xc3;
  CHECK(std::memset(to + out, 0x1c3, unknown(size)) == to + out && as_expected(to));
}

}  // namespace
}  // namespace espalier

int main() {
  using namespace espalier;
  for (std::uint32_t size = 0; size <= kLongest; size += size < 40 ? 1 : 13) {
    for (std::uint32_t out = 0; out < 4; ++out) {
      set(out, size);
      for (std::uint32_t in = 0; in < 4; ++in) copy(out, in, size);
      for (std::uint32_t in = 0; in < 24; in += 1 + in / 6) {
        move(out, in, size);
        move(in, out, size);
      }
    }
  }
  return checks::finish();
}
