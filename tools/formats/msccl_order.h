#pragma once
// The order that an MSCCL algorithm gives its steps. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "tools/formats/msccl_file.h"

namespace espalier::tools::formats {

// A step of the whole algorithm.
struct PlacedStep {
  std::uint32_t rank = 0, block = 0, number = 0;
  std::int64_t sender = -1;  // of a step that receives: the position of the step that sends
};

// All steps, in an order in which each comes after those that it waits for. Throws Failure
// (negative): no such order, messages without a partner or of different lengths, or two uses of a
// chunk, one of them a write, that neither thread blocks, nor waits, nor messages order.
[[nodiscard]] std::vector<PlacedStep> order_of(const std::string& path, const MscclFile& file);

// "rank 3, tb 1, step 2 (line 40)"
[[nodiscard]] std::string step_name(const MscclFile& file, const PlacedStep& step);

// Input and output of an algorithm that is only for one buffer are its output.
[[nodiscard]] Chunks in_one_buffer(const MscclFile& file, std::uint32_t rank, Chunks chunks);

}  // namespace espalier::tools::formats
