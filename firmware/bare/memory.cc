// The four memory functions that compilers call implicitly, for targets without a C library. Blocks
// and frames are copied by words.

#include <cstddef>
#include <cstdint>

// In an archive for other firmware a C library's own come first.
#ifdef ESPALIER_WEAK_MEMORY
#define ESPALIER_MEMORY [[gnu::weak]]
#else
#define ESPALIER_MEMORY
#endif

namespace {

// A word of any memory, and one at any address.
using Word [[gnu::may_alias]] = std::uint32_t;
struct [[gnu::packed, gnu::may_alias]] AnyWord {
  std::uint32_t value;
};

constexpr std::size_t kWordBytes = sizeof(Word), kGroupBytes = 4 * kWordBytes;

std::size_t misalignment(const void* at) {
  return reinterpret_cast<std::uintptr_t>(at) % kWordBytes;
}

// Whether words of `in` can be read while `out` is aligned: Armv6-M reads only aligned words.
bool reads_words(const unsigned char* out, const unsigned char* in) {
#if defined(__ARM_ARCH) && !defined(__ARM_FEATURE_UNALIGNED)
  return misalignment(out) == misalignment(in);
#else
  static_cast<void>(out);
  static_cast<void>(in);
  return true;
#endif
}

// Copies from the first byte to the last. The two may overlap if `out` is before `in`.
void copy_up(unsigned char* out, const unsigned char* in, std::size_t size) {
  if (size >= kGroupBytes && reads_words(out, in)) {
    for (; misalignment(out) != 0; --size) *out++ = *in++;
    for (; size >= kGroupBytes; size -= kGroupBytes, out += kGroupBytes, in += kGroupBytes) {
      auto* to = reinterpret_cast<Word*>(out);
      const auto* from = reinterpret_cast<const AnyWord*>(in);
      to[0] = from[0].value;
      to[1] = from[1].value;
      to[2] = from[2].value;
      to[3] = from[3].value;
    }
  }
  for (; size > 0; --size) *out++ = *in++;
}

}  // namespace

extern "C" {

ESPALIER_MEMORY void* memcpy(void* to, const void* from, std::size_t size) {
  copy_up(static_cast<unsigned char*>(to), static_cast<const unsigned char*>(from), size);
  return to;
}

ESPALIER_MEMORY void* memmove(void* to, const void* from, std::size_t size) {
  auto* out = static_cast<unsigned char*>(to);
  const auto* in = static_cast<const unsigned char*>(from);
  if (out < in || out >= in + size) {
    copy_up(out, in, size);
  } else {
    for (std::size_t i = size; i > 0; --i) out[i - 1] = in[i - 1];
  }
  return to;
}

ESPALIER_MEMORY void* memset(void* to, int value, std::size_t size) {
  auto* out = static_cast<unsigned char*>(to);
  const auto byte = static_cast<unsigned char>(value);
  if (size >= kGroupBytes) {
    for (; misalignment(out) != 0; --size) *out++ = byte;
    const std::uint32_t word = byte * 0x01010101u;
    for (; size >= kWordBytes; size -= kWordBytes, out += kWordBytes) {
      *reinterpret_cast<Word*>(out) = word;
    }
  }
  for (; size > 0; --size) *out++ = byte;
  return to;
}

ESPALIER_MEMORY int memcmp(const void* left, const void* right, std::size_t size) {
  const auto* a = static_cast<const unsigned char*>(left);
  const auto* b = static_cast<const unsigned char*>(right);
  for (std::size_t i = 0; i < size; ++i) {
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  }
  return 0;
}
}
