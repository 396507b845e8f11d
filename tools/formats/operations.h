#pragma once
// A schedule as formats of others have it: for one N, the operations of each node in order, and for
// each operation the earlier operations that must end before it begins. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/schedule/expand.h"
#include "planner/files/loaded_schedule.h"

namespace espalier::tools::formats {

// `count` consecutive chunks of a buffer, from chunk `first` onward. A chunk is a block: N chunks
// are a segment, one chunk is a slot of scratch.
struct Chunks {
  Buffer buffer = Buffer::kNone;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

[[nodiscard]] inline const char* buffer_letter(Buffer::Value buffer) {
  return buffer == Buffer::kOutput ? "o" : buffer == Buffer::kScratch ? "s" : "i";
}

struct Operation {
  ActionKind kind = ActionKind::kNone;
  std::int64_t step = 0;
  std::uint32_t peer = 0;            // SEND, RECEIVE
  std::uint32_t number = 0;          // SEND, RECEIVE: the message is number 0, 1, ... of its link
  Chunks into = {}, a = {}, b = {};  // as in an action
  OperandAt data = {};               // the segments and block whose length the operation has
  // Positions of earlier operations of the node that write chunks which this one reads or writes,
  // or read chunks which this one writes; ascending.
  std::vector<std::uint32_t> after = {};
};

struct NodeOperations {
  std::int64_t input_chunks = 0, output_chunks = 0, scratch_chunks = 0;
  // By step. In a step first the sends, then the receives, then combines and copies.
  std::vector<Operation> operations = {};
};

struct Operations {
  std::int64_t blocks = 1;    // N
  std::int64_t segments = 1;  // of the whole message
  std::int64_t steps = 0;
  std::vector<NodeOperations> nodes = {};
};

// Expands the schedule for N = `blocks`. Throws Failure (bad input) if it has more than
// kMaxOperations operations.
inline constexpr std::size_t kMaxOperations = std::size_t{1} << 22;
[[nodiscard]] Operations expand_operations(const planner::LoadedSchedule& loaded,
                                           std::int64_t blocks);

// Refuses a schedule that `format` cannot express: throws Failure (bad input) with the line
// "'b.esp' cannot be exported to FORMAT: REASON".
[[noreturn]] void cannot_export(const planner::LoadedSchedule& loaded, const std::string& format,
                                const std::string& reason);

// Proves the schedule, because an export of an invalid one would mislead its reader. Throws
// Failure: it is not valid, or (bad input) it is too large to verify.
void prove(const planner::LoadedSchedule& loaded);

}  // namespace espalier::tools::formats
