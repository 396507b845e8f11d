#include "hal/mem/host/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/counted.h"
#include "base/process/file_limit.h"
#include "base/process/forks.h"
#include "base/process/system_error.h"
#include "espalier/internal/base/assert.h"
#include "hal/mem/host/shared_memory.h"

namespace espalier::mem {
namespace {

constexpr std::size_t pages(std::size_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

void* map_file(int file, std::size_t offset, std::size_t size,
               int access = PROT_READ | PROT_WRITE) {
  void* const bytes =
      mmap(nullptr, size, access, MAP_SHARED | MAP_NORESERVE, file, static_cast<off_t>(offset));
  return bytes == MAP_FAILED ? nullptr : bytes;
}

std::string path_of(std::int32_t process, std::int32_t file) {
  return "/proc/" + std::to_string(process) + "/fd/" + std::to_string(file);
}

Error failed(const std::string& what) { return Error{what + ": " + system_error_text(errno)}; }

// Closes a descriptor.
struct File {
  explicit File(int file) : number(file) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (number >= 0) close(number);
  }
  int number;
};

// This process's segments, by descriptor and offset. Its other threads use the same mapping of one.
// Guarded by fork_safe_mutex(), as MappedFiles.
struct OwnSegments {
  struct Own {
    std::weak_ptr<Mapping> memory;
    std::uint8_t* base = nullptr;
  };
  struct Ended {
    SharedMemory* in = nullptr;
    std::uint8_t* base = nullptr;
    std::uint32_t blocks = 0;
  };
  std::map<std::pair<std::int32_t, std::uint64_t>, Own> by_place;
  std::vector<Ended> ended;  // that peers still have mapped
};

OwnSegments& own_segments() {
  static auto* const segments = new OwnSegments;
  return *segments;
}

SegmentHead& head_at(std::uint8_t* base) {
  ESPALIER_ASSERT(base != nullptr);
  return *reinterpret_cast<SegmentHead*>(base);
}

using User = std::atomic<std::int32_t>;

static_assert(sizeof(SegmentHead) + Segment::kMaxBlocks * sizeof(User) <= kPageBytes);

// Returns the user of block `number`.
User& user_at(std::uint8_t* base, std::uint32_t number) {
  return reinterpret_cast<User*>(base + sizeof(SegmentHead))[number];
}

// Returns this process as /proc names it, where peers look for each other; 0: there is no /proc.
std::int32_t number_in_proc() {
  char text[32] = {};
  if (readlink("/proc/self", text, sizeof text - 1) < 0) return 0;
  return std::atoi(text);
}

// A process that was killed gives no block back.
void count_ended_users_out(const OwnSegments::Ended& segment) {
  ESPALIER_ASSERT(segment.blocks <= Segment::kMaxBlocks);
  for (std::uint32_t number = 0; number < segment.blocks; ++number) {
    User& user = user_at(segment.base, number);
    std::int32_t process = user.load(std::memory_order_acquire);
    if (process == 0 || kill(process, 0) == 0 || errno != ESRCH) continue;
    if (user.compare_exchange_strong(process, 0)) head_at(segment.base).users.fetch_sub(1);
  }
}

// Gives the memory of ended segments back that no peer has mapped any more. With the mutex.
void free_ended() {
  std::vector<OwnSegments::Ended>& all = own_segments().ended;
  const auto used = [](const OwnSegments::Ended& each) {
    count_ended_users_out(each);
    return head_at(each.base).users.load(std::memory_order_acquire) != 0;
  };
  const auto unused = std::stable_partition(all.begin(), all.end(), used);
  for (auto each = unused; each != all.end(); ++each) {
    (void)each->in->deallocate(each->base);
  }
  all.erase(unused, all.end());
}

void find_own(const SegmentPlace& place, RemoteBlock& found) {
  const std::lock_guard lock(fork_safe_mutex());
  const auto own = own_segments().by_place.find({place.file, place.offset});
  if (own == own_segments().by_place.end()) return;
  found.memory = own->second.memory.lock();
  found.base = own->second.base;
}

// Files of other processes that are mapped, by device and number, so that each is mapped once.
struct MappedFiles {
  std::map<std::pair<dev_t, ino_t>, std::weak_ptr<Mapping>> by_number;
};

// Maps the whole file. Null: it cannot be mapped.
std::shared_ptr<Mapping> map_once(int file, const struct stat& about, int access) {
  static MappedFiles* const files = new MappedFiles;
  const std::lock_guard lock(fork_safe_mutex());
  std::weak_ptr<Mapping>& known = files->by_number[{about.st_dev, about.st_ino}];
  if (auto mapped = known.lock(); mapped != nullptr) return mapped;
  std::erase_if(files->by_number,
                [&](const auto& each) { return &each.second != &known && each.second.expired(); });
  const auto size = static_cast<std::size_t>(about.st_size);
  void* const bytes = map_file(file, 0, size, access);
  if (bytes == nullptr) return nullptr;
  auto made = std::make_shared<Mapping>(bytes, size);
  known = made;
  return made;
}

// Maps the file with the segment of another process. Errors: as RemoteBlock::map().
Result<std::shared_ptr<Mapping>> map_segment(const SegmentPlace& place) {
  const std::string process = "process " + std::to_string(place.process);
  const File file(open(path_of(place.process, place.file).c_str(), O_RDWR | O_CLOEXEC));
  if (file.number < 0) {
    return fail(errno == ENOENT
                    ? process + " has ended, or is not on this host"
                    : "cannot open the memory of " + process + ": " + std::strerror(errno));
  }
  struct stat about = {};
  // Another process may have the number now, or another file the descriptor.
  if (fstat(file.number, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size == 0) return {};
  auto mapped = map_once(file.number, about, PROT_READ | PROT_WRITE);
  if (mapped == nullptr) return fail(failed("cannot map the memory of " + process));
  return mapped;
}

// Maps the memory that a process shares, to read.
std::shared_ptr<Mapping> map_shared_memory(std::int32_t process, const SegmentHead& head) {
  if (head.memory_file < 0) return std::make_shared<Mapping>();
  const File file(open(path_of(process, head.memory_file).c_str(), O_RDONLY | O_CLOEXEC));
  struct stat about = {};
  if (file.number < 0 || fstat(file.number, &about) != 0 || !S_ISREG(about.st_mode) ||
      static_cast<std::uint64_t>(about.st_size) != head.memory_bytes) {
    return std::make_shared<Mapping>();
  }
  auto mapped = map_once(file.number, about, PROT_READ);
  return mapped == nullptr ? std::make_shared<Mapping>() : mapped;
}

}  // namespace

Mapping::Mapping(Mapping&& other) noexcept
    : bytes_(std::exchange(other.bytes_, nullptr)), size_(other.size_) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(size_, other.size_);
  return *this;
}

Mapping::~Mapping() {
  if (bytes_ != nullptr) munmap(bytes_, size_);
}

Segment::Segment(Segment&& other) noexcept { *this = std::move(other); }

Segment& Segment::operator=(Segment&& other) noexcept {
  std::swap(place_, other.place_);
  std::swap(blocks_, other.blocks_);
  std::swap(block_bytes_, other.block_bytes_);
  std::swap(base_, other.base_);
  std::swap(shared_, other.shared_);
  std::swap(memory_, other.memory_);
  return *this;
}

Segment::~Segment() {
  if (base_ == nullptr || place_.process != getpid()) return;  // The parent uses it.
  const std::lock_guard lock(fork_safe_mutex());
  own_segments().by_place.erase({place_.file, place_.offset});
  if (shared_ == nullptr) {
    close(place_.file);
    return;
  }
  // A peer that has not mapped it finds that it has ended.
  head().magic = 0;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  own_segments().ended.push_back({shared_, base_, blocks_});
  free_ended();
}

Result<Segment> Segment::create(std::uint32_t blocks, std::size_t block_bytes) {
  ESPALIER_ASSERT(blocks <= kMaxBlocks);
  Segment segment;
  segment.blocks_ = blocks;
  segment.block_bytes_ = pages(block_bytes);
  const std::size_t size = kPageBytes + blocks * segment.block_bytes_;
  // ftruncate() would raise a signal.
  if (size > max_file_bytes()) {
    return fail("shared memory of " + counted(size, "byte") + " counts as a file, and there is " +
                file_limit_text());
  }
  segment.place_.process = getpid();
  {
    const std::lock_guard lock(fork_safe_mutex());
    free_ended();
  }
  SharedMemory* const all = SharedMemory::of_segments();
  void* const room = all == nullptr ? nullptr : all->allocate(size);
  if (room != nullptr) {
    segment.shared_ = all;
    segment.base_ = static_cast<std::uint8_t*>(room);
    segment.memory_ = std::make_shared<Mapping>();
    segment.place_.file = all->file();
    segment.place_.offset = all->offset_of(room);
  } else if (auto made = segment.make_file(size); !made) {
    return fail(made.error());
  }
  auto& nonce = segment.place_.nonce;
  if (getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size())) {
    return fail(failed("getrandom"));
  }
  segment.head().nonce = nonce;
  const SharedMemory* const memory = SharedMemory::of_process();
  segment.head().memory_file = memory == nullptr ? -1 : memory->file();
  segment.head().memory_bytes = memory == nullptr ? 0 : memory->size();
  segment.head().kilobytes = static_cast<std::uint32_t>(size / 1024);
  segment.head().magic = SegmentHead::kMagic;
  const std::lock_guard lock(fork_safe_mutex());
  own_segments().by_place[{segment.place_.file, segment.place_.offset}] = {segment.memory_,
                                                                           segment.base_};
  return segment;
}

Result<void> Segment::make_file(std::size_t size) {
  const int file = memfd_create("espalier", MFD_CLOEXEC);
  if (file < 0) return fail(failed("memfd_create"));
  if (ftruncate(file, static_cast<off_t>(size)) != 0) {
    auto error = failed("no shared memory of " + counted(size, "byte"));
    close(file);
    return fail(std::move(error));
  }
  void* const bytes = map_file(file, 0, size);
  if (bytes == nullptr) {
    auto error = failed("cannot map " + counted(size, "byte"));
    close(file);
    return fail(std::move(error));
  }
  place_.file = file;
  memory_ = std::make_shared<Mapping>(bytes, size);
  base_ = memory_->bytes();
  return {};
}

SegmentHead& Segment::head() const { return head_at(base_); }

std::uint8_t* Segment::block(std::uint32_t number) const {
  ESPALIER_ASSERT(base_ != nullptr && number < blocks_);
  return base_ + kPageBytes + number * block_bytes_;
}

SegmentHead& RemoteBlock::head() const { return head_at(base); }

Result<RemoteBlock> RemoteBlock::map(const SegmentPlace& place, std::uint32_t number,
                                     std::size_t block_bytes) {
  RemoteBlock remote{.offset = kPageBytes + number * pages(block_bytes), .process = place.process};
  if (place.process == getpid()) {
    find_own(place, remote);
  } else {
    auto mapped = map_segment(place);
    if (!mapped) return fail(mapped.error());
    remote.memory = *std::move(mapped);
    // Memory is never touched beyond its end.
    if (remote.memory != nullptr && place.offset % kPageBytes == 0 &&
        place.offset < remote.memory->size() &&
        remote.memory->size() - place.offset >= remote.offset + pages(block_bytes)) {
      remote.base = remote.memory->bytes() + place.offset;
    }
  }
  const auto is_there = [&] {
    return remote.memory != nullptr && remote.base != nullptr &&
           remote.head().magic == SegmentHead::kMagic && remote.head().nonce == place.nonce &&
           std::uint64_t{remote.head().kilobytes} * 1024 >= remote.offset + pages(block_bytes);
  };
  bool found = is_there();
  if (found) {
    User& user = user_at(remote.base, number);
    std::int32_t self = number_in_proc();
    remote.head().users.fetch_add(1, std::memory_order_seq_cst);
    user.store(self, std::memory_order_seq_cst);
    remote.use = std::shared_ptr<SegmentHead>(
        &remote.head(), [memory = remote.memory, &user, self](SegmentHead* head) mutable {
          (void)user.compare_exchange_strong(self, 0);
          head->users.fetch_sub(1, std::memory_order_release);
        });
    found = is_there();  // It may have ended before it was counted.
  }
  if (!found) {
    return fail("process " + std::to_string(place.process) +
                " has other memory than its address says");
  }
  if (place.process != getpid()) {
    remote.shared_memory = map_shared_memory(place.process, remote.head());
  }
  return remote;
}

Result<RemoteBlock> RemoteBlock::of_none(std::size_t block_bytes) {
  RemoteBlock remote;
  remote.offset = kPageBytes;
  const std::size_t size = kPageBytes + pages(block_bytes);
  void* const bytes = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (bytes == MAP_FAILED) return fail(failed("cannot map " + counted(size, "byte")));
  remote.memory = std::make_shared<Mapping>(bytes, size);
  remote.base = remote.memory->bytes();
  return remote;
}

}  // namespace espalier::mem
