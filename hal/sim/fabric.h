#pragma once
// The inside of sim::Network: channels (directed links of the endpoints), ports and events.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hal/link_set.h"
#include "hal/sim/sim.h"
#include "hal/sim/stay.h"
#include "hal/sim/wires.h"

namespace espalier::sim {

inline constexpr Picoseconds kNever = UINT64_MAX;

// 0 <= x < 1, a number that depends on nothing but these, so that jitter does not depend on the
// order of polling.
[[nodiscard]] double random_part(std::uint64_t seed, std::uint64_t who, std::uint64_t which);

// One direction of a link. Messages have numbers 0, 1, ...; every counter below is the number of
// the first message that has not got there.
struct Channel {
  std::uint32_t from = 0, from_link = 0;
  std::uint32_t to = 0, to_link = 0;
  std::uint64_t sends_posted = 0;
  std::uint64_t receives_posted = 0;
  std::uint64_t started = 0;    // has left
  std::uint64_t moved = 0;      // is in
  std::uint64_t announced = 0;  // its header is known at the receiver
  std::uint64_t early_told = 0;
  std::uint64_t completed = 0;   // compared with its receive
  std::uint64_t sends_done = 0;  // completed at the sender
  std::uint64_t sends_polled = 0;
  std::uint64_t receives_polled = 0;
  std::uint32_t lanes = 1;  // blocks on their way at once, without one_port
  // Lock step: of the step `step`.
  std::int64_t step = -1;
  std::uint32_t sends_of_step = 0, receives_of_step = 0;
  bool late_mismatch = false;  // of a send that had completed; the first is told
  std::uint32_t late_cookie = 0;
  std::uint64_t turn = 0;   // of the waiting transfer: first come, first served
  bool waiting = false;     // a transfer is ready and waits for the out-port
  bool announcing = false;  // an announcement is under way
  bool closed = false;      // an end is dead or was released: no block moves any more
  bool control_flying[kControlKinds] = {};
  bool control_there[kControlKinds] = {};
  Control flying[kControlKinds];
  Control there[kControlKinds];
};

enum class EventKind : std::uint8_t {
  kLeft,
  kMoved,
  kAnnounced,
  kControl,
  kWake,
  kKill,
  kCome,    // a block is at the beginning of a leg
  kPassed,  // and holds the leg's wires no more
};

struct Event {
  Picoseconds at = 0;
  std::uint64_t order = 0;
  EventKind kind = EventKind::kWake;
  std::uint8_t control = 0;
  std::uint32_t where = 0;  // channel; node for kWake and kKill; leg for kCome and kPassed
};

// A posted receive, and what its completion will say.
struct Receive {
  ReceivePost post;
  Status status = Status::kOk;
  std::uint32_t check = 0;
  std::uint64_t tag = 0;
};

struct Send {
  SendPost post;
  std::int64_t step = 0;       // lock step: of the post
  std::int32_t furthest = -1;  // free running: Stays::furthest() when it was posted
  Status status = Status::kOk;
};

struct Arrival {
  SendPost post;           // bytes: the slot's or the sender's
  std::int64_t step = 0;   // of the Send
  bool sent_done = false;  // completed at the sender
};

class NodeEndpoint final : public Endpoint {
 public:
  NodeEndpoint(Fabric& fabric, std::uint32_t node) : fabric_(&fabric), node_(node) {}
  [[nodiscard]] std::uint32_t node() const override { return node_; }
  [[nodiscard]] std::uint32_t links() const override;
  [[nodiscard]] std::uint32_t peer(std::uint32_t link) const override;
  [[nodiscard]] std::uint32_t window() const override;
  [[nodiscard]] std::uint64_t eager_bytes() const override;
  [[nodiscard]] Status prepare(const Region* regions, std::uint32_t count) override;
  [[nodiscard]] Status post_receive(std::uint32_t link, const ReceivePost& post) override;
  [[nodiscard]] Status post_send(std::uint32_t link, const SendPost& post) override;
  [[nodiscard]] Status post_control(std::uint32_t link, const Control& control) override;
  [[nodiscard]] bool poll(Completion& completion) override;
  void release() override;
  [[nodiscard]] std::uint64_t now() override;
  void wait(std::uint64_t until) override;

 private:
  [[nodiscard]] bool reachable(const void* bytes, std::uint64_t size) const;
  bool take(std::uint32_t link, Completion& completion);
  Fabric* fabric_;
  std::uint32_t node_;
  Region regions_[kMaxRegions];
  std::uint32_t regions_count_ = 0;
};

struct Node {
  std::uint32_t first = 0;  // its channels: first .. first+links-1
  std::uint32_t links = 0;
  bool dead = false;
  bool released = false;
  bool touched = false;
  LinkSet pending;  // links with something to poll
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  std::uint64_t activity = 0;  // posts taken and completions given
};

struct Fabric {
  Fabric(const Model& model, const std::vector<std::vector<std::uint32_t>>& peers);

  [[nodiscard]] Channel& out(std::uint32_t node, std::uint32_t link) {
    return channels[nodes[node].first + link];
  }
  [[nodiscard]] Channel& in(std::uint32_t node, std::uint32_t link) {
    return channels[in_channel[nodes[node].first + link]];
  }
  [[nodiscard]] std::size_t slot(const Channel& channel, std::uint64_t message) const {
    const auto index = static_cast<std::size_t>(&channel - channels.data());
    return index * model.window + message % model.window;
  }

  // The channel, whose counts of a step are those of the present one.
  [[nodiscard]] Channel& this_step(Channel& channel) const {
    if (channel.step != step) channel.sends_of_step = channel.receives_of_step = 0;
    channel.step = step;
    return channel;
  }
  void schedule(Picoseconds at, EventKind kind, std::uint32_t where, std::uint8_t control = 0);
  // Runs the next event if it is not later than `until`.
  bool advance(Picoseconds until);
  void touch(std::uint32_t node);
  void touch_link(std::uint32_t node, std::uint32_t link);
  // Something about the channel's next message changed: starts, queues or announces it.
  void update(Channel& channel);
  // Completes what has moved and is awaited.
  void match(Channel& channel);
  // Lock step: the channel's next message is posted.
  void ask(Channel& channel);
  // No block to or from the node moves any more.
  void close_all(std::uint32_t node);
  void kill(std::uint32_t node);

  Model model;
  Picoseconds alpha = 0;
  Picoseconds latency = 0;
  std::int64_t step = 0;  // lock step: the present one, counted on through all runs
  std::vector<Node> nodes;
  std::vector<Channel> channels;
  std::vector<std::uint32_t> in_channel;  // by the receiving end's position
  std::vector<Send> sends;                // window a channel
  std::vector<Arrival> arrivals;          // what has moved
  std::vector<Receive> receives;
  std::unique_ptr<std::uint8_t[]> slots;  // eager_bytes a message; pages come as they are used
  std::vector<Event> events;              // a heap
  std::vector<std::uint32_t> touched;     // a ring of as many as there are nodes
  std::size_t touched_first = 0;
  std::size_t touched_count = 0;
  std::vector<NodeEndpoint> endpoints;
  Picoseconds now = 0;
  std::uint64_t order = 0;
  std::unique_ptr<Wires> wires;  // null: every peer is a neighbour
  Stays stays;

 private:
  struct Port {
    std::uint32_t leaving = 0;
    Picoseconds in_free = 0;
    LinkSet waiting;  // links with a transfer that waits to leave
  };
  [[nodiscard]] std::uint32_t index(const Channel& channel) const {
    return static_cast<std::uint32_t>(&channel - channels.data());
  }
  // The ports of a node, or of a channel where each has its own.
  [[nodiscard]] Port& out_port(const Channel& channel) {
    return ports[model.one_port ? channel.from : index(channel)];
  }
  [[nodiscard]] Port& in_port(const Channel& channel) {
    return ports[model.one_port ? channel.to : index(channel)];
  }
  [[nodiscard]] bool out_free(const Channel& channel) {
    return out_port(channel).leaving < (model.one_port ? 1 : channel.lanes);
  }
  // Of the channel's message, on the hop-th leg of its way.
  [[nodiscard]] Picoseconds duration(const Channel& channel, std::uint64_t message,
                                     std::uint32_t hop, double slower) const;
  void land(Channel& channel, Picoseconds takes);
  [[nodiscard]] bool ready(Channel& channel);
  void start(Channel& channel);
  void left(Channel& channel);
  void moved(Channel& channel);
  void arrive(Channel& channel);
  void close(Channel& channel);

  // hops.cc: the way over the wires.
  void come(std::uint32_t leg);
  void go_on(Leg& leg);
  void set_out(Leg& leg);
  void passed(Leg& leg);

  std::vector<Port> ports;
};

}  // namespace espalier::sim
