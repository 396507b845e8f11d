#include "hal/mem/host/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "base/file_limit.h"
#include "base/forks.h"
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

Error failed(const std::string& what) { return Error{what + ": " + std::strerror(errno)}; }

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

// This process's segments, by descriptor. Its other threads use the same mapping of one.
// Guarded by fork_safe_mutex().
using OwnSegments = std::map<std::int32_t, std::weak_ptr<Mapping>>;

OwnSegments& own_segments() {
  static auto* const segments = new OwnSegments;
  return *segments;
}

SegmentHead& head_of(const Mapping& memory) {
  return *reinterpret_cast<SegmentHead*>(memory.bytes());
}

std::shared_ptr<Mapping> find_own(const SegmentPlace& place) {
  const std::lock_guard lock(fork_safe_mutex());
  const auto found = own_segments().find(place.file);
  return found == own_segments().end() ? nullptr : found->second.lock();
}

// Maps the segment of another process. Errors: as RemoteBlock::map().
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
  const auto size = static_cast<std::size_t>(about.st_size);
  void* const bytes = map_file(file.number, 0, size);
  if (bytes == nullptr) return fail(failed("cannot map the memory of " + process));
  return std::make_shared<Mapping>(bytes, size);
}

// Maps the memory that a process shares, to read.
Mapping map_shared_memory(std::int32_t process, const SegmentHead& head) {
  if (head.memory_file < 0) return {};
  const File file(open(path_of(process, head.memory_file).c_str(), O_RDONLY | O_CLOEXEC));
  struct stat about = {};
  if (file.number < 0 || fstat(file.number, &about) != 0 || !S_ISREG(about.st_mode) ||
      static_cast<std::uint64_t>(about.st_size) != head.memory_bytes) {
    return {};
  }
  const auto size = static_cast<std::size_t>(head.memory_bytes);
  return {map_file(file.number, 0, size, PROT_READ), size};
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

Segment::Segment(Segment&& other) noexcept
    : place_(std::exchange(other.place_, {})),
      block_bytes_(other.block_bytes_),
      memory_(std::move(other.memory_)) {}

Segment& Segment::operator=(Segment&& other) noexcept {
  std::swap(place_, other.place_);
  std::swap(block_bytes_, other.block_bytes_);
  std::swap(memory_, other.memory_);
  return *this;
}

Segment::~Segment() {
  if (place_.file >= 0) close(place_.file);
}

Result<Segment> Segment::create(std::uint32_t blocks, std::size_t block_bytes) {
  Segment segment;
  segment.block_bytes_ = pages(block_bytes);
  const std::size_t size = kPageBytes + blocks * segment.block_bytes_;
  // ftruncate() would raise a signal.
  if (size > max_file_bytes()) {
    return fail("shared memory of " + std::to_string(size) +
                " bytes counts as a file, and there is " + file_limit_text());
  }
  segment.place_.process = getpid();
  segment.place_.file = memfd_create("espalier", MFD_CLOEXEC);
  if (segment.place_.file < 0) return fail(failed("memfd_create"));
  if (ftruncate(segment.place_.file, static_cast<off_t>(size)) != 0) {
    return fail(failed("no shared memory of " + std::to_string(size) + " bytes"));
  }
  void* const bytes = map_file(segment.place_.file, 0, size);
  if (bytes == nullptr) return fail(failed("cannot map " + std::to_string(size) + " bytes"));
  segment.memory_ = std::make_shared<Mapping>(bytes, size);
  auto& nonce = segment.place_.nonce;
  if (getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size())) {
    return fail(failed("getrandom"));
  }
  segment.head().magic = SegmentHead::kMagic;
  segment.head().nonce = nonce;
  const SharedMemory* const memory = SharedMemory::of_process();
  segment.head().memory_file = memory == nullptr ? -1 : memory->file();
  segment.head().memory_bytes = memory == nullptr ? 0 : memory->size();
  const std::lock_guard lock(fork_safe_mutex());
  own_segments()[segment.place_.file] = segment.memory_;
  return segment;
}

SegmentHead& Segment::head() const { return head_of(*memory_); }

std::uint8_t* Segment::block(std::uint32_t number) const {
  return memory_->bytes() + kPageBytes + number * block_bytes_;
}

SegmentHead& RemoteBlock::head() const { return head_of(*memory); }

Result<RemoteBlock> RemoteBlock::map(const SegmentPlace& place, std::uint32_t number,
                                     std::size_t block_bytes) {
  RemoteBlock remote;
  remote.process = place.process;
  remote.offset = kPageBytes + number * pages(block_bytes);
  if (place.process == getpid()) {
    remote.memory = find_own(place);
  } else {
    auto mapped = map_segment(place);
    if (!mapped) return fail(mapped.error());
    remote.memory = *std::move(mapped);
  }
  // Memory is never touched beyond its end.
  if (remote.memory == nullptr || remote.memory->size() < remote.offset + pages(block_bytes) ||
      remote.head().magic != SegmentHead::kMagic || remote.head().nonce != place.nonce) {
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
  if (bytes == MAP_FAILED) return fail(failed("cannot map " + std::to_string(size) + " bytes"));
  remote.memory = std::make_shared<Mapping>(bytes, size);
  return remote;
}

}  // namespace espalier::mem
