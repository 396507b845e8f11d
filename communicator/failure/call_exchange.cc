#include "communicator/failure/call_exchange.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/crc32.h"
#include "espalier/internal/base/assert.h"
#include "espalier/internal/base/limits.h"

namespace espalier::communicator {
namespace {

constexpr std::uint64_t kRepeatNs = 1'000'000;
constexpr std::uint64_t kFlushNs = 20'000'000;

// A position that is none: no byte is needed, or none is given.
constexpr std::uint32_t kNoPosition = 127;
static_assert(FailureNote::kMaxBytes < kNoPosition);

// A control's number, from its lowest bit: the byte, its position, the position that the sender
// needs next, and a check, because replies to a machine's probes have numbers of the same kind.
struct Piece {
  std::uint8_t byte = 0;
  std::uint32_t position = kNoPosition, needed = kNoPosition;

  [[nodiscard]] std::uint32_t number(std::uint32_t round) const {
    const std::uint32_t content = byte | position << 8 | needed << 15;
    return content | check_of(content, round) << 22;
  }
  // Returns whether the number is that of a piece of this round.
  [[nodiscard]] bool read(std::uint32_t number, std::uint32_t round) {
    const std::uint32_t content = number & 0x3fffff;
    byte = static_cast<std::uint8_t>(content & 0xff);
    position = content >> 8 & 0x7f;
    needed = content >> 15 & 0x7f;
    return number >> 22 == check_of(content, round);
  }

 private:
  [[nodiscard]] static std::uint32_t check_of(std::uint32_t content, std::uint32_t round) {
    const std::uint8_t bytes[] = {static_cast<std::uint8_t>(content),
                                  static_cast<std::uint8_t>(content >> 8),
                                  static_cast<std::uint8_t>(content >> 16)};
    return crc32(0x6e6f7465 + round, bytes, sizeof(bytes)) & 0x3ff;
  }
};

class Exchange {
 public:
  Exchange(Endpoint& endpoint, std::span<const std::uint32_t> links, FailureNote& note,
           std::uint32_t round)
      : endpoint_(endpoint), note_(note), round_(round) {
    ESPALIER_ASSERT(links.size() <= all_neighbors_.size());
    for (std::size_t i = 0; i < links.size(); ++i) all_neighbors_[i].link = links[i];
    neighbors_ = std::span(all_neighbors_).first(links.size());
  }

  void run(std::uint64_t within_ns) {
    const std::uint64_t last_end = endpoint_.now() + kExchangePatience * within_ns;
    std::uint64_t next_repeat = 0, end = endpoint_.now() + within_ns;
    for (std::uint64_t now = endpoint_.now(); now < end; now = endpoint_.now()) {
      if (now >= next_repeat) {
        post_all();
        next_repeat = now + kRepeatNs;
      }
      Completion completion;
      bool found = false;
      while (endpoint_.poll(completion)) {
        found = true;
        if (completion.kind == Completion::Kind::kControl) handle(completion);
      }
      if (std::exchange(has_news_, false) && !is_ending_) end = std::min(now + within_ns, last_end);
      // The last controls are posted, and leave this node in the next polls.
      if (is_done()) end = std::min(end, std::exchange(is_ending_, true) ? end : now + kFlushNs);
      if (!found) endpoint_.wait(std::min(next_repeat, end));
    }
  }

 private:
  // A rank at the other end of a link.
  struct Neighbor {
    std::uint32_t link = 0;
    std::uint32_t asked = 0;   // the position that this node asked for last
    std::uint32_t needed = 0;  // the position that it needs; kNoPosition: its note is complete
  };

  [[nodiscard]] bool is_done() const {
    return note_.is_complete() &&
           std::all_of(neighbors_.begin(), neighbors_.end(),
                       [](const Neighbor& each) { return each.needed == kNoPosition; });
  }

  [[nodiscard]] bool has_byte_for(const Neighbor& neighbor) const {
    return neighbor.needed < note_.size() && note_.knows(neighbor.needed);
  }

  // Asks for one byte after the other, because the neighbor may not know some of them yet.
  [[nodiscard]] std::uint32_t next_needed(std::uint32_t asked) const {
    if (note_.is_complete()) return kNoPosition;
    do {
      asked = asked + 1 < note_.size() ? asked + 1 : 0;
    } while (note_.knows(asked));
    return asked;
  }

  void post(Neighbor& neighbor) {
    Piece piece;
    piece.needed = neighbor.asked = next_needed(neighbor.asked);
    if (has_byte_for(neighbor)) {
      piece.position = neighbor.needed;
      piece.byte = note_.byte(neighbor.needed);
    }
    Control control;
    control.kind = ControlKind::kAnswer;
    control.number = piece.number(round_);
    // The fabric may have no room: the next one comes soon.
    (void)endpoint_.post_control(neighbor.link, control);
  }

  void post_all() {
    for (Neighbor& neighbor : neighbors_) post(neighbor);
  }

  void handle(const Completion& completion) {
    const auto from = std::find_if(neighbors_.begin(), neighbors_.end(), [&](const Neighbor& each) {
      return each.link == completion.link;
    });
    Piece piece;
    if (from == neighbors_.end() || completion.control.kind != ControlKind::kAnswer) return;
    if (!piece.read(completion.control.number, round_)) {
      // Its last word of this round may have been replaced by one of the next round.
      if (!piece.read(completion.control.number, round_ + 1)) return;
      piece = {};
    }
    has_news_ = has_news_ || from->needed != piece.needed;
    from->needed = piece.needed;
    const bool is_new = piece.position < note_.size() && note_.learn(piece.position, piece.byte);
    has_news_ = has_news_ || is_new;
    if (is_new && note_.is_complete()) return post_all();
    for (Neighbor& neighbor : neighbors_) {
      const bool is_sender = &neighbor == &*from;
      const bool awaits = is_sender || (is_new && neighbor.needed == piece.position);
      if ((awaits && has_byte_for(neighbor)) || (is_sender && is_new)) post(neighbor);
    }
  }

  Endpoint& endpoint_;
  FailureNote& note_;
  std::uint32_t round_;
  bool is_ending_ = false;  // all is done except the last controls
  bool has_news_ = false;   // another rank told or asked for something new
  std::array<Neighbor, kMaxLinks> all_neighbors_;
  std::span<Neighbor> neighbors_;
};

}  // namespace

void FailureNote::make_calls(const Cause& cause, std::uint32_t node, const CallHistory& own) {
  size_ = 2 * kHistoryBytes;
  const std::uint32_t named[] = {cause.detector, cause.peer};
  for (std::uint32_t k = 0; k < 2; ++k) {
    if (node != named[k]) continue;
    const std::uint32_t first = k * kHistoryBytes;
    learn_number(first, 2, own.number());
    for (std::uint32_t i = 0; i < CallHistory::kCalls; ++i) {
      learn_number(first + 2 + 8 * i, 8, own.word(i));
    }
  }
}

void FailureNote::make_text(const Cause& cause, std::uint32_t node, const Text& own) {
  size_ = kMaxBytes;
  is_text_ = true;
  if (node != cause.detector) return;
  for (std::uint32_t i = 0; i < kMaxBytes; ++i) (void)learn(i, static_cast<std::uint8_t>(own[i]));
}

void FailureNote::make_halves(const Cause& cause, std::uint32_t node, const Half& own) {
  *this = {};
  size_ = kMaxBytes;
  const std::uint32_t named[] = {cause.detector, cause.peer};
  for (std::uint32_t k = 0; k < 2; ++k) {
    if (node != named[k]) continue;
    for (std::uint32_t i = 0; i < own.size(); ++i) {
      (void)learn(k * static_cast<std::uint32_t>(own.size()) + i, own[i]);
    }
  }
}

FailureNote::Half FailureNote::half(std::uint32_t which) const {
  ESPALIER_ASSERT(which < 2 && is_complete());
  Half half;
  std::copy_n(bytes_.begin() + which * half.size(), half.size(), half.begin());
  return half;
}

bool FailureNote::learn(std::uint32_t position, std::uint8_t byte) {
  if (known_[position]) return false;
  bytes_[position] = byte;
  const std::uint32_t end = is_text_ && byte == 0 ? size_ : position + 1;
  for (; position < end; ++position) known_.set(position);
  return true;
}

void FailureNote::learn_number(std::uint32_t position, std::uint32_t bytes, std::uint64_t value) {
  for (std::uint32_t i = 0; i < bytes; ++i) {
    (void)learn(position + i, static_cast<std::uint8_t>(value >> (8 * i)));
  }
}

std::uint64_t FailureNote::number(std::uint32_t position, std::uint32_t bytes) const {
  std::uint64_t value = 0;
  for (std::uint32_t i = 0; i < bytes; ++i) value |= std::uint64_t{bytes_[position + i]} << (8 * i);
  return value;
}

FailureNote::ToldHistory FailureNote::history(std::uint32_t position) const {
  for (std::uint32_t i = 0; i < kHistoryBytes; ++i) {
    if (!known_[position + i]) return {};
  }
  ToldHistory history{.number = static_cast<std::uint16_t>(number(position, 2))};
  for (std::uint32_t i = 0; i < CallHistory::kCalls; ++i) {
    history.words[i] = number(position + 2 + 8 * i, 8);
  }
  return history;
}

MismatchedCalls FailureNote::calls() const {
  const ToldHistory detector = history(0), peer = history(kHistoryBytes);
  MismatchedCalls calls = {detector.words[0], peer.words[0]};
  if (calls.detector == 0 || calls.peer == 0) return calls;
  const auto ahead = static_cast<std::int16_t>(detector.number - peer.number);
  const auto back = static_cast<std::uint32_t>(std::abs(int{ahead}));
  if (back >= CallHistory::kCalls) return calls;
  if (ahead > 0) calls.detector_back = back;
  if (ahead < 0) calls.peer_back = back;
  // Both may have gone on, if their part of the call was to send short messages: then an earlier
  // one differs.
  for (std::uint32_t i = 0;
       std::max(calls.detector_back, calls.peer_back) + i < CallHistory::kCalls; ++i) {
    const std::uint64_t of_detector = detector.words[calls.detector_back + i];
    const std::uint64_t of_peer = peer.words[calls.peer_back + i];
    if (of_detector == 0 || of_peer == 0) break;
    if (of_detector == of_peer) continue;
    calls.detector_back += i;
    calls.peer_back += i;
    break;
  }
  calls.detector = detector.words[calls.detector_back];
  calls.peer = peer.words[calls.peer_back];
  return calls;
}

std::string FailureNote::text() const {
  if (!is_complete()) return {};
  return {bytes_.begin(), std::find(bytes_.begin(), bytes_.end(), 0)};
}

void exchange_note(Endpoint& endpoint, std::span<const std::uint32_t> links, FailureNote& note,
                   std::uint64_t within_ns, std::uint32_t round) {
  Exchange exchange(endpoint, links, note, round);
  exchange.run(within_ns);
}

}  // namespace espalier::communicator
