#include "communicator/failure/early_end.h"

#include <algorithm>
#include <utility>

namespace espalier::communicator {
namespace {

// Whether a character of UTF-8 goes on with this byte.
bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

}  // namespace

void take_line(std::string_view text, FailureNote::Text& line) {
  line = {};
  std::size_t size = std::min(text.size(), line.size() - 1);
  if (size < text.size()) {
    std::size_t begin = size;
    while (begin > 0 && size - begin < 3 && continues(text[begin])) --begin;
    if (!continues(text[begin])) size = begin;
  }
  for (std::size_t i = 0; i < size; ++i) {
    const bool is_text = static_cast<unsigned char>(text[i]) >= ' ' && text[i] != 0x7f;
    line[i] = is_text ? text[i] : ' ';
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
