#include "espalier/collectives/machine/machine.h"

#include <algorithm>
#include <initializer_list>

#include "base/crc32.h"

namespace espalier {
namespace {

// Bounds the work of a poll. With check_blocks, take_completions() ends with the first received
// block.
constexpr int kCompletionsPerPoll = 8;
// An unexpected message of this collective may be at most this many messages of its link ahead of
// the next receive; more than any window.
constexpr std::uint64_t kUnexpectedMessages = 65'536;
// A tag fewer than this many collectives back is late. Any other belongs to a later collective,
// because sequence numbers wrap.
constexpr int kLateCollectives = 1024;
// Delay until a post is retried for which the fabric had no room.
constexpr std::uint64_t kPostRetryNs = 20'000;

}  // namespace

Status Machine::init(Endpoint& endpoint, const MachineConfig& config) {
  if (endpoint_ != nullptr || config.window == 0) return Status::kBadArgument;
#if ESPALIER_WITHOUT_DATA
  if (config.check_blocks && config.no_data) return Status::kBadArgument;
  no_data_ = config.no_data;
#endif
  if (endpoint.links() > kMaxLinks) return Status::kTooLarge;
  endpoint_ = &endpoint;
  window_limit_ = static_cast<std::uint8_t>(std::min(config.window, kMaxWindow));
  check_blocks_ = config.check_blocks;
  log_ = config.log;
  step_limit_ = InstanceScheduler::kNever;
  failure_detector_.init(endpoint, config.deadline_ns);
#if ESPALIER_PROGRAM_HOOKS
  ESPALIER_ASSERT(!config.is_graph || config.nodes != 0);
  failure_detector_.call_before_release(config.before_release, config.context);
  failure_detector_.wait_for_programs(config.quiet_ns, config.context);
  failure_detector_.end_early(config.failed, config.is_linked, config.nodes, config.is_graph,
                              config.context);
#endif
  check_invariants();
  return Status::kOk;
}

#if ESPALIER_SPARES
Status Machine::reopen(Endpoint& endpoint) {
  const bool busy = failure_detector_.failed() ? !failure_detector_.ended() : running_;
  if (endpoint_ == nullptr || busy) return Status::kBadArgument;
  if (endpoint.links() > kMaxLinks) return Status::kTooLarge;
  for (std::uint32_t link = 0; link < kMaxLinks; ++link) {
    for (MessageRing* const ring : {&sends_[link], &receives_[link]}) {
      ring->first = ring->first_unposted = ring->end = 0;
      ring->next_number = 0;
    }
    expected_receives_[link] = 0;
  }
  sending_ = unposted_sends_ = unposted_receives_ = unexpected_links_ = LinkSet();
  running_ = has_moved_ = may_have_more_ = post_refused_ = false;
  first_step_ = end_step_ = next_op_ = 0;
  tags_ = TagBase();
  ++reopened_;
  endpoint_ = &endpoint;
  failure_detector_.reopen(endpoint);
  check_invariants();
  return Status::kOk;
}
#endif

Status Machine::poll() {
  if (endpoint_ == nullptr) return Status::kBadArgument;
  const bool retry = post_refused_;
  has_moved_ = false;
  post_refused_ = false;
  has_checked_post_ = false;
  PollBudget budget;
  bool may_move = failure_detector_.is_awaiting();
  // What is posted while nothing is awaited may complete at once.
  if (!may_move) work(retry, budget);
  const bool drained = take_completions(may_move);
  may_have_more_ = !drained;
  if (may_move) work(retry, budget);
  if (has_moved_) failure_detector_.note_progress();
  failure_detector_.run(drained);
  check_invariants();
  if (failure_detector_.failed())
    return failure_detector_.ended() ? failure_detector_.cause().status : Status::kBusy;
  return running_ ? Status::kBusy : Status::kOk;
}

// Returns whether no completion is left. If none is awaited any more, it does not look: that may be
// a system call. `found`: becomes true if there was one.
bool Machine::take_completions(bool& found) {
  for (int taken = 0; taken < kCompletionsPerPoll; ++taken) {
    Completion completion;
    if (!endpoint_->poll(completion)) return true;
    found = true;
    handle(completion);
    if (check_blocks_ && completion.kind == Completion::Kind::kReceived) return false;
    if (running_ && !failure_detector_.is_awaiting()) return false;
  }
  return false;
}

void Machine::handle(const Completion& completion) {
  const std::uint32_t link = completion.link;
  if (link >= failure_detector_.links()) failure_detector_.read_links();
  if (link >= failure_detector_.links()) return fail_here(Status::kBackEnd);
  switch (completion.kind) {
    case Completion::Kind::kSent: return complete(completion, true);
    case Completion::Kind::kReceived: return complete(completion, false);
    case Completion::Kind::kUnexpected:
      failure_detector_.note_life(link);
      return handle_unexpected(link, completion.tag);
    case Completion::Kind::kControl:
      if (completion.control.kind == ControlKind::kProbe &&
          tags_.contradicts(completion.control.number)) {
        fail(Status::kMismatch, link);
      }
      return failure_detector_.handle_control(link, completion.control);
    case Completion::Kind::kLinkDown:
#if ESPALIER_PROGRAM_HOOKS
      if (completion.status == Status::kDeadLink) failure_detector_.note_link_dead(link);
#endif
      return failure_detector_.note_link_down(link);
  }
}

void Machine::complete(const Completion& completion, bool sent) {
  const std::uint32_t link = completion.link;
  // An eager send may be reported as a mismatch long after it completed.
  if (completion.status != Status::kOk) return fail(completion.status, link);
  if (!running_ || failure_detector_.failed()) return;
  MessageRing& ring = sent ? sends_[link] : receives_[link];
  if (!ring.has_outstanding() || ring.message(ring.first).step != completion.context) {
    return fail(Status::kNotInSchedule, link);
  }
  const Message message = ring.message(ring.first);
  if (!sent && check_blocks_ && crc32(0, message.bytes, message.size) != completion.check) {
    return fail(Status::kCorrupt, link);
  }
  if (log_ != nullptr) {
    const ActionKind::Value kinds[] = {ActionKind::kReceive, ActionKind::kSend};
    log_->completed(static_cast<std::uint8_t>(link), kinds[sent], log_now());
  }
  ESPALIER_ASSERT(is_in_flight(message.step));
  ++ring.first;
  has_moved_ = true;
  Step& message_step = step(message.step);
  ESPALIER_ASSERT((sent ? message_step.sends : message_step.receives) > 0);
  --(sent ? message_step.sends : message_step.receives);
  ESPALIER_ASSERT(message_step.unposted <= message_step.sends);
  if (sent && !ring.has_outstanding()) sending_.erase(link);
  failure_detector_.note_arrival(
      link, sends_[link].has_outstanding() || receives_[link].has_outstanding());
  check_link(link);
}

// Handles an unexpected message. From this collective: the ranks must agree on it, and a receive
// must follow. From a later one: start() checks it. From an earlier one: that collective never
// received it.
void Machine::handle_unexpected(std::uint32_t link, std::uint64_t tag) {
  const int later = tags_.collectives_ahead(tag);
  if (later > 0 || later <= -kLateCollectives) {
    if (!unexpected_links_.contains(link)) unexpected_tags_[link] = tag;
    unexpected_links_.insert(link);
    return;
  }
  const std::uint64_t number = tags_.message_number(tag);
  if (later < 0 || number >= receives_[link].next_number + kUnexpectedMessages) {
    return fail(Status::kMismatch, link);
  }
  if (number < receives_[link].next_number) return;
  if (!running_) return fail(Status::kNotInSchedule, link);
  expected_receives_[link] =
      std::max(expected_receives_[link], static_cast<std::uint32_t>(number) + 1);
}

void Machine::finish() {
  ESPALIER_ASSERT(running_ && steps_in_flight() == 0 && posts().empty());
  for (std::uint32_t link = 0; link < failure_detector_.links(); ++link) {
    if (expected_receives_[link] > receives_[link].next_number) fail(Status::kNotInSchedule, link);
  }
  running_ = false;
  if (!keeps_regions_ && !failure_detector_.failed()) endpoint_->release_regions();
}

const Cause& Machine::cause() const { return failure_detector_.cause(); }

std::uint32_t Machine::blocks() const { return layout_.blocks; }

void Machine::set_step_limit(std::int64_t limit) { step_limit_ = limit; }

StallReport Machine::stall_report() const {
  StallReport report;
  report.step = first_step_ != end_step_ ? step(first_step_).number
                : running_               ? instance_scheduler_.next_step()
                                         : InstanceScheduler::kNever;
  if (!running_) return report;
  std::int64_t oldest = InstanceScheduler::kNever;
  for (std::uint32_t link = 0; link < failure_detector_.links(); ++link) {
    for (const bool sending : {false, true}) {
      const MessageRing& ring = sending ? sends_[link] : receives_[link];
      if (!ring.has_outstanding()) continue;
      const Message message = ring.message(ring.first);
      // A failure may leave a step that is issued in part.
      ESPALIER_ASSERT(is_in_flight(message.step) || message.step == end_step_);
      if (step(message.step).number >= oldest) continue;
      oldest = step(message.step).number;
      report.waiting = true;
      report.link = link;
      report.peer = failure_detector_.peer(link);
      report.sending = sending;
      report.action = message.action;
      report.since_ns = failure_detector_.wait_start(link);
    }
  }
  return report;
}

std::uint64_t Machine::next_deadline() const {
  if (endpoint_ == nullptr) return FailureDetector::kNoDeadline;
  if (has_moved_ || may_have_more_) return 0;
  const std::uint64_t next = failure_detector_.next_deadline();
  return post_refused_ ? std::min(next, endpoint_->now() + kPostRetryNs) : next;
}

}  // namespace espalier
