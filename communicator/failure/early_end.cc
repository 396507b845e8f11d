#include "communicator/failure/early_end.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "base/one_line.h"

namespace espalier::communicator {
namespace {

// Returns the number of bytes of the text's first character; 0: these bytes are not UTF-8, or the
// character does not print. Allocates nothing: a line of 3 bytes has at most 12.
std::size_t first_character(std::string_view text) {
  for (std::size_t size = 1; size <= std::min<std::size_t>(3, text.size()); ++size) {
    if (one_line(text.substr(0, size)) == text.substr(0, size)) return size;
  }
  if (text.size() < 4) return 0;
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0) << 8U | byte(1);  // U+10000 to U+10FFFF
  const bool goes_on =
      (byte(1) & 0xc0) == 0x80 && (byte(2) & 0xc0) == 0x80 && (byte(3) & 0xc0) == 0x80;
  return first >= 0xf090 && first <= 0xf48f && goes_on ? 4 : 0;
}

}  // namespace

void take_line(std::string_view text, FailureNote::Text& line) {
  line = {};
  for (std::size_t used = 0; !text.empty();) {
    const bool is_control = static_cast<unsigned char>(text[0]) < ' ' || text[0] == 0x7f;
    const std::size_t whole = is_control ? 1 : first_character(text);
    const std::string_view bytes = text.substr(0, std::max<std::size_t>(1, whole));
    const std::string spelled = is_control ? " " : one_line(bytes);
    if (used + spelled.size() >= line.size()) return;
    std::copy(spelled.begin(), spelled.end(), line.begin() + static_cast<std::ptrdiff_t>(used));
    used += spelled.size();
    text.remove_prefix(bytes.size());
  }
}

void EarlyEnd::request(std::string_view reason) {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(has_request_, true)) take_line(reason, reason_);
  state_.fetch_or(kRequested, std::memory_order_release);
}

void EarlyEnd::watch(const std::atomic<std::sig_atomic_t>* flag, std::string_view reason) {
  flag_ = flag;
  take_line(reason, flag_reason_);
  if (flag != nullptr) {
    state_.fetch_or(kWatching, std::memory_order_relaxed);
  } else {
    state_.fetch_and(static_cast<std::uint8_t>(~kWatching), std::memory_order_relaxed);
  }
}

bool EarlyEnd::take(FailureNote::Text& reason) {
  if (is_refusing_) return false;
  if ((state_.load(std::memory_order_acquire) & kRequested) != 0) {
    reason = reason_;
    return true;
  }
  if (!is_watching() || flag_->load(std::memory_order_relaxed) == 0) return false;
  reason = flag_reason_;
  return true;
}

}  // namespace espalier::communicator
