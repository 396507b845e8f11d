#include "bootstrap/first_word.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "base/network/lookup.h"
#include "base/one_line.h"
#include "base/process/variables.h"
#include "base/try.h"

namespace espalier::bootstrap {
namespace {

using Milliseconds = std::chrono::milliseconds;

constexpr std::uint32_t kMostSeconds = 86'400;
constexpr Milliseconds kWatchedTime(2'000);

}  // namespace

Result<std::uint32_t> patience(std::uint32_t otherwise) {
  ESPALIER_TRY_TO(const auto given, read_number(Variable::kPatience, 0, kMostSeconds));
  return given.value_or(otherwise);
}

bool FirstWord::is_watched() { return isatty(STDERR_FILENO) != 0 || is_set(Variable::kVerbose); }

FirstWord::FirstWord() {
  time_ = std::chrono::seconds(patience().value_or(kJoinPatience));  // join() refused a wrong one
  if (is_watched()) time_ = time_.count() == 0 ? kWatchedTime : std::min(time_, kWatchedTime);
}

std::optional<Clock::time_point> FirstWord::next() const {
  if (time_.count() == 0) return {};
  return begin_ + time_;
}

bool FirstWord::is_due() {
  if (time_.count() == 0 || Clock::now() < begin_ + time_) return false;
  time_ *= 2;
  ++lines_;
  return true;
}

std::string FirstWord::so_far() const {
  if (lines_ < 2) return "";
  const auto time = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin_);
  return "; " + std::to_string(time.count()) + " s so far";
}

// An abstract name ends with its socket, and is of this network.
bool Speaker::may_speak(const std::string& what) {
  if (claim_.get() >= 0) return true;
  Socket claim(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  const std::string text = "espalier-waits-for-" + what;
  const std::size_t size = std::min(text.size(), sizeof name.sun_path - 1);
  std::memcpy(name.sun_path + 1, text.data(), size);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
  // Without a descriptor it speaks, too.
  if (claim.get() >= 0 && bind(claim.get(), reinterpret_cast<sockaddr*>(&name), length) != 0) {
    return false;
  }
  claim_ = std::move(claim);
  return true;
}

Result<std::vector<network::Address>> resolve_in_time(const std::string& text, Milliseconds time) {
  FirstWord word;
  Speaker speaker;
  return network::resolve(text, time, [&] {
    if (!word.is_due() || (!FirstWord::is_watched() && !speaker.may_speak("name " + text))) return;
    std::fprintf(stderr,
                 "espalier: waiting for the address of '%s'; the resolver does not answer%s\n",
                 one_line(text).c_str(), word.so_far().c_str());
  });
}

void say_waiting(const Incomplete& job, Speaker& speaker) {
  if (!FirstWord::is_watched() && !speaker.may_speak(job.launcher + (" " + job.job))) return;
  const std::string absent =
      job.absent.empty() ? std::string("; ") + job.launcher + " does not say which are missing"
                         : ": " + job.absent;
  std::fprintf(stderr, "espalier: rank %u waits until all of the %u ranks have joined%s%s\n",
               job.rank, job.size, absent.c_str(), job.so_far.c_str());
}

}  // namespace espalier::bootstrap
