#include "tools/launch/frames.h"

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <sstream>

#include "base/parse_number.h"

namespace espalier::launch {
namespace {

constexpr std::size_t kMaxMessage = 64u << 20;  // bytes
constexpr std::size_t kLength = 4;              // bytes of a length
constexpr std::size_t kJobFields = 7;           // of a `job`, before the environment
constexpr int kMaxStatus = 255;                 // of a process

void add_length(std::string& bytes, std::size_t value) {
  for (std::size_t i = 0; i < kLength; ++i) {
    bytes.push_back(static_cast<char>(value >> (8 * i) & 0xff));
  }
}

std::size_t length_at(const std::string& bytes, std::size_t position) {
  std::size_t value = 0;
  for (std::size_t i = 0; i < kLength; ++i) {
    value |= std::size_t{static_cast<std::uint8_t>(bytes[position + i])} << (8 * i);
  }
  return value;
}

}  // namespace

bool write_all(int file, const std::string& bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t written = write(file, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    done += static_cast<std::size_t>(written);
  }
  return true;
}

bool write_some(int pipe, std::string& bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(pipe, bytes.data(), bytes.size());
    if (written > 0) bytes.erase(0, static_cast<std::size_t>(written));
    if (written < 0 && errno != EINTR) return errno == EAGAIN;
  }
  return true;
}

std::optional<Description> read_description(const Fields& message) {
  std::size_t variables = 0;
  if (message.size() <= kJobFields || message[0] != "job" || !parse_number(message[6], variables) ||
      variables >= message.size() - kJobFields) {
    return {};
  }
  Description description{message[1], {}, message[3], message[4], {}, {}, {}};
  std::istringstream numbers(message[2]);
  for (std::string word; numbers >> word;) {
    if (!parse_number(word, description.ranks.emplace_back())) return {};
  }
  std::istringstream ignored(message[5]);
  for (std::string word; ignored >> word;) {
    if (!parse_number(word, description.ignored_signals.emplace_back())) return {};
  }
  const auto first = message.begin() + static_cast<std::ptrdiff_t>(kJobFields);
  const auto end = first + static_cast<std::ptrdiff_t>(variables);
  description.variables.assign(first, end);
  description.arguments.assign(end, message.end());
  return description;
}

Fields to_fields(const Description& description) {
  std::string ranks;
  for (const std::uint32_t rank : description.ranks) ranks += std::to_string(rank) + " ";
  std::string ignored;
  for (const int number : description.ignored_signals) ignored += std::to_string(number) + " ";
  Fields message{"job",
                 description.size,
                 ranks,
                 description.secret,
                 description.folder,
                 ignored,
                 std::to_string(description.variables.size())};
  message.insert(message.end(), description.variables.begin(), description.variables.end());
  message.insert(message.end(), description.arguments.begin(), description.arguments.end());
  return message;
}

std::optional<RankEnd> read_end(const Fields& message) {
  RankEnd end;
  if (message.size() != 3 || message[0] != "end" || !parse_number(message[1], end.rank) ||
      !parse_number(message[2], end.status) || end.status < -kMaxStatus ||
      end.status > kMaxStatus) {
    return {};
  }
  return end;
}

std::optional<std::uint32_t> read_number(const std::string& text) {
  std::uint32_t number = 0;
  return parse_number(text, number) ? std::optional(number) : std::nullopt;
}

std::string encode(const Fields& fields) {
  std::string body;
  for (const std::string& field : fields) {
    add_length(body, field.size());
    body += field;
  }
  std::string message;
  add_length(message, body.size());
  return message + body;
}

bool Reader::fill(int pipe) {
  char buffer[65536];
  ssize_t received = 0;
  do {
    received = read(pipe, buffer, sizeof buffer);
  } while (received < 0 && errno == EINTR);
  if (received <= 0) return received < 0 && errno == EAGAIN;
  return add(std::string(buffer, static_cast<std::size_t>(received)));
}

bool Reader::add(const std::string& bytes) {
  bytes_ += bytes;
  return valid_ && bytes_.size() <= 2 * kMaxMessage;
}

bool Reader::take(Fields& fields) {
  if (!greeting_.empty()) {
    const std::size_t found = bytes_.find(greeting_);
    if (found == std::string::npos) return false;
    bytes_.erase(0, found + greeting_.size());
    greeting_.clear();
  }
  if (bytes_.size() < kLength) return false;
  const std::size_t end = kLength + length_at(bytes_, 0);
  valid_ = valid_ && end <= kMaxMessage;
  if (!valid_ || bytes_.size() < end) return false;
  fields.clear();
  for (std::size_t at = kLength; at < end;) {
    valid_ = end - at >= kLength && length_at(bytes_, at) <= end - at - kLength;
    if (!valid_) return false;
    fields.push_back(bytes_.substr(at + kLength, length_at(bytes_, at)));
    at += kLength + fields.back().size();
  }
  bytes_.erase(0, end);
  return !fields.empty();
}

}  // namespace espalier::launch
