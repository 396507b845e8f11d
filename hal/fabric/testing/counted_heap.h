#pragma once
// For tests: replaces malloc, and counts the allocations of threads that ask for it, those inside
// libfabric's own calls apart. Included by one source of a program.

#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "hal/fabric/ofi/libfabric_call.h"

namespace espalier::ofi::heap {

// Whether this thread's allocations are counted.
constinit inline thread_local bool counted = false;
inline std::atomic<std::uint64_t> ours{0};
inline std::atomic<std::uint64_t> theirs{0};  // inside libfabric's calls

inline void note() {
  if (counted) (libfabric_call_depth == 0 ? ours : theirs).fetch_add(1);
}

}  // namespace espalier::ofi::heap

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kHeapReplaced = false;  // the sanitizer replaces malloc itself
#else
constexpr bool kHeapReplaced = true;
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);

void* malloc(std::size_t size) {
  espalier::ofi::heap::note();
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  espalier::ofi::heap::note();
  return __libc_calloc(count, size);
}
void* realloc(void* old, std::size_t size) {
  espalier::ofi::heap::note();
  return __libc_realloc(old, size);
}
void* memalign(std::size_t alignment, std::size_t size) {
  espalier::ofi::heap::note();
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  espalier::ofi::heap::note();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t size) {
  espalier::ofi::heap::note();
  *out = __libc_memalign(alignment, size);
  return *out == nullptr ? 12 : 0;
}
void free(void* bytes) { __libc_free(bytes); }
}
#endif
