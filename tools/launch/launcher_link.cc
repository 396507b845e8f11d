#include "tools/launch/launcher_link.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <thread>

#include "base/clock.h"

namespace espalier::launch {
namespace {

// An abstract name: no file is left behind.
socklen_t to_socket(const std::string& name, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  const std::string text = "espalier-launch-" + name;
  const std::size_t size = std::min(text.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, text.data(), size);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
}

bool is_own_user(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == getuid();
}

void copy(int from, int to) {
  char buffer[65536];
  while (true) {
    const ssize_t received = read(from, buffer, sizeof buffer);
    if (received < 0 && errno == EINTR) continue;
    const auto count = static_cast<std::size_t>(std::max<ssize_t>(received, 0));
    if (received <= 0 || !write_all(to, std::string(buffer, count))) return;
  }
}

}  // namespace

LauncherLink::~LauncherLink() {
  if (listener_ >= 0) close(listener_);
}

bool LauncherLink::greet() {
  if (!write_all(out_, kGreeting)) return false;
  fcntl(out_, F_SETFL, fcntl(out_, F_GETFL) | O_NONBLOCK);
  return true;
}

Result<void> LauncherLink::last(const std::string& name) {
  sockaddr_un address;
  const socklen_t size = to_socket(name, address);
  listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener_ < 0 || bind(listener_, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      listen(listener_, 1) != 0) {
    return fail(std::string("cannot listen for another way: ") + std::strerror(errno));
  }
  say({"lasting"});
  session_.begin_sending();
  session_.begin_taking(monotonic_ns());
  return {};
}

void LauncherLink::say(const Fields& message) {
  const std::string bytes = session_.encode(message);
  if (in_ < 0 || !is_resumed_) return;
  outgoing_ += bytes;
  send();
}

void LauncherLink::send() {
  if (!write_some(out_, outgoing_)) lose();
}

// stdin and stdout stay open for others: a number that is free could become a rank's.
void LauncherLink::lose() {
  if (in_ < 0) return;
  if (!session_.has_begun()) {
    is_gone_ = true;
    return;
  }
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int file : {in_, out_}) {
    if (file <= STDOUT_FILENO) {
      dup2(nothing, file);
    } else if (file == out_) {
      close(file);
    }
  }
  if (nothing >= 0) close(nothing);
  in_ = out_ = -1;
  outgoing_.clear();
  lost_at_ns_ = monotonic_ns();
}

void LauncherLink::accept_other() {
  const int other = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (other < 0) return;
  if (!is_own_user(other)) {
    close(other);
    return;
  }
  lose();
  in_ = out_ = other;
  reader_ = Reader();
  is_resumed_ = false;
  outgoing_ = session_.resumed();
  send();
}

void LauncherLink::resume() {
  is_resumed_ = true;
  outgoing_ += session_.rest();
  send();
}

std::array<pollfd, LauncherLink::kEvents> LauncherLink::events() const {
  return {{{in_, POLLIN, 0}, {outgoing_.empty() ? -1 : out_, POLLOUT, 0}, {listener_, POLLIN, 0}}};
}

void LauncherLink::serve(const pollfd* events, const Take& take) {
  if (events[1].revents != 0) send();
  if (events[0].revents != 0 && in_ >= 0) {
    const bool is_open = reader_.fill(in_);
    for (Fields message; !is_over() && reader_.take(message);) {
      if (!session_.take(message, monotonic_ns())) {
        take(message);
      } else if (message[0] == "resumed") {
        resume();
      }
    }
    if (!is_open) lose();
  }
  if (events[2].revents != 0) accept_other();
  if (in_ >= 0 && session_.is_silent(monotonic_ns(), kDeafTime)) lose();
  const std::string alive = in_ < 0 || !is_resumed_ ? "" : session_.alive(monotonic_ns());
  if (alive.empty()) return;
  outgoing_ += alive;
  send();
}

bool LauncherLink::is_over() const {
  if (is_gone_ || session_.has_ended()) return true;
  return in_ < 0 && monotonic_ns() > lost_at_ns_ + kResumeTime;
}

int LauncherLink::timeout_ms() const {
  return session_.has_begun() ? static_cast<int>(kAliveTime / kNsPerMs) : -1;
}

void LauncherLink::drain(int patience_ms) {
  pollfd launcher{out_, POLLOUT, 0};  // it reads a refusal, if it is there
  while (in_ >= 0 && !outgoing_.empty() && poll(&launcher, 1, patience_ms) > 0) {
    const std::size_t before = outgoing_.size();
    send();
    if (outgoing_.size() == before) break;
  }
}

int pass_on(const std::string& name) {
  sockaddr_un address;
  const socklen_t size = to_socket(name, address);
  const int session = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (session < 0 || connect(session, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      !is_own_user(session) || !write_all(STDOUT_FILENO, kGreeting)) {
    std::fprintf(stderr, "no daemon of this job runs here\n");
    return 1;
  }
  // Either direction's end is the end of both.
  std::thread([session] {
    copy(STDIN_FILENO, session);
    _exit(0);
  }).detach();
  copy(session, STDOUT_FILENO);
  _exit(0);
}

}  // namespace espalier::launch
