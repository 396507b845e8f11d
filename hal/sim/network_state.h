#pragma once
// The state inside sim::Network: channels (directed links of the endpoints), ports and events.

#include <cstdint>
#include <memory>
#include <vector>

#include "espalier/hal/sim/network.h"
#include "espalier/internal/base/link_set.h"
#include "hal/sim/containers.h"
#include "hal/sim/large_memory.h"
#include "hal/sim/monotone_queue.h"
#include "hal/sim/physical_links.h"

namespace espalier::sim {

inline constexpr Picoseconds kNever = UINT64_MAX;

[[nodiscard]] inline Picoseconds picoseconds(double seconds) {
  return static_cast<Picoseconds>(seconds * 1e12 + 0.5);
}

// Returns a pseudorandom number 0 <= x < 1 that depends only on the arguments, so that jitter does
// not depend on the order of polling.
[[nodiscard]] double random_part(std::uint64_t seed, std::uint64_t who, std::uint64_t which);

// A posted send, until its receive is complete and its own completion polled.
struct Send {
  SendPost post;          // the sender's memory, or with `slot` a slot
  std::int64_t step = 0;  // lock step: step of the post
  std::int32_t planned =
      ResidenceTimes::kUnknown;  // asynchronous: the step that the schedule gives
  std::int32_t furthest = -1;    // asynchronous: ResidenceTimes::furthest() at the post
  Status status = Status::kOk;
  std::uint32_t turn = 0;  // the node's posts and completions before this post (the lowest bits)
  bool left = false;       // it has left its sender's port
  bool slot = false;       // it left before its receive was posted: its bytes are in an eager slot
};

// A posted receive, and the content of its completion.
struct Receive {
  ReceivePost post;
  std::uint64_t tag = 0;
  std::uint32_t check = 0;
  Status status = Status::kOk;
};

// State that few channels need: controls by kind, and the first completed send that was later found
// to mismatch and is not yet reported.
struct Extras {
  bool flying[kControlKinds] = {};
  bool there[kControlKinds] = {};
  Control on_its_way[kControlKinds];
  Control arrived[kControlKinds];
  bool late_mismatch = false;
  std::uint32_t late_cookie = 0;
};

// One direction of a link. Messages are numbered 0, 1, ... Each counter below is the number of the
// first message that has not reached that state. The struct fits two cache lines, because the time
// of a run is proportional to the cache lines that it reads.
struct alignas(128) Channel {
  std::uint32_t from = 0, to = 0;
  std::uint8_t from_link = 0, to_link = 0;
  std::uint8_t sends_log = Ring<Send>::kEmpty, receives_log = Ring<Receive>::kEmpty;
  bool waiting = false;              // a transfer is ready and waits for the out-port
  bool announcing = false;           // an announcement is in flight
  bool closed = false;               // an end is dead or was released: no further block moves
  bool cut = false;                  // nor any control
  std::uint32_t extras = kNoExtras;  // index in NetworkState::extras, if any
  std::uint32_t lanes = 1;           // without one_port: blocks in flight at once
  Ring<Send> sends;
  Ring<Receive> receives;
  std::uint64_t sends_posted = 0;
  std::uint64_t receives_posted = 0;
  std::uint64_t started = 0;    // has begun to leave
  std::uint64_t moved = 0;      // has arrived
  std::uint64_t announced = 0;  // the receiver knows its header
  std::uint64_t early_told = 0;
  std::uint64_t completed = 0;   // compared with its receive
  std::uint64_t sends_done = 0;  // completed at the sender
  std::uint64_t sends_polled = 0;
  std::uint64_t receives_polled = 0;
  // Lock step: the counts below are for step `step` (the lowest bits of its number).
  std::uint32_t step = 0xffffffffu;
  std::uint16_t sends_of_step = 0, receives_of_step = 0;

  static constexpr std::uint32_t kNoExtras = 0xffffffffu;
  [[nodiscard]] Send& send(std::uint64_t message) const { return sends.at(message, sends_log); }
  [[nodiscard]] Receive& receive(std::uint64_t message) const {
    return receives.at(message, receives_log);
  }
  // Asserts the order of the counters of a channel that is open.
  void check_invariants() const {
    ESPALIER_ASSERT(closed || (completed <= moved && moved <= started));
    ESPALIER_ASSERT(closed || started <= sends_posted);
    ESPALIER_ASSERT(closed || completed <= receives_posted);
    ESPALIER_ASSERT(closed || (sends_polled <= sends_done && sends_done <= started));
    ESPALIER_ASSERT(closed || receives_polled <= completed);
    ESPALIER_ASSERT(closed || moved <= announced);
  }
};
static_assert(sizeof(Channel) == 128);

enum class EventKind : std::uint8_t {
  kLeft,
  kMoved,
  kAnnounced,
  kControl,
  kWake,
  kKill,
  kArrived,  // a block has reached the beginning of a path segment
  kPassed,   // a block no longer holds the links of a path segment
};

struct Event {
  std::uint32_t where =
      0;  // channel; node for kWake and kKill; path segment for kArrived and kPassed
  EventKind kind = EventKind::kWake;
  std::uint8_t control = 0;
  std::uint16_t message = 0;  // kLeft, kPassed: the lowest bits of the message number
};

struct NodeState;

class NodeEndpoint final : public Endpoint {
 public:
  NodeEndpoint(NetworkState& state, std::uint32_t node) : state_(&state), node_(node) {}
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
  // The link's number among those of all generations.
  [[nodiscard]] std::uint32_t numbered(std::uint32_t link) const;
  bool take(const NodeState& node, std::uint32_t link, Completion& completion);
  bool take_control(Channel& in, Completion& completion);
  bool take_sent(Channel& out, Completion& completion);
  bool take_received(Channel& in, Completion& completion);
  NetworkState* state_;
  std::uint32_t node_;

 public:
  // Bits of the first 32 links that were ever used for sending, or for receiving.
  std::uint32_t sent_on = 0, received_on = 0;
  // Lock step: the last step with a send, and with a receive (the lowest bits of the step numbers).
  std::uint32_t send_step = 0, receive_step = 0;
  std::uint32_t activity = 0;  // posts accepted and completions returned (the lowest bits)
};

struct NodeState {
  // Its channels are first .. first+links*generations-1, those in use first+base() ..
  // first+base()+links-1.
  std::uint32_t first = 0;
  std::uint8_t links = 0;
  bool dead : 1 = false;
  bool released : 1 = false;
  bool touched : 1 = false;
  bool in_free_ports : 1 = false;  // NetworkState::free_ports has this node
  std::uint8_t generation : 4 = 0;
  // With one_port: the number of blocks that are leaving, the time at which the in-port is free,
  // and the links with a transfer that waits for the out-port.
  std::uint16_t leaving = 0;
  Picoseconds in_free = 0;
  LinkSet waiting;
  // Links in use with unpolled completions: of sends, and of everything received.
  LinkSet pending_out, pending_in;

  [[nodiscard]] std::uint32_t base() const { return std::uint32_t{generation} * links; }
  // Whether this link, counted over all generations, is of the present one.
  [[nodiscard]] bool uses(std::uint32_t link) const { return link - base() < links; }

  [[nodiscard]] bool pending() const { return !pending_out.empty() || !pending_in.empty(); }
};
static_assert(sizeof(NodeState) <= 64, "a cache line");

// Memory for eager messages that arrived before their receive was posted: eager_bytes each.
class EagerSlots {
 public:
  EagerSlots(std::uint64_t bytes, std::size_t reserved) : bytes_(bytes) {
    if (reserved > 0) add(reserved);
  }
  [[nodiscard]] std::uint8_t* take() {
    if (free_.empty()) add(kBlock);
    std::uint8_t* const slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void give(std::uint8_t* slot) { free_.push_back(slot); }

 private:
  static constexpr std::size_t kBlock = 16;
  void add(std::size_t slots) {
    // Not cleared, so the system provides pages only as they are used.
    blocks_.emplace_back(new std::uint8_t[slots * bytes_]);
    free_.reserve(free_.size() + slots);
    for (std::size_t slot = slots; slot-- > 0;) {
      free_.push_back(blocks_.back().get() + slot * bytes_);
    }
  }
  std::uint64_t bytes_;
  std::vector<std::unique_ptr<std::uint8_t[]>> blocks_;
  std::vector<std::uint8_t*> free_;
};

struct NetworkState {
  explicit NetworkState(const Model& the_model);
  // Adds the nodes, channels and physical links; errors as of Network::create(). Called once.
  [[nodiscard]] Result<void> build(const std::vector<std::vector<std::uint32_t>>& peers);

  [[nodiscard]] Channel& out(std::uint32_t node, std::uint32_t link) {
    return channels[nodes[node].first + link];
  }
  [[nodiscard]] Channel& in(std::uint32_t node, std::uint32_t link) {
    return channels[in_channel[nodes[node].first + link]];
  }
  // Returns the ring entry of the next post.
  [[nodiscard]] Send& next_send(Channel& channel);
  [[nodiscard]] Receive& next_receive(Channel& channel);
  [[nodiscard]] Extras& extras_of(Channel& channel);

  [[nodiscard]] bool in_this_step(const Channel& channel) const {
    return channel.step == static_cast<std::uint32_t>(step);
  }
  // The channel's next send / receive is posted in the current step.
  void count_send(Channel& channel);
  void count_receive(Channel& channel);
  void count_post(const Channel& channel, std::uint32_t posts, std::uint32_t& last_step);
  void schedule(Picoseconds time, EventKind kind, std::uint32_t where, std::uint8_t control = 0);
  // Schedules an event for the time at which the channel's message has left.
  void schedule_left(Picoseconds time, EventKind kind, std::uint32_t where, std::uint64_t message) {
    events.push(time, {where, kind, 0, static_cast<std::uint16_t>(message)});
  }
  // Returns the time of the next event; kNever if there is none.
  [[nodiscard]] Picoseconds next_event() const {
    if (!free_ports.empty()) return now;
    return events.empty() ? kNever : std::max(events.least(), now);
  }
  // Runs the next event if it is not later than `until`. advance_moment() runs all events of that
  // time.
  bool advance(Picoseconds until);
  bool advance_moment(Picoseconds until);
  // Prefetches for a poll of the node that follows soon. Each stage needs the data that the
  // previous stage prefetched.
  static constexpr std::size_t kExpectStages = 4;
  void expect_poll(std::uint32_t node, std::size_t stage);
  void touch(std::uint32_t node);
  // Marks that the channel's sender, or receiver, has a completion to poll.
  void touch_sender(const Channel& channel);
  void touch_receiver(const Channel& channel);
  // Starts, queues or announces the channel's next message after its state changed.
  void update(Channel& channel);
  // Completes messages that have arrived and have a receive.
  void match(Channel& channel);
  // Lock step: counts the links that the channel's next message, now posted, asks for.
  void ask(Channel& channel);
  // Stops all further blocks to and from the node: on its present links, or on all.
  void close_present(std::uint32_t node);
  void close_all(std::uint32_t node);
  void kill(std::uint32_t node);
  void cut(std::uint32_t a, std::uint32_t b);
  [[nodiscard]] Status reopen(std::uint32_t node, std::uint32_t generation);
  void revive(std::uint32_t node);
  // Lets blocks move on a channel of this generation that was never used, if both ends may.
  void open_unused(Channel& channel, std::uint32_t generation, std::uint32_t peer);

  Model model;
  Picoseconds alpha = 0;
  Picoseconds latency = 0;
  std::int64_t step = 0;  // lock step: the current step, counted across all runs
  LargeVector<NodeState> nodes;
  LargeVector<Channel> channels;
  LargeVector<std::uint32_t> in_channel;  // by the index of the receiving end
  RingStore<Send> send_rings;
  RingStore<Receive> receive_rings;
  std::vector<Extras> extras;
  EagerSlots slots;
  MonotoneQueue<Event> events;         // by time
  std::vector<std::uint32_t> touched;  // nodes whose endpoint changed; unordered
  // With one_port: nodes whose out-port is free and may have a transfer to start; unordered. They
  // start when no other event of this time is left, so that the first post of several that became
  // ready at the same time goes first, whichever node was polled first.
  std::vector<std::uint32_t> free_ports;
  LargeVector<NodeEndpoint> endpoints;
  // The regions that a node's endpoint prepared. Unused without data.
  struct Regions {
    Region regions[Endpoint::kMaxRegions];
    std::uint32_t count = 0;
  };
  LargeVector<Regions> regions;
  Picoseconds now = 0;
  std::uint64_t order = 0;  // of path segments that wait for links
  std::uint64_t events_run = 0;
  std::uint64_t blocks = 0;  // that have begun to leave
  std::uint32_t dead = 0;    // number of dead nodes
  // Lock step: channels with a post of the current step, and channels with an incomplete send of an
  // earlier step.
  std::vector<std::uint32_t> step_channels, late_channels;
  // Posts of all channels that were not yet compared.
  std::uint64_t open_sends = 0, open_receives = 0;
  // Whether a node or a link had too many posts in the step, and whether there were any posts.
  bool crowded = false, step_moved = false;
  std::unique_ptr<PhysicalLinks> physical_links;  // null: every peer is a neighbour
  ResidenceTimes residence_times;
  // The machine that posts now, and the step in which it planned the post with this context; null:
  // unknown.
  const void* poster = nullptr;
  std::int64_t (*planned_step)(const void* poster, std::uint32_t context) = nullptr;

  [[nodiscard]] std::uint32_t index(const Channel& channel) const {
    return static_cast<std::uint32_t>(&channel - channels.data());
  }

 private:
  void enter_step(Channel& channel);
  [[nodiscard]] Result<void> add_channels(const std::vector<std::vector<std::uint32_t>>& peers);
  [[nodiscard]] Result<void> pair_channels();
  void reserve();
  void run_next();
  void expect_event(const Event& event, std::size_t stage);
  void expect_send(std::uint32_t channel, std::size_t stage);
  // The port state of the node or, without one_port, of the channel.
  [[nodiscard]] std::uint16_t& leaving(const Channel& channel) {
    return model.one_port ? nodes[channel.from].leaving : ports_[index(channel)].leaving;
  }
  [[nodiscard]] Picoseconds& in_free(const Channel& channel) {
    return model.one_port ? nodes[channel.to].in_free : ports_[index(channel)].in_free;
  }
  // Returns the transfer time of the channel's message on path segment number `hop`.
  [[nodiscard]] Picoseconds duration(const Channel& channel, std::uint64_t message,
                                     std::uint32_t hop, double slower) const;
  void land(Channel& channel, Picoseconds takes);
  [[nodiscard]] bool ready(Channel& channel);
  void start(Channel& channel);
  void left(Channel& channel, std::uint16_t message);
  void free_port(Channel& channel);
  // Lists the node's out-port in free_ports if it is free.
  void list_port(std::uint32_t node);
  // Starts the first post of each listed port that is ready.
  void serve_ports();
  void serve_port(std::uint32_t node);
  void complete_sends(Channel& channel);
  [[nodiscard]] bool give_bytes(Channel& channel, std::uint64_t message);
  void stop_waiting(Channel& channel);
  void moved(Channel& channel);
  void match_next(Channel& channel);
  void close(Channel& channel);

  // hops.cc: crossing the links.
  void arrive(std::uint32_t segment);
  void proceed(PathSegment& segment);
  void depart(PathSegment& segment);
  void passed(PathSegment& segment, std::uint16_t message);

  struct Port {
    std::uint16_t leaving = 0;
    Picoseconds in_free = 0;
  };
  LargeVector<Port> ports_;  // by channel; only without one_port
};

}  // namespace espalier::sim
