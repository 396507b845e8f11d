#pragma once
// A balanced binary tree, in order, over whose edges sums go up and results go down at the same
// time, one block every three steps. Freestanding.
//
// The sum of block i crosses the edge above a rank in step up + 3i, and the result in step
// down + 3i. The edges to the left and to the right child have up - 2, down + 1 and up - 1,
// down + 2. If `up` and `down` are the same modulo 3 at the root, they are for every rank, and the
// three edges of a rank have different steps modulo 3. So a rank sends and receives at most once
// per step.

#include <cstdint>

namespace espalier {

// The ranks first .. first+size-1, and the edge above their root. Every rank with a left child has
// a right child.
struct UpDownTree {
  std::uint32_t first, size;
  std::uint32_t up, down;  // steps of block 0
  std::uint32_t parent;

  [[nodiscard]] std::uint32_t root() const { return first + (size - 1) / 2; }
  [[nodiscard]] UpDownTree left() const {
    return {first, (size - 1) / 2, up - 2, down + 1, root()};
  }
  [[nodiscard]] UpDownTree right() const {
    return {root() + 1, size / 2, up - 1, down + 2, root()};
  }

  // The largest distance in steps from a rank to the root of its tree of n ranks, and back.
  [[nodiscard]] static std::uint32_t steps_up(std::uint32_t n) {
    std::uint32_t steps = 0;
    for (; n > 2; n = (n - 1) / 2) steps += 2;
    return steps + n - 1;
  }
  [[nodiscard]] static std::uint32_t steps_down(std::uint32_t n) {
    std::uint32_t steps = 0;
    for (; n > 1; n /= 2) steps += 2;  // n/2 = ceil((n-1)/2)
    return steps;
  }
};

}  // namespace espalier
