#pragma once
// A communicator's state: its endpoint and machine, its schedules, and the collectives that were
// started on it, which run one after the other. Host only.
//
// channel.cc runs them, channel_make.cc makes operations of calls, channel_connect.cc adds links,
// channel_failure.cc ends a communicator that failed, channel_record.cc tells readers of records.

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <future>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/process/forks.h"
#include "communicator/failure/call_comparison.h"
#include "communicator/failure/call_exchange.h"
#include "communicator/failure/early_end.h"
#include "communicator/job.h"
#include "communicator/operation.h"
#include "communicator/record/writer.h"
#include "communicator/schedules.h"
#include "espalier/collectives/machine/machine.h"
#include "espalier/collectives/schedule/program.h"
#include "espalier/communicator.h"
#include "espalier/hal/ofi/ofi_endpoint.h"

namespace espalier::communicator {

class RankGraph;

class Channel : public std::enable_shared_from_this<Channel> {
 public:
  // The processes of a communicator, by rank: numbers in the job, and addresses of their endpoints.
  struct Members {
    std::vector<std::uint32_t> jobs;
    std::vector<std::string> addresses;
    bool is_part = false;          // of a job whose network is known
    std::uint32_t generation = 0;  // of the agreement on the processes of the whole job
  };

  Channel(std::shared_ptr<Job> job, std::uint32_t rank, std::uint32_t size);
  ~Channel();
  // Gives back what the channel has of the job and the fabric, because it has left: requests and
  // plans keep no more than its memory. Collectives that are not complete become errors. In a
  // forked child: does nothing.
  void close();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // First open(), then an exchange of address(), then connect(). A part has no links before its
  // first collective, which waits for no other rank to connect. Otherwise connect() waits until
  // the backbone is connected.
  // `connect_deadline`: how long to wait for another rank.
  // `graph`: the links between the ranks, of a job over cables; null: any two can talk.
  [[nodiscard]] Result<void> open(std::chrono::nanoseconds connect_deadline, bool is_part,
                                  std::shared_ptr<const RankGraph> graph);
  [[nodiscard]] std::string address() const;
  [[nodiscard]] std::uint64_t record_id() const { return recorder_.id(); }  // 0: not recorded
  // `end`: as Bootstrap::end_accept_by(); its line is the error then.
  [[nodiscard]] Result<void> connect(Members members, const bootstrap::EndOfAccept& end = {});
  // Whether its network must be measured before any other collective; then measured() says how much
  // messages cost, alike on all ranks.
  [[nodiscard]] bool is_measuring() const { return is_measuring_; }
  void measured(const NetworkCost& cost);
  // The processes with these numbers in the job, ascending, are left: the others have ended.
  void note_survivors(const std::vector<std::uint32_t>& jobs);
  // R, if each host has R successive ranks; otherwise 1.
  [[nodiscard]] std::uint32_t ranks_per_host() const;
  // The only links that there can be; null: any two ranks can talk.
  [[nodiscard]] const std::shared_ptr<const RankGraph>& graph() const { return graph_; }
  // Ends the channel of the whole job: waits for all that was started and for the ends of parts,
  // then for the other ranks, so that closing the endpoint takes no message from them.
  // Errors: the failure; another rank did not end.
  [[nodiscard]] Result<void> leave_whole();
  // Ends the channel of a part: starts a barrier, and gives the channel to the job, which closes
  // its endpoint when all ranks have come. Waits for no other rank while the whole job's channel
  // lives.
  [[nodiscard]] Result<void> leave_part();
  [[nodiscard]] bool is_kept() const { return is_kept_; }  // the job closes it
  [[nodiscard]] bool has_left() const { return has_left_.load(std::memory_order_relaxed); }

  [[nodiscard]] std::uint32_t rank() const { return rank_; }
  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] Job& job() { return *job_; }
  [[nodiscard]] std::shared_ptr<Job> shared_job() const { return job_; }
  [[nodiscard]] const Members& members() const { return members_; }
  // After a failure: its cause. In a forked child, and while another thread calls: none.
  [[nodiscard]] Cause cause() const;
  // Whether this process was forked from the one that made the channel. All calls then fail, and
  // nothing is destroyed.
  [[nodiscard]] bool is_of_parent() const { return generation_ != process_generation(); }
  // Errors: is_of_parent().
  [[nodiscard]] Result<void> check_process() const;
  // Errors: another thread uses the channel.
  [[nodiscard]] Result<void> check_unused() const;
  // Errors: the communicator has failed.
  [[nodiscard]] Result<void> check_alive() const;

  // Communicator::cancel() and cancel_on().
  [[nodiscard]] Result<void> cancel(std::string_view reason);
  [[nodiscard]] Result<void> cancel_on(const std::atomic<std::sig_atomic_t>* flag,
                                       std::string_view reason);
  // Waits until all ranks know the cause, if the communicator was cancelled.
  void await_early_end();
  // Makes progress. Returns "cancelled by rank R: REASON" once all ranks know it; empty: they do
  // not.
  [[nodiscard]] std::string end_of_accept();
  // If all ranks know that the communicator was cancelled: ends the accept() of ranks that wait in
  // it, before this rank does anything else that ends it. Only the first call has an effect.
  void decline_accept();

  // Operations that are made from now on belong to a call of this function.
  void set_caller(Caller caller) { caller_.store(caller, std::memory_order_relaxed); }

  // Calls `function`, which returns a Result. If this rank has no memory for it, the communicator
  // fails on all ranks, and the result is that error. Functions that return no Result throw
  // nothing.
  template <typename Function>
  auto guard(Function function) -> decltype(function()) {
    try {
      return function();
    } catch (const std::bad_alloc&) {
    } catch (const std::length_error&) {  // more than a container can ever have
    }
    return fail(end_without_memory());
  }
  // Ends the communicator on all ranks, because this one has no memory for a call: waits until the
  // others know the cause. Returns this rank's error.
  [[nodiscard]] Error end_without_memory();

  // Checks the call, finds its schedule and its memory.
  // `own_counts`: this rank knows only its own entries of call.counts, and the others are 0.
  [[nodiscard]] Result<std::shared_ptr<Operation>> make(const Call& call, bool own_counts = false);
  // What a rank that ends the communicator runs last.
  [[nodiscard]] Result<std::shared_ptr<Operation>> make_leaving();
  // make(), start() and wait() in one. A call like one of the last few takes its operation again.
  [[nodiscard]] Result<void> run(const Call& call);
  // As make(), for a plan: also everything that start() would otherwise have to allocate or
  // register.
  [[nodiscard]] Result<std::shared_ptr<Operation>> plan(const Call& call);
  void forget(const Operation& operation);
  // Puts an idle or complete operation into the queue. Errors: it is not; the failure.
  [[nodiscard]] Result<void> start(Operation& operation);
  [[nodiscard]] Result<bool> test(Operation& operation);
  [[nodiscard]] Result<void> wait(Operation& operation);
  // Waits for the operation, and for a thread that uses the channel.
  void end(Operation& operation);

  [[nodiscard]] bool is_active() const { return is_active_.load(std::memory_order_relaxed); }
  // Makes progress unless another thread uses the channel. Returns whether a collective is in
  // progress.
  bool try_progress();
  // Brings the channel's part of the record up to date (channel_record.cc). Called by the
  // library's thread.
  void beat(std::uint64_t now_ns);
  // Whether the program has used the channel since the last time. For one thread of the library.
  [[nodiscard]] bool take_used() {
    const std::uint32_t uses = uses_.load(std::memory_order_relaxed);
    return std::exchange(seen_uses_, uses) != uses;
  }

 private:
  class Use;

  // How long a waiting call may block while other communicators of the process are busy.
  static constexpr std::uint64_t kBusyWaitNs = 20'000;
  // How long it may block while a flag is watched (Communicator::cancel_on).
  static constexpr std::uint64_t kFlagPauseNs = 20'000'000;
  // A call that is woken often looks at the clock once in so many waits.
  static constexpr std::uint32_t kWaitsPerLook = 16;

  [[nodiscard]] Result<void> add_link(std::uint32_t peer);
  // The ranks to which this one has a link after its first collective, and whether a rank is one.
  [[nodiscard]] std::vector<std::uint32_t> backbone() const;
  [[nodiscard]] bool is_in_backbone(std::uint32_t peer) const;
  [[nodiscard]] Result<void> add_backbone();
  [[nodiscard]] Result<void> connect_backbone(const bootstrap::EndOfAccept& end);
  [[nodiscard]] std::string unconnected_text();
  [[nodiscard]] Result<void> add_links(const Program& program);
  [[nodiscard]] Result<const PlannedProgram*> plan_of(const ScheduleRequest& request);
  [[nodiscard]] Result<const PlannedProgram*> obtain(const ScheduleRequest& request);
  // Returns the operation's scratch, 16-byte aligned.
  [[nodiscard]] void* provide_scratch(Operation& operation);
  void progress();
  void progress_or_throw();
  // Ends the communicator on all ranks, because this one has no memory.
  void stop_without_memory();
  // Waits until a message may have arrived.
  void wait_for_peers();
  // While a call waits long: notes what it waits for, and says it (channel_record.cc).
  [[nodiscard]] std::uint64_t next_look();
  void look();
  void say_wait(const StallReport& report, std::uint64_t now);
  void note_wait(const StallReport& report);
  void record_operation(Operation& operation);
  void record_failure();
  void await_completion(Operation& operation);
  // start(), wait(), and both, of the thread that uses the channel.
  [[nodiscard]] Result<void> enqueue(Operation& operation);
  [[nodiscard]] Result<void> finish_waiting(Operation& operation);
  [[nodiscard]] Result<void> start_and_wait(Operation& operation);
  void begin(Operation& operation);
  static void copy_input(Operation& operation);
  [[nodiscard]] Status begin_machine(Operation& operation);
  void finish(Result<void> result);
  void set_active(bool is_active);
  void fail_all();
  void exchange_notes();
  // The operator as the machine calls it: one of the program's in combine_guarded().
  [[nodiscard]] Operator guarded(const Operator& given);
  // A CombineFn that calls the operator of the collective in progress, whose exception ends it.
  static void combine_guarded(void* into, const void* a, const void* b, std::uint64_t count,
                              void* channel);
  void copy_alone(const Call& call) const;
  [[nodiscard]] Error failure_of(const Operation& operation) const;
  // The same for a call that began after the failure.
  [[nodiscard]] Error late_failure(const Operation& operation);
  [[nodiscard]] std::string failure_text(const Operation& operation) const;
  // channel_cancel.cc
  void end_early();
  void note_failure();
  [[nodiscard]] bool is_linked() const { return has_backbone_ && connecting_.empty(); }
  // The library's thread looks at this channel again and again, until rest().
  void hurry();
  void rest();
  [[nodiscard]] Cause known_cause() const;
  [[nodiscard]] bool has_cause() const { return known_cause().status != Status::kOk; }
  // has_ended_, for a thread that does not use the channel yet.
  [[nodiscard]] bool has_ended() const;
  [[nodiscard]] std::string cancel_text(const Cause& cause) const;

  // The extent of the call's input or output at this rank.
  [[nodiscard]] Extent extent_of(const Call& call, Buffer::Value buffer) const {
    const Extents& of = extents_[call.collective];
    return (buffer == Buffer::kInput ? of.input : of.output)[call.root == rank_ ? 1 : 0];
  }

  std::shared_ptr<Job> job_;
  std::uint32_t rank_, size_;
  // By collective: where another rank is the root, and where this one is.
  struct Extents {
    std::array<Extent, 2> input = {}, output = {};
  };
  std::array<Extents, std::size(kAllCollectives) + 1> extents_;
  Members members_;
  bool is_measuring_ = false;
  std::atomic<Caller> caller_ = Caller::kProgram;
  record::Recorder recorder_;
  std::uint64_t look_due_ns_ = 0;   // of the call that waits; 0: none has waited
  std::uint64_t wait_from_ns_ = 0;  // when it began to wait
  std::uint32_t waits_ = 0, beats_ = 0, beat_uses_ = 0;
  std::unique_ptr<ofi::AddedLinks> fabric_;  // null: one rank
  std::shared_ptr<const RankGraph> graph_;   // null: any two ranks can talk
  // run() keeps them, without a channel: a call that comes again allocates nothing (schedules.h).
  std::array<std::shared_ptr<Operation>, 4> recent_operations_;
  std::size_t next_recent_operation_ = 0;
  std::vector<bool> linked_;               // ranks to which there is a link
  bool has_backbone_ = false;              // its links are added
  std::vector<std::uint32_t> connecting_;  // links that are not connected yet
  Machine machine_;
  CallHistory started_calls_;
  // What ends the communicator on this rank: the exception of its operator, or that it has no
  // memory.
  FailureNote::Text reason_ = {};
  FailureNote note_;                     // of a mismatch, or of a reason
  CallComparison comparison_;            // of a mismatch
  bool has_ended_ = false;               // by a failure: all ranks know the cause
  std::uint64_t failed_word_ = 0;        // of the failed call
  std::uint64_t without_memory_ns_ = 0;  // when this rank had none at first; 0: it had
  EarlyEnd early_end_;
  bool has_declined_ = false;              // decline_accept()
  Cause alone_cause_;                      // of a communicator of one rank
  std::atomic<bool> is_hurrying_ = false;  // hurry()
  std::mutex wake_mutex_;                  // of fabric_'s end, for threads that do not use this
  std::shared_ptr<Schedules> schedules_;
  std::future<Result<const PlannedProgram*>> unused_plan_;  // chosen when the communicator failed
  Scratch scratch_;             // of the collective in progress, unless it is a plan's
  Operation* first_ = nullptr;  // in progress
  Operation* last_ = nullptr;
  // The thread that is in the channel: of the program, in a call, or one that makes progress.
  enum User : int { kNobody, kProgram, kProgress };
  mutable std::atomic<User> user_ = kNobody;
  mutable std::atomic<std::uint32_t> uses_ = 0;  // by the program; counted by its thread
  std::uint32_t seen_uses_ = 0;                  // of take_used()
  std::atomic<bool> is_active_ = false;          // the queue has more than a leaving barrier
  bool is_listed_ = false;                       // in the job
  std::uint32_t generation_ = process_generation();
  bool is_leaving_ = false, is_kept_ = false;
  std::shared_ptr<Operation> leaving_;  // the barrier after which the endpoint may be closed
  std::atomic<bool> has_left_ = false;
};

}  // namespace espalier::communicator
