#include "bootstrap/cables/packet.h"

#include <sodium.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "espalier/internal/base/assert.h"
#include "espalier/internal/base/little_endian.h"

namespace espalier::cables {
namespace {

constexpr std::string_view kMagic = "ESPCABL1";
constexpr std::size_t kCodeBytes = crypto_shorthash_BYTES;  // SipHash-2-4
static_assert(sizeof(Key) == crypto_shorthash_KEYBYTES);
constexpr char kPurpose[] = "espalier cables";

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

template <typename Codec, typename Row>
void neighbour_fields(Codec& codec, Row& row) {
  codec.number(row.host);
  codec.number(row.port);
  codec.flag(row.is_proven);
  codec.number(row.round_trip_ns);
  codec.name(row.host_name);
  codec.name(row.port_name);
}

template <typename Codec, typename Row>
void port_fields(Codec& codec, Row& row) {
  codec.number(row.port.number);
  codec.name(row.port.name);
  codec.number(row.port.rate_mbits);
  codec.number(row.port.mtu);
  codec.state(row.port.state);
  codec.rows(row.neighbours, kMaxNeighbours,
             [](Codec& inner, auto& neighbour) { neighbour_fields(inner, neighbour); });
}

template <typename Codec, typename Row>
void record_fields(Codec& codec, Row& row) {
  codec.number(row.host);
  codec.number(row.version);
  codec.number(row.network);
  codec.number(row.view);
  codec.flag(row.is_content);
  codec.flag(row.has_left);
  codec.name(row.name);
  codec.rows(row.ports, kMaxPorts, [](Codec& inner, auto& port) { port_fields(inner, port); });
}

template <typename Codec, typename Row>
void packet_fields(Codec& codec, Row& packet) {
  codec.number(packet.host);
  codec.number(packet.port);
  codec.number(packet.sequence);
  codec.number(packet.challenge);
  codec.flag(packet.is_answer);
  codec.name(packet.host_name);
  codec.name(packet.port_name);
  codec.rows(packet.echoes, kMaxNeighbours, [](Codec& inner, auto& echo) {
    inner.number(echo.host);
    inner.number(echo.port);
    inner.number(echo.challenge);
    inner.number(echo.kept_ns);
  });
  codec.rows(packet.known, kMaxHosts, [](Codec& inner, auto& known) {
    inner.number(known.host);
    inner.number(known.version);
  });
  codec.rows(packet.records, kMaxHosts,
             [](Codec& inner, auto& record) { record_fields(inner, record); });
}

std::string code_of(std::string_view bytes, const Key& key) {
  std::string code(kCodeBytes, '\0');
  (void)crypto_shorthash(reinterpret_cast<unsigned char*>(code.data()),
                         reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                         key.data());
  return code;
}

}  // namespace

Key key_of(const bootstrap::JobSecret& secret) {
  Key key;
  (void)crypto_generichash(key.data(), key.size(), reinterpret_cast<const unsigned char*>(kPurpose),
                           sizeof(kPurpose), secret.data(), secret.size());
  return key;
}

std::string seal(const Packet& packet, const Key& key) {
  Writer writer;
  writer.bytes = kMagic;
  packet_fields(writer, packet);
  return writer.bytes + code_of(writer.bytes, key);
}

std::optional<Packet> open(const std::string& bytes, const Key& key) {
  if (bytes.size() < kMagic.size() + kCodeBytes || bytes.size() > kMaxPacketBytes) return {};
  const std::string_view all = bytes;
  if (!all.starts_with(kMagic)) return {};
  const std::string_view signed_part = all.substr(0, all.size() - kCodeBytes);
  const std::string code = code_of(signed_part, key);
  if (sodium_memcmp(code.data(), all.data() + signed_part.size(), kCodeBytes) != 0) return {};
  Reader reader(signed_part.substr(kMagic.size()));
  Packet packet;
  packet_fields(reader, packet);
  if (!reader.is_done()) return {};
  return packet;
}

std::size_t size_of(const HostRecord& record) {
  Writer writer;
  record_fields(writer, record);
  return writer.bytes.size();
}

bool is_name(const std::string& text) {
  return text.size() <= kMaxNameBytes && std::all_of(text.begin(), text.end(), [](char c) {
           return c > ' ' && c < 0x7f && c != '"' && c != '\\';
         });
}

std::string name_from(const std::string& text) {
  std::string name = text.substr(0, kMaxNameBytes);
  for (char& c : name) {
    if (!is_name(std::string(1, c))) c = '?';
  }
  return name;
}

}  // namespace espalier::cables
