#include "communicator/call_exchange.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace espalier::communicator {
namespace {

// A control's number: a tag, the position of a piece of the word, and in a reply the piece.
constexpr std::uint32_t kRequest = 0xa, kReply = 0xb;
constexpr std::uint32_t kPieces = 3, kPieceBits = 26;
constexpr std::uint64_t kRepeatNs = 1'000'000;
constexpr std::uint64_t kFlushNs = 20'000'000;

std::uint32_t number_of(std::uint32_t tag, std::uint32_t piece, std::uint64_t word) {
  constexpr std::uint64_t kMask = (std::uint64_t{1} << kPieceBits) - 1;
  return tag << 28 | piece << kPieceBits |
         static_cast<std::uint32_t>(word >> (piece * kPieceBits) & kMask);
}

// The word of the node at the other end of a link, piece by piece.
struct Wanted {
  std::uint32_t link = 0;
  std::uint32_t pieces = 0;  // that came
  std::uint64_t word = 0;

  [[nodiscard]] bool is_complete() const { return pieces == kPieces; }
};

class Exchange {
 public:
  Exchange(Endpoint& endpoint, const Cause& cause, std::uint64_t own)
      : endpoint_(endpoint), own_(own), served_(endpoint.links()) {
    is_named_ = endpoint.node() == cause.detector || endpoint.node() == cause.peer;
    for (std::uint32_t link = 0; link < endpoint.links(); ++link) {
      const std::uint32_t node = endpoint.peer(link);
      if (node == cause.detector || node == cause.peer) wanted_.push_back({.link = link});
    }
  }

  void run(std::uint64_t end) {
    std::uint64_t next_request = 0;
    for (std::uint64_t now = endpoint_.now(); now < end; now = endpoint_.now()) {
      if (now >= next_request) {
        for (const Wanted& each : wanted_) request(each);
        next_request = now + kRepeatNs;
      }
      Completion completion;
      bool found = false;
      while (endpoint_.poll(completion)) {
        found = true;
        if (completion.kind == Completion::Kind::kControl) handle(completion);
      }
      // The last controls are posted, and leave this node in the next polls.
      if (is_done()) end = std::min(end, std::exchange(is_ending_, true) ? end : now + kFlushNs);
      if (!found) endpoint_.wait(std::min(next_request, end));
    }
  }

  // Returns the word of a node; 0: it is not known.
  [[nodiscard]] std::uint64_t word_of(std::uint32_t node) const {
    if (node == endpoint_.node()) return own_;
    for (const Wanted& each : wanted_) {
      if (endpoint_.peer(each.link) == node && each.is_complete()) return each.word;
    }
    return 0;
  }

 private:
  [[nodiscard]] bool is_done() const {
    const bool knows = std::all_of(wanted_.begin(), wanted_.end(),
                                   [](const Wanted& w) { return w.is_complete(); });
    const bool told = std::all_of(served_.begin(), served_.end(), [](bool has) { return has; });
    return knows && (told || !is_named_);
  }

  // The fabric may have no room: the next request comes soon.
  void post(std::uint32_t link, std::uint32_t number) {
    Control control;
    control.kind = ControlKind::kAnswer;
    control.number = number;
    (void)endpoint_.post_control(link, control);
  }

  // Asks for the next piece, or for the one after the last: the word is complete.
  void request(const Wanted& wanted) { post(wanted.link, number_of(kRequest, wanted.pieces, 0)); }

  void handle(const Completion& completion) {
    if (completion.control.kind != ControlKind::kAnswer) return;
    const std::uint32_t number = completion.control.number;
    const std::uint32_t piece = number >> kPieceBits & 3;
    if (number >> 28 == kRequest && piece < kPieces) {
      post(completion.link, number_of(kReply, piece, own_));
    } else if (number >> 28 == kRequest && completion.link < served_.size()) {
      served_[completion.link] = true;
    }
    if (number >> 28 != kReply || piece >= kPieces) return;
    for (Wanted& each : wanted_) {
      if (each.link != completion.link || each.pieces != piece) continue;
      const std::uint64_t bits = number & ((std::uint32_t{1} << kPieceBits) - 1);
      each.word |= bits << (piece * kPieceBits);
      ++each.pieces;
      request(each);
    }
  }

  Endpoint& endpoint_;
  std::uint64_t own_;
  bool is_named_ = false;   // this node is at one end of the mismatch
  bool is_ending_ = false;  // all is done except the last controls
  std::vector<Wanted> wanted_;
  std::vector<bool> served_;  // by link: its node has the whole word of this node
};

}  // namespace

MismatchedCalls exchange_calls(Endpoint& endpoint, const Cause& cause, std::uint64_t own,
                               std::uint64_t within_ns) {
  Exchange exchange(endpoint, cause, own);
  exchange.run(endpoint.now() + within_ns);
  return {exchange.word_of(cause.detector), exchange.word_of(cause.peer)};
}

}  // namespace espalier::communicator
