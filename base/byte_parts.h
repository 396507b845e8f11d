#pragma once
// Copying the bytes of an object of which large arrays are used in part: all bytes but those
// arrays. What is copied is what is not listed, so a member that is added later is copied too. Host
// only.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace espalier {

// Bytes of an object, by their offsets.
struct BytePart {
  std::size_t begin, end;
};

// A member that begins at `begin`.
template <typename T>
constexpr BytePart byte_part(std::size_t begin) {
  return {begin, begin + sizeof(T)};
}

// The bytes of an object of `size` bytes that are in none of `arrays`, which ascend.
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

template <std::size_t kCount>
constexpr std::size_t bytes_of(const std::array<BytePart, kCount>& parts) {
  std::size_t bytes = 0;
  for (const BytePart& part : parts) bytes += part.end - part.begin;
  return bytes;
}

namespace byte_parts {

template <const auto& kParts, typename F, std::size_t... kPart>
void for_each(F f, std::index_sequence<kPart...> /*parts*/) {
  std::size_t at = 0;
  ((f(kParts[kPart].begin, at, kParts[kPart].end - kParts[kPart].begin),
    at += kParts[kPart].end - kParts[kPart].begin),
   ...);
}

}  // namespace byte_parts

// Calls f(offset in the object, offset in their bytes one after the other, size) for each part: the
// sizes are constants to the compiler.
template <const auto& kParts, typename F>
void for_each_part(F f) {
  byte_parts::for_each<kParts>(f, std::make_index_sequence<kParts.size()>());
}

template <const auto& kParts>
void copy_parts_out(const void* object, std::uint8_t* out) {
  const auto* const base = static_cast<const std::uint8_t*>(object);
  for_each_part<kParts>([base, out](std::size_t offset, std::size_t at, std::size_t size) {
    std::memcpy(out + at, base + offset, size);
  });
}

template <const auto& kParts>
void copy_parts_in(const std::uint8_t* bytes, void* object) {
  auto* const base = static_cast<std::uint8_t*>(object);
  for_each_part<kParts>([base, bytes](std::size_t offset, std::size_t at, std::size_t size) {
    std::memcpy(base + offset, bytes + at, size);
  });
}

}  // namespace espalier
