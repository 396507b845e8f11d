#pragma once
// Memory that the other processes of this host can read, for messages over the provider "mem": they
// are then copied once, from the sender's memory to the receiver's. Any other memory works, too,
// with two copies. Host only.

#include <cstddef>

namespace espalier {

// Returns `bytes` bytes, zeros, at a multiple of 4096; null if there is no memory. For large
// buffers: each takes whole pages. A forked child sees the parent's memory, not a copy of it. Where
// the system has no memory that processes can share, it is private. Threads may call both functions
// at once.
[[nodiscard]] void* allocate(std::size_t bytes);
// Gives memory of allocate() back. Call when no collective uses it. Null: nothing happens. If the
// memory is not of allocate(), or was given back before, nothing is freed, and a line on standard
// error names its address.
void deallocate(void* bytes);

namespace detail {
// Throws std::bad_alloc. In the library, so that this header compiles with -fno-exceptions.
[[noreturn]] void throw_no_memory();
}  // namespace detail

// For containers of the standard library: their memory is of allocate().
template <typename T>
struct SharedAllocator {
  using value_type = T;  // of the container's elements
  SharedAllocator() = default;
  template <typename U>
  SharedAllocator(const SharedAllocator<U>& /*other*/) {}  // NOLINT: containers convert it
  // Returns memory for `count` elements; throws std::bad_alloc if there is none, also into programs
  // that are compiled without exceptions, which it ends.
  [[nodiscard]] T* allocate(std::size_t count) {
    void* const bytes = count > static_cast<std::size_t>(-1) / sizeof(T)
                            ? nullptr
                            : espalier::allocate(count * sizeof(T));
    if (bytes == nullptr) detail::throw_no_memory();
    return static_cast<T*>(bytes);
  }
  // Gives memory of allocate() back.
  void deallocate(T* bytes, std::size_t /*count*/) { espalier::deallocate(bytes); }
  friend bool operator==(const SharedAllocator&, const SharedAllocator&) { return true; }
};

}  // namespace espalier
