#include "collectives/machine/packed_state.h"

#include <array>
#include <cstring>
#include <type_traits>

#include "collectives/schedule/byte_parts.h"

namespace espalier {
static_assert(std::is_trivially_copyable_v<Machine> && std::is_standard_layout_v<Machine>);

// What a machine keeps of a link.
struct PackedState::Link {
  Watch::Link watch;
  std::uint64_t early;
  std::uint32_t foreseen;
  std::uint32_t numbers[2];  // of the lane of sends, of the lane of receives
  std::uint8_t first[2], posted[2], end[2];
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

template <typename T>
void put(std::uint8_t*& out, const T* from, std::size_t count) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(out, from, count * sizeof(T));
  out += count * sizeof(T);
}

template <typename T>
void get(const std::uint8_t*& bytes, T* to, std::size_t count) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(static_cast<void*>(to), bytes, count * sizeof(T));
  bytes += count * sizeof(T);
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
  std::size_t bytes = Layout::kFixedBytes + steps * sizeof(Machine::Step) +
                      timetable.rows_count_ * sizeof(Timetable::Row) +
                      timetable.cursors_count_ * (1 + sizeof(IndexCursor)) +
                      timetable.terms_count_ * sizeof(TermCursor) +
                      machine.watch_.count_ * sizeof(Link);
  for (std::uint32_t link = 0; link < machine.watch_.count_; ++link) {
    bytes += (machine.sends_[link].let_in() + machine.receives_[link].let_in()) * sizeof(Message);
  }
  return bytes;
}

void PackedState::pack(const Machine& machine, std::uint8_t* out) {
  copy_parts_out<Layout::kFixed>(&machine, out);
  out += Layout::kFixedBytes;
  for (std::uint8_t at = machine.first_step_; at != machine.end_step_; ++at) {
    put(out, &machine.step(at), 1);
  }
  const Timetable& timetable = machine.timetable_;
  put(out, timetable.rows_, timetable.rows_count_);
  put(out, timetable.cursor_refs_, timetable.cursors_count_);
  put(out, timetable.cursors_, timetable.cursors_count_);
  put(out, timetable.terms_, timetable.terms_count_);
  for (std::uint32_t at = 0; at < machine.watch_.count_; ++at) {
    const Lane* const lanes[2] = {&machine.sends_[at], &machine.receives_[at]};
    Link link = {};
    link.watch = machine.watch_.links_[at];
    link.early = machine.early_[at];
    link.foreseen = machine.foreseen_[at];
    link.link_of = machine.link_of_[at];
    for (const int side : {0, 1}) {
      link.numbers[side] = lanes[side]->number;
      link.first[side] = lanes[side]->first;
      link.posted[side] = lanes[side]->posted;
      link.end[side] = lanes[side]->end;
    }
    put(out, &link, 1);
    for (const Lane* lane : lanes) pack_messages(*lane, out);
  }
}

void PackedState::pack_messages(const Lane& lane, std::uint8_t*& out) {
  // A member that is added to Lane does not compile here: it needs a place in Link too.
  [[maybe_unused]] const auto& [sizes, bytes, steps, actions, first, posted, end, number] = lane;
  for (std::uint8_t at = first; at != end; ++at) {
    const Message message = lane.at(at);
    put(out, &message, 1);
  }
}

void PackedState::unpack(const std::uint8_t* bytes, Machine& machine) {
  copy_parts_in<Layout::kFixed>(bytes, &machine);
  bytes += Layout::kFixedBytes;
  for (std::uint8_t at = machine.first_step_; at != machine.end_step_; ++at) {
    get(bytes, &machine.step(at), 1);
  }
  Timetable& timetable = machine.timetable_;
  get(bytes, timetable.rows_, timetable.rows_count_);
  get(bytes, timetable.cursor_refs_, timetable.cursors_count_);
  get(bytes, timetable.cursors_, timetable.cursors_count_);
  get(bytes, timetable.terms_, timetable.terms_count_);
  for (std::uint32_t at = 0; at < machine.watch_.count_; ++at) {
    Lane* const lanes[2] = {&machine.sends_[at], &machine.receives_[at]};
    Link link;
    get(bytes, &link, 1);
    machine.watch_.links_[at] = link.watch;
    machine.early_[at] = link.early;
    machine.foreseen_[at] = link.foreseen;
    machine.link_of_[at] = link.link_of;
    for (const int side : {0, 1}) {
      lanes[side]->number = link.numbers[side];
      lanes[side]->first = link.first[side];
      lanes[side]->posted = link.posted[side];
      lanes[side]->end = link.end[side];
      unpack_messages(*lanes[side], bytes);
    }
  }
}

void PackedState::unpack_messages(Lane& lane, const std::uint8_t*& bytes) {
  for (std::uint8_t at = lane.first; at != lane.end; ++at) {
    Message message;
    get(bytes, &message, 1);
    const std::uint32_t place = at & kRingMask;
    lane.sizes[place] = message.size;
    lane.bytes[place] = message.bytes;
    lane.steps[place] = message.step;
    lane.actions[place] = message.action;
  }
}

}  // namespace espalier
