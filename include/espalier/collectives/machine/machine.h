#pragma once
// The state machine that executes a program over an endpoint: static size, no heap, no queue,
// bounded work per poll. Freestanding. See docs/architecture.md, "The machine".

#include <cstdint>

#include "espalier/collectives/machine/operators.h"
#include "espalier/collectives/schedule/program.h"
#include "espalier/hal/endpoint.h"
#include "espalier/internal/base/limits.h"
#include "espalier/internal/base/link_set.h"
#include "espalier/internal/collectives/machine/detail/failure_detector.h"
#include "espalier/internal/collectives/machine/detail/instance_scheduler.h"
#include "espalier/internal/collectives/machine/detail/message_ring.h"
#include "espalier/internal/collectives/machine/event_log.h"

namespace espalier {

// The caller's memory for one collective.
//  * Input and output have buffer_bytes() bytes each. Either may be null if the program does not
//    use it.
//  * Input and output may share memory only in place: each segment that both hold has the same
//    address in both. So a whole input and a whole output begin together; in an allgather the
//    rank's own input is where its segment goes in the output.
//  * In place also requires that the program reads input before it writes output there. The
//    verifier proves this.
//  * scratch has at least scratch_needed() bytes and is 16-byte aligned.
struct Buffers {
  const void* input = nullptr;
  void* output = nullptr;
  void* scratch = nullptr;
  std::uint64_t scratch_bytes = 0;
};

inline namespace ESPALIER_MACHINE_BUILD {
// Parameters of a machine, which init() sets for its lifetime.
struct MachineConfig {
  // Limit on steps in flight. The windows of the program and of the endpoint are limits too.
  std::uint32_t window = kMaxWindow;
  // D: how long an awaited link may stay silent before it is declared dead
  std::uint64_t deadline_ns = 2'000'000'000;
  // Sends a CRC-32 with every block and compares it. A poll computes it of at most one block to
  // send and one received block.
  bool check_blocks = false;
#if ESPALIER_WITHOUT_DATA
  bool no_data = false;  // combines and copies take their turn but touch no byte of the buffers
#endif
  // Records the most recently started collective; must outlive the machine. Null: no log.
  EventLog* log = nullptr;
#if ESPALIER_PROGRAM_HOOKS
  // Called with `context` after a failure, when the cause is final and before the endpoint is
  // released. It may post and take controls; it must not call the machine, except cause(). Null:
  // nothing is called.
  void (*before_release)(void* context) = nullptr;
  // Set: a peer that takes part in no collective counts as moving, for as long as its program does
  // something else. Returns for how long, in ns, the program of this node has waited elsewhere and
  // nothing moved there; 0: it runs. Called with `context` when a peer asks. All machines of a
  // cluster must have it, or none. Null: such a peer is stalled after twice the deadline.
  std::uint64_t (*quiet_ns)(void* context) = nullptr;
  // Called with `context` when this machine knows of a failure: once, before any cause is final. It
  // must not call the machine, except cause(). Null: nothing is called.
  void (*failed)(void* context) = nullptr;
  // Whether the node has all links that pass its causes on. Called with `context` after a failure,
  // if `nodes` is set.
  bool (*is_linked)(void* context) = nullptr;
  // Set: the number of nodes. A cause is then final as soon as all of them know it, in place of a
  // quarter of the deadline later. All machines of a cluster must have it, or none.
  std::uint32_t nodes = 0;
  // With `nodes` <= 32: the links form any connected graph. Otherwise each node needs links to
  // those at distances 1, 2, 4, ... All machines of a cluster must say the same.
  bool is_graph = false;
  void* context = nullptr;
#endif
};
}  // namespace ESPALIER_MACHINE_BUILD

// The oldest message that the machine is still waiting to send or receive. Readable at any time.
struct StallReport {
  bool waiting = false;        // whether it waits for a peer; if not, only `step` is set
  std::int64_t step = 0;       // oldest step that has not retired; INT64_MAX: all have
  std::uint32_t link = 0;      // the endpoint's link
  std::uint32_t peer = 0;      // node at the link's other end
  bool sending = false;        // awaits the completion of a send; otherwise of a receive
  std::uint32_t action = 0;    // position in the program
  std::uint64_t since_ns = 0;  // endpoint clock when it began to wait
};

// Returns the bytes of scratch that `program` needs for a message.
[[nodiscard]] std::uint64_t scratch_needed(const Program& program, const Layout& layout);

inline namespace ESPALIER_MACHINE_BUILD {
// Executes one collective at a time: after init(), call start() for each and poll() while it
// returns kBusy.
class Machine {
 public:
  class Prepared;

  Machine() = default;
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Binds the machine to `endpoint` until reopen(). The endpoint and every program must outlive the
  // machine. Nothing is sent. Errors:
  //   kBadArgument  a second call, a window of 0, or check_blocks together with no_data
  //   kTooLarge     the endpoint has more than kMaxLinks links
  [[nodiscard]] Status init(Endpoint& endpoint, const MachineConfig& config);

#if ESPALIER_SPARES
  // Binds the machine to `endpoint` in place of the former one, with nothing left of what was:
  // after a failure, to go on over other links (docs/spares.md). Links, messages and collectives
  // are counted anew. The former endpoint is not called any more. Errors, on which nothing was
  // done:
  //   kBadArgument  no init(); a collective is running, or poll() has not returned its failure yet
  //   kTooLarge     as init()
  [[nodiscard]] Status reopen(Endpoint& endpoint);
#endif

  // Starts a collective of `counts` elements of op.type: a number, which refers to the whole
  // message or to one rank's part (counts_per_rank), or a number for each rank (element_counts.h).
  // Preconditions:
  //  * `program` has passed check_program.
  //  * All nodes start the same collectives in the same order.
  //  * A barrier has no elements; its operator is ignored.
  //
  // Errors, on which nothing was done:
  //   kBadArgument  no init(); a collective is running; a buffer that the program uses is null;
  //                 scratch is too small or not aligned; buffers overlap other than in place, or at
  //                 all in an all-to-all with unequal counts; make_layout()'s reasons
  //   kNoSuchPeer   the endpoint has no link to one of the program's peers
  //   kBadOperator  operator and type do not match; the type is unknown or has no size; the program
  //                 needs an operator that commutes, on every node of it. Otherwise a program
  //                 without combines accepts any op.
  //   kTooLarge     the message exceeds the limits of make_layout() or of memory; on 32-bit targets
  //                 also a schedule of more than 2^30 steps
  //   kMalformed    the program names a buffer that this node does not have
  //   kUnsupported  the window here is less than the postal model's L; the program cannot have
  //                 unequal counts
  //   and the errors of Endpoint::prepare()
  // After a failure (cause().status != kOk) every start() returns that status.
  //
  // The collective later ends with kTooLarge if a step of a MULTIPORT program has more messages on
  // a link than the endpoint's window or kRing.
  [[nodiscard]] Status start(const Program& program, const Buffers& buffers, const Operator& op,
                             ElementCounts counts);

  // For a collective that is started again and again with the same buffers, operator and counts.
  // prepare() checks it once, with the errors of start(); after an error `prepared` cannot be
  // started. Each start of `prepared` on this machine then takes a fraction of the time. If all
  // steps fit into the window, prepare() also finds their messages, combines and copies, and each
  // start issues them as a whole; a machine with a log or a step limit issues them one by one.
  // `prepared` and everything that prepare() was given must last until the end of the last
  // collective that is started from it. After reopen() it cannot be started.
  [[nodiscard]] Status prepare(const Program& program, const Buffers& buffers, const Operator& op,
                               ElementCounts counts, Prepared& prepared);
  // Starts what prepare() checked. Errors: kBadArgument, it checked nothing since reopen(), or a
  // collective is running; the errors of Endpoint::prepare().
  [[nodiscard]] Status start(const Prepared& prepared);

  // Does a bounded amount of work. Call it while idle too: the machine replies to probes from here.
  //   kBusy      the collective is in progress
  //   kOk        the collective is complete, or the machine is idle
  //   otherwise  the failure; every later poll() returns it again
  [[nodiscard]] Status poll();

  // Ends the collective with a failure that this node found, which becomes the cause on all nodes.
  // An operator of the program may call it: the block that it combines is not sent. Requires
  // is_failure(failure).
  void stop(Status failure) { fail_here(failure); }

  // Returns the cause of the failure; its status is kOk if there is none. While poll() returns
  // kBusy, a cause that takes precedence may still replace it.
  [[nodiscard]] const Cause& cause() const;
  // After a failure, returns the report for the time of the failure.
  [[nodiscard]] StallReport stall_report() const;
#if ESPALIER_PROGRAM_HOOKS
  // Returns the endpoint's time (now(), ns) of the last move of the collective in progress, or of
  // what its peers await.
  [[nodiscard]] std::uint64_t moved_at() const { return failure_detector_.moved_at(); }
#endif
  // Returns N of the collective that was started or prepared last.
  [[nodiscard]] std::uint32_t blocks() const;

  // Lock step: steps >= `limit` are not issued until the limit is raised. Call after init().
  // Unlimited by default.
  void set_step_limit(std::int64_t limit);
  // Whether the memory of each collective stays accessible to the peers after its end, so that the
  // next one with the same buffers needs no registration: for persistent plans. False at first.
  void keep_regions(bool keep) { keeps_regions_ = keep; }
  // The next three functions are for simulators.
  // Returns the first step that has not been issued; INT64_MAX: none is known.
  [[nodiscard]] std::int64_t next_step() const {
    return running_ ? instance_scheduler_.next_step() : InstanceScheduler::kNever;
  }
  // Whether the last poll() left a post that was ready to the next one: the fabric had no room, or
  // check_blocks is set and the poll had posted another block.
  [[nodiscard]] bool refused() const { return post_refused_; }
  // Returns the step of the post with this context. Valid only inside the endpoint's call that
  // takes the post.
  [[nodiscard]] std::int64_t step_of(std::uint32_t context) const {
    return step(static_cast<std::uint8_t>(context)).number;
  }
  // Returns the endpoint time (now(), ns) at which poll() has work even if nothing arrives;
  // UINT64_MAX: none.
  [[nodiscard]] std::uint64_t next_deadline() const;

 private:
  friend PackedState;
  // A step in flight: issued and not retired.
  struct Step {
    std::int64_t number = 0;
    Rows ops = 0;               // combines and copies that have not run: the scheduler's rows
    std::uint8_t receives = 0;  // incomplete receives
    std::uint8_t sends = 0;     // incomplete sends
    std::uint8_t unposted = 0;  // incomplete sends that are not posted

    [[nodiscard]] bool ready() const { return receives == 0 && ops == 0; }
    [[nodiscard]] bool done() const { return ready() && sends == 0; }
  };
  // A block in memory.
  struct Block {
    std::uint8_t* bytes = nullptr;
    std::size_t size = 0;
    std::size_t elements = 0;
  };

  // A combine or copy.
  struct Operation {
    Block into, a, b;         // a copy has no b
    std::uint8_t action = 0;  // position in the program
  };

  // The part of the whole message that a buffer of the caller holds; size is 0 if no action names
  // the buffer.
  struct BufferPart {
    std::uint8_t* bytes = nullptr;
    std::size_t size = 0;
    std::uint64_t offset = 0;  // of the part in the whole message, bytes
  };
  // The buffers that the program's actions name, and whether any of them combines.
  struct BufferUses {
    bool input = false, output = false, combines = false;
    void add_operand(bool present, const Operand& operand);
  };

  // A collective that passed the checks of start().
  struct Checked {
    const Program* program = nullptr;
    Layout layout = {0, 0, 0, 0, 0, 0};
    BufferPart input, output;
    std::uint8_t* scratch = nullptr;
    Operator op = {.commutes = false};
    std::uint8_t window = 0;
    std::uint64_t digest = 0;  // of what the ranks must agree on, except the sequence number
    Region regions[Endpoint::kMaxRegions];
    std::uint32_t regions_count = 0;
#if ESPALIER_SPARES
    std::uint8_t reopened = 0;  // Machine::reopened_ at the check
#endif
  };

#if ESPALIER_SHORT_COLLECTIVES
  // All that the steps of a collective issue, if they fit into the window. Message::step is the
  // position in `steps`; Step::ops has positions in `operations`.
  struct ShortCollective {
    static constexpr std::uint32_t kMaxMessages = 64, kMaxOperations = 32;
    struct LinkMessage {
      Message message;
      std::uint8_t link = 0;  // the endpoint's
      bool send = false;
    };
    std::uint32_t steps_count = 0;  // 0: they do not fit, or are not kept
    std::uint32_t messages_count = 0, operations_count = 0;
    Step steps[kMaxWindow];
    LinkMessage messages[kMaxMessages];
    Operation operations[kMaxOperations];
  };
  static_assert(ShortCollective::kMaxOperations <= 8 * sizeof(Rows));

  void find_short(Prepared& prepared);
  [[nodiscard]] bool find_messages(ShortCollective& found);
  [[nodiscard]] bool find_operations(ShortCollective& found);
  void issue_short(const ShortCollective& all);
#endif

  // start.cc
  [[nodiscard]] Status check(const Program& program, const Buffers& buffers, const Operator& given,
                             ElementCounts counts, Checked& checked, std::uint8_t* links);
  void bind(const Checked& checked);
  void begin(const Checked& checked);
  [[nodiscard]] static BufferUses uses_of(const Program& program);
  [[nodiscard]] static Status check_operator(const Program& program, const BufferUses& uses,
                                             const Operator& op);
  [[nodiscard]] static Status find_part(const Program& program, const Layout& layout,
                                        Buffer::Value buffer, const void* bytes, BufferPart& part);
  [[nodiscard]] static Status check_scratch(std::uint64_t needed, const Buffers& buffers);
  [[nodiscard]] static Status find_regions(const BufferPart& input, const BufferPart& output,
                                           const BufferPart& scratch, Region* regions,
                                           std::uint32_t& count);
  [[nodiscard]] Status map_links(const Program& program, std::uint8_t* links);
  [[nodiscard]] std::uint8_t window_of(const Program& program) const;
  [[nodiscard]] std::uint64_t digest_of(const Program& program, const Layout& layout,
                                        const Operator& op, ElementCounts counts) const;
  void start_tags(std::uint64_t digest);

  // machine.cc
  bool take_completions(bool& found);
  void handle(const Completion& completion);
  void complete(const Completion& completion, bool sent);
  void handle_unexpected(std::uint32_t link, std::uint64_t tag);
  void finish();
  void fail(Status status, std::uint32_t link) {
    failure_detector_.fail(status, failure_detector_.peer(link));
  }
  void fail_here(Status status) { failure_detector_.fail(status, endpoint_->node()); }

  // window.cc
  // What a poll may still do, so that polls stay short.
  struct PollBudget {
    std::uint32_t steps = kMaxWindow;  // to issue
    bool operates = true;              // one combine or copy
  };
  void work(bool retry, PollBudget& budget);
  void issue_steps(std::uint32_t& budget);
  void issue_step();
  [[nodiscard]] bool find_link(std::uint32_t row, std::uint32_t ahead, std::uint32_t& link) const;
  [[nodiscard]] bool has_room();
  [[nodiscard]] bool leaves_out_empty() const;
  [[nodiscard]] bool issue_message(std::uint32_t row, std::uint64_t now);
  void retire();
  void post_all();
  [[nodiscard]] bool post_send(std::uint32_t link);
  void post_receives(std::uint32_t link);
  void note_post(std::uint32_t link, MessageRing& ring, LinkSet& unposted);
  [[nodiscard]] bool run_op();
  // Whether the endpoint took the post.
  [[nodiscard]] bool check_post(Status status, std::uint32_t link);
  [[nodiscard]] std::uint64_t log_now() const;  // 0 unless there is a log with times
  void log_issue(std::uint32_t row, std::uint32_t ahead, std::uint64_t now);
  void log_ops(std::uint32_t row, std::uint64_t now);
  [[nodiscard]] bool has_reached(std::uint8_t from, std::uint32_t after, bool ops_too) const;
  [[nodiscard]] bool can_run(const Action& action) const;
  [[nodiscard]] bool is_being_sent(const Block& block) const;
  [[nodiscard]] bool locate(std::uint32_t row, const Operand& operand, Block& block) const;
  [[nodiscard]] bool find_operation(std::uint32_t row, Operation& operation) const;
  [[nodiscard]] bool operate(const Operation& operation);
  // Returns the address of an operand in scratch, which begins with this segment in this slot.
  [[nodiscard]] std::uint8_t* scratch_at(std::uint32_t segment, std::uint32_t slot) const {
    bool in_order = layout_.rotation == 0;
#if ESPALIER_UNEQUAL_COUNTS
    in_order = in_order && layout_.slot_groups.count == 0;
#endif
    if (in_order) return scratch_ + slot * slot_bytes_;
    return scratch_ + static_cast<std::size_t>(slot_offset(layout_, segment, slot));
  }

  Step& step(std::uint8_t counter) { return steps_[counter & kRingMask]; }
  [[nodiscard]] const Step& step(std::uint8_t counter) const { return steps_[counter & kRingMask]; }
  [[nodiscard]] std::uint8_t steps_in_flight() const {
    return static_cast<std::uint8_t>(end_step_ - first_step_);
  }
  [[nodiscard]] bool is_in_flight(std::uint8_t counter) const {
    return static_cast<std::uint8_t>(counter - first_step_) < steps_in_flight();
  }
  // Asserts what holds between two calls.
  void check_invariants() const {
    ESPALIER_ASSERT(1 <= window_limit_ && window_limit_ <= kMaxWindow);
    ESPALIER_ASSERT(steps_in_flight() <= kRing);
    ESPALIER_ASSERT(static_cast<std::uint8_t>(next_op_ - first_step_) <= steps_in_flight());
    ESPALIER_ASSERT(!running_ || program_ != nullptr);
    ESPALIER_ASSERT(!running_ || (1 <= window_ && window_ <= window_limit_));
    ESPALIER_ASSERT(!running_ || (1 <= ring_limit_ && ring_limit_ <= kRing));
    ESPALIER_ASSERT(!running_ || steps_in_flight() <= window_);
    ESPALIER_ASSERT(running_ || failure_detector_.failed() || steps_in_flight() == 0);
    ESPALIER_ASSERT(running_ || failure_detector_.failed() || posts().empty());
    ESPALIER_ASSERT(posts().next(failure_detector_.links()) == LinkSet::kNone);
    ESPALIER_ASSERT(unexpected_links_.next(failure_detector_.links()) == LinkSet::kNone);
  }
  // Returns the links with messages that are not posted, or sends that are not complete.
  [[nodiscard]] LinkSet posts() const { return sending_ | unposted_sends_ | unposted_receives_; }
  // Asserts that the rings of a link and the sets of links agree.
  void check_link([[maybe_unused]] std::uint32_t link) const {
    ESPALIER_ASSERT(sends_[link].size() <= ring_limit_);
    ESPALIER_ASSERT(receives_[link].size() <= ring_limit_);
    ESPALIER_ASSERT(sending_.contains(link) == sends_[link].has_outstanding());
    ESPALIER_ASSERT(unposted_sends_.contains(link) == sends_[link].has_unposted());
    ESPALIER_ASSERT(unposted_receives_.contains(link) == receives_[link].has_unposted());
  }

  // Everything is zero until init(), so that a static Machine takes no space in flash.
  Endpoint* endpoint_ = nullptr;
  std::uint8_t window_limit_ = 0;
  bool check_blocks_ = false;
#if ESPALIER_WITHOUT_DATA
  bool no_data_ = false;
#endif
  EventLog* log_ = nullptr;
  const Program* program_ = nullptr;
  FailureDetector failure_detector_;

  // The collective.
  Layout layout_ = {0, 0, 0, 0, 0, 0};
  BufferPart input_, output_;
  std::uint8_t* scratch_ = nullptr;
  std::size_t slot_bytes_ = 0;
  Operator op_ = {.commutes = false};
  std::uint8_t window_ = 0;
  std::uint8_t ring_limit_ = 0;  // messages that a message ring accepts
  bool running_ = false;
  bool keeps_regions_ = false;
#if ESPALIER_SPARES
  std::uint8_t reopened_ = 0;  // how often reopen() was called, modulo 256
#endif
  bool has_moved_ = false;         // the last poll() moved the collective
  bool may_have_more_ = false;     // the last poll() may have left completions
  bool post_refused_ = false;      // the last poll() has to leave a post to the next one
  bool has_checked_post_ = false;  // this poll() has computed the CRC of a block to send
  // Steps in flight: steps_[first_step_ .. end_step_), counters modulo 256. The next combine or
  // copy belongs to step next_op_ or a later one.
  std::uint8_t first_step_ = 0, end_step_ = 0, next_op_ = 0;
  Step steps_[kRing];
#if ESPALIER_SHORT_COLLECTIVES
  const ShortCollective* short_ = nullptr;  // of the collective, if it was issued as a whole
#endif
  std::int64_t step_limit_ = 0;
  TagBase tags_;
  InstanceScheduler instance_scheduler_;

  static_assert(kMaxLinks <= 256);
  std::uint8_t endpoint_links_[kMaxLinks] = {};  // the endpoint's link, by the program's
  // Message rings, by the endpoint's link.
  MessageRing sends_[kMaxLinks];
  MessageRing receives_[kMaxLinks];
  // Links with posted, incomplete sends; with sends, or receives, to post; with an unexpected
  // message of another collective.
  LinkSet sending_, unposted_sends_, unposted_receives_, unexpected_links_;
  // By link: the tag of the first unexpected message of another collective.
  std::uint64_t unexpected_tags_[kMaxLinks] = {};
  // By link: the number of messages that this collective must receive, according to unexpected
  // ones.
  std::uint32_t expected_receives_[kMaxLinks] = {};
};

// A collective that prepare() has checked, with the scheduler at its first step. For hosts: it has
// the size of an instance scheduler, and of a short collective.
class Machine::Prepared {
 public:
  // Whether each start issues all its steps at once.
  [[nodiscard]] bool is_short() const {
#if ESPALIER_SHORT_COLLECTIVES
    return short_.steps_count > 0;
#else
    return false;
#endif
  }

 private:
  friend class Machine;
  Checked checked_;
  std::uint8_t endpoint_links_[kMaxLinks] = {};
  InstanceScheduler instance_scheduler_;
#if ESPALIER_SHORT_COLLECTIVES
  ShortCollective short_;
#endif
};
}  // namespace ESPALIER_MACHINE_BUILD

}  // namespace espalier
