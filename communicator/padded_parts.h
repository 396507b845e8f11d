#pragma once
// An all-to-all with a count for each part, carried in parts that are all as long as the longest.
// Ranks that pass parts on then need no layout of parts that are not theirs. Host only.

#include <cstdint>
#include <vector>

#include "communicator/call_check.h"
#include "espalier/communicator.h"

namespace espalier::communicator {

class PaddedParts {
 public:
  // `call`: of an all-to-all with counts, whose memory must outlive this. Allocates.
  PaddedParts(const Call& call, const Place& place);
  // Returns the call with equal parts, in memory of this object.
  [[nodiscard]] const Call& equal_call() const { return equal_; }
  // Copies the caller's input before each start, and the output after it. Allocate nothing.
  void pack();
  void unpack();

 private:
  // Where a part is in the caller's memory, and its bytes.
  struct Part {
    std::uint64_t offset = 0, bytes = 0;
  };
  using Memory = std::vector<std::uint8_t, SharedAllocator<std::uint8_t>>;

  Call given_, equal_;
  std::uint64_t part_bytes_ = 0;  // of each part of equal_call()
  std::vector<Part> sent_, received_;
  Memory input_, output_;
};

}  // namespace espalier::communicator
