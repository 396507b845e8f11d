#include "bootstrap/cables/local_socket.h"

#include <sodium.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "bootstrap/cables/codec.h"

namespace espalier::cables {
namespace {

using bootstrap::Socket;

constexpr char kNamePurpose[] = "espalier cables socket";
constexpr std::uint8_t kLocalKinds = 5;

// An abstract name: it ends with its socket.
socklen_t name_of(const bootstrap::JobSecret& secret, sockaddr_un& name) {
  std::array<unsigned char, 16> digest;
  (void)crypto_generichash(digest.data(), digest.size(),
                           reinterpret_cast<const unsigned char*>(kNamePurpose),
                           sizeof(kNamePurpose), secret.data(), secret.size());
  std::array<char, 2 * digest.size() + 1> hex;
  (void)sodium_bin2hex(hex.data(), hex.size(), digest.data(), digest.size());
  const std::string text = std::string("espalier-cables-") + hex.data();
  name = {};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path + 1, text.data(), text.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
}

bool is_same_user(int descriptor) {
  ucred peer = {};
  socklen_t size = sizeof peer;
  return getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == geteuid();
}

}  // namespace

std::optional<Socket> claim_host(const bootstrap::JobSecret& secret) {
  Socket listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un name;
  const socklen_t size = name_of(secret, name);
  if (listener.get() < 0 || bind(listener.get(), reinterpret_cast<sockaddr*>(&name), size) != 0 ||
      listen(listener.get(), SOMAXCONN) != 0) {
    return {};
  }
  return listener;
}

std::optional<Socket> connect_to_agent(const bootstrap::JobSecret& secret) {
  Socket connection(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un name;
  const socklen_t size = name_of(secret, name);
  if (connection.get() < 0 ||
      connect(connection.get(), reinterpret_cast<sockaddr*>(&name), size) != 0 ||
      !is_same_user(connection.get())) {
    return {};
  }
  return connection;
}

std::optional<Socket> accept_process(const Socket& listener) {
  Socket connection(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (connection.get() < 0 || !is_same_user(connection.get())) return {};
  return connection;
}

std::string encode(const LocalMessage& message) {
  Writer writer;
  writer.number(static_cast<std::uint8_t>(message.kind));
  writer.number(message.number);
  writer.rows(message.texts, kMaxHosts, [](Writer& inner, const auto& text) { inner.text(text); });
  return writer.bytes;
}

std::optional<LocalMessage> decode_local(const std::string& bytes) {
  Reader reader(bytes);
  LocalMessage message;
  std::uint8_t kind = 0;
  reader.number(kind);
  reader.number(message.number);
  reader.rows(message.texts, kMaxHosts, [](Reader& inner, auto& text) { inner.text(text); });
  if (!reader.is_done() || kind >= kLocalKinds) return {};
  message.kind = static_cast<LocalMessage::Kind>(kind);
  return message;
}

}  // namespace espalier::cables
