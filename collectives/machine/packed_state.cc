#include "collectives/machine/packed_state.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "base/byte_parts.h"

namespace espalier {

static_assert(std::is_trivially_copyable_v<Machine> && std::is_standard_layout_v<Machine>);

// The machine's state of one link.
struct PackedState::PackedLink {
  FailureDetector::LinkState watch;
  std::uint32_t numbers[2];  // MessageRing::next_number of sends and of receives
  std::uint8_t first[2], first_unposted[2], end[2];
  std::uint8_t endpoint_link;
  bool has_unexpected;  // unexpected_tags_ and expected_receives_ follow; otherwise both are 0
};

// The arrays of which a machine may use only a part. Every other byte of the machine is copied, so
// a member that is added later cannot be forgotten.
struct PackedState::Layout {
  static constexpr std::size_t kDetector = offsetof(Machine, failure_detector_);
  static constexpr std::size_t kScheduler = offsetof(Machine, instance_scheduler_);
  static constexpr std::array kArrays = {
      byte_part<decltype(FailureDetector::links_)>(kDetector + offsetof(FailureDetector, links_)),
      byte_part<decltype(Machine::steps_)>(offsetof(Machine, steps_)),
      byte_part<decltype(InstanceScheduler::rows_)>(kScheduler +
                                                    offsetof(InstanceScheduler, rows_)),
      byte_part<decltype(InstanceScheduler::cursor_refs_)>(
          kScheduler + offsetof(InstanceScheduler, cursor_refs_)),
      byte_part<decltype(InstanceScheduler::cursors_)>(kScheduler +
                                                       offsetof(InstanceScheduler, cursors_)),
      byte_part<decltype(InstanceScheduler::terms_)>(kScheduler +
                                                     offsetof(InstanceScheduler, terms_)),
      byte_part<decltype(Machine::endpoint_links_)>(offsetof(Machine, endpoint_links_)),
      byte_part<decltype(Machine::sends_)>(offsetof(Machine, sends_)),
      byte_part<decltype(Machine::receives_)>(offsetof(Machine, receives_)),
      byte_part<decltype(Machine::unexpected_tags_)>(offsetof(Machine, unexpected_tags_)),
      byte_part<decltype(Machine::expected_receives_)>(offsetof(Machine, expected_receives_))};
  static constexpr auto kFixed = bytes_between(kArrays, sizeof(Machine));
  // Chunks of this size are compared with the model; one bit per chunk says whether it follows.
  static constexpr std::size_t kChunk = 16;
  static constexpr std::size_t kChunks = (bytes_of(kFixed) + kChunk - 1) / kChunk;
  static_assert(kChunks <= 64);
  // Above the size of any state: the data added to the members is smaller than the fixed part.
  static constexpr std::size_t kMaxBytes = 2 * sizeof(Machine);
};

namespace {

using FixedBytes = std::array<std::uint8_t, 64 * 16>;

constexpr std::size_t in_words(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

std::uint64_t word_at(const std::uint8_t* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

}  // namespace

// Writes values one after the other, each at a multiple of 8 bytes.
struct PackedState::Writer {
  template <typename T>
  T& next(std::size_t count = 1) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 8);
    T* const values = reinterpret_cast<T*>(position);
    position += in_words(count * sizeof(T));
    return *values;
  }
  template <typename T>
  void put(const T* values, std::size_t count) {
    if (count > 0) std::copy_n(values, count, &next<T>(count));
  }
  std::uint8_t* position;
};

struct PackedState::Reader {
  template <typename T>
  const T& next(std::size_t count = 1) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 8);
    const T* const values = reinterpret_cast<const T*>(position);
    position += in_words(count * sizeof(T));
    return *values;
  }
  template <typename T>
  void get(T* values, std::size_t count) {
    if (count > 0) std::copy_n(&next<T>(count), count, values);
  }
  const std::uint8_t* position;
};

void PackedState::clear(std::uint32_t links) {
  auto* const base = reinterpret_cast<std::uint8_t*>(&machine_);
  for_each_part<Layout::kFixed>([base](std::size_t offset, std::size_t, std::size_t size) {
    std::memset(base + offset, 0, size);
  });
  for (std::uint32_t link = 0; link < links; ++link) {
    machine_.failure_detector_.links_[link] = FailureDetector::LinkState();
    machine_.sends_[link] = MessageRing();
    machine_.receives_[link] = MessageRing();
    machine_.unexpected_tags_[link] = 0;
    machine_.expected_receives_[link] = 0;
    machine_.endpoint_links_[link] = 0;
  }
}

std::size_t PackedState::pack() {
  if (packed_.empty()) packed_.resize(Layout::kMaxBytes);
  Writer out{packed_.data()};
  pack_fixed(out);
  pack_steps(out);
  const InstanceScheduler& scheduler = machine_.instance_scheduler_;
  out.put(scheduler.rows_, scheduler.rows_count_);
  out.put(scheduler.cursor_refs_, scheduler.cursors_count_);
  out.put(scheduler.cursors_, scheduler.cursors_count_);
  out.put(scheduler.terms_, scheduler.terms_count_);
  pack_links(out);
  return static_cast<std::size_t>(out.position - packed_.data());
}

void PackedState::unpack(const std::uint8_t* bytes) {
  Reader in{bytes};
  unpack_fixed(in);
  unpack_steps(in);
  InstanceScheduler& scheduler = machine_.instance_scheduler_;
  in.get(scheduler.rows_, scheduler.rows_count_);
  in.get(scheduler.cursor_refs_, scheduler.cursors_count_);
  in.get(scheduler.cursors_, scheduler.cursors_count_);
  in.get(scheduler.terms_, scheduler.terms_count_);
  unpack_links(in);
}

void PackedState::pack_fixed(Writer& out) {
  constexpr std::size_t kChunk = Layout::kChunk;
  alignas(16) FixedBytes now;
  std::memset(now.data() + (Layout::kChunks - 1) * kChunk, 0, kChunk);
  copy_parts_out<Layout::kFixed>(&machine_, now.data());
  if (model_.empty()) model_.assign(now.data(), now.data() + Layout::kChunks * kChunk);
  std::uint64_t& changed = out.next<std::uint64_t>();
  std::uint64_t bits = 0;
  for (std::size_t chunk = 0; chunk < Layout::kChunks; ++chunk) {
    const std::uint8_t* const own = now.data() + chunk * kChunk;
    const std::uint8_t* const model = model_.data() + chunk * kChunk;
    const bool differs =
        ((word_at(own) ^ word_at(model)) | (word_at(own + 8) ^ word_at(model + 8))) != 0;
    std::memcpy(out.position, own, kChunk);
    out.position += differs ? kChunk : 0;
    bits |= std::uint64_t{differs} << chunk;
  }
  changed = bits;
}

void PackedState::unpack_fixed(Reader& in) {
  constexpr std::size_t kChunk = Layout::kChunk;
  alignas(16) FixedBytes now;
  std::memcpy(now.data(), model_.data(), Layout::kChunks * kChunk);
  for (std::uint64_t bits = in.next<std::uint64_t>(); bits != 0; bits &= bits - 1) {
    const auto chunk = static_cast<std::size_t>(std::countr_zero(bits));
    std::memcpy(now.data() + chunk * kChunk, in.position, kChunk);
    in.position += kChunk;
  }
  copy_parts_in<Layout::kFixed>(now.data(), &machine_);
}

// Steps in flight are less than a window apart: only the distance from the first is kept. Most
// steps have no combine or copy to run.
void PackedState::pack_steps(Writer& out) {
  const std::uint8_t first = machine_.first_step_;
  const auto count = static_cast<std::uint8_t>(machine_.end_step_ - first);
  if (count == 0) return;
  auto& begin = out.next<std::int64_t>();
  begin = machine_.step(first).number;
  auto* const counts = &out.next<std::uint32_t>(count + std::size_t{1});
  Rows any = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto& [number, ops, receives, sends, unposted] =
        machine_.step(static_cast<std::uint8_t>(first + i));
    counts[i] = static_cast<std::uint32_t>(number - begin) | std::uint32_t{receives} << 8 |
                std::uint32_t{sends} << 16 | std::uint32_t{unposted} << 24;
    any |= ops;
  }
  counts[count] = any != 0 ? 1 : 0;
  for (std::uint32_t i = 0; i < count && any != 0; ++i) {
    out.next<Rows>() = machine_.step(static_cast<std::uint8_t>(first + i)).ops;
  }
}

void PackedState::unpack_steps(Reader& in) {
  const std::uint8_t first = machine_.first_step_;
  const auto count = static_cast<std::uint8_t>(machine_.end_step_ - first);
  if (count == 0) return;
  const std::int64_t begin = in.next<std::int64_t>();
  const auto* const counts = &in.next<std::uint32_t>(count + std::size_t{1});
  for (std::uint32_t i = 0; i < count; ++i) {
    Machine::Step& step = machine_.step(static_cast<std::uint8_t>(first + i));
    step.number = begin + (counts[i] & 0xff);
    step.receives = static_cast<std::uint8_t>(counts[i] >> 8);
    step.sends = static_cast<std::uint8_t>(counts[i] >> 16);
    step.unposted = static_cast<std::uint8_t>(counts[i] >> 24);
    step.ops = counts[count] != 0 ? in.next<Rows>() : 0;
  }
}

void PackedState::pack_links(Writer& out) {
  for (std::uint32_t link = 0; link < machine_.failure_detector_.links_count_; ++link) {
    PackedLink& packed = out.next<PackedLink>();
    packed.watch = machine_.failure_detector_.links_[link];
    packed.endpoint_link = machine_.endpoint_links_[link];
    packed.has_unexpected =
        machine_.unexpected_tags_[link] != 0 || machine_.expected_receives_[link] != 0;
    if (packed.has_unexpected) {
      out.next<std::uint64_t>() = machine_.unexpected_tags_[link];
      out.next<std::uint32_t>() = machine_.expected_receives_[link];
    }
    pack_ring(machine_.sends_[link], 0, packed, out);
    pack_ring(machine_.receives_[link], 1, packed, out);
  }
}

void PackedState::unpack_links(Reader& in) {
  for (std::uint32_t link = 0; link < machine_.failure_detector_.links_count_; ++link) {
    const PackedLink& packed = in.next<PackedLink>();
    machine_.failure_detector_.links_[link] = packed.watch;
    machine_.endpoint_links_[link] = packed.endpoint_link;
    machine_.unexpected_tags_[link] = packed.has_unexpected ? in.next<std::uint64_t>() : 0;
    machine_.expected_receives_[link] = packed.has_unexpected ? in.next<std::uint32_t>() : 0;
    unpack_ring(packed, 0, in, machine_.sends_[link]);
    unpack_ring(packed, 1, in, machine_.receives_[link]);
  }
}

// A message's length has 48 bits (kMaxMessageBytes). A member that is added to MessageRing does not
// compile here.
void PackedState::pack_ring(const MessageRing& ring, int side, PackedLink& link, Writer& out) {
  static_assert(kMaxMessageBytes < std::uint64_t{1} << 48);
  const auto& [sizes, bytes, steps, actions, first, first_unposted, end, next_number] = ring;
  link.numbers[side] = next_number;
  link.first[side] = first;
  link.first_unposted[side] = first_unposted;
  link.end[side] = end;
  for (std::uint8_t counter = first; counter != end; ++counter) {
    const std::uint32_t index = counter & kRingMask;
    out.next<std::uint64_t>() = std::uint64_t{sizes[index]} | std::uint64_t{steps[index]} << 48 |
                                std::uint64_t{actions[index]} << 56;
    out.next<std::uint8_t*>() = bytes[index];
  }
}

void PackedState::unpack_ring(const PackedLink& link, int side, Reader& in, MessageRing& ring) {
  ring.next_number = link.numbers[side];
  ring.first = link.first[side];
  ring.first_unposted = link.first_unposted[side];
  ring.end = link.end[side];
  for (std::uint8_t counter = ring.first; counter != ring.end; ++counter) {
    const std::uint32_t index = counter & kRingMask;
    const std::uint64_t word = in.next<std::uint64_t>();
    ring.sizes[index] = static_cast<std::size_t>(word & ((std::uint64_t{1} << 48) - 1));
    ring.steps[index] = static_cast<std::uint8_t>(word >> 48);
    ring.actions[index] = static_cast<std::uint8_t>(word >> 56);
    ring.bytes[index] = in.next<std::uint8_t*>();
  }
}

}  // namespace espalier
