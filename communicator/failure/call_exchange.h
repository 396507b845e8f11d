#pragma once
// The note of a failure: the nodes that the cause names tell all ranks the rest, for which the
// cause has no room. The failure is a mismatch, or a rank ended the communicator: its operator
// threw, the rank has no memory, or the program cancelled. Host only.
//
// The machines have ended. The note travels byte by byte over the backbone, whose links both ends
// have, and each rank passes on its part. It travels in controls of kind kAnswer, whose numbers a
// machine ignores: a rank whose machine has not ended takes no harm. It travels before the endpoint
// is released, because an endpoint with pending messages then breaks its connections. A control may
// replace an unread one. Therefore each has the sender's whole state: the byte that it needs next,
// and the byte that the receiver needs.

#include <array>
#include <bitset>
#include <cstdint>
#include <span>
#include <string>

#include "espalier/collectives/schedule/program.h"
#include "espalier/hal/endpoint.h"

namespace espalier::communicator {

// What a rank knows of a call besides its word. Both objects last as long as the communicator.
struct CallExtra {
  std::uint64_t operands = 0;              // Operation::operands
  const std::string* algorithm = nullptr;  // null: not known
  const Program* program = nullptr;        // as algorithm
};

// The calls that a rank started last (call_word.h).
class CallHistory {
 public:
  static constexpr std::uint32_t kCalls = 4;

  void add(std::uint64_t word, const CallExtra& extra) {
    words_[++number_ % kCalls] = word;
    extras_[number_ % kCalls] = extra;
  }
  // Removes the last one, which did not start.
  void remove() { words_[number_-- % kCalls] = 0; }
  // Returns the number of the last call, counted modulo 65536, the same on all ranks.
  [[nodiscard]] std::uint16_t number() const { return static_cast<std::uint16_t>(number_); }
  // Returns the call with number() - back; 0: not known. Requires back < kCalls.
  [[nodiscard]] std::uint64_t word(std::uint32_t back) const {
    return words_[(number_ - back) % kCalls];
  }
  // Returns what belongs to word(back).
  [[nodiscard]] const CallExtra& extra(std::uint32_t back) const {
    return extras_[(number_ - back) % kCalls];
  }

 private:
  std::uint32_t number_ = 0;
  std::array<std::uint64_t, kCalls> words_ = {};  // of call n: words_[n % kCalls]
  std::array<CallExtra, kCalls> extras_ = {};
};

// The calls at both ends of a mismatch; 0: not known.
struct MismatchedCalls {
  std::uint64_t detector = 0, peer = 0;
  // CallHistory::word() of which each of the two is.
  std::uint32_t detector_back = 0, peer_back = 0;
};

// What the nodes that a cause names tell the others: bytes, each known or not.
class FailureNote {
 public:
  static constexpr std::uint32_t kMaxBytes = 120;

  // A note of two histories: of the cause's detector and of its peer. Either may be this node.
  void make_calls(const Cause& cause, std::uint32_t node, const CallHistory& own);
  // A note of one text, of the cause's detector. `own`: this node's text; a zero ends it.
  using Text = std::array<char, kMaxBytes>;
  void make_text(const Cause& cause, std::uint32_t node, const Text& own);

  // A note of two halves: of the cause's detector and of its peer.
  using Half = std::array<std::uint8_t, kMaxBytes / 2>;
  void make_halves(const Cause& cause, std::uint32_t node, const Half& own);

  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] bool knows(std::uint32_t position) const { return known_[position]; }
  [[nodiscard]] bool is_complete() const { return known_.count() == size_; }
  [[nodiscard]] std::uint8_t byte(std::uint32_t position) const { return bytes_[position]; }
  // Takes a byte that another rank knows. Returns whether this node did not know it.
  bool learn(std::uint32_t position, std::uint8_t byte);

  // Returns the last calls with the same number of both nodes that differ, or the last ones if none
  // does. One of them may have gone on meanwhile: a root whose short messages are on their way. If
  // it went on too far, its last call.
  [[nodiscard]] MismatchedCalls calls() const;
  // Returns a half: 0 of the detector, 1 of the peer. Requires is_complete().
  [[nodiscard]] Half half(std::uint32_t which) const;
  // Returns the text; empty unless all of it is known.
  [[nodiscard]] std::string text() const;

 private:
  static constexpr std::uint32_t kHistoryBytes = 2 + 8 * CallHistory::kCalls;
  static_assert(2 * kHistoryBytes <= kMaxBytes);

  void learn_number(std::uint32_t position, std::uint32_t bytes, std::uint64_t value);
  [[nodiscard]] std::uint64_t number(std::uint32_t position, std::uint32_t bytes) const;
  // A history as a note has it: the number of its last call, and words[i] of call number - i.
  struct ToldHistory {
    std::uint16_t number = 0;
    std::array<std::uint64_t, CallHistory::kCalls> words = {};
  };
  // Returns the history whose bytes begin at `position`; empty unless all of them are known.
  [[nodiscard]] ToldHistory history(std::uint32_t position) const;

  std::uint32_t size_ = 0;
  bool is_text_ = false;  // then the bytes after a zero are zero
  std::array<std::uint8_t, kMaxBytes> bytes_ = {};
  std::bitset<kMaxBytes> known_;
};

// Completes the note over these links, and stays as long as a rank at their other ends has not
// completed its own. Ends after `within_ns` without news of another rank, and in any case after
// kExchangePatience times as long. All other completions are lost: no machine may need them.
// Allocates nothing. Requires links.size() <= kMaxLinks. `round`: counts the notes of one failure,
// from 0; a rank begins the next one once its own is complete.
inline constexpr std::uint64_t kExchangePatience = 4;
void exchange_note(Endpoint& endpoint, std::span<const std::uint32_t> links, FailureNote& note,
                   std::uint64_t within_ns, std::uint32_t round = 0);

}  // namespace espalier::communicator
