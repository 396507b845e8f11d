#include <algorithm>
#include <cstring>

#include "hal/sim/fabric.h"

namespace espalier::sim {

std::uint32_t NodeEndpoint::links() const { return fabric_->nodes[node_].links; }
std::uint32_t NodeEndpoint::peer(std::uint32_t link) const { return fabric_->out(node_, link).to; }
std::uint32_t NodeEndpoint::window() const { return fabric_->model.window; }
std::uint64_t NodeEndpoint::eager_bytes() const { return fabric_->model.eager_bytes; }
std::uint64_t NodeEndpoint::now() { return fabric_->now / 1000; }

Status NodeEndpoint::prepare(const Region* regions, std::uint32_t count) {
  if (count > kMaxRegions) return Status::kTooLarge;
  for (std::uint32_t link = 0; link < links(); ++link) {
    const Channel& out = fabric_->out(node_, link);
    const Channel& in = fabric_->in(node_, link);
    if (in.receives_posted != in.receives_polled) return Status::kBadArgument;
    for (std::uint64_t k = out.sends_polled; k < out.sends_posted; ++k) {
      // A wrapper may still send from memory of its own.
      const SendPost& post = out.sends[k].post;
      if (reachable(post.bytes, post.size)) return Status::kBadArgument;
    }
  }
  for (std::uint32_t i = 0; i < count; ++i) regions_[i] = regions[i];
  regions_count_ = count;
  return Status::kOk;
}

bool NodeEndpoint::reachable(const void* bytes, std::uint64_t size) const {
  const auto at = reinterpret_cast<std::uintptr_t>(bytes);
  for (std::uint32_t i = 0; i < regions_count_; ++i) {
    const auto begin = reinterpret_cast<std::uintptr_t>(regions_[i].bytes);
    if (at >= begin && at - begin <= regions_[i].size && size <= regions_[i].size - (at - begin)) {
      return true;
    }
  }
  return false;
}

Status NodeEndpoint::post_receive(std::uint32_t link, const ReceivePost& post) {
  if (link >= links() || fabric_->nodes[node_].released) return Status::kBadArgument;
  if (post.size > eager_bytes() && !reachable(post.bytes, post.size)) return Status::kBadArgument;
  Channel& channel = fabric_->in(node_, link);
  if (channel.receives_posted - channel.receives_polled >= window()) return Status::kTooLarge;
  fabric_->next_receive(channel).post = post;
  ++fabric_->this_step(channel).receives_of_step;
  ++fabric_->nodes[node_].activity;
  if (fabric_->model.scramble && post.size > 0) std::memset(post.bytes, 0xa5, post.size);
  ++channel.receives_posted;
  fabric_->match(channel);
  fabric_->update(channel);
  return Status::kOk;
}

Status NodeEndpoint::post_send(std::uint32_t link, const SendPost& post) {
  if (link >= links() || fabric_->nodes[node_].released) return Status::kBadArgument;
  Channel& channel = fabric_->out(node_, link);
  if (channel.sends_posted - channel.sends_polled >= window()) return Status::kTooLarge;
  Send& send = fabric_->next_send(channel);
  send.post = post;
  send.step = fabric_->step;
  send.planned = Stays::kUnknown;
  if (fabric_->stays.begun() && fabric_->polled != nullptr) {
    send.planned = static_cast<std::int32_t>(fabric_->polled->step_of(post.cookie));
    send.furthest = fabric_->stays.furthest(node_);
  }
  ++fabric_->this_step(channel).sends_of_step;
  ++fabric_->nodes[node_].activity;
  if (fabric_->step > 0) fabric_->ask(channel);
  ++channel.sends_posted;
  fabric_->update(channel);
  return Status::kOk;
}

Status NodeEndpoint::post_control(std::uint32_t link, const Control& control) {
  const auto kind = static_cast<std::uint8_t>(control.kind);
  if (link >= links() || kind >= kControlKinds) return Status::kBadArgument;
  Channel& channel = fabric_->out(node_, link);
  Controls& its = fabric_->controls_of(channel);
  its.on_its_way[kind] = control;
  if (its.flying[kind] || fabric_->nodes[node_].dead) return Status::kOk;
  its.flying[kind] = true;
  fabric_->schedule(fabric_->now + fabric_->alpha + fabric_->latency, EventKind::kControl,
                    fabric_->nodes[node_].first + link, kind);
  return Status::kOk;
}

bool NodeEndpoint::poll(Completion& completion) {
  Node& node = fabric_->nodes[node_];
  if (node.dead) return false;
  for (std::uint32_t link = 0; (link = node.pending.next(link)) != LinkSet::kNone;) {
    completion = Completion();
    completion.link = link;
    if (take(link, completion)) {
      ++node.activity;
      return true;
    }
    node.pending.erase(link);
  }
  return false;
}

// The next completion of the link, if there is one.
bool NodeEndpoint::take(std::uint32_t link, Completion& completion) {
  Channel& in = fabric_->in(node_, link);
  if (in.controls != Channel::kNoControls && take_control(in, completion)) return true;
  if (fabric_->nodes[node_].released) return false;
  Channel& out = fabric_->out(node_, link);
  if (out.sends_polled < out.sends_done) {
    const Send& send = out.sends[out.sends_polled++];
    completion.kind = Completion::Kind::kSent;
    completion.cookie = send.post.cookie;
    completion.tag = send.post.tag;
    completion.status = send.status;
    return true;
  }
  if (out.late_mismatch) {
    out.late_mismatch = false;
    completion.kind = Completion::Kind::kSent;
    completion.cookie = out.late_cookie;
    completion.status = Status::kMismatch;
    return true;
  }
  if (in.receives_polled < in.completed) {
    const Receive& receive = in.receives[in.receives_polled++];
    completion.kind = Completion::Kind::kReceived;
    completion.cookie = receive.post.cookie;
    completion.tag = receive.tag;
    completion.check = receive.check;
    completion.status = receive.status;
    return true;
  }
  const std::uint64_t message = std::max(in.early_told, in.receives_posted);
  if (message < in.announced && !in.closed) {
    in.early_told = message + 1;
    completion.kind = Completion::Kind::kEarly;
    completion.tag = in.sends[message].post.tag;
    return true;
  }
  return false;
}

bool NodeEndpoint::take_control(Channel& in, Completion& completion) {
  Controls& its = fabric_->controls_of(in);
  for (std::uint32_t kind = 0; kind < kControlKinds; ++kind) {
    if (!its.there[kind]) continue;
    its.there[kind] = false;
    completion.kind = Completion::Kind::kControl;
    completion.control = its.arrived[kind];
    return true;
  }
  return false;
}

void NodeEndpoint::release() {
  Node& node = fabric_->nodes[node_];
  node.released = true;
  fabric_->close_all(node_);
}

void NodeEndpoint::wait(std::uint64_t until) {
  if (!fabric_->nodes[node_].pending.empty() || until <= now()) return;
  fabric_->advance(until > kNever / 1000 ? kNever : until * 1000);
}

}  // namespace espalier::sim
