#pragma once
// The virtual-time network: any number of endpoints in one process, deterministic. Host only.
//
// A node has one out-port and one in-port (one-port, full duplex); a block of n bytes holds each
// for alpha + beta*n seconds of virtual time. It leaves when its post (and, above eager_bytes, the
// receive) is there and the out-port is free, first come, first served; it comes in `latency` later
// (none by default: at the same time), or, where the receiver's in-port is busy, is queued there in
// the order of leaving, as in a switch. Without one_port every link has ports of its own, one a
// lane. (Were the out-port held meanwhile, schedules that use every port in every step would fall
// out of step and lose a third of their throughput, which no switch and no TCP does.) A send
// completes when its block has left (see also eager_copies), a receive when the block is in;
// acknowledgements cost nothing. Controls take alpha, latency and no port; one that
// is still on its way is replaced by a newer one of its kind.
//
// With Model::route a block travels over the real links between its ends, each of which carries as
// many blocks at once as it has lanes, first come, first served (traffic.h says what they carried).
// Cut-through: it holds a lane of every link of the route for its alpha + beta*n, from when all of
// them are free, as the papers assume. Store and forward: one link after the other, each for alpha
// + beta*n, with buffers between that never fill up. It has its sender's port from before it waits
// for the first link until it has left over it.
//
// Memory grows with the nodes, their links and the most messages in flight at once; with
// Model::reserve the constructor takes all of it (wake() and kill() apart).

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "espalier/collectives/machine/machine.h"
#include "espalier/hal/endpoint.h"
#include "espalier/hal/sim/machines.h"
#include "espalier/hal/sim/traffic.h"

namespace espalier::sim {

enum class Hops : std::uint8_t { kCutThrough, kStoreAndForward };

struct Model {
  double alpha = 1e-6;  // s, start-up of a block
  double beta = 1e-9;   // s/B
  // s from a block's leaving to its coming in, beyond alpha and beta. The postal model's lambda is
  // (latency + alpha + beta*n) / (alpha + beta*n).
  double latency = 0;
  bool one_port = true;  // false: every link has ports of its own
  // How many blocks the link from one node to another carries at once; null: 1. Of real links, and
  // without one_port of those between peers (which are one where they are no real link: 0 lanes).
  std::function<std::uint32_t(std::uint32_t from, std::uint32_t to)> lanes;
  // The nodes that a block from one node to another passes, both included: Topology::route. Null:
  // all peers are neighbours, and their links, unless they have ports, are never busy.
  std::function<std::vector<std::uint32_t>(std::uint32_t from, std::uint32_t to)> route;
  Hops hops = Hops::kCutThrough;
  std::uint32_t window = kMaxWindow;  // 1 .. kMaxFieldWindow
  std::uint64_t eager_bytes = 4096;
  // A send of at most eager_bytes completes once it has left, though its receive is not posted: its
  // bytes go into a slot, so that its mismatch may be told late. False: once its receive is posted.
  bool eager_copies = true;
  double jitter = 0;       // each transfer takes up to this fraction longer, from `seed`
  double link_jitter = 0;  // each link always takes its own fraction longer, up to this
  // s, up to which a node looks at its endpoint late; one node more than another. run() only.
  double pace = 0;
  std::uint64_t seed = 1;
  // Fills every receive's memory with rubbish when it is posted, as a fabric may: finds programs
  // and machines that read a place too late. No longer true then: "no byte is placed" of kMismatch.
  bool scramble = false;
  // Lock step: for how many steps a block holds the links of its way (S of the postal model).
  std::uint32_t send_ticks = 1;
  // No byte of any message is read or written: for machines without data (MachineConfig::no_data).
  // All else is as with data, eager messages too.
  bool no_data = false;
  // The constructor takes all the memory that any run may need, the window's for every link.
  bool reserve = false;
};

struct Fabric;
class Runner;

class Network {
 public:
  // peers[v] lists the nodes that node v has links to, by link number. Links must be mutual: the
  // k-th link of v to u is the k-th of u to v. std::invalid_argument if they are not, or if a node
  // has more than kMaxLinks.
  Network(const Model& model, const std::vector<std::vector<std::uint32_t>>& peers);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  [[nodiscard]] std::uint32_t nodes() const;
  // Its wait() moves the whole network's time by one event, at most to its `until`.
  [[nodiscard]] Endpoint& endpoint(std::uint32_t node);
  [[nodiscard]] const Model& model() const;
  [[nodiscard]] double now() const;  // s
  [[nodiscard]] std::uint64_t now_ns() const;
  // Moves virtual time to the next event, at most to `until_ns`; false if nothing is scheduled
  // until then (time is `until_ns` then, or as it was where that is UINT64_MAX).
  bool advance(std::uint64_t until_ns);
  // From now on (or from `at_ns` on) node neither sends, answers nor receives.
  void kill(std::uint32_t node);
  void kill(std::uint32_t node, std::uint64_t at_ns);
  [[nodiscard]] bool alive(std::uint32_t node) const;
  // run() will poll the node's machine at `at_ns`: for wrappers that hold something back.
  void wake(std::uint32_t node, std::uint64_t at_ns);
  // How late the node looks at its endpoint for the which-th time, by Model::pace.
  [[nodiscard]] std::uint64_t delay_ns(std::uint32_t node, std::uint64_t which) const;
  // The node's endpoint has completions that were not polled.
  [[nodiscard]] bool pending(std::uint32_t node) const;

  // Lock step: posts from now on are of another step, the next one.
  void begin_step();
  // What was wrong in the step, one line; empty if nothing. latency_ticks: L of the postal model.
  // `moved`: something was posted in it.
  [[nodiscard]] std::string end_step(std::uint32_t latency_ticks, bool& moved);
  // Whether end_step() would find nothing wrong.
  [[nodiscard]] bool step_is_complete(std::uint32_t latency_ticks);

  // Of every real link that blocks of these peers may cross; empty without Model::route. Of both
  // kinds of run, since construction.
  [[nodiscard]] std::vector<LinkTraffic> traffic() const;
  // What links were asked for in lock step; with Model::route.
  [[nodiscard]] const Contention& contention() const;
  // Before a collective that run() polls: residence() then counts its blocks. latency_ticks: L of
  // the postal model.
  void begin_residence(std::uint32_t latency_ticks = 1);
  // Lock step: of all blocks (0 without Model::route); free running: see begin_residence().
  [[nodiscard]] Residence residence() const;

  // Blocks that node has begun to send / whose coming to node has begun, since construction.
  [[nodiscard]] std::uint64_t sent(std::uint32_t node) const;
  [[nodiscard]] std::uint64_t received(std::uint32_t node) const;
  // Blocks that all nodes have begun to send, and events of the network, since construction.
  [[nodiscard]] std::uint64_t blocks() const;
  [[nodiscard]] std::uint64_t events() const;
  // One line naming a post of a live node that has not completed; empty if there is none.
  [[nodiscard]] std::string outstanding() const;

 private:
  friend class Runner;
  std::unique_ptr<Fabric> fabric_;
};

// Links between all pairs: node v's link to u is u, or u-1 above v.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> complete_links(std::uint32_t nodes);
// The links that the programs (programs[v] is node v's; null: none) name, made mutual, ascending.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> links_of(
    const std::vector<const Program*>& programs);

// The same, told one program after the other.
class LinkCollector {
 public:
  void add(std::uint32_t node, const Program& program);
  [[nodiscard]] std::vector<std::vector<std::uint32_t>> links(std::uint32_t nodes);

 private:
  std::vector<std::uint64_t> pairs_;  // of nodes, both ways, in any order
};

struct RunResult {
  Status status = Status::kOk;  // of the first machine that failed, else kOk
  double seconds = 0;           // virtual, from the start to the last machine's end
  std::int64_t steps = 0;       // lock step only: the last step in which a block left or came, + 1
  std::string message;          // what was wrong, where `status` is the runner's own finding
  std::uint64_t polls = 0;      // of all machines
};

// Called now and then while a run goes on, with the step in lock step: for progress bars.
using Tick = std::function<void(std::int64_t step)>;

// Polls machines (machines[v] bound to endpoint v, or to a wrapper of it; null: none) until none is
// busy: free running, at the model's speed. A machine is polled when something happened at its
// endpoint or its next_deadline() has come; virtual time passes through deadlines, so failures are
// found as on a real fabric. Machines of killed nodes are left alone. kStalled with a message:
// machines are busy but nothing will ever happen.
[[nodiscard]] RunResult run(Network& network, const std::vector<Machine*>& machines);
[[nodiscard]] RunResult run(Network& network, Machines& machines, const Tick& tick = nullptr);
// In lock step: step s+1 is let in when all of step s has finished everywhere. kUnforeseen with a
// message: a node sends or receives twice in a step (one_port), a link has more blocks a step than
// lanes (else), or a receive of step s found no send of step s-L+1 (L = latency_ticks, of the
// program; 1 but in the postal model), or the other way round. Once a node is dead or a machine has
// failed, the rest runs freely.
[[nodiscard]] RunResult run_lock_step(Network& network, const std::vector<Machine*>& machines,
                                      std::uint32_t latency_ticks = 1);
[[nodiscard]] RunResult run_lock_step(Network& network, Machines& machines,
                                      std::uint32_t latency_ticks = 1, const Tick& tick = nullptr);
// Free running, until a machine ends well or nothing happens until `until_ns`: that node, or -1.
[[nodiscard]] std::int64_t first_to_end(Network& network, Machines& machines,
                                        std::uint64_t until_ns);

}  // namespace espalier::sim
