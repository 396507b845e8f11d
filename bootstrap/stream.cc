#include "bootstrap/stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sodium.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "espalier/internal/base/little_endian.h"

namespace espalier::bootstrap {
namespace {

constexpr char kMagic[8] = {'E', 'S', 'P', 'J', 'O', 'I', 'N', '3'};
constexpr std::size_t kGreetingBytes = sizeof(kMagic) + 32;
constexpr std::size_t kSealBytes = crypto_aead_chacha20poly1305_ietf_ABYTES;
constexpr int kWriteTimeoutMs = 10'000;

// Nonces are counters: keys are fresh for each connection and direction.
std::array<unsigned char, crypto_aead_chacha20poly1305_ietf_NPUBBYTES> nonce_of(
    std::uint64_t number) {
  std::array<unsigned char, crypto_aead_chacha20poly1305_ietf_NPUBBYTES> nonce = {};
  for (std::size_t i = 0; i < 8; ++i) nonce[i] = static_cast<unsigned char>(number >> (8 * i));
  return nonce;
}

}  // namespace

Socket::Socket(int descriptor) : descriptor_(descriptor) {
  if (descriptor_ >= 0) close_in_children(descriptor_);
}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this == &other) return *this;
  close();
  descriptor_ = other.descriptor_;
  generation_ = other.generation_;
  other.descriptor_ = -1;
  return *this;
}

void Socket::close() {
  if (descriptor_ >= 0 && generation_ == process_generation()) {
    forget_descriptor(descriptor_);
    ::close(descriptor_);
  }
  descriptor_ = -1;
}

Stream::Stream(Socket socket, bool is_server) : socket_(std::move(socket)), is_server_(is_server) {
  const int on = 1;
  (void)setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  randombytes_buf(own_.data(), own_.size());
}

bool Stream::greet() {
  std::string greeting(kMagic, sizeof(kMagic));
  greeting.append(reinterpret_cast<const char*>(own_.data()), own_.size());
  return write_all(greeting);
}

bool Stream::read() {
  char bytes[16384];
  while (true) {
    const ssize_t count = recv(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (count > 0) {
      in_.append(bytes, static_cast<std::size_t>(count));
      if (in_.size() > 2 * kMaxMessageBytes) return take_greeting();  // next() takes them first
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    const bool is_open = count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    return take_greeting() && is_open;
  }
}

// False: the peer speaks another protocol.
bool Stream::take_greeting() {
  if (has_peer_) return true;
  const std::size_t known = std::min(in_.size(), sizeof(kMagic));
  is_foreign_ = std::memcmp(in_.data(), kMagic, known) != 0;
  if (is_foreign_) return false;
  if (in_.size() < kGreetingBytes) return true;
  std::memcpy(peer_.data(), in_.data() + sizeof(kMagic), peer_.size());
  in_.erase(0, kGreetingBytes);
  has_peer_ = true;
  return true;
}

void Stream::derive_keys(const JobSecret& secret) {
  if (has_keys_) return;
  for (const bool from_server : {false, true}) {
    crypto_generichash_state state;
    const unsigned char direction = from_server ? 1 : 0;
    Key key;
    crypto_generichash_init(&state, secret.data(), secret.size(), key.size());
    crypto_generichash_update(&state, (is_server_ ? own_ : peer_).data(), own_.size());
    crypto_generichash_update(&state, (is_server_ ? peer_ : own_).data(), own_.size());
    crypto_generichash_update(&state, &direction, 1);
    crypto_generichash_final(&state, key.data(), key.size());
    (from_server == is_server_ ? send_key_ : receive_key_) = key;
  }
  has_keys_ = true;
}

std::optional<std::string> Stream::next(const JobSecret& secret) {
  std::uint32_t size = 0;
  if (!has_peer_ || in_.size() < sizeof(size)) return {};
  size = load_u32(reinterpret_cast<const std::uint8_t*>(in_.data()));
  if (size < kSealBytes || size > kMaxMessageBytes + kSealBytes) {
    is_broken_ = true;
    return {};
  }
  if (in_.size() < sizeof(size) + size) return {};
  derive_keys(secret);
  std::string message(size - kSealBytes, '\0');
  if (crypto_aead_chacha20poly1305_ietf_decrypt(
          reinterpret_cast<unsigned char*>(message.data()), nullptr, nullptr,
          reinterpret_cast<const unsigned char*>(in_.data()) + sizeof(size), size, nullptr, 0,
          nonce_of(received_).data(), receive_key_.data()) != 0) {
    is_broken_ = true;
    return {};
  }
  ++received_;
  in_.erase(0, sizeof(size) + size);
  return message;
}

bool Stream::send(const std::string& message, const JobSecret& secret) {
  if (message.size() > kMaxMessageBytes || !has_peer_) return false;
  derive_keys(secret);
  const auto size = static_cast<std::uint32_t>(message.size() + kSealBytes);
  std::string sealed(sizeof(size) + size, '\0');
  store_u32(reinterpret_cast<std::uint8_t*>(sealed.data()), size);
  crypto_aead_chacha20poly1305_ietf_encrypt(
      reinterpret_cast<unsigned char*>(sealed.data()) + sizeof(size), nullptr,
      reinterpret_cast<const unsigned char*>(message.data()), message.size(), nullptr, 0, nullptr,
      nonce_of(sent_).data(), send_key_.data());
  ++sent_;
  return write_all(sealed);
}

bool Stream::write_all(const std::string& bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::send(socket_.get(), bytes.data() + done, bytes.size() - done,
                                 MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) {
      done += static_cast<std::size_t>(count);
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) return false;
    pollfd waiting{socket_.get(), POLLOUT, 0};
    if (poll(&waiting, 1, kWriteTimeoutMs) <= 0) return false;
  }
  return true;
}

}  // namespace espalier::bootstrap
