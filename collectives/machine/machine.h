#pragma once
// The state machine that runs a program over an endpoint: static size, no heap, no queue, bounded
// work a poll. Freestanding. docs/architecture.md, "The machine".

#include <cstdint>

#include "collectives/machine/operators.h"
#include "collectives/schedule/program.h"
#include "firmware/limits.h"
#include "hal/endpoint.h"

namespace espalier {

// The caller's memory for one collective. Bytes of input and output: the whole message (count *
// element_bytes); either may be null where the program does not touch it; both may be the same
// memory (in place) where the program's reads of input precede its writes of output (verified).
// scratch: at least scratch_needed() bytes, 16-byte aligned.
struct Buffers {
  const void* input = nullptr;
  void* output = nullptr;
  void* scratch = nullptr;
  std::uint64_t scratch_bytes = 0;
};

struct MachineConfig {
  std::uint32_t window = kMaxWindow;          // at most; the program's own is the other limit
  std::uint64_t deadline_ns = 2'000'000'000;  // D: silence on an awaited link before it is given up
  bool check_blocks = false;                  // CRC-32 of every block, sent and checked
};

// What the machine waits for, readable at any time.
struct StallReport {
  bool waiting = false;
  std::int64_t step = 0;       // oldest step not retired
  std::uint32_t link = 0;      // the endpoint's link
  std::uint32_t peer = 0;      // node at its other end
  bool sending = false;        // awaits the completion of a send (else of a receive)
  std::uint32_t action = 0;    // position in the program
  std::uint64_t since_ns = 0;  // endpoint clock when it began to wait
};

// Bytes of scratch that `program` needs for a message.
[[nodiscard]] std::uint64_t scratch_needed(const Program& program, const Layout& layout);

class Machine {
 public:
  // Binds the machine to its endpoint. Both and every program outlive it. Nothing is sent.
  [[nodiscard]] Status init(Endpoint& endpoint, const MachineConfig& config);

  // Starts a collective of `count` elements. All ranks start the same collectives in the same
  // order. kBadArgument: busy, null buffer where one is needed, scratch too small; kNoSuchPeer;
  // kBadOperator; kTooLarge. After a failure (cause().status != kOk) every start returns that
  // status.
  [[nodiscard]] Status start(const Program& program, const Buffers& buffers, const Operator& op,
                             std::uint64_t count);

  // Does bounded work: kBusy until done; kOk when the collective is complete (and while idle: the
  // machine answers probes from here); else how it failed, the same from then on.
  [[nodiscard]] Status poll();

  [[nodiscard]] const Cause& cause() const;
  [[nodiscard]] StallReport stall_report() const;
  [[nodiscard]] std::uint32_t blocks() const;  // N of the collective started last

  // Lock step: steps at or above `horizon` are not let in until it is raised. Unlimited by default.
  void set_horizon(std::int64_t horizon);
  // endpoint.now() at which poll() has something to do even if nothing arrives; UINT64_MAX:
  // nothing.
  [[nodiscard]] std::uint64_t next_deadline() const;
};

}  // namespace espalier
