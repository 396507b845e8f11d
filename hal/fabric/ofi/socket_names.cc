// getsockname() and getpeername() for libfabric's tcp on big-endian processors of 64 bits.
//
// libfabric (1.17 and later) passes both the address of a size_t as that of a socklen_t. On such a
// processor the C library finds its upper half there, which is 0. It stores no name, and the name's
// length in the upper half; fi_endpoint() then fails with "Provided buffer is too small". A
// program's own definitions take precedence over those of its shared libraries, so libfabric calls
// these. Within calls of libfabric they take a length of 0 for that upper half.

#include <dlfcn.h>
#include <sys/socket.h>

#include <bit>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "hal/fabric/ofi/libfabric_call.h"

static_assert(std::endian::native == std::endian::big && sizeof(std::size_t) > sizeof(socklen_t));

namespace {

using Function = int (*)(int, sockaddr*, socklen_t*);

// Finds the function that ours replaces: normally the one in the C library.
Function next(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  if (found != nullptr) return reinterpret_cast<Function>(found);
  std::fprintf(stderr, "espalier: the C library has no %s\n", name);
  std::abort();
}

int call(Function function, int socket, sockaddr* name, socklen_t* size) {
  if (espalier::ofi::libfabric_call_depth == 0 || *size != 0) return function(socket, name, size);
  socklen_t& lower = size[1];
  return function(socket, name, &lower);
}

}  // namespace

extern "C" {

int getsockname(int socket, sockaddr* name, socklen_t* size) noexcept {
  static const Function function = next("getsockname");
  return call(function, socket, name, size);
}

int getpeername(int socket, sockaddr* name, socklen_t* size) noexcept {
  static const Function function = next("getpeername");
  return call(function, socket, name, size);
}

}  // extern "C"
