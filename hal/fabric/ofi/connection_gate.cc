// The library espalier-connection-gate: listen() and accept() for a program whose libfabric listens
// on tcp. It keeps connections that say nothing away from libfabric.
//
// libfabric 1.17 accepts every connection at once and then waits without limit for the connection
// request, the first bytes of its protocol. If the other end closes before, libfabric never closes
// its own end. And at the limit of open files accept() fails, the connection stays in the queue,
// and every wait for the sockets returns at once.
//
// A program's own definitions take precedence over those of its shared libraries, so libfabric
// calls these. Only the sockets that libfabric listens on within a call of ours are gated: their
// connections appear when the first bytes have arrived (TCP_DEFER_ACCEPT), and those without a
// connection request are closed. All other sockets are the C library's.

#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "hal/fabric/ofi/libfabric_call.h"

namespace {

constexpr int kRequestBytes = 16;  // the head of a connection request of libfabric (ofi_ctrl_hdr)
constexpr int kDeferSeconds = 1;
constexpr int kMostRefused = 64;  // in one call of accept(): the rest waits for the next

// Finds the function that the gate replaces: normally the one in the C library.
template <typename Function>
Function next(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  if (found != nullptr) return reinterpret_cast<Function>(found);
  std::fprintf(stderr, "espalier: the C library has no %s\n", name);
  std::abort();
}

int next_listen(int socket, int backlog) {
  static const auto function = next<int (*)(int, int)>("listen");
  return function(socket, backlog);
}
int next_accept(int socket, sockaddr* address, socklen_t* size) {
  static const auto function = next<int (*)(int, sockaddr*, socklen_t*)>("accept");
  return function(socket, address, size);
}

// A descriptor that makes room for one connection at the limit of open files.
std::atomic<int> spare{-1};

int open_spare() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

bool is_gated(int socket) {
  int seconds = 0;
  socklen_t size = sizeof(seconds);
  return getsockopt(socket, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, &size) == 0 && seconds != 0;
}

// Whether a connection request has begun to arrive, from an end that is still there.
bool has_request(int connection) {
  char bytes[kRequestBytes];
  pollfd end = {connection, POLLRDHUP, 0};
  return recv(connection, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT) == kRequestBytes &&
         poll(&end, 1, 0) == 0;
}

// At the limit of open files: closes the first connection of the queue. Returns whether it could.
bool close_first(int socket) {
  const int freed = spare.exchange(-1);
  if (freed < 0) return false;
  close(freed);
  const int connection = next_accept(socket, nullptr, nullptr);
  if (connection >= 0) close(connection);
  spare = open_spare();
  return connection >= 0;
}

}  // namespace

extern "C" {

int listen(int socket, int backlog) noexcept {
  if (espalier::ofi::libfabric_call_depth > 0) {
    // Sockets that are not TCP's refuse the option.
    (void)setsockopt(socket, IPPROTO_TCP, TCP_DEFER_ACCEPT, &kDeferSeconds, sizeof(kDeferSeconds));
    if (spare < 0) spare = open_spare();
  }
  return next_listen(socket, backlog);
}

int accept(int socket, sockaddr* address, socklen_t* size) {
  if (!is_gated(socket)) return next_accept(socket, address, size);
  const socklen_t room = size != nullptr ? *size : 0;
  for (int refused = 0; refused < kMostRefused; ++refused) {
    if (size != nullptr) *size = room;
    const int connection = next_accept(socket, address, size);
    if (connection >= 0) {
      if (spare < 0) spare = open_spare();
      if (has_request(connection)) return connection;
      close(connection);
    } else if ((errno != EMFILE && errno != ENFILE) || !close_first(socket)) {
      return -1;
    }
  }
  errno = EAGAIN;
  return -1;
}

}  // extern "C"
