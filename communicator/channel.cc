#include "communicator/channel.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <future>
#include <system_error>
#include <thread>
#include <utility>

#include "base/process/forks.h"
#include "base/try.h"
#include "collectives/schedule/selection.h"
#include "communicator/call_check.h"
#include "communicator/call_word.h"
#include "communicator/no_memory.h"
#include "espalier/collectives/schedule/program.h"

namespace espalier::communicator {
namespace {

// How often a thread that awaits a plan replies to other ranks.
constexpr std::chrono::milliseconds kPlanningPause(2);

// How long the ranks of a failed communicator wait for each other's notes (call_exchange.h).
constexpr std::uint64_t kMaxNoteExchangeNs = 5'000'000'000;

const char* verb_of(const StallReport& report) {
  return report.sending ? "send to" : "receive from";
}

// Whether the calls are the same to a schedule, to the machine and to the checks of make().
bool are_alike(const Call& a, const Call& b) {
  return a.collective == b.collective && a.send == b.send && a.receive == b.receive &&
         a.count == b.count && a.counts.empty() && b.counts.empty() && a.op.op == b.op.op &&
         a.op.type == b.op.type && a.op.commutes == b.op.commutes &&
         a.op.element_bytes == b.op.element_bytes && a.op.custom_id == b.op.custom_id &&
         a.op.custom == b.op.custom && a.op.context == b.op.context && a.root == b.root &&
         a.send_room == b.send_room && a.receive_room == b.receive_room;
}

ElementCounts counts_of(Operation& operation) {
  const Call& call = operation.call;
  if (call.counts.empty()) return call.count;
  ElementCounts counts(call.counts.data(), call.counts.size(), operation.offsets.data());
  counts.own_only = operation.has_own_counts;
  return counts;
}

// A rank with the word of its call (call_word.h); 0: not known.
struct RankedWord {
  std::uint32_t rank = 0;
  std::uint64_t word = 0;
};

// Whether a rank tells the others by a text why it ended the communicator.
bool has_reason(const Cause& cause) {
  if (cause.status == Status::kBadOperator) return true;
  return cause.status == Status::kBackEnd && cause.detector == cause.peer;
}

// Returns the calls of the two ranks of a mismatch and of this rank, as far as they are known.
std::string calls_of(const Cause& cause, const FailureNote& note, const RankedWord& own) {
  const auto [detector, peer] = note.calls();
  std::vector<RankedWord> known = {{cause.detector, detector}, {cause.peer, peer}};
  if (own.rank != cause.detector && own.rank != cause.peer) known.push_back(own);
  std::string text;
  for (const RankedWord& each : known) {
    if (each.word == 0) continue;
    text += (text.empty() ? ": rank " : "; rank ") + std::to_string(each.rank) + " " +
            call_text(each.word);
  }
  if (detector == 0 || peer == 0) return text;
  const std::string hidden = hidden_difference(detector, peer);
  return hidden.empty() ? text : text + "; " + hidden;
}

// Copies the text of an exception as one line, as far as there is room. Allocates nothing.
void take_line(const char* what, FailureNote::Text& line) {
  line = {};
  for (std::size_t i = 0; i + 1 < line.size() && what[i] != 0; ++i) {
    const bool is_text = static_cast<unsigned char>(what[i]) >= ' ' && what[i] != 0x7f;
    line[i] = is_text ? what[i] : ' ';
  }
}

Error crowded() { return {"another thread uses this communicator; expected one thread at a time"}; }

// Words of memory for the operation's scratch, with room to align it by 16 bytes.
std::size_t scratch_words(const Operation& operation) {
  return operation.scratch_bytes / sizeof(std::uint64_t) + 3;
}

}  // namespace

// The program's use of a channel: by one thread at a time. It waits while another thread makes
// progress, which is short and seldom. If another thread of the program uses the channel, has() is
// false, except in functions that have no error: they wait for that thread.
class Channel::Use {
 public:
  enum class Crowd : std::uint8_t { kIsError, kWaits };
  explicit Use(const Channel& channel, Crowd crowd = Crowd::kIsError) : user_(channel.user_) {
    for (User user = kNobody;
         !user_.compare_exchange_strong(user, kProgram, std::memory_order_acquire);
         user = kNobody) {
      if (user == kProgram && crowd == Crowd::kIsError) {
        has_ = false;
        return;
      }
      user == kProgram ? std::this_thread::sleep_for(kCrowdPause) : user_.wait(kProgress);
    }
    channel.uses_.store(channel.uses_.load(std::memory_order_relaxed) + 1,
                        std::memory_order_relaxed);
  }
  ~Use() {
    if (has_) user_.store(kNobody, std::memory_order_release);
  }
  [[nodiscard]] bool has() const { return has_; }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  static constexpr std::chrono::microseconds kCrowdPause{100};
  std::atomic<User>& user_;
  bool has_ = true;
};

Operation::~Operation() {
  // Its owner saw whether it is complete; another thread may use the channel now.
  if (channel != nullptr && state != State::kIdle && state != State::kComplete) {
    channel->end(*this);
  }
  if (!kept.empty()) channel->forget(*this);
}

Channel::~Channel() {
  if (is_listed_) job_->remove(*this);
  if (is_active()) set_active(false);
}

// A barrier that does not match one of the program: ranks compare the operators' numbers, and the
// operator of a program's barriers has none.
Result<std::shared_ptr<Operation>> Channel::make_leaving() {
  auto barrier = make(call::barrier());
  if (!barrier) return barrier;
  (*barrier)->word = kLeavingWord;
  (*barrier)->call.op.custom_id = kLeavingWord;
  return barrier;
}

Result<void> Channel::check_alive() const {
  const Cause failure = cause();
  if (failure.status == Status::kOk) return {};
  return fail(std::string("the communicator failed before: ") + status_name(failure.status) +
              ", found by rank " + std::to_string(failure.detector));
}

Result<void> Channel::leave_whole() {
  if (is_of_parent()) return check_process();
  if (size_ == 1 || !is_listed_) {
    job_->end_whole(true);
    return {};
  }
  while (true) {
    Operation* waiting = nullptr;
    {
      const Use use(*this, Use::Crowd::kWaits);
      waiting = last_;
    }
    if (waiting == nullptr) break;
    end(*waiting);
  }
  job_->end_whole(cause().status == Status::kOk);
  // Only what the barrier itself sends may be lost when another rank closes its endpoint first.
  return guard([this]() -> Result<void> {
    ESPALIER_TRY(check_alive());
    ESPALIER_TRY_TO(auto barrier, make_leaving());
    ESPALIER_TRY(start(*barrier));
    ESPALIER_TRY(wait(*barrier));
    return job_->members().fence();
  });
}

Result<void> Channel::leave_part() {
  if (is_of_parent()) return check_process();
  if (size_ == 1 || !is_listed_) return {};
  return guard([this]() -> Result<void> {
    ESPALIER_TRY(check_alive());
    ESPALIER_TRY_TO(auto barrier, make_leaving());
    {
      const Use use(*this, Use::Crowd::kWaits);
      leaving_ = std::move(barrier);
      leaving_->channel = nullptr;  // which would keep itself alive
      is_leaving_ = true;
      (void)enqueue(*leaving_);
    }
    job_->keep_until_left(shared_from_this());
    return {};
  });
}

Result<void> Channel::check_process() const {
  if (!is_of_parent()) return {};
  return fail("this process was forked from rank " + std::to_string(rank_) +
              " and has no rank of its own; expected the call in the process that joined");
}

Cause Channel::cause() const {
  if (is_of_parent()) return {};
  const Use use(*this, Use::Crowd::kWaits);
  return size_ == 1 ? Cause() : machine_.cause();
}

// Choosing and proving may take longer than the deadline of ranks that have done so. Meanwhile this
// thread replies to them.
Result<const PlannedProgram*> Channel::obtain(const ScheduleRequest& request) {
  if (const PlannedProgram* const found = schedules_->find(request)) return found;
  std::future<Result<const PlannedProgram*>> planned;
  try {
    planned =
        std::async(std::launch::async, [this, &request] { return schedules_->obtain(request); });
  } catch (const std::system_error&) {
    // There is no thread more: this one chooses, and replies afterwards.
    return schedules_->obtain(request);
  }
  while (planned.wait_for(kPlanningPause) != std::future_status::ready) {
    progress();
    (void)job_->progress_others(this);
  }
  return planned.get();
}

// Obtains the plan, and adds its links.
Result<const PlannedProgram*> Channel::plan_of(const ScheduleRequest& request) {
  auto planned = obtain(request);
  if (!planned) return planned;
  ESPALIER_TRY(add_links((*planned)->program));
  return planned;
}

Result<std::shared_ptr<Operation>> Channel::make(const Call& call, bool own_counts) {
  ESPALIER_TRY(check_process());
  ESPALIER_TRY(check_arguments(call, size_));
  const CallExtents extents{extent_of(call, Buffer::kInput), extent_of(call, Buffer::kOutput)};
  ESPALIER_TRY(check_memory(call, extents, {rank_, size_}));
  auto operation = make_of_process<Operation>();
  operation->channel = shared_from_this();
  operation->call = call;
  operation->has_own_counts = own_counts;
  operation->word = call_word(call, own_counts);
  if (size_ == 1) return operation;
  ScheduleRequest request;
  request.collective = call.collective;
  request.root = call.root;
  request.unequal_counts = !call.counts.empty();
  request.own_counts = own_counts;
  request.commutes = commutes(call.op);
  const ElementCounts counts(
      call.counts.empty() ? call.count : *std::max_element(call.counts.begin(), call.counts.end()));
  // Equal on all ranks.
  request.bytes = own_counts ? 0 : started_bytes(counts, element_bytes(call.op));
  const Use use(*this);
  if (!use.has()) return fail(crowded());
  auto planned = plan_of(request);
  const std::string name = collective_name(call.collective);
  if (!planned) return fail(name + ": " + planned.error().message);
  operation->planned = *planned;
  if (auto found = find_memory(*operation); !found)
    return fail(name + ": " + found.error().message);
  return operation;
}

Result<void> Channel::run(const Call& call) {
  if (is_of_parent()) return check_process();
  const auto recent = std::find_if(
      recent_operations_.begin(), recent_operations_.end(),
      [&](const auto& each) { return each != nullptr && are_alike(each->call, call); });
  if (recent != recent_operations_.end()) return start_and_wait(**recent);
  ESPALIER_TRY_TO(const std::shared_ptr<Operation> operation, make(call));
  operation->channel = nullptr;  // which would keep itself alive
  // Those with much memory of their own are not kept.
  if (call.counts.empty() && operation->input_copy.empty()) {
    recent_operations_[next_recent_operation_++ % recent_operations_.size()] = operation;
  }
  return start_and_wait(*operation);
}

Result<void> Channel::start_and_wait(Operation& operation) {
  const Use use(*this);
  if (!use.has()) return fail(crowded());
  ESPALIER_TRY(enqueue(operation));
  return finish_waiting(operation);
}

Result<std::shared_ptr<Operation>> Channel::plan(const Call& call) {
  auto made = make(call);
  if (!made || (*made)->planned == nullptr) return made;
  Operation& operation = **made;
  operation.own_scratch.resize(scratch_words(operation));
  operation.prepared = std::make_unique<Machine::Prepared>();
  const Buffers& buffers = operation.buffers;
  // The fabric only reads the input.
  for (const Region region : {Region{const_cast<void*>(buffers.input), operation.input_bytes},
                              Region{buffers.output, operation.output_bytes},
                              Region{provide_scratch(operation), operation.scratch_bytes}}) {
    if (region.bytes != nullptr && region.size != 0) operation.kept.push_back(region);
  }
  const Use use(*this, Use::Crowd::kWaits);
  if (auto kept = fabric_->keep(operation.kept); !kept) {
    operation.kept.clear();
    return fail(std::string(collective_name(call.collective)) + ": " + kept.error().message);
  }
  return made;
}

void Channel::forget(const Operation& operation) {
  const Use use(*this, Use::Crowd::kWaits);
  fabric_->forget(operation.kept);
}

Result<void> Channel::find_memory(Operation& operation) {
  const Call& call = operation.call;
  const Program& program = operation.planned->program;
  const std::uint32_t size = element_bytes(call.op);
  operation.offsets.resize(call.counts.empty() ? 0 : unequal_offsets(call.collective, size_));
  const ElementCounts counts = counts_of(operation);
  Layout layout;
  const Status status = make_layout(program, counts, size, layout);
  if (status != Status::kOk) return fail(status_name(status));
  operation.scratch_bytes = scratch_needed(program, layout);
  Buffers& buffers = operation.buffers;
  const bool has_input = buffer_extent(program, Buffer::kInput) != Extent::kNothing;
  const bool has_output = buffer_extent(program, Buffer::kOutput) != Extent::kNothing;
  buffers.input = has_input ? call.send : nullptr;
  buffers.output = has_output ? call.receive : nullptr;
  const std::uint64_t input_bytes = operation.input_bytes =
      size * elements_of(buffer_extent(program, Buffer::kInput), call, {rank_, size_}, true);
  const std::uint64_t output_bytes = operation.output_bytes =
      size * elements_of(buffer_extent(program, Buffer::kOutput), call, {rank_, size_}, false);
  const auto* input = static_cast<const std::uint8_t*>(buffers.input);
  const auto* output = static_cast<const std::uint8_t*>(buffers.output);
  const bool shared = input_bytes != 0 && output_bytes != 0 && input < output + output_bytes &&
                      output < input + input_bytes;
  const bool unequal_all_to_all = call.collective == Collective::kAllToAll && !call.counts.empty();
  if (shared && (!operation.planned->in_place || unequal_all_to_all)) {
    operation.input_copy.resize(input_bytes);
    operation.copied_from = buffers.input;
    buffers.input = operation.input_copy.data();
  }
  return {};
}

void* Channel::provide_scratch(Operation& operation) {
  Scratch& words = operation.own_scratch.empty() ? scratch_ : operation.own_scratch;
  if (words.size() < scratch_words(operation)) words.resize(scratch_words(operation));
  const auto address = reinterpret_cast<std::uintptr_t>(words.data());
  return reinterpret_cast<void*>((address + 15) / 16 * 16);
}

Result<void> Channel::start(Operation& operation) {
  if (is_of_parent()) return check_process();
  const Use use(*this);
  if (!use.has()) return fail(crowded());
  auto started = enqueue(operation);
  if (operation.state != Operation::State::kComplete) job_->call_progress_thread();
  return started;
}

Result<void> Channel::enqueue(Operation& operation) {
  if (operation.state == Operation::State::kQueued ||
      operation.state == Operation::State::kRunning) {
    return fail(std::string(collective_name(operation.call.collective)) +
                ": the last start is not complete; expected wait() first");
  }
  operation.result = {};
  if (operation.planned == nullptr) {
    copy_alone(operation.call);
    operation.state = Operation::State::kComplete;
    return {};
  }
  operation.next = nullptr;
  operation.state = Operation::State::kQueued;
  (last_ == nullptr ? first_ : last_->next) = &operation;
  last_ = &operation;
  // No thread waits for a barrier that ends a communicator.
  if (!is_leaving_ && !is_active_.load(std::memory_order_relaxed)) set_active(true);
  progress();
  if (operation.state != Operation::State::kComplete) return {};
  return operation.result;
}

// A job of one rank has nothing to communicate.
void Channel::copy_alone(const Call& call) const {
  const std::uint64_t elements = elements_of(extent_of(call, Buffer::kOutput), call, {}, false);
  const std::uint64_t bytes = elements * element_bytes(call.op);
  if (bytes != 0 && call.receive != call.send) std::memmove(call.receive, call.send, bytes);
}

void Channel::begin(Operation& operation) {
  operation.state = Operation::State::kRunning;
  if (operation.copied_from != nullptr) {
    std::memcpy(operation.input_copy.data(), operation.copied_from, operation.input_copy.size());
  }
  started_calls_.add(operation.word);
  const Status status = begin_machine(operation);
  // A machine that has failed ends in its next polls, once all ranks know the cause.
  if (status == Status::kOk || machine_.cause().status != Status::kOk) return;
  started_calls_.remove();
  finish(
      fail(std::string(collective_name(operation.call.collective)) + ": " + status_name(status)));
}

// No exception may cross the machine: an operator's ends the collective, on all ranks.
void Channel::combine_guarded(void* into, const void* a, const void* b, std::uint64_t count,
                              void* channel) {
  auto& self = *static_cast<Channel*>(channel);
  const Operator& op = self.first_->call.op;
  try {
    return op.custom(into, a, b, count, op.context);
  } catch (const std::exception& exception) {
    take_line(exception.what(), self.reason_);
  } catch (...) {
    take_line("", self.reason_);
  }
  self.machine_.stop(Status::kBadOperator);
}

Operator Channel::guarded(const Operator& given) {
  Operator op = given;
  if (op.op != Op::kCustom) return op;
  op.custom = combine_guarded;
  op.context = this;
  return op;
}

Status Channel::begin_machine(Operation& operation) {
  void* const scratch = provide_scratch(operation);
  if (operation.is_prepared && operation.buffers.scratch == scratch) {
    return machine_.start(*operation.prepared);
  }
  operation.buffers.scratch = scratch;
  operation.buffers.scratch_bytes = operation.scratch_bytes;
  const Operator op = guarded(operation.call.op);
  const ElementCounts counts = counts_of(operation);
  const Program& program = operation.planned->program;
  const bool has_started = std::exchange(operation.has_started, true);
  if (has_started && operation.prepared == nullptr) {
    operation.prepared = std::make_unique<Machine::Prepared>();
  }
  if (operation.prepared == nullptr) {
    return machine_.start(program, operation.buffers, op, counts);
  }
  const Status status =
      machine_.prepare(program, operation.buffers, op, counts, *operation.prepared);
  operation.is_prepared = status == Status::kOk;
  return operation.is_prepared ? machine_.start(*operation.prepared) : status;
}

void Channel::finish(Result<void> result) {
  Operation& done = *first_;
  first_ = done.next;
  if (first_ == nullptr) last_ = nullptr;
  done.result = std::move(result);
  done.state = Operation::State::kComplete;
  if (first_ == nullptr && is_active_.load(std::memory_order_relaxed)) set_active(false);
}

void Channel::set_active(bool is_active) {
  is_active_.store(is_active, std::memory_order_relaxed);
  job_->count_active(is_active ? 1 : -1);
}

// Learns the calls of a mismatch, or the reason of a rank. Allocates nothing. This rank may be
// choosing a schedule, with nothing in progress: the others tell their notes now. The limit is
// short next to the deadline: a peer that takes no part is not waited for.
void Channel::exchange_notes() {
  const Cause& cause = machine_.cause();
  if (cause.status == Status::kMismatch) {
    note_.make_calls(cause, rank_, started_calls_);
  } else if (has_reason(cause)) {
    note_.make_text(cause, rank_, reason_);
  } else {
    return;
  }
  Endpoint& endpoint = fabric_->endpoint();
  std::array<std::uint32_t, kMaxLinks> links;
  std::size_t count = 0;
  for (std::uint32_t link = 0; link < std::min(endpoint.links(), kMaxLinks); ++link) {
    const auto found = std::find(backbone_.begin(), backbone_.end(), endpoint.peer(link));
    if (found != backbone_.end()) links[count++] = link;
  }
  const auto deadline = static_cast<std::uint64_t>(job_->options().deadline.count());
  exchange_note(endpoint, std::span(links).first(count), note_,
                std::min(deadline / 4, kMaxNoteExchangeNs));
}

void Channel::fail_all() {
  while (first_ != nullptr) finish(fail(failure_of(*first_)));
}

void Channel::progress() {
  try {
    return progress_or_throw();
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  stop_without_memory();
}

// If there is none even for what the other ranks must be sent, they find the cause themselves.
void Channel::stop_without_memory() {
  const std::uint64_t now = fabric_->endpoint().now();
  if (without_memory_ns_ == 0) {
    without_memory_ns_ = now;
    if (machine_.cause().status == Status::kOk) {
      take_line(memory_error("").message.c_str(), reason_);
      machine_.stop(Status::kBackEnd);
    }
  }
  const auto deadline = static_cast<std::uint64_t>(job_->options().deadline.count());
  if (now - without_memory_ns_ <= deadline / 2) return;
  has_ended_ = true;
  fail_all();
}

Error Channel::end_without_memory() {
  if (!is_of_parent() && is_listed_ && fabric_ != nullptr) {
    const Use use(*this, Use::Crowd::kWaits);
    stop_without_memory();
    while (!has_ended_) {
      progress();
      if (!has_ended_) wait_for_peers();
    }
  }
  return memory_error("rank " + std::to_string(rank_) + ": ");
}

void Channel::progress_or_throw() {
  if (fabric_ == nullptr) return;
  if (!connecting_.empty()) {
    const auto connected = fabric_->connect_links(connecting_);
    if (!connected || *connected) connecting_.clear();
  }
  if (first_ != nullptr && first_->state == Operation::State::kQueued) begin(*first_);
  const Status status = machine_.poll();
  if (status == Status::kBusy) return;
  if (status != Status::kOk) {
    has_ended_ = true;
    fail_all();
    return;
  }
  if (first_ != nullptr && first_->state == Operation::State::kRunning) {
    finish({});
    if (first_ != nullptr) begin(*first_);
  }
}

bool Channel::try_progress() {
  User user = kNobody;
  if (user_.compare_exchange_strong(user, kProgress, std::memory_order_acquire)) {
    progress();
    has_left_.store(is_leaving_ && first_ == nullptr, std::memory_order_relaxed);
    user_.store(kNobody, std::memory_order_release);
    user_.notify_one();
  }
  return is_active();
}

Result<bool> Channel::test(Operation& operation) {
  if (is_of_parent()) return fail(check_process().error());
  const Use use(*this);
  if (!use.has()) return fail(crowded());
  if (operation.state == Operation::State::kIdle) return true;
  if (operation.state != Operation::State::kComplete) progress();
  if (operation.state != Operation::State::kComplete) {
    (void)job_->progress_others(this);
    return false;
  }
  if (!operation.result) return fail(operation.result.error());
  return true;
}

Result<void> Channel::wait(Operation& operation) {
  if (is_of_parent()) return check_process();
  const Use use(*this);
  if (!use.has()) return fail(crowded());
  return finish_waiting(operation);
}

void Channel::end(Operation& operation) {
  if (is_of_parent()) return;
  const Use use(*this, Use::Crowd::kWaits);
  await_completion(operation);
}

Result<void> Channel::finish_waiting(Operation& operation) {
  if (operation.state == Operation::State::kIdle) return {};
  await_completion(operation);
  return operation.result;
}

void Channel::await_completion(Operation& operation) {
  if (operation.state == Operation::State::kIdle) return;
  while (operation.state != Operation::State::kComplete) {
    progress();
    if (operation.state != Operation::State::kComplete) wait_for_peers();
  }
  job_->note_waiting(0);
}

void Channel::wait_for_peers() {
  job_->note_waiting(machine_.moved_at());
  const bool others_busy = job_->progress_others(this);
  Endpoint& endpoint = fabric_->endpoint();
  std::uint64_t until = machine_.next_deadline();
  if (others_busy) until = std::min(until, endpoint.now() + kBusyWaitNs);
  try {
    endpoint.wait(until);
  } catch (const std::bad_alloc&) {
    stop_without_memory();
  }
}

Error Channel::failure_of(const Operation& operation) const {
  try {
    return {failure_text(operation)};
  } catch (const std::bad_alloc&) {
    return memory_error("");
  }
}

std::string Channel::failure_text(const Operation& operation) const {
  const Cause& cause = machine_.cause();
  const StallReport report = machine_.stall_report();
  std::string text = std::string(collective_name(operation.call.collective)) + " failed: ";
  if (cause.status == Status::kBadOperator) {
    const std::string thrown = note_.text();
    return text + "the operator of rank " + std::to_string(cause.detector) + " threw an exception" +
           (thrown.empty() ? "" : ": " + thrown);
  }
  if (const std::string reason = has_reason(cause) ? note_.text() : ""; !reason.empty()) {
    return text + "rank " + std::to_string(cause.detector) + ": " + reason;
  }
  text +=
      std::string(status_name(cause.status)) + ", found by rank " + std::to_string(cause.detector);
  if (cause.peer != cause.detector) text += " on its link to rank " + std::to_string(cause.peer);
  if (cause.status == Status::kMismatch && operation.word != 0) {
    return text + calls_of(cause, note_, {rank_, operation.word});
  }
  const std::string lacked = cause.status == Status::kBackEnd ? fabric_->lacked() : "";
  if (!lacked.empty()) return text + "; " + lacked;
  if (!report.waiting) return text;
  const std::uint64_t now = fabric_->endpoint().now();
  const std::uint64_t waited_ms = now < report.since_ns ? 0 : (now - report.since_ns) / 1'000'000;
  return text + "; rank " + std::to_string(rank_) + " waited in step " +
         std::to_string(report.step) + " to " + verb_of(report) + " rank " +
         std::to_string(report.peer) + ", for " + std::to_string(waited_ms) + " ms";
}

}  // namespace espalier::communicator
