#pragma once
// The buffers of one node, in memory of its own. Host only.

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
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
    fill(first_, shared ? end - begin : out.bytes);
    fill(second_, shared ? 0 : in.bytes);
    output_ = {first_.data() + kGuard + (shared ? out.offset - begin : 0),
               static_cast<std::size_t>(out.bytes)};
    input_ = {(shared ? first_.data() + (in.offset - begin) : second_.data()) + kGuard,
              static_cast<std::size_t>(in.bytes)};
    scratch_bytes_ = scratch_needed(program, layout);
    scratch_.resize(scratch_bytes_ / sizeof(Line) + 1 + 2 * kGuard / sizeof(Line));
    guard(scratch_guards().first);
    guard(scratch_guards().second);
  }
  // Whether the bytes before and after each buffer are as allocate() left them.
  [[nodiscard]] bool guards_are_intact() const {
    const auto [before, after] = scratch_guards();
    return intact(std::span(first_).first(kGuard)) && intact(std::span(first_).last(kGuard)) &&
           intact(std::span(second_).first(kGuard)) && intact(std::span(second_).last(kGuard)) &&
           intact(before) && intact(after);
  }
  // Poisons the output, so that bytes that are never written are incorrect.
  void poison_output() { std::fill(output_.begin(), output_.end(), kPoison); }

  [[nodiscard]] std::span<std::uint8_t> input() const { return input_; }
  [[nodiscard]] std::span<std::uint8_t> output() const { return output_; }
  // For Machine::start(). A buffer of 0 bytes is null.
  [[nodiscard]] Buffers buffers() {
    return {input_.empty() ? nullptr : input_.data(), output_.empty() ? nullptr : output_.data(),
            scratch_.data() + kGuard / sizeof(Line), scratch_bytes_};
  }

 private:
  static constexpr std::uint8_t kPoison = 0xee;
  static constexpr std::uint8_t kGuardByte = 0xdb;
  static constexpr std::size_t kGuard = 64;  // bytes before and after each buffer
  struct alignas(16) Line {
    std::uint8_t bytes[16];
  };

  static void guard(std::span<std::uint8_t> bytes) {
    std::fill(bytes.begin(), bytes.end(), kGuardByte);
  }
  [[nodiscard]] static bool intact(std::span<const std::uint8_t> bytes) {
    return std::all_of(bytes.begin(), bytes.end(), [](auto byte) { return byte == kGuardByte; });
  }
  static void fill(std::vector<std::uint8_t>& memory, std::uint64_t bytes) {
    memory.assign(bytes + 2 * kGuard, kPoison);
    guard(std::span(memory).first(kGuard));
    guard(std::span(memory).last(kGuard));
  }
  // The guards before and after the scratch.
  [[nodiscard]] std::pair<std::span<std::uint8_t>, std::span<std::uint8_t>> scratch_guards() const {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): const and other callers share this.
    auto* bytes = const_cast<std::uint8_t*>(scratch_.front().bytes);
    return {{bytes, kGuard}, {bytes + kGuard + scratch_bytes_, kGuard}};
  }

  // Output and input; all in first_ if shared. Guards are around both.
  std::vector<std::uint8_t> first_, second_;
  std::vector<Line> scratch_;
  std::span<std::uint8_t> input_, output_;
  std::uint64_t scratch_bytes_ = 0;
};

}  // namespace espalier::sim
