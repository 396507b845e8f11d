#pragma once
// How packets and log entries become bytes, and bytes with a code by the job secret. Host only.

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bootstrap/cables/packet.h"
#include "espalier/internal/base/assert.h"
#include "espalier/internal/base/little_endian.h"

namespace espalier::cables {

// Code and decode by one list of fields each: a Writer appends, a Reader takes.
class Writer {
 public:
  static constexpr bool kReads = false;
  std::string bytes = {};

  template <typename T>
  void number(const T& value) {
    std::uint8_t stored[sizeof(T)];
    store_le(stored, static_cast<std::uint64_t>(value), sizeof(T));
    bytes.append(reinterpret_cast<const char*>(stored), sizeof(T));
  }
  void flag(bool value) { number<std::uint8_t>(value ? 1 : 0); }
  void state(PortState value) { number(value); }
  void name(const std::string& text) {
    ESPALIER_ASSERT(is_name(text));
    number(static_cast<std::uint8_t>(text.size()));
    bytes += text;
  }
  void address(const std::array<std::uint8_t, 16>& ip) {
    bytes.append(reinterpret_cast<const char*>(ip.data()), ip.size());
  }
  // Any bytes.
  void text(const std::string& any) {
    number(static_cast<std::uint32_t>(any.size()));
    bytes += any;
  }
  template <typename Row, typename Fields>
  void rows(const std::vector<Row>& rows, std::size_t most, Fields fields) {
    ESPALIER_ASSERT(rows.size() <= most);
    number(static_cast<std::uint16_t>(rows.size()));
    for (const Row& row : rows) fields(*this, row);
  }
};

class Reader {
 public:
  static constexpr bool kReads = true;
  explicit Reader(std::string_view bytes) : left_(bytes) {}
  [[nodiscard]] bool is_done() const { return is_right_ && left_.empty(); }

  template <typename T>
  void number(T& value) {
    std::uint64_t whole = 0;
    if (left_.size() < sizeof(T)) return refuse();
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      whole |= std::uint64_t{static_cast<std::uint8_t>(left_[i])} << (8 * i);
    }
    value = static_cast<T>(whole);
    left_.remove_prefix(sizeof(T));
  }
  void flag(bool& value) {
    std::uint8_t byte = 0;
    number(byte);
    if (byte > 1) return refuse();
    value = byte == 1;
  }
  void state(PortState& value) {
    std::uint8_t byte = 0;
    number(byte);
    if (byte >= kPortStates) return refuse();
    value = static_cast<PortState>(byte);
  }
  void name(std::string& text) {
    std::uint8_t size = 0;
    number(size);
    if (size > left_.size()) return refuse();
    text = left_.substr(0, size);
    left_.remove_prefix(size);
    if (!is_name(text)) refuse();
  }
  void address(std::array<std::uint8_t, 16>& ip) {
    if (left_.size() < ip.size()) return refuse();
    std::copy_n(left_.begin(), ip.size(), ip.begin());
    left_.remove_prefix(ip.size());
  }
  void text(std::string& any) {
    std::uint32_t size = 0;
    number(size);
    if (size > left_.size()) return refuse();
    any = left_.substr(0, size);
    left_.remove_prefix(size);
  }
  template <typename Row, typename Fields>
  void rows(std::vector<Row>& rows, std::size_t most, Fields fields) {
    std::uint16_t count = 0;
    number(count);
    if (count > most) return refuse();
    for (std::size_t i = 0; i < count && is_right_; ++i) fields(*this, rows.emplace_back());
  }

 private:
  void refuse() {
    is_right_ = false;
    left_ = {};
  }

  std::string_view left_;
  bool is_right_ = true;
};

// Returns the bytes behind `magic`, with a code over both.
[[nodiscard]] std::string sealed(std::string_view magic, std::string_view bytes, const Key& key);
// Returns what was sealed. Nothing: another magic or key, or longer than kMaxPacketBytes.
[[nodiscard]] std::optional<std::string_view> opened(std::string_view magic, std::string_view bytes,
                                                     const Key& key);

}  // namespace espalier::cables
