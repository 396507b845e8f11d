#include <algorithm>
#include <cstring>

#include "hal/sim/network_state.h"

namespace espalier::sim {

std::uint32_t NodeEndpoint::links() const { return state_->nodes[node_].links; }
std::uint32_t NodeEndpoint::numbered(std::uint32_t link) const {
  return state_->nodes[node_].base() + link;
}
std::uint32_t NodeEndpoint::peer(std::uint32_t link) const {
  return state_->out(node_, numbered(link)).to;
}
std::uint32_t NodeEndpoint::window() const { return state_->model.window; }
std::uint64_t NodeEndpoint::eager_bytes() const { return state_->model.eager_bytes; }
std::uint64_t NodeEndpoint::now() { return state_->now / 1000; }

Status NodeEndpoint::prepare(const Region* regions, std::uint32_t count) {
  if (count > kMaxRegions) return Status::kTooLarge;
  for (std::uint32_t link = 0; link < links(); ++link) {
    const Channel& out = state_->out(node_, numbered(link));
    const Channel& in = state_->in(node_, numbered(link));
    if (in.receives_posted != in.receives_polled) return Status::kBadArgument;
    for (std::uint64_t k = out.sends_polled; k < out.sends_posted; ++k) {
      // A wrapper may still send from its own memory.
      const SendPost& post = out.send(k).post;
      if (reachable(post.bytes, post.size)) return Status::kBadArgument;
    }
  }
  if (state_->model.no_data) return Status::kOk;
  NetworkState::Regions& own = state_->regions[node_];
  for (std::uint32_t i = 0; i < count; ++i) own.regions[i] = regions[i];
  own.count = count;
  return Status::kOk;
}

bool NodeEndpoint::reachable(const void* bytes, std::uint64_t size) const {
  if (state_->model.no_data) return true;
  const auto address = reinterpret_cast<std::uintptr_t>(bytes);
  const NetworkState::Regions& own = state_->regions[node_];
  return std::any_of(own.regions, own.regions + own.count, [address, size](const Region& region) {
    const auto begin = reinterpret_cast<std::uintptr_t>(region.bytes);
    return address >= begin && address - begin <= region.size &&
           size <= region.size - (address - begin);
  });
}

Status NodeEndpoint::post_receive(std::uint32_t link, const ReceivePost& post) {
  if (link >= state_->nodes[node_].links || state_->nodes[node_].released)
    return Status::kBadArgument;
  if (post.size > state_->model.eager_bytes && !reachable(post.bytes, post.size))
    return Status::kBadArgument;
  link = numbered(link);
  Channel& channel = state_->in(node_, link);
  if (channel.receives_posted - channel.receives_polled >= state_->model.window)
    return Status::kTooLarge;
  state_->next_receive(channel).post = post;
  if (link < 32) received_on |= 1u << link;
  ++activity;
  if (state_->model.poison && post.size > 0) std::memset(post.bytes, 0xa5, post.size);
  state_->count_receive(channel);
  state_->match(channel);
  state_->update(channel);
  return Status::kOk;
}

Status NodeEndpoint::post_send(std::uint32_t link, const SendPost& post) {
  if (link >= state_->nodes[node_].links || state_->nodes[node_].released)
    return Status::kBadArgument;
  link = numbered(link);
  Channel& channel = state_->out(node_, link);
  if (channel.sends_posted - channel.sends_polled >= state_->model.window) return Status::kTooLarge;
  Send& send = state_->next_send(channel);
  send.post = post;
  if (link < 32) sent_on |= 1u << link;
  send.step = static_cast<std::uint32_t>(state_->step);
  send.turn = activity;
  send.left = send.slot = false;
  send.planned = ResidenceTimes::kUnknown;
  if (state_->residence_times.begun() && state_->poster != nullptr) {
    send.planned = static_cast<std::int32_t>(state_->planned_step(state_->poster, post.context));
    send.furthest = state_->residence_times.furthest(node_);
  }
  ++activity;
  if (state_->step > 0) state_->ask(channel);
  state_->count_send(channel);
  state_->update(channel);
  return Status::kOk;
}

Status NodeEndpoint::post_control(std::uint32_t link, const Control& control) {
  const auto kind = static_cast<std::uint8_t>(control.kind);
  if (link >= links() || kind >= kControlKinds) return Status::kBadArgument;
  link = numbered(link);
  Channel& channel = state_->out(node_, link);
  Extras& extras = state_->extras_of(channel);
  extras.on_its_way[kind] = control;
  if (extras.flying[kind] || state_->nodes[node_].dead) return Status::kOk;
  extras.flying[kind] = true;
  state_->schedule(state_->now + state_->alpha + state_->latency, EventKind::kControl,
                   state_->nodes[node_].first + link, kind);
  return Status::kOk;
}

bool NodeEndpoint::poll(Completion& completion) {
  NodeState& node = state_->nodes[node_];
  if (node.dead || !node.pending()) return false;
  const LinkSet pending = node.pending_out | node.pending_in;
  for (std::uint32_t link = 0; (link = pending.next(link)) != LinkSet::kNone; ++link) {
    completion = Completion();
    completion.link = link - node.base();
    if (take(node, link, completion)) {
      ++activity;
      return true;
    }
    node.pending_out.erase(link);
    node.pending_in.erase(link);
  }
  return false;
}

// Takes the next completion of the link, if there is one.
bool NodeEndpoint::take(const NodeState& node, std::uint32_t link, Completion& completion) {
  const bool out = node.pending_out.contains(link), in = node.pending_in.contains(link);
  if (in && !state_->extras.empty() && take_control(state_->in(node_, link), completion)) {
    return true;
  }
  if (node.released) return false;
  if (out && take_sent(state_->out(node_, link), completion)) return true;
  return in && take_received(state_->in(node_, link), completion);
}

bool NodeEndpoint::take_sent(Channel& out, Completion& completion) {
  completion.kind = Completion::Kind::kSent;
  if (out.sends_polled < out.sends_done) {
    const Send& send = out.send(out.sends_polled++);
    completion.context = send.post.context;
    completion.tag = send.post.tag;
    completion.status = send.status;
    return true;
  }
  if (out.extras == Channel::kNoExtras || !state_->extras_of(out).late_mismatch) return false;
  Extras& extras = state_->extras_of(out);
  extras.late_mismatch = false;
  completion.context = extras.late_cookie;
  completion.status = Status::kMismatch;
  return true;
}

bool NodeEndpoint::take_received(Channel& in, Completion& completion) {
  if (in.receives_polled < in.completed) {
    const Receive& receive = in.receive(in.receives_polled++);
    completion.kind = Completion::Kind::kReceived;
    completion.context = receive.post.context;
    completion.tag = receive.tag;
    completion.check = receive.check;
    completion.status = receive.status;
    return true;
  }
  const std::uint64_t message = std::max(in.early_told, in.receives_posted);
  if (message >= in.announced || in.closed) return false;
  in.early_told = message + 1;
  completion.kind = Completion::Kind::kUnexpected;
  completion.tag = in.send(message).post.tag;
  return true;
}

bool NodeEndpoint::take_control(Channel& in, Completion& completion) {
  if (in.extras == Channel::kNoExtras) return false;
  Extras& extras = state_->extras_of(in);
  for (std::uint32_t kind = 0; kind < kControlKinds; ++kind) {
    if (!extras.there[kind]) continue;
    extras.there[kind] = false;
    completion.kind = Completion::Kind::kControl;
    completion.control = extras.arrived[kind];
    return true;
  }
  return false;
}

void NodeEndpoint::release() {
  state_->nodes[node_].released = true;
  state_->close_present(node_);
}

void NodeEndpoint::wait(std::uint64_t until) {
  if (state_->nodes[node_].pending() || until <= now()) return;
  state_->advance(until > kNever / 1000 ? kNever : until * 1000);
}

}  // namespace espalier::sim
