#pragma once
// The inboxes of one process's endpoint, in memory that other processes of the host map. It is in a
// file without a name, so nothing is left of a process that is killed. All segments of a process
// are in one file, and each peer maps that once. Host only.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "espalier/base/result.h"
#include "espalier/internal/base/little_endian.h"

namespace espalier::mem {

// The first line of a segment.
struct alignas(64) SegmentHead {
  static constexpr std::uint64_t kMagic = 0x34304d45'4d505345;  // "ESPMEM04"
  std::atomic<std::uint64_t> magic;  // 0: the segment has ended, which peers may look at meanwhile
  std::array<std::uint8_t, 16>
      nonce;  // random: the process and descriptor are still this segment's
  std::atomic<std::uint32_t> sleeping;   // 1: the owner sleeps, or is about to
  std::atomic<std::uint32_t> bell;       // a futex: peers count it up to wake the owner
  std::atomic<std::uint32_t> greetings;  // peers that have added a link count it up
  Little<std::int32_t> memory_file;      // descriptor of the process's SharedMemory; -1: none
  Little<std::uint64_t> memory_bytes;
  std::atomic<std::uint32_t> users;  // blocks of it that peers have mapped
  Little<std::uint32_t> kilobytes;   // of the segment
  // Behind it, for each block: the process that has it mapped, 0: none.
};

// Where a segment is.
struct SegmentPlace {
  std::int32_t process = 0;
  std::int32_t file = -1;
  std::uint64_t offset = 0;  // in the file
  std::array<std::uint8_t, 16> nonce = {};
};

class SharedMemory;

// A mapping of memory; unmaps it at its end.
class Mapping {
 public:
  Mapping() = default;
  Mapping(void* bytes, std::size_t size) : bytes_(bytes), size_(size) {}
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();
  [[nodiscard]] std::uint8_t* bytes() const { return static_cast<std::uint8_t*>(bytes_); }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  void* bytes_ = nullptr;
  std::size_t size_ = 0;
};

// This process's own segment, with room for `blocks` blocks, kMaxBlocks at most. Memory that is
// never touched takes no space. It is given back when no living process has a block of it mapped.
class Segment {
 public:
  Segment() = default;
  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;
  ~Segment();
  static constexpr std::uint32_t kMaxBlocks = 4096;
  [[nodiscard]] static Result<Segment> create(std::uint32_t blocks, std::size_t block_bytes);

  [[nodiscard]] SegmentHead& head() const;
  [[nodiscard]] std::uint8_t* block(std::uint32_t number) const;
  [[nodiscard]] const SegmentPlace& place() const { return place_; }

 private:
  [[nodiscard]] Result<void> make_file(std::size_t size);

  SegmentPlace place_;
  std::uint32_t blocks_ = 0;
  std::size_t block_bytes_ = 0;
  std::uint8_t* base_ = nullptr;
  SharedMemory* shared_ = nullptr;   // that it is in; null: in a file of its own
  std::shared_ptr<Mapping> memory_;  // the mapping of its own file; otherwise an empty one
};

// A block of another process's segment, that segment's head, and memory that the process shares.
struct RemoteBlock {
  // The file; of this process: the same mapping, or an empty one.
  std::shared_ptr<Mapping> memory = {};
  std::uint8_t* base = nullptr;           // of the segment
  std::size_t offset = 0;                 // of the block
  std::shared_ptr<SegmentHead> use = {};  // counted in `users`; its owner then keeps the segment
  [[nodiscard]] SegmentHead& head() const;
  [[nodiscard]] std::uint8_t* block() const { return base + offset; }
  // The process's SharedMemory, to read; empty if it cannot be mapped.
  std::shared_ptr<Mapping> shared_memory = std::make_shared<Mapping>();
  std::int32_t process = 0;

  // Errors: the process has ended, belongs to another user, or shares no memory with this one.
  [[nodiscard]] static Result<RemoteBlock> map(const SegmentPlace& place, std::uint32_t number,
                                               std::size_t block_bytes);
  // Returns a block in memory of this process alone, in place of one that cannot be mapped.
  [[nodiscard]] static Result<RemoteBlock> of_none(std::size_t block_bytes);
};

}  // namespace espalier::mem
