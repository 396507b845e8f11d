#pragma once
// The state machine that runs a program over an endpoint: static size, no heap, no queue, bounded
// work a poll. Freestanding. docs/architecture.md, "The machine".

#include <cstdint>

#include "espalier/base/limits.h"
#include "espalier/base/link_set.h"
#include "espalier/collectives/machine/detail/lane.h"
#include "espalier/collectives/machine/detail/timetable.h"
#include "espalier/collectives/machine/detail/watch.h"
#include "espalier/collectives/machine/event_log.h"
#include "espalier/collectives/machine/operators.h"
#include "espalier/collectives/schedule/program.h"
#include "espalier/hal/endpoint.h"

namespace espalier {

// The caller's memory for one collective. Bytes of input and output: buffer_bytes(); either may be
// null where the program does not touch it. They may share memory only in place: each segment that
// both hold is at the same address in both (a whole input and a whole output begin together; in an
// allgather the rank's own input lies in its output where its segment goes), and only where the
// program's reads of input precede its writes of output (verified). scratch: at least
// scratch_needed() bytes, 16-byte aligned.
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
#if ESPALIER_WITHOUT_DATA
  bool no_data = false;  // combines and copies take their turn but touch no byte of the buffers
#endif
  EventLog* log = nullptr;  // of the collective started last; outlives the machine
};

// What the machine waits for, readable at any time: the oldest message that has not come or gone.
struct StallReport {
  bool waiting = false;        // for a peer
  std::int64_t step = 0;       // oldest step not retired; INT64_MAX: none is left
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
  Machine() = default;
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Binds the machine to its endpoint, for life. That and every program outlive it. Nothing is
  // sent. kBadArgument: a second time, a window of 0, or blocks to be checked without data;
  // kTooLarge: more than kMaxLinks links.
  [[nodiscard]] Status init(Endpoint& endpoint, const MachineConfig& config);

  // Starts a collective of `count` elements of op.type, of the whole message or of a rank's part
  // (counts_per_rank); `program` has passed check_program. All nodes start the same collectives in
  // the same order; a barrier takes no elements and no operator. Nothing was done on kBadArgument
  // (busy; a buffer that is needed is null; scratch is too small or not aligned; buffers overlap,
  // but for in place; a barrier with elements), kNoSuchPeer, kBadOperator (also where the program
  // needs a commuting one; what combines nothing takes any), kTooLarge (also where memory has 32
  // bits and the schedule more than 2^30 steps), kMalformed (the program names a buffer that this
  // node does not have), kUnsupported (the window here is less than the postal model's L) and
  // prepare()'s errors. After a failure (cause().status != kOk) every start returns that status.
  // Later, a step of a MULTIPORT program that has more messages on a link than the endpoint's
  // window or kRing ends the collective with kTooLarge.
  [[nodiscard]] Status start(const Program& program, const Buffers& buffers, const Operator& op,
                             std::uint64_t count);

  // Does bounded work: kBusy until done; kOk when the collective is complete (and while idle: the
  // machine answers probes from here); else how it failed, the same from then on.
  [[nodiscard]] Status poll();

  [[nodiscard]] const Cause& cause() const;
  [[nodiscard]] StallReport stall_report() const;  // after a failure: of its moment
  [[nodiscard]] std::uint32_t blocks() const;      // N of the collective started last

  // After init(). Lock step: steps at or above `horizon` are not let in until it is raised.
  // Unlimited by default.
  void set_horizon(std::int64_t horizon);
  // The next three are for simulators.
  // The first step that is not let in; INT64_MAX: none is known.
  [[nodiscard]] std::int64_t next_step() const {
    return running_ ? timetable_.next_step() : Timetable::kNever;
  }
  // Whether the fabric had no room for a post in the last poll.
  [[nodiscard]] bool refused() const { return no_room_; }
  // The step of the post with this cookie. Valid while the endpoint takes that post.
  [[nodiscard]] std::int64_t step_of(std::uint32_t cookie) const {
    return step(static_cast<std::uint8_t>(cookie)).number;
  }
  // endpoint.now() at which poll() has something to do even if nothing arrives; UINT64_MAX:
  // nothing.
  [[nodiscard]] std::uint64_t next_deadline() const;

 private:
  friend class PackedState;
  // A step that is let in and not retired.
  struct Step {
    std::int64_t number = 0;
    Rows ops = 0;               // combines and copies that have not run: rows of the timetable
    std::uint8_t receives = 0;  // not complete
    std::uint8_t sends = 0;     // not complete,
    std::uint8_t unposted = 0;  // and of those not posted

    [[nodiscard]] bool ready() const { return receives == 0 && ops == 0; }
    [[nodiscard]] bool done() const { return ready() && sends == 0; }
  };
  // A block in memory.
  struct Block {
    std::uint8_t* bytes = nullptr;
    std::size_t size = 0;
    std::size_t elements = 0;
  };

  // What a buffer of the caller's holds of the whole message; of size 0 where no action names it.
  struct Held {
    std::uint8_t* bytes = nullptr;
    std::size_t size = 0;
    std::uint64_t offset = 0;
  };
  // What the program's actions name.
  struct Uses {
    bool input = false, output = false, combines = false;
    void place(bool present, const Place& place);
  };

  // start.cc
  [[nodiscard]] static Uses uses_of(const Program& program);
  [[nodiscard]] static Status check_operator(const Program& program, const Uses& uses,
                                             const Operator& op);
  [[nodiscard]] static Status hold(const Program& program, const Layout& layout, Buffer buffer,
                                   const void* bytes, Held& held);
  [[nodiscard]] static Status check_scratch(std::uint64_t needed, const Buffers& buffers);
  [[nodiscard]] static Status find_regions(const Held& input, const Held& output,
                                           const Held& scratch, Region* regions,
                                           std::uint32_t& count);
  [[nodiscard]] Status map_links(const Program& program);
  [[nodiscard]] std::uint8_t window_of(const Program& program) const;
  void start_tags(const Operator& op);

  // machine.cc
  bool take_completions();
  void take(const Completion& completion);
  void complete(const Completion& completion, bool sent);
  void early(std::uint32_t link, std::uint64_t tag);
  void finish();
  void fail(Status status, std::uint32_t link) { watch_.fail(status, watch_.peer(link)); }
  void fail_here(Status status) { watch_.fail(status, endpoint_->node()); }

  // window.cc
  void work(bool retry);
  void let_in();
  void let_in_step();
  [[nodiscard]] bool link_of(std::uint32_t row, std::uint32_t ahead, std::uint32_t& link) const;
  [[nodiscard]] bool room();
  [[nodiscard]] bool let_in_message(std::uint32_t row);
  void retire();
  void post_all();
  [[nodiscard]] bool post_send(std::uint32_t link);
  void post_receives(std::uint32_t link);
  void posted(std::uint32_t link, Lane& lane, LinkSet& unposted);
  void run_op();
  // Whether the endpoint took the post.
  [[nodiscard]] bool took(Status status, std::uint32_t link);
  [[nodiscard]] std::uint64_t log_now() const;  // for the log, where there is one with times
  void log_let_in(std::uint32_t row, std::uint32_t ahead, std::uint64_t now);
  void log_op(std::uint32_t row, std::uint64_t now);
  [[nodiscard]] bool reached(std::uint8_t from, std::uint32_t after, bool ops_too) const;
  [[nodiscard]] bool may_run(const Action& action) const;
  [[nodiscard]] bool being_sent(const Block& block) const;
  [[nodiscard]] bool locate(std::uint32_t row, const Place& place, Block& block) const;
  [[nodiscard]] bool operate(std::uint32_t row);

  Step& step(std::uint8_t counter) { return steps_[counter & kRingMask]; }
  [[nodiscard]] const Step& step(std::uint8_t counter) const { return steps_[counter & kRingMask]; }

  // Everything is zero until init(), so that a static Machine takes no room in flash.
  Endpoint* endpoint_ = nullptr;
  std::uint8_t window_limit_ = 0;
  bool check_blocks_ = false;
#if ESPALIER_WITHOUT_DATA
  bool no_data_ = false;
#endif
  EventLog* log_ = nullptr;
  const Program* program_ = nullptr;
  Watch watch_;

  // The collective.
  Layout layout_ = {0, 0, 0, 0, 0, 0};
  Held input_, output_;
  std::uint8_t* scratch_ = nullptr;
  std::size_t slot_bytes_ = 0;
  Operator op_ = {.commutes = false};
  std::uint8_t window_ = 0;
  std::uint8_t room_ = 0;  // messages that a lane takes
  bool running_ = false;
  bool moved_ = false;    // the last poll moved the collective
  bool more_ = false;     // and may have left completions
  bool no_room_ = false;  // the fabric had no room for a post
  // Steps let in, not retired: steps_[first_step_ .. end_step_), counters modulo 256; the next
  // combine or copy is of next_op_ or later.
  std::uint8_t first_step_ = 0, end_step_ = 0, next_op_ = 0;
  Step steps_[kRing];
  std::int64_t horizon_ = 0;
  TagBase tags_;
  Timetable timetable_;

  static_assert(kMaxLinks <= 256);
  std::uint8_t link_of_[kMaxLinks] = {};  // by the program's
  Lane sends_[kMaxLinks];
  Lane receives_[kMaxLinks];
  // Links with posted sends; with messages not posted; with a message told early.
  LinkSet sending_, unposted_sends_, unposted_receives_, told_;
  std::uint64_t early_[kMaxLinks] = {};     // tag of the first one told, of a later collective
  std::uint32_t foreseen_[kMaxLinks] = {};  // messages of this collective that must come, as told
};

}  // namespace espalier
