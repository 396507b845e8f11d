#pragma once
// Messages of a launcher and a daemon that outlive the way on which they travel: if a cable breaks,
// both go on over another one, and each message arrives once. Host only.
//
// At first a session is a plain encoder. From `lasting` on, both ends count the messages that they
// took, and keep those that the other end has not taken yet. These messages are not counted:
//   alive COUNT    each second, and after kAckBytes: so many messages were taken
//   resumed COUNT  the first one of each end on another way: the other end sends what follows
//   pause          the launcher stops, and says nothing until it goes on
//   end            the daemon ends, as with its pipe; without it, a daemon waits for another way

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "tools/launch/frames.h"

namespace espalier::launch {

inline constexpr std::uint64_t kAliveTime = 1'000'000'000;  // ns, between two `alive`
// Silence of a daemon after which its way is broken.
inline constexpr std::uint64_t kSilentTime = 4'000'000'000;  // ns
// How long a daemon whose way has ended lets its ranks run, until it is reached by another one.
inline constexpr std::uint64_t kResumeTime = 10'000'000'000;  // ns
// The same of the launcher: its daemons wait longer, as it may be stopped.
inline constexpr std::uint64_t kDeafTime = 60'000'000'000;  // ns
inline constexpr std::size_t kAckBytes = 256u << 10;

class Session {
 public:
  // From now on messages are counted: those that are sent, and those that arrive.
  void begin_sending() { counts_sent_ = true; }
  void begin_taking(std::uint64_t now_ns) {
    counts_taken_ = true;
    heard_at_ns_ = now_ns;
  }
  [[nodiscard]] bool has_begun() const { return counts_sent_ && counts_taken_; }
  // Returns the bytes of a message to send.
  [[nodiscard]] std::string encode(const Fields& message);
  // Takes note of a message that arrived. Returns whether it was of the session itself.
  [[nodiscard]] bool take(const Fields& message, std::uint64_t now_ns);
  // Returns the bytes of `alive`, if it is due.
  [[nodiscard]] std::string alive(std::uint64_t now_ns);
  // Returns the bytes of `resumed`.
  [[nodiscard]] std::string resumed() const;
  // After `resumed` has arrived: returns the bytes that the other end has not taken.
  [[nodiscard]] std::string rest() const;
  // Whether the other end has said nothing for this time.
  [[nodiscard]] bool is_silent(std::uint64_t now_ns, std::uint64_t time_ns) const {
    return has_begun() && !is_paused_ && now_ns > heard_at_ns_ + time_ns;
  }
  [[nodiscard]] bool has_ended() const { return has_ended_; }
  // Begins to wait for the other end anew: this process was stopped.
  void forgive(std::uint64_t now_ns) { heard_at_ns_ = now_ns; }

 private:
  void drop_taken(const std::string& count);

  bool counts_sent_ = false, counts_taken_ = false, has_ended_ = false, is_paused_ = false;
  std::deque<std::string> kept_;  // not taken by the other end, as far as this one knows
  std::uint64_t dropped_ = 0;     // messages before kept_
  std::uint64_t taken_ = 0;
  std::size_t bytes_since_ = 0;  // the last `alive`
  std::uint64_t alive_at_ns_ = 0, heard_at_ns_ = 0;
};

}  // namespace espalier::launch
