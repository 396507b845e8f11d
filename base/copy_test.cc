#include "base/copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

namespace espalier {
namespace {

std::vector<std::uint8_t> numbered(std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{1});
  for (std::size_t i = 0; i < size; i += 255) bytes[i] = static_cast<std::uint8_t>(i / 255);
  return bytes;
}

// All sizes around the length of a part, and distances around those that are copied in parts.
TEST(Copy, CopiesWhatMemmoveCopies) {
  constexpr std::size_t kRoom = 40'000;
  const std::vector<std::uint8_t> start = numbered(kRoom);
  for (const std::size_t size : {0, 1, 2047, 2048, 2049, 4096, 5000, 8192, 10'000}) {
    for (const std::size_t base : {std::size_t{0}, std::size_t{4096}, std::size_t{12'288}}) {
      for (const std::size_t few : {0, 1, 16, 63, 64, 2048, 4095}) {
        for (const bool upwards : {false, true}) {
          std::vector<std::uint8_t> expected = start, copied = start;
          const std::size_t low = 3, high = low + base + few;
          const std::size_t to = upwards ? high : low, from = upwards ? low : high;
          std::memmove(expected.data() + to, expected.data() + from, size);
          copy_bytes(copied.data() + to, copied.data() + from, size);
          ASSERT_EQ(expected, copied) << size << " bytes from " << from << " to " << to;
        }
      }
    }
  }
}

double seconds(std::uint8_t* to, const std::uint8_t* from, std::size_t size) {
  const auto start = std::chrono::steady_clock::now();
  copy_bytes(to, from, size);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Where a C library copies such a block by `rep movsb`, it takes ten times as long. Both fit into
// the first cache, which hides nothing.
TEST(Copy, ABlockAFewBytesAboveItsSourceTakesAsLongAsAnother) {
  constexpr std::size_t kSize = 12 << 10, kPage = 4096;
  std::vector<std::uint8_t> memory(3 * kSize + kPage);
  std::uint8_t* const from = memory.data();
  std::vector<double> near, far;
  for (int i = 0; i < 101; ++i) {
    near.push_back(seconds(from + kSize + 16, from, kSize));
    far.push_back(seconds(from + kSize + 1024, from, kSize));
  }
  std::nth_element(near.begin(), near.begin() + 50, near.end());
  std::nth_element(far.begin(), far.begin() + 50, far.end());
  EXPECT_LT(near[50], 4 * far[50]);
}

}  // namespace
}  // namespace espalier
