#pragma once
// A collective that was asked for, with its schedule and its memory. Host only.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "communicator/call_check.h"
#include "communicator/job.h"
#include "communicator/padded_parts.h"
#include "communicator/record/call_word.h"
#include "communicator/record/writer.h"
#include "communicator/schedules.h"
#include "espalier/collectives/machine/machine.h"
#include "espalier/communicator.h"

namespace espalier::communicator {

class Channel;

// Memory that ranks of the same host read in place.
using Scratch = std::vector<std::uint64_t, SharedAllocator<std::uint64_t>>;

// A collective with its schedule and the memory that it needs beside the caller's.
class Operation {
 public:
  // Waits until it is complete.
  ~Operation();

  // The last three are in progress, in this order; kPadded: as kRunning, and then unpack().
  enum class State : std::uint8_t { kIdle, kComplete, kQueued, kRunning, kPadded };

  std::shared_ptr<Channel> channel;
  Call call;
  const PlannedProgram* planned = nullptr;  // null: one rank, nothing to communicate
  Buffers buffers;                          // as the machine gets them
  // A copy of the input, for a schedule that cannot have it in the output's place.
  std::vector<std::uint8_t, SharedAllocator<std::uint8_t>> input_copy;
  const void* copied_from = nullptr;
  std::unique_ptr<PaddedParts> padded;  // its parts are carried so; null: as they are
  std::vector<std::uint64_t> offsets;   // of unequal counts
  // Only a plan has these: scratch of its own, and its memory that stays registered.
  Scratch own_scratch;
  std::vector<Region> kept;
  // Set for a plan, and for an operation from its second start on.
  std::unique_ptr<Machine::Prepared> prepared;
  bool has_started = false, is_prepared = false;
  std::uint64_t word = 0;  // call_word.h
  Caller caller = Caller::kProgram;
  std::uint64_t operands = 0;   // bytes of an element, and the operator's number << 32
  bool has_own_counts = false;  // of call.counts this rank knows only its own
  std::uint8_t algorithm = 0;   // record/writer.h: Recorder::position_of()
  std::shared_ptr<record::Traffic> traffic;
  std::uint64_t input_bytes = 0, output_bytes = 0, scratch_bytes = 0;
  State state = State::kIdle;
  Result<void> result;
  Operation* next = nullptr;  // in the channel's queue

  [[nodiscard]] bool is_running() const { return state >= State::kRunning; }
  [[nodiscard]] std::string name() const { return call_name(caller, call.collective); }
};

// Whether the calls are the same to a schedule, to the machine and to the checks of a call.
[[nodiscard]] bool are_alike(const Call& a, const Call& b);
// Returns the counts of the operation's call as the machine gets them.
[[nodiscard]] ElementCounts counts_of(Operation& operation);
// Sets the operation's buffers and sizes from its call and its schedule, with a copy of the input
// if the schedule cannot have the input in the output's place. Errors: sizes that the program
// refuses.
[[nodiscard]] Result<void> find_memory(Operation& operation, const Place& place);
// Returns the words of memory for the operation's scratch, with room to align it by 16 bytes.
[[nodiscard]] inline std::size_t scratch_words(const Operation& operation) {
  return operation.scratch_bytes / sizeof(std::uint64_t) + 3;
}

}  // namespace espalier::communicator
