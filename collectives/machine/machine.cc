#include "espalier/collectives/machine/machine.h"

#include <algorithm>
#include <initializer_list>

#include "espalier/base/crc32.h"

namespace espalier {
namespace {

// Completions a poll: bounds its work.
constexpr int kCompletionsPerPoll = 8;
// How much earlier than its receive the word of a message may come, in messages of its link: above
// any window. And how many collectives late a tag is believed to be.
constexpr std::uint64_t kEarlyMessages = 65'536;
constexpr int kLateCollectives = 1024;
// How soon a post is tried again for which the fabric had no room.
constexpr std::uint64_t kRetryNs = 20'000;

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
  horizon_ = Timetable::kNever;
  watch_.init(endpoint, config.deadline_ns);
  return Status::kOk;
}

Status Machine::poll() {
  if (endpoint_ == nullptr) return Status::kBadArgument;
  watch_.tick();
  const bool retry = no_room_;
  moved_ = false;
  no_room_ = false;
  const bool drained = take_completions();
  more_ = !drained;
  if (running_ && !watch_.failed()) work(retry);
  if (moved_) watch_.moved();
  watch_.run(drained);
  if (watch_.failed()) return watch_.ended() ? watch_.cause().status : Status::kBusy;
  return running_ ? Status::kBusy : Status::kOk;
}

// True if none is left.
bool Machine::take_completions() {
  for (int taken = 0; taken < kCompletionsPerPoll; ++taken) {
    Completion completion;
    if (!endpoint_->poll(completion)) return true;
    take(completion);
  }
  return false;
}

void Machine::take(const Completion& completion) {
  const std::uint32_t link = completion.link;
  if (link >= watch_.links()) return fail_here(Status::kBackEnd);
  switch (completion.kind) {
    case Completion::Kind::kSent: return complete(completion, true);
    case Completion::Kind::kReceived: return complete(completion, false);
    case Completion::Kind::kEarly: watch_.alive(link); return early(link, completion.tag);
    case Completion::Kind::kControl:
      if (completion.control.kind == ControlKind::kProbe &&
          tags_.contradicts(completion.control.number)) {
        fail(Status::kMismatch, link);
      }
      return watch_.control(link, completion.control);
    case Completion::Kind::kLinkDown: return watch_.link_down(link);
    case Completion::Kind::kDeaf: return watch_.deafened(link, completion.status != Status::kOk);
  }
}

void Machine::complete(const Completion& completion, bool sent) {
  const std::uint32_t link = completion.link;
  // An eager send may be found to disagree long after it completed.
  if (completion.status != Status::kOk) return fail(completion.status, link);
  if (!running_ || watch_.failed()) return;
  Lane& lane = sent ? sends_[link] : receives_[link];
  const Message message = lane.at(lane.first);
  if (!lane.outstanding() || message.step != completion.cookie) {
    return fail(Status::kUnforeseen, link);
  }
  if (!sent && check_blocks_ && crc32(0, message.bytes, message.size) != completion.check) {
    return fail(Status::kCorrupt, link);
  }
  if (log_ != nullptr) {
    log_->completed(static_cast<std::uint8_t>(link),
                    sent ? espalier_Kind_SEND : espalier_Kind_RECEIVE, log_now());
  }
  ++lane.first;
  moved_ = true;
  Step& its = step(message.step);
  --(sent ? its.sends : its.receives);
  if (sent && !lane.outstanding()) sending_.erase(link);
  watch_.arrived(link, sends_[link].outstanding() || receives_[link].outstanding());
}

// A message has come for which no receive is posted: of this collective, then ranks must agree on
// it and a receive must follow; of a later one, then start() will see; of an earlier one, which did
// not receive it.
void Machine::early(std::uint32_t link, std::uint64_t tag) {
  const int later = tags_.later(tag);
  if (later > 0 || later <= -kLateCollectives) {
    if (!told_.contains(link)) early_[link] = tag;
    told_.insert(link);
    return;
  }
  const std::uint64_t number = tags_.number(tag);
  if (later < 0 || number >= receives_[link].number + kEarlyMessages) {
    return fail(Status::kMismatch, link);
  }
  if (number < receives_[link].number) return;
  if (!running_) return fail(Status::kUnforeseen, link);
  foreseen_[link] = std::max(foreseen_[link], static_cast<std::uint32_t>(number) + 1);
}

void Machine::finish() {
  for (std::uint32_t link = 0; link < watch_.links(); ++link) {
    if (foreseen_[link] > receives_[link].number) fail(Status::kUnforeseen, link);
  }
  running_ = false;
}

const Cause& Machine::cause() const { return watch_.cause(); }

std::uint32_t Machine::blocks() const { return layout_.blocks; }

void Machine::set_horizon(std::int64_t horizon) { horizon_ = horizon; }

StallReport Machine::stall_report() const {
  StallReport report;
  report.step = first_step_ != end_step_ ? step(first_step_).number
                : running_               ? timetable_.next_step()
                                         : Timetable::kNever;
  if (!running_) return report;
  std::int64_t oldest = Timetable::kNever;
  for (std::uint32_t link = 0; link < watch_.links(); ++link) {
    for (const bool sending : {false, true}) {
      const Lane& lane = sending ? sends_[link] : receives_[link];
      if (!lane.outstanding()) continue;
      const Message message = lane.at(lane.first);
      if (step(message.step).number >= oldest) continue;
      oldest = step(message.step).number;
      report.waiting = true;
      report.link = link;
      report.peer = watch_.peer(link);
      report.sending = sending;
      report.action = message.action;
      report.since_ns = watch_.since(link);
    }
  }
  return report;
}

std::uint64_t Machine::next_deadline() const {
  if (endpoint_ == nullptr) return Watch::kNoDeadline;
  if (moved_ || more_) return 0;
  const std::uint64_t next = watch_.next_deadline();
  return no_room_ ? std::min(next, watch_.now() + kRetryNs) : next;
}

}  // namespace espalier
