#include "tools/launch/session.h"

#include "base/parse_number.h"

namespace espalier::launch {

std::string Session::encode(const Fields& message) {
  std::string bytes = launch::encode(message);
  if (counts_sent_) kept_.push_back(bytes);
  return bytes;
}

void Session::drop_taken(const std::string& count) {
  std::uint64_t taken = 0;
  if (!parse_number(count, taken)) return;
  for (; dropped_ < taken && !kept_.empty(); ++dropped_) kept_.pop_front();
}

bool Session::take(const Fields& message, std::uint64_t now_ns) {
  if (!counts_taken_) return false;
  heard_at_ns_ = now_ns;
  is_paused_ = message.size() == 1 && message[0] == "pause";
  if (is_paused_) return true;
  if (message.size() == 2 && (message[0] == "alive" || message[0] == "resumed")) {
    drop_taken(message[1]);
    return true;
  }
  if (message.size() == 1 && message[0] == "end") {
    has_ended_ = true;
    return true;
  }
  ++taken_;
  for (const std::string& field : message) bytes_since_ += field.size();
  return false;
}

std::string Session::alive(std::uint64_t now_ns) {
  if (!has_begun() || (now_ns < alive_at_ns_ + kAliveTime && bytes_since_ < kAckBytes)) return {};
  alive_at_ns_ = now_ns;
  bytes_since_ = 0;
  return launch::encode({"alive", std::to_string(taken_)});
}

std::string Session::resumed() const { return launch::encode({"resumed", std::to_string(taken_)}); }

std::string Session::rest() const {
  std::string bytes;
  for (const std::string& each : kept_) bytes += each;
  return bytes;
}

}  // namespace espalier::launch
