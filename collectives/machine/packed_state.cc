#include "collectives/machine/packed_state.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "collectives/schedule/byte_parts.h"

namespace espalier {
static_assert(std::is_trivially_copyable_v<Machine> && std::is_standard_layout_v<Machine>);

// A lane but for its messages.
struct PackedState::LaneHead {
  std::uint32_t number;
  std::uint8_t first, posted, end;
};

// What a machine keeps of a link.
struct PackedState::Link {
  Watch::Link watch;
  std::uint64_t early;
  std::uint32_t foreseen;
  LaneHead sends, receives;
  std::uint8_t link_of;
};

// Where the arrays are of which a machine uses a part. Every other byte of it is copied, so a
// member that is added later cannot be forgotten; nor can one of Lane, see pack_messages().
struct PackedState::Layout {
  static constexpr std::size_t kWatch = offsetof(Machine, watch_);
  static constexpr std::size_t kTimetable = offsetof(Machine, timetable_);
  static constexpr std::array kArrays = {
      byte_part<decltype(Watch::links_)>(kWatch + offsetof(Watch, links_)),
      byte_part<decltype(Machine::steps_)>(offsetof(Machine, steps_)),
      byte_part<decltype(Timetable::rows_)>(kTimetable + offsetof(Timetable, rows_)),
      byte_part<decltype(Timetable::cursor_refs_)>(kTimetable + offsetof(Timetable, cursor_refs_)),
      byte_part<decltype(Timetable::cursors_)>(kTimetable + offsetof(Timetable, cursors_)),
      byte_part<decltype(Timetable::terms_)>(kTimetable + offsetof(Timetable, terms_)),
      byte_part<decltype(Machine::link_of_)>(offsetof(Machine, link_of_)),
      byte_part<decltype(Machine::sends_)>(offsetof(Machine, sends_)),
      byte_part<decltype(Machine::receives_)>(offsetof(Machine, receives_)),
      byte_part<decltype(Machine::early_)>(offsetof(Machine, early_)),
      byte_part<decltype(Machine::foreseen_)>(offsetof(Machine, foreseen_))};
  static constexpr auto kFixed = bytes_between(kArrays, sizeof(Machine));
  static constexpr std::size_t kFixedBytes = bytes_of(kFixed);
};

namespace {

// Packed bytes are a row of values, each aligned as 8 bytes are.
constexpr std::size_t kWord = 8;
constexpr std::size_t in_words(std::size_t bytes) { return (bytes + kWord - 1) / kWord * kWord; }

// The place of the next `count` values.
template <typename T, typename Byte>
auto* next_values(Byte*& bytes, std::size_t count = 1) {
  static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kWord);
  using Value = std::conditional_t<std::is_const_v<Byte>, const T, T>;
  auto* const values = reinterpret_cast<Value*>(bytes);
  bytes += in_words(count * sizeof(T));
  return values;
}

}  // namespace

void PackedState::clear(Machine& machine, std::uint32_t links) {
  auto* const base = reinterpret_cast<std::uint8_t*>(&machine);
  for_each_part<Layout::kFixed>([base](std::size_t offset, std::size_t, std::size_t size) {
    std::memset(base + offset, 0, size);
  });
  for (std::uint32_t link = 0; link < links; ++link) {
    machine.watch_.links_[link] = Watch::Link();
    machine.sends_[link] = Lane();
    machine.receives_[link] = Lane();
    machine.early_[link] = 0;
    machine.foreseen_[link] = 0;
    machine.link_of_[link] = 0;
  }
}

std::size_t PackedState::size(const Machine& machine) {
  const Timetable& timetable = machine.timetable_;
  const auto steps = static_cast<std::uint8_t>(machine.end_step_ - machine.first_step_);
  std::size_t messages = 0;
  for (std::uint32_t link = 0; link < machine.watch_.count_; ++link) {
    messages += machine.sends_[link].let_in() + machine.receives_[link].let_in();
  }
  return in_words(Layout::kFixedBytes) + in_words(steps * sizeof(Machine::Step)) +
         in_words(timetable.rows_count_ * sizeof(Timetable::Row)) +
         in_words(timetable.cursors_count_) +
         in_words(timetable.cursors_count_ * sizeof(IndexCursor)) +
         in_words(timetable.terms_count_ * sizeof(TermCursor)) +
         machine.watch_.count_ * in_words(sizeof(Link)) + messages * in_words(sizeof(Message));
}

void PackedState::pack(const Machine& machine, std::uint8_t* out) {
  copy_parts_out<Layout::kFixed>(&machine, next_values<std::uint8_t>(out, Layout::kFixedBytes));
  for (std::uint8_t at = machine.first_step_; at != machine.end_step_; ++at) {
    *next_values<Machine::Step>(out) = machine.step(at);
  }
  const Timetable& timetable = machine.timetable_;
  const auto put = [&out]<typename T>(const T* values, std::size_t count) {
    std::copy_n(values, count, next_values<T>(out, count));
  };
  put(timetable.rows_, timetable.rows_count_);
  put(timetable.cursor_refs_, timetable.cursors_count_);
  put(timetable.cursors_, timetable.cursors_count_);
  put(timetable.terms_, timetable.terms_count_);
  for (std::uint32_t at = 0; at < machine.watch_.count_; ++at) {
    Link& link = *next_values<Link>(out);
    link.watch = machine.watch_.links_[at];
    link.early = machine.early_[at];
    link.foreseen = machine.foreseen_[at];
    link.link_of = machine.link_of_[at];
    pack_lane(machine.sends_[at], link.sends, out);
    pack_lane(machine.receives_[at], link.receives, out);
  }
}

// What is not of the ring goes into `head`, the messages of the ring behind. A member that is added
// to Lane does not compile here.
void PackedState::pack_lane(const Lane& lane, LaneHead& head, std::uint8_t*& out) {
  const auto& [sizes, bytes, steps, actions, first, posted, end, number] = lane;
  head = {number, first, posted, end};
  for (std::uint8_t at = first; at != end; ++at) {
    const std::uint32_t place = at & kRingMask;
    Message& message = *next_values<Message>(out);
    message.size = sizes[place];
    message.bytes = bytes[place];
    message.step = steps[place];
    message.action = actions[place];
  }
}

void PackedState::unpack(const std::uint8_t* bytes, Machine& machine) {
  copy_parts_in<Layout::kFixed>(next_values<std::uint8_t>(bytes, Layout::kFixedBytes), &machine);
  for (std::uint8_t at = machine.first_step_; at != machine.end_step_; ++at) {
    machine.step(at) = *next_values<Machine::Step>(bytes);
  }
  Timetable& timetable = machine.timetable_;
  const auto get = [&bytes]<typename T>(T* values, std::size_t count) {
    std::copy_n(next_values<T>(bytes, count), count, values);
  };
  get(timetable.rows_, timetable.rows_count_);
  get(timetable.cursor_refs_, timetable.cursors_count_);
  get(timetable.cursors_, timetable.cursors_count_);
  get(timetable.terms_, timetable.terms_count_);
  for (std::uint32_t at = 0; at < machine.watch_.count_; ++at) {
    const Link& link = *next_values<Link>(bytes);
    machine.watch_.links_[at] = link.watch;
    machine.early_[at] = link.early;
    machine.foreseen_[at] = link.foreseen;
    machine.link_of_[at] = link.link_of;
    unpack_lane(bytes, link.sends, machine.sends_[at]);
    unpack_lane(bytes, link.receives, machine.receives_[at]);
  }
}

void PackedState::unpack_lane(const std::uint8_t*& bytes, const LaneHead& head, Lane& lane) {
  lane.number = head.number;
  lane.first = head.first;
  lane.posted = head.posted;
  lane.end = head.end;
  for (std::uint8_t at = head.first; at != head.end; ++at) {
    const std::uint32_t place = at & kRingMask;
    const Message& message = *next_values<Message>(bytes);
    lane.sizes[place] = message.size;
    lane.bytes[place] = message.bytes;
    lane.steps[place] = message.step;
    lane.actions[place] = message.action;
  }
}

}  // namespace espalier
