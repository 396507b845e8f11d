// Progress, reports, release, waiting.

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <bit>

#include "hal/ofi/libfabric_endpoint.h"

namespace espalier::ofi {
namespace {

constexpr std::size_t kBatch = 16;  // completions read from libfabric at once
constexpr std::uint64_t kLongestBlockNs = 1'000'000'000;
constexpr std::uint64_t kLongestSpinNs = 150'000;
constexpr std::uint64_t kLongestNapNs = 200'000;
// The peers' processes are looked at when nothing could be read for so long, and so often.
constexpr std::uint64_t kLookNs = 5'000'000;

}  // namespace

std::uint64_t LibfabricEndpoint::now() {
  timespec t = {};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(t.tv_nsec);
}

bool LibfabricEndpoint::progress() {
  const std::uint64_t writes_before = writes_;
  bool moved = false;
  for (std::uint32_t queue = 0; queue < fabric_.queues(); ++queue) moved = drain(queue) || moved;
  if (!pending_.empty()) retry();
  return moved || writes_ != writes_before;
}

// Takes what a completion queue has; whether it had anything.
bool LibfabricEndpoint::drain(std::uint32_t queue) {
  std::array<fi_cq_data_entry, kBatch> entries;
  const int count = fabric_.completions(queue, entries.data(), entries.size());
  const auto ours = [this](const void* context) {
    return context >= contexts_.data() && context < contexts_.data() + contexts_.size();
  };
  if (count == Fabric::kShut) {
    shut();
  } else if (shut_since_ != 0) {
    listening();
  }
  if (count == Fabric::kFailure) {
    void* context = fabric_.failed(queue);
    if (context != nullptr && ours(context)) {
      const auto* which = static_cast<const Context*>(context);
      fail(lanes_[which->lane], which->lane);
    }
  }
  for (int i = 0; i < count; ++i) {
    const fi_cq_data_entry& entry = entries[static_cast<std::size_t>(i)];
    if (entry.op_context != nullptr && ours(entry.op_context)) {
      const auto* which = static_cast<const Context*>(entry.op_context);
      finished(which->lane, which->position);
    } else if ((entry.flags & FI_REMOTE_CQ_DATA) != 0) {
      written(entry.data);
    }
  }
  return count > 0 || count == Fabric::kFailure;
}

// Whoever holds the queue has only lost its core for a while, unless it is a peer that is stopped
// or dead. Several may be: each is told. A queue of one lane is held by that one's peer alone,
// whose silence tells as much; all others are heard.
void LibfabricEndpoint::shut() {
  if (fabric_.queues() > 1) return;
  const std::uint64_t time = now();
  if (shut_since_ == 0) {
    shut_since_ = time;
    look_at_ = time + kLookNs;
  }
  if (time < look_at_) return;
  look_at_ = time + kLookNs;
  for (std::uint32_t l = 0; l < lanes_.size(); ++l) deafen(l, !fabric_.runs(lanes_[l].target));
}

void LibfabricEndpoint::listening() {
  shut_since_ = 0;
  for (std::uint32_t l = 0; l < lanes_.size(); ++l) deafen(l, false);
}

void LibfabricEndpoint::deafen(std::uint32_t index, bool deafens) {
  lanes_[index].deafens = deafens;
  if (deafens != lanes_[index].deafens_reported) ready_.insert(index);
}

void LibfabricEndpoint::retry() {
  const std::uint64_t time = now();
  pending_.for_each([&](std::uint32_t index) {
    const Lane& lane = lanes_[index];
    if (lane.refusals == 0 || time >= lane.retry_at) push(index);
  });
}

void LibfabricEndpoint::finished(std::uint32_t index, std::uint32_t position) {
  Lane& lane = lanes_[index];
  Outgoing& out = lane.out;
  out.busy &= ~bit(position);
  if ((out.direct & bit(position)) != 0 && !released_) {
    out.posts[position].done = true;
    ready_.insert(index);
  }
  if (out.sent < out.posted) pending_.insert(index);
}

bool LibfabricEndpoint::poll(Completion& completion) {
  if (!ready_.empty() && take(completion)) return true;
  (void)progress();
  return !ready_.empty() && take(completion);
}

// Round robin, so that no busy lane hides another.
bool LibfabricEndpoint::take(Completion& completion) {
  while (!ready_.empty()) {
    std::uint32_t index = ready_.next((last_taken_ + 1) % kMaxLinks);
    if (index == LinkSet::kNone) index = ready_.next(0);
    completion = {};
    if (take_from(index, completion)) {
      last_taken_ = index;
      return true;
    }
    ready_.erase(index);
  }
  return false;
}

bool LibfabricEndpoint::take_from(std::uint32_t index, Completion& completion) {
  Lane& lane = lanes_[index];
  Link& link = links_[lane.link];
  completion.link = lane.link;
  if (lane.controls != 0) {
    const auto kind = static_cast<std::uint32_t>(std::countr_zero(lane.controls));
    lane.controls &= static_cast<std::uint8_t>(~bit(kind));
    completion.kind = Completion::Kind::kControl;
    completion.control = lane.control[kind];
    return true;
  }
  if (lane.deafens != lane.deafens_reported) {
    lane.deafens_reported = lane.deafens;
    completion.kind = Completion::Kind::kDeaf;
    completion.status = lane.deafens ? Status::kDeadLink : Status::kOk;
    return true;
  }
  if (released_) return false;
  // A link's messages are reported in order, whichever of its lanes is the faster.
  if (link.first + link.in.report == index && take_received(lane, completion)) {
    link.in.reported();
    if (link.in.lanes > 1) ready_.insert(link.first + link.in.report);
    return true;
  }
  if (take_early(lane, completion)) return true;
  if (link.first + link.out.report == index && take_sent(lane, completion)) {
    link.out.reported();
    if (link.out.lanes > 1) ready_.insert(link.first + link.out.report);
    return true;
  }
  if (take_late(lane, completion)) return true;
  if (lane.down && !lane.down_reported) {
    lane.down_reported = true;
    completion.kind = Completion::Kind::kLinkDown;
    return true;
  }
  return false;
}

bool LibfabricEndpoint::take_received(Lane& lane, Completion& completion) const {
  Incoming& in = lane.in;
  if (in.reported == in.consumed) return false;
  const Incoming::Post& post = in.posts[position(in.reported)];
  ++in.reported;
  completion.kind = Completion::Kind::kReceived;
  completion.cookie = post.cookie;
  completion.status = post.status;
  completion.check = post.check;
  return true;
}

bool LibfabricEndpoint::take_early(Lane& lane, Completion& completion) const {
  Incoming& in = lane.in;
  if (in.early == 0) return false;
  std::uint64_t number = in.posted;
  while ((in.early & bit(position(number))) == 0) ++number;
  in.early &= ~bit(position(number));
  completion.kind = Completion::Kind::kEarly;
  completion.tag = in.arrivals[position(number)].tag;
  return true;
}

bool LibfabricEndpoint::take_sent(Lane& lane, Completion& completion) const {
  Outgoing& out = lane.out;
  if (out.reported == out.sent || !out.posts[position(out.reported)].done) return false;
  const Outgoing::Post& post = out.posts[position(out.reported)];
  ++out.reported;
  completion.kind = Completion::Kind::kSent;
  completion.cookie = post.cookie;
  completion.status = post.status;
  return true;
}

bool LibfabricEndpoint::take_late(Lane& lane, Completion& completion) const {
  Outgoing& out = lane.out;
  if (out.late == 0) return false;
  const auto at = static_cast<std::uint64_t>(std::countr_zero(out.late));
  out.late &= ~bit(at);
  completion.kind = Completion::Kind::kSent;
  completion.cookie = out.cookies[at];
  completion.status = Status::kMismatch;
  return true;
}

// Nothing lands any more once the regions are hidden and nothing is under way; and nothing of the
// caller's is read. What is under way on sockets can only be ended with the endpoint.
void LibfabricEndpoint::release() {
  if (released_) return;
  released_ = true;
  bool under_way = false;
  for (Lane& lane : lanes_) {
    under_way = under_way || (lane.out.busy & lane.out.direct) != 0;
    for (std::uint64_t n = lane.in.consumed; n < lane.in.posted; ++n) {
      under_way = under_way || lane.in.posts[position(n)].size > config_.eager_bytes;
    }
  }
  if (under_way && !fabric_.copies()) {
    fabric_.restart();
    for (Lane& lane : lanes_) lane.refusals = 0;
  }
  for (Prepared& prepared : prepared_) {
    fabric_.hide(prepared.exposed);
    prepared = {};
  }
}

// Spins, giving the core away after each look, as long as waits have been short lately; then
// blocks, or where the provider cannot, naps for a sixteenth of the time waited so far, which adds
// at most that to it. Spinning answers a short message 20 us sooner (the wake-up of an idle core),
// but takes the cores from those who have work when messages are long.
void LibfabricEndpoint::wait(std::uint64_t until) {
  const std::uint64_t start = now();
  std::uint64_t waited = 0;
  while (true) {
    const bool moved = progress();
    const std::uint64_t time = now();
    waited = time - start;
    if (!ready_.empty() || time >= until) break;
    if (moved) continue;  // there may be more
    if (waited < spin_ns_) {
      sched_yield();
    } else if (!pending_.empty() || !fabric_.block(std::min(until - time, kLongestBlockNs))) {
      const std::uint64_t nap = std::min({waited / 16, kLongestNapNs, until - time});
      const timespec t = {0, static_cast<long>(nap)};
      nanosleep(&t, nullptr);
    }
  }
  const std::uint64_t aim = waited < kLongestSpinNs ? kLongestSpinNs : 0;
  spin_ns_ = (3 * spin_ns_ + aim) / 4;
}

}  // namespace espalier::ofi
