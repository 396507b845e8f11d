#include "hal/fabric/ofi/lanes/completion_reporter.h"

#include <bit>

namespace espalier::ofi {

bool CompletionReporter::take(Completion& completion) {
  LinkSet& lanes = state_.to_report;
  while (!lanes.empty()) {
    std::uint32_t index = lanes.next((last_lane_ + 1) % kMaxLinks);
    if (index == LinkSet::kNone) index = lanes.next(0);
    completion = {};
    ESPALIER_ASSERT(index < state_.lanes.size());
    if (take_from(state_.lanes[index], completion)) {
      last_lane_ = index;
      state_.check_lane(state_.lanes[index]);
      return true;
    }
    lanes.erase(index);
  }
  return false;
}

bool CompletionReporter::take_from(Lane& lane, Completion& completion) {
  completion.link = lane.link;
  if (take_control(lane, completion)) return true;
  if (state_.released) return false;
  // A link's messages are reported in order, even if a later one arrives first on a faster lane.
  LinkState& link = state_.links[lane.link];
  ESPALIER_ASSERT(link.first_lane <= lane.index);
  if (link.first_lane + link.in.report_lane == lane.index && take_received(lane, completion)) {
    link.in.count_reported();
    if (link.in.lanes > 1) state_.to_report.insert(link.first_lane + link.in.report_lane);
    return true;
  }
  if (take_unexpected(lane, completion)) return true;
  if (link.first_lane + link.out.report_lane == lane.index && take_sent(lane, completion)) {
    link.out.count_reported();
    if (link.out.lanes > 1) state_.to_report.insert(link.first_lane + link.out.report_lane);
    return true;
  }
  return take_late_mismatch(lane, completion) || take_down(lane, completion);
}

bool CompletionReporter::take_control(Lane& lane, Completion& completion) {
  if (lane.unread_controls == 0) return false;
  const auto kind = static_cast<std::uint32_t>(std::countr_zero(lane.unread_controls));
  ESPALIER_ASSERT(kind < kControlKinds &&
                  static_cast<std::uint32_t>(lane.control[kind].kind) == kind);
  lane.unread_controls &= static_cast<std::uint8_t>(~bit(kind));
  completion.kind = Completion::Kind::kControl;
  completion.control = lane.control[kind];
  return true;
}

bool CompletionReporter::take_received(Lane& lane, Completion& completion) {
  Incoming& in = lane.in;
  if (in.reported == in.consumed) return false;
  ESPALIER_ASSERT(in.reported < in.consumed && in.consumed <= in.posted);
  const Incoming::Post& post = in.posts[state_.position(in.reported)];
  ++in.reported;
  completion.kind = Completion::Kind::kReceived;
  completion.context = post.context;
  completion.status = post.status;
  completion.check = post.check;
  return true;
}

bool CompletionReporter::take_unexpected(Lane& lane, Completion& completion) {
  Incoming& in = lane.in;
  if (in.unexpected == 0) return false;
  std::uint64_t number = in.posted;
  while ((in.unexpected & bit(state_.position(number))) == 0) ++number;
  ESPALIER_ASSERT(number < in.posted + state_.layout.ring());
  const std::uint64_t position = state_.position(number);
  in.unexpected &= ~bit(position);
  completion.kind = Completion::Kind::kUnexpected;
  completion.tag = in.arrivals[position].tag;
  return true;
}

bool CompletionReporter::take_sent(Lane& lane, Completion& completion) {
  Outgoing& out = lane.out;
  if (out.reported == out.sent) return false;
  ESPALIER_ASSERT(out.reported < out.sent);
  const Outgoing::Post& post = out.posts[state_.position(out.reported)];
  if (!post.done) return false;
  ++out.reported;
  completion.kind = Completion::Kind::kSent;
  completion.context = post.context;
  completion.status = post.status;
  return true;
}

bool CompletionReporter::take_late_mismatch(Lane& lane, Completion& completion) {
  Outgoing& out = lane.out;
  if (out.late_mismatch == 0) return false;
  const auto position = static_cast<std::uint64_t>(std::countr_zero(out.late_mismatch));
  ESPALIER_ASSERT(position < state_.layout.ring());
  out.late_mismatch &= ~bit(position);
  completion.kind = Completion::Kind::kSent;
  completion.context = out.slot_cookies[position];
  completion.status = Status::kMismatch;
  return true;
}

bool CompletionReporter::take_down(Lane& lane, Completion& completion) {
  if (!lane.down || lane.down_reported) return false;
  lane.down_reported = true;
  completion.kind = Completion::Kind::kLinkDown;
  if (lane.has_no_carrier) completion.status = Status::kDeadLink;
  return true;
}

}  // namespace espalier::ofi
