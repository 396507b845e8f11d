#pragma once
// When a wait that lasts says whom or what it waits for. Host only.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/network/address.h"
#include "base/process/forks.h"
#include "bootstrap/stream.h"

namespace espalier::bootstrap {

// In s, while a job is joined: the line is there within 5 s of the call of join(), which begins
// before the wait does, also on a busy machine.
inline constexpr std::uint32_t kJoinPatience = 3;
// Returns ESPALIER_PATIENCE, in s; `otherwise` if it is not set, 0: never. Error: a wrong value.
[[nodiscard]] Result<std::uint32_t> patience(std::uint32_t otherwise = kJoinPatience);

// The times at which a wait prints a line on stderr: once it has lasted for ESPALIER_PATIENCE
// seconds (3 if it is not set; 0: never), and each time it has lasted twice as long. On a terminal,
// or with ESPALIER_VERBOSE, the first time is after 2 s at the latest.
class FirstWord {
 public:
  FirstWord();
  // Whether it is time for a line. Then the next time is set.
  [[nodiscard]] bool is_due();
  // When it is time; nothing: never.
  [[nodiscard]] std::optional<Clock::time_point> next() const;
  // For the end of a line that is not the first one: "; 12 s so far", otherwise empty.
  [[nodiscard]] std::string so_far() const;
  // Whether every waiting process prints its line, because its user watches it.
  [[nodiscard]] static bool is_watched();

 private:
  Clock::time_point begin_ = Clock::now();
  std::chrono::milliseconds time_{0};  // 0: never
  std::uint32_t lines_ = 0;
};

// Whether this process may speak for those of its host that wait for `what`: it is the first that
// asks, until this object ends.
class Speaker {
 public:
  [[nodiscard]] bool may_speak(const std::string& what);

 private:
  Socket claim_;
};

// As network::resolve(). If the resolver is slow, one process of the host says so.
[[nodiscard]] Result<std::vector<network::Address>> resolve_in_time(const std::string& text,
                                                                    std::chrono::milliseconds time);

// Some ranks of a launcher's job have not joined.
struct Incomplete {
  const char* launcher = "";  // which does not say which ones
  std::string job = {};
  std::uint32_t rank = 0, size = 0;
  std::string absent = {};  // "rank 3 never started"; empty: not known
  std::string so_far = {};  // FirstWord::so_far()
};
// Prints that, if this process may speak.
void say_waiting(const Incomplete& job, Speaker& speaker);

}  // namespace espalier::bootstrap
