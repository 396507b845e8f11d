#pragma once
// Copies all bytes of an object except listed arrays, of which the object uses only a part. A
// member that is added later is not listed, so it is copied too. Host only.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace espalier {

// A range of an object's bytes, by offset; `end` is not part of it.
struct BytePart {
  std::size_t begin, end;
};

// Returns the range of a member of type T that begins at `begin`.
template <typename T>
constexpr BytePart byte_part(std::size_t begin) {
  return {begin, begin + sizeof(T)};
}

// Returns the ranges of an object of `size` bytes that are outside all `arrays`, which ascend.
template <std::size_t kCount>
constexpr std::array<BytePart, kCount + 1> bytes_between(const std::array<BytePart, kCount>& arrays,
                                                         std::size_t size) {
  std::array<BytePart, kCount + 1> parts = {};
  std::size_t begin = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    if (arrays[i].begin < begin) throw "the arrays are not in the order of the members";
    parts[i] = {begin, arrays[i].begin};
    begin = arrays[i].end;
  }
  parts[kCount] = {begin, size};
  return parts;
}

// Returns the number of bytes in all ranges.
template <std::size_t kCount>
constexpr std::size_t bytes_of(const std::array<BytePart, kCount>& parts) {
  std::size_t bytes = 0;
  for (const BytePart& part : parts) bytes += part.end - part.begin;
  return bytes;
}

namespace byte_parts {

template <const auto& kParts, typename F, std::size_t... kPart>
void for_each(F f, std::index_sequence<kPart...> /*parts*/) {
  std::size_t packed = 0;
  ((f(kParts[kPart].begin, packed, kParts[kPart].end - kParts[kPart].begin),
    packed += kParts[kPart].end - kParts[kPart].begin),
   ...);
}

}  // namespace byte_parts

// Calls f(offset in the object, offset in the packed bytes, size) for each range. The sizes are
// constants for the compiler.
template <const auto& kParts, typename F>
void for_each_part(F f) {
  byte_parts::for_each<kParts>(f, std::make_index_sequence<kParts.size()>());
}

// Copies the ranges of `object` to `out`, packed.
template <const auto& kParts>
void copy_parts_out(const void* object, std::uint8_t* out) {
  const auto* const base = static_cast<const std::uint8_t*>(object);
  for_each_part<kParts>([base, out](std::size_t offset, std::size_t packed, std::size_t size) {
    std::memcpy(out + packed, base + offset, size);
  });
}

// Copies the packed `bytes` back to the ranges of `object`.
template <const auto& kParts>
void copy_parts_in(const std::uint8_t* bytes, void* object) {
  auto* const base = static_cast<std::uint8_t*>(object);
  for_each_part<kParts>([base, bytes](std::size_t offset, std::size_t packed, std::size_t size) {
    std::memcpy(base + offset, bytes + packed, size);
  });
}

}  // namespace espalier
