#include "hal/mem/host/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/process/file_limit.h"
#include "base/process/forks.h"
#include "espalier/internal/hal/mem/allocate.h"

namespace espalier {
namespace mem {
namespace {

constexpr std::size_t kLeast = std::size_t{64} << 20;

// Guarded by fork_safe_mutex().
struct All {
  // The newest last; never freed, for memory in it may be in use.
  std::vector<SharedMemory*> list, segments;
  std::set<const void*> own;  // what allocate() gave of the process's own memory
};

All& all() {
  static All* const all = new All;
  return *all;
}

}  // namespace

SharedMemory* SharedMemory::of_process() { return newest(all().list, "espalier-memory"); }

SharedMemory* SharedMemory::of_segments() { return newest(all().segments, "espalier"); }

SharedMemory* SharedMemory::newest(std::vector<SharedMemory*>& list, const char* name) {
  const std::lock_guard lock(fork_safe_mutex());
  if (!list.empty() && list.back()->process_ == getpid()) return list.back();
  SharedMemory* const made = make(name);
  if (made != nullptr) list.push_back(made);
  return made;
}

SharedMemory* SharedMemory::with(const void* bytes) {
  const std::lock_guard lock(fork_safe_mutex());
  for (SharedMemory* const each : all().list) {
    if (each->contains(bytes, 1)) return each;
  }
  return nullptr;
}

SharedMemory* SharedMemory::make(const char* name) {
  std::unique_ptr<SharedMemory> made(new SharedMemory);
  made->process_ = getpid();
  made->file_ = memfd_create(name, MFD_CLOEXEC);
  if (made->file_ < 0) return nullptr;
  const long pages = sysconf(_SC_PHYS_PAGES);
  const auto most = static_cast<std::uint64_t>(std::max(pages, 1L)) *
                    static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  std::size_t size = std::max<std::size_t>(
      kLeast, static_cast<std::size_t>(std::min<std::uint64_t>(most, SIZE_MAX / 4)) / kPageBytes *
                  kPageBytes);
  size = static_cast<std::size_t>(std::min<std::uint64_t>(size, max_file_bytes()));
  void* memory = MAP_FAILED;
  for (; size >= kLeast && memory == MAP_FAILED; size /= 2) {
    made->size_ = size / kPageBytes * kPageBytes;
    if (ftruncate(made->file_, static_cast<off_t>(made->size_)) != 0) continue;
    memory = mmap(nullptr, made->size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                  made->file_, 0);
  }
  if (memory == MAP_FAILED) {
    close(made->file_);
    return nullptr;
  }
  made->memory_ = static_cast<std::uint8_t*>(memory);
  made->free_.emplace(0, made->size_);
  return made.release();
}

void* SharedMemory::allocate(std::size_t bytes) {
  if (bytes > size_) return nullptr;
  const std::size_t size =
      std::max<std::size_t>(1, (bytes + kPageBytes - 1) / kPageBytes) * kPageBytes;
  const std::lock_guard lock(mutex_);
  // The smallest that is large enough.
  auto best = free_.end();
  for (auto each = free_.begin(); each != free_.end(); ++each) {
    if (each->second >= size && (best == free_.end() || each->second < best->second)) best = each;
  }
  if (best == free_.end()) return nullptr;
  const auto [offset, room] = *best;
  taken_.emplace(offset, size);  // throws before anything has changed
  auto rest = free_.extract(best);
  if (room > size) {
    rest.key() = offset + size;
    rest.mapped() = room - size;
    free_.insert(std::move(rest));
  }
  return memory_ + offset;
}

bool SharedMemory::deallocate(void* bytes) {
  if (process_ != getpid()) return true;  // The parent uses it.
  const std::lock_guard lock(mutex_);
  const auto taken = taken_.find(offset_of(bytes));
  if (taken == taken_.end()) return false;
  auto [offset, size] = *taken;
  auto given = taken_.extract(taken);  // to free memory takes none
  // Gives the pages back, which also makes them zeros.
  (void)fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                  static_cast<off_t>(size));
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && offset + size == next->first) {
    size += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += size;
      return true;
    }
  }
  given.key() = offset;
  given.mapped() = size;
  free_.insert(std::move(given));
  return true;
}

Result<void> give_back(void* bytes) {
  if (bytes == nullptr) return {};
  SharedMemory* const memory = SharedMemory::with(bytes);
  if (memory != nullptr && memory->deallocate(bytes)) return {};
  if (memory == nullptr) {
    const std::lock_guard lock(fork_safe_mutex());
    if (all().own.erase(bytes) != 0) {
      std::free(bytes);
      return {};
    }
  }
  std::array<char, 2 + 2 * sizeof(std::uintptr_t) + 1> address = {};
  std::snprintf(address.data(), address.size(), "0x%jx",
                static_cast<std::uintmax_t>(reinterpret_cast<std::uintptr_t>(bytes)));
  return fail("deallocate: memory at " + std::string(address.data()) +
              " is not of allocate(), or was given back before; nothing is freed");
}

}  // namespace mem

void detail::throw_no_memory() { throw std::bad_alloc(); }

void* allocate(std::size_t bytes) {
  void* own = nullptr;
  try {
    mem::SharedMemory* const memory = mem::SharedMemory::of_process();
    void* const shared = memory == nullptr ? nullptr : memory->allocate(bytes);
    if (shared != nullptr || bytes > PTRDIFF_MAX) return shared;
    constexpr std::size_t kAlignment = 4096;
    const std::size_t size = (bytes / kAlignment + 1) * kAlignment;
    own = std::aligned_alloc(kAlignment, size);
    if (own == nullptr) return nullptr;
    const std::lock_guard lock(fork_safe_mutex());
    mem::all().own.insert(own);
    return std::memset(own, 0, size);
  } catch (const std::bad_alloc&) {  // of the lists above
    std::free(own);
    return nullptr;
  }
}

void deallocate(void* bytes) {
  const auto given = mem::give_back(bytes);
  if (!given) std::fprintf(stderr, "espalier: %s\n", given.error().message.c_str());
}

}  // namespace espalier
