#pragma once
// What a replay is made of: nodes, channels and real links, and their state. Host only.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <utility>
#include <vector>

#include "collectives/predict/replay.h"
#include "collectives/schedule/expand.h"

namespace espalier::predict {

// A message of a channel, from its sender's point of view.
struct ReplaySend {
  std::int64_t step = 0;
  std::uint32_t after = 0;
  std::uint64_t bytes = 0;
  OperandAt from;
  std::uint64_t turn = 0;  // order of the node's posts
  bool left = false;       // its sender's port is free again
};

// One direction between two peers. Each counter is the number of the first message that has not
// reached that state.
struct ReplayChannel {
  std::uint32_t from = 0, to = 0;
  std::uint32_t lanes = 1;                    // without one_port: messages that leave at once
  std::uint32_t first_segment = 0;            // its path segments are consecutive
  std::vector<ReplaySend> sends;              // in order of posting
  std::vector<std::int64_t> receives;         // by message: the step
  std::size_t allowed = 0;                    // sends: the node has issued their step
  std::size_t sends_posted = 0, posting = 0;  // posting: o is being spent on them
  std::size_t receives_posted = 0;
  std::size_t started = 0, moved = 0, completed = 0, sends_done = 0;
  std::uint32_t leaving = 0;
  bool waiting = false;  // for the port
};

// The links that a message takes at once, and one hop of its way.
struct ReplaySegment {
  std::uint32_t channel = 0;
  bool first = false, last = false;
  std::vector<std::uint32_t> links;
  bool waiting = false;
  std::uint64_t turn = 0;
  std::size_t arrived = 0, begun = 0;
  Picoseconds end_of_last = 0;
};

struct ReplayLink {
  const LinkCost* cost = nullptr;
  std::uint32_t lanes = 1, taken = 0;
  std::deque<std::uint32_t> waiters;  // path segments, by turn
};

// A combine or copy.
struct ReplayOperation {
  std::int64_t step = 0;
  std::uint32_t after = 0;
  Picoseconds time = 0;
  OperandAt into;
};

struct ReplayStep {
  std::uint32_t receives = 0, sends = 0, operations = 0;  // that are not complete
  std::uint32_t unposted = 0;                             // sends
};

struct ReplayNode {
  struct Posting {
    std::int64_t step = 0;
    std::uint32_t channel = 0;
    bool is_send = false;
  };
  std::vector<ReplayStep> steps;
  std::vector<Posting> postings;  // by step
  std::vector<ReplayOperation> operations;
  std::vector<std::int64_t> phase_ends;     // ascending; the last is the number of steps
  std::vector<std::uint32_t> out_channels;  // by peer: those with allowed sends that are not posted
  std::vector<std::pair<std::uint32_t, std::size_t>> reading;  // posted, incomplete sends
  std::int64_t issued = 0, retired = 0, all_posted = 0;
  std::size_t next_posting = 0, next_operation = 0, phase = 0;
  bool operating = false;  // an operation runs
  std::uint32_t window = 1;
  // Where ranks share processors: when this one has its next turn, and notices what has arrived.
  Picoseconds turn = 0;
  Picoseconds cpu_free = 0;
  std::uint32_t leaving = 0;
  std::vector<std::uint32_t> port_waiters;  // channels
  Picoseconds in_free = 0;
  Picoseconds out_full = 0, in_full = 0;  // when the token buckets of its ends are full again
  bool touched = false;
  bool in_free_ports = false;
};

class ReplayState {
 public:
  ReplayState(const topology::Topology& topology, const Programs& programs, const Layout& layout,
              const Model& model, const Conditions& conditions);
  [[nodiscard]] Picoseconds run();

 private:
  enum class EventKind : std::uint8_t { kLeft, kMoved, kArrived, kPosted, kReceived, kOperated };
  struct Event {
    Picoseconds time;
    std::uint64_t order;
    EventKind kind;
    std::uint32_t where;  // channel, path segment or node
    std::size_t message;
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };

  // replay.cc: what a node does
  void add_node(std::uint32_t node, const Program& program, const Layout& layout);
  std::uint32_t channel(std::uint32_t from, std::uint32_t to);
  void progress(std::uint32_t node);
  bool retire(ReplayNode& node);
  bool issue(ReplayNode& node);
  void add_out_channel(ReplayNode& node, std::uint32_t number);
  bool post_sends(std::uint32_t number);
  bool post_send(std::uint32_t number, ReplayChannel& channel);
  bool operate(std::uint32_t number);
  [[nodiscard]] static bool is_ready(const ReplayNode& node, std::int64_t step);
  [[nodiscard]] bool is_read(const ReplayNode& node, const OperandAt& into) const;
  [[nodiscard]] Picoseconds spend(std::uint32_t node, Picoseconds time);
  [[nodiscard]] Picoseconds& processor_of(ReplayNode& node, std::uint32_t number);
  void touch(std::uint32_t node);

  // replay_network.cc: what the network does
  void add_route(std::uint32_t number);
  std::uint32_t add_link(std::uint32_t from, std::uint32_t to);
  void happen(const Event& event);
  void posted(ReplayChannel& channel);
  void update(ReplayChannel& channel);
  void list_port(std::uint32_t node);
  void serve_ports();
  void start(ReplayChannel& channel);
  void proceed(std::uint32_t segment);
  bool take(ReplaySegment& segment, std::uint32_t number);
  void wait_for(ReplayLink& link, std::uint32_t segment);
  void depart(std::uint32_t segment);
  void passed(std::uint32_t segment, std::size_t message);
  void left(ReplayChannel& channel, std::size_t message);
  void match(ReplayChannel& channel);
  [[nodiscard]] const LinkCost& slowest_of(const ReplaySegment& segment, std::uint64_t bytes) const;
  [[nodiscard]] std::uint32_t number_of(const ReplayChannel& channel) const {
    return static_cast<std::uint32_t>(&channel - channels_.data());
  }
  void schedule(Picoseconds time, EventKind kind, std::uint32_t where, std::size_t message = 0) {
    events_.push({time, order_++, kind, where, message});
  }

  const topology::Topology& topology_;
  const Model& model_;
  const Conditions& conditions_;
  bool one_port_;
  // If ranks share processors: the times at which each host's are free, host by host.
  std::uint32_t ranks_on_host_;
  std::vector<Picoseconds> cores_free_;
  Picoseconds wake_ = 0;
  std::uint64_t block_bytes_;
  std::vector<ReplayNode> nodes_;
  std::vector<ReplayChannel> channels_;
  std::vector<ReplaySegment> segments_;
  std::vector<ReplayLink> links_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> channel_numbers_, link_numbers_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t order_ = 0;
  Picoseconds now_ = 0;
  std::vector<std::uint32_t> touched_;
  std::vector<std::uint32_t> free_ports_;  // nodes; as in hal/sim
};

}  // namespace espalier::predict
