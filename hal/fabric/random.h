#pragma once
// Random bytes from the kernel. Linux only.

#include <sys/random.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace espalier::ofi {

// Fills `size` <= 256 bytes, which getrandom() never does partly. Ends the process if the kernel
// has no random bytes, because nothing would be safe then.
inline void fill_randomly(std::uint8_t* bytes, std::size_t size) {
  while (getrandom(bytes, size, 0) != static_cast<ssize_t>(size)) {
    if (errno != EINTR) std::abort();
  }
}

}  // namespace espalier::ofi
