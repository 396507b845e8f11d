#include "bootstrap/cables/packet.h"

#include <sodium.h>

#include <algorithm>
#include <string_view>

#include "bootstrap/cables/codec.h"

namespace espalier::cables {
namespace {

constexpr std::string_view kMagic = "ESPCABL2";
constexpr std::size_t kCodeBytes = crypto_shorthash_BYTES;  // SipHash-2-4
static_assert(sizeof(Key) == crypto_shorthash_KEYBYTES);
constexpr char kPurpose[] = "espalier cables";

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
  codec.address(row.port.address);
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
  codec.number(row.term);
  codec.rows(row.members, kMaxMembers, [](Codec& inner, auto& member) { inner.number(member); });
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

std::string sealed(std::string_view magic, std::string_view bytes, const Key& key) {
  const std::string all = std::string(magic) + std::string(bytes);
  return all + code_of(all, key);
}

std::optional<std::string_view> opened(std::string_view magic, std::string_view bytes,
                                       const Key& key) {
  if (bytes.size() < magic.size() + kCodeBytes || bytes.size() > kMaxPacketBytes) return {};
  if (!bytes.starts_with(magic)) return {};
  const std::string_view signed_part = bytes.substr(0, bytes.size() - kCodeBytes);
  const std::string code = code_of(signed_part, key);
  if (sodium_memcmp(code.data(), bytes.data() + signed_part.size(), kCodeBytes) != 0) return {};
  return signed_part.substr(magic.size());
}

std::string seal(const Packet& packet, const Key& key) {
  Writer writer;
  packet_fields(writer, packet);
  return sealed(kMagic, writer.bytes, key);
}

std::optional<Packet> open(const std::string& bytes, const Key& key) {
  const auto fields = opened(kMagic, bytes, key);
  if (!fields) return {};
  Reader reader(*fields);
  Packet packet;
  packet_fields(reader, packet);
  if (!reader.is_done()) return {};
  return packet;
}

std::string encode(const HostRecord& record) {
  Writer writer;
  record_fields(writer, record);
  return writer.bytes;
}

std::optional<HostRecord> decode_record(const std::string& bytes) {
  Reader reader(bytes);
  HostRecord record;
  record_fields(reader, record);
  if (!reader.is_done()) return {};
  return record;
}

std::size_t size_of(const HostRecord& record) { return encode(record).size(); }

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
