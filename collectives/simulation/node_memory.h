#pragma once
// The buffers of one node, in memory of its own. Host only.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "espalier/collectives/machine/machine.h"

namespace espalier::sim {

class NodeMemory {
 public:
  // Allocates the buffers that the program needs; input and output are poisoned. In place: where
  // the node has both, they share memory (machine.h, Buffers).
  void allocate(const Program& program, const Layout& layout, bool in_place = false) {
    const Span in = buffer_span(program, layout, Buffer::kInput);
    const Span out = buffer_span(program, layout, Buffer::kOutput);
    const bool shared = in_place && in.bytes > 0 && out.bytes > 0;
    const std::uint64_t begin = std::min(in.offset, out.offset);
    const std::uint64_t end = std::max(in.offset + in.bytes, out.offset + out.bytes);
    first_.assign(shared ? end - begin : out.bytes, kPoison);
    second_.assign(shared ? 0 : in.bytes, kPoison);
    output_ = {first_.data() + (shared ? out.offset - begin : 0), out.bytes};
    input_ = {shared ? first_.data() + (in.offset - begin) : second_.data(), in.bytes};
    scratch_bytes_ = scratch_needed(program, layout);
    scratch_.resize(scratch_bytes_ / sizeof(Line) + 1);
  }
  // Poisons the output, so that bytes that are never written are incorrect.
  void poison_output() { std::fill(output_.begin(), output_.end(), kPoison); }

  [[nodiscard]] std::span<std::uint8_t> input() const { return input_; }
  [[nodiscard]] std::span<std::uint8_t> output() const { return output_; }
  // For Machine::start(). A buffer of 0 bytes is null.
  [[nodiscard]] Buffers buffers() {
    return {input_.empty() ? nullptr : input_.data(), output_.empty() ? nullptr : output_.data(),
            scratch_.data(), scratch_bytes_};
  }

 private:
  static constexpr std::uint8_t kPoison = 0xee;
  struct alignas(16) Line {
    std::uint8_t bytes[16];
  };
  std::vector<std::uint8_t> first_, second_;  // output and input; all in first_ if shared
  std::vector<Line> scratch_;
  std::span<std::uint8_t> input_, output_;
  std::uint64_t scratch_bytes_ = 0;
};

}  // namespace espalier::sim
