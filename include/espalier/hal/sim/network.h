#pragma once
// The virtual-time network: any number of endpoints in one process, deterministic. Host only.
//
// Ports. A node has one out-port and one in-port (one-port, full duplex). A block of n bytes holds
// each for alpha + beta*n seconds of virtual time. A block leaves when its send is posted (above
// eager_bytes also its receive) and the out-port is free. If several blocks wait for the port, the
// block that was posted first leaves. It arrives `latency` later (default 0: at the same time). If
// the receiver's in-port is busy, the block is queued there in the order of leaving, as in a
// switch. The out-port is not held meanwhile. Otherwise schedules that use every port in every step
// would fall out of step and lose a third of their throughput, which no switch and no TCP causes.
// Without one_port every link has its own ports, one per lane.
//
// Completion. A send completes when its block has left (see also eager_copies), a receive when its
// block has arrived. Acknowledgements cost nothing. A control takes alpha + latency and no port; a
// newer control replaces one of the same kind that is still in flight.
//
// Real links. With Model::route a block crosses the real links between its ends. Each link carries
// at most one block per lane at once, first come, first served; traffic.h reports the load.
// Cut-through: a block holds one lane of every link of the route for its alpha + beta*n, beginning
// when all of them are free, as the papers assume. Store and forward: it crosses one link after the
// other, each for alpha + beta*n, with unlimited buffers in between. A block holds its sender's
// port from before it waits for the first link until it has crossed that link.
//
// Memory grows with the nodes, their links and the maximum number of messages in flight at once.
// With Model::reserve the constructor allocates all of it, except for wake() and kill().

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/hal/endpoint.h"
#include "espalier/internal/base/limits.h"
#include "espalier/internal/base/switching.h"
#include "espalier/internal/hal/sim/traffic.h"

namespace espalier::sim {

// The speeds and the rules of a network.
struct Model {
  double alpha = 1e-6;  // s, start-up time of a block
  double beta = 1e-9;   // s/B
  // s from a block's departure to its arrival, in addition to alpha and beta. The postal model's
  // lambda is (latency + alpha + beta*n) / (alpha + beta*n).
  double latency = 0;
  bool one_port = true;  // false: every link has its own ports
  // Number of blocks that the link from one node to another carries at once; null: 1. Applies to
  // real links. Without one_port it also applies to links between peers (a peer link that is not a
  // real link reports 0 lanes and gets 1).
  std::function<std::uint32_t(std::uint32_t from, std::uint32_t to)> lanes = {};
  // The nodes on the path of a block from one node to another, both included: Topology::route.
  // Null: all peers are neighbours, and links without their own ports are never busy.
  std::function<std::vector<std::uint32_t>(std::uint32_t from, std::uint32_t to)> route = {};
  Switching switching = Switching::kCutThrough;
  std::uint32_t window = kMaxWindow;  // 1 .. kMaxFieldWindow
  std::uint64_t eager_bytes = 4096;
  // True: a send of at most eager_bytes completes once it has left, even if its receive is not
  // posted. Its bytes go into a slot, so its mismatch may be reported late. False: it completes
  // once its receive is posted.
  bool eager_copies = true;
  double jitter = 0;  // each transfer takes longer by a random fraction up to this, from `seed`
  double link_jitter = 0;  // each link is slower by its own constant fraction, up to this
  // s, the maximum delay before a node polls its endpoint; some nodes are slower than others. Used
  // by run() only.
  double pace = 0;
  std::uint64_t seed = 1;
  // Poisons the memory of every receive when it is posted, as a real fabric may. This exposes
  // programs and machines that read a buffer too late. The guarantee "no byte is placed" of
  // kMismatch then does not hold.
  bool poison = false;
  // Lock step: number of steps for which a block holds the links of its route (S of the postal
  // model).
  std::uint32_t send_ticks = 1;
  // Neither reads nor writes a byte of any message: for machines without data
  // (MachineConfig::no_data). Everything else is as with data, including eager messages.
  bool no_data = false;
  // The constructor allocates all memory that any run may need, with the full window on every link.
  bool reserve = false;
  // How many sets of links every node has, for reopen(); 1 .. kMaxGenerations. With peers of
  // kMaxLinks / generations links at most.
  std::uint32_t generations = 1;
  static constexpr std::uint32_t kMaxGenerations = 8;
};

struct NetworkState;
class Runner;

// A network of nodes in virtual time, with an endpoint per node.
class Network {
 public:
  // peers[v] lists the peers of node v by link number. Links must be mutual: the k-th link of v to
  // u is the k-th of u to v. Errors:
  //  * links that are not mutual, lead to the node itself or have no lanes; more than kMaxLinks
  //  * a route that begins or ends at another node
  //  * a value of the model out of range; poison together with no_data
  [[nodiscard]] static Result<Network> create(const Model& model,
                                              const std::vector<std::vector<std::uint32_t>>& peers);
  // The same. Requires arguments for which create() has no error.
  Network(const Model& model, const std::vector<std::vector<std::uint32_t>>& peers);
  Network(Network&& other) noexcept;
  ~Network();
  Network& operator=(Network&&) = delete;

  // Returns the number of nodes.
  [[nodiscard]] std::uint32_t nodes() const;
  // wait() of this endpoint advances the whole network's time by one event, at most to its `until`.
  [[nodiscard]] Endpoint& endpoint(std::uint32_t node);
  // Returns the model given to the constructor.
  [[nodiscard]] const Model& model() const;
  // now() and now_ns() return the virtual time since construction, in s and in ns rounded down.
  [[nodiscard]] double now() const;  // s
  [[nodiscard]] std::uint64_t now_ns() const;
  // Advances virtual time to the next event, at most to `until_ns`. False: no event is scheduled by
  // then; time is now `until_ns`, or unchanged if `until_ns` is UINT64_MAX.
  bool advance(std::uint64_t until_ns);
  // Kills the node, now or at `at_ns`: from then on it neither sends, replies nor receives.
  void kill(std::uint32_t node);
  void kill(std::uint32_t node, std::uint64_t at_ns);
  // Cuts the links between the two nodes, of all generations: from now on nothing passes.
  void cut(std::uint32_t a, std::uint32_t b);
  // Opens the node's links of this generation in place of its former ones, which carry nothing any
  // more: late messages and controls of those reach no one. What the peers sent on the new links
  // before is there. kBadArgument: its endpoint was not released since; or the generation is not
  // above the present one, or not below Model::generations.
  [[nodiscard]] Status reopen(std::uint32_t node, std::uint32_t generation);
  // Starts a killed node anew, with reopen() as the next call. Its links of generation 0 stay
  // closed, and so do those on which a message was posted.
  void revive(std::uint32_t node);
  // Whether the node has not been killed, or was revived.
  [[nodiscard]] bool alive(std::uint32_t node) const;
  // Makes run() poll the node's machine at `at_ns`: for wrappers that hold messages back.
  void wake(std::uint32_t node, std::uint64_t at_ns);
  // Returns how late the node polls its endpoint for the which-th time, by Model::pace.
  [[nodiscard]] std::uint64_t delay_ns(std::uint32_t node, std::uint64_t which) const;
  // Whether the node's endpoint has unpolled completions.
  [[nodiscard]] bool pending(std::uint32_t node) const;

  // Lock step: ends the current step for posting; later posts belong to the next step.
  void begin_step();
  // Returns one line that describes the first fault in the step, or an empty string. Sets `moved`
  // if anything was posted in the step. latency_ticks: L of the postal model.
  [[nodiscard]] std::string end_step(std::uint32_t latency_ticks, bool& moved);
  // Whether end_step() would find no fault.
  [[nodiscard]] bool step_is_complete(std::uint32_t latency_ticks);

  // Returns the traffic of every real link that blocks of these peers may cross, over all runs
  // since construction. Empty without Model::route.
  [[nodiscard]] std::vector<LinkTraffic> traffic() const;
  // Returns the demand on links in lock step; only with Model::route.
  [[nodiscard]] const Contention& contention() const;
  // Makes residence() count the blocks of the next collective; call it before a collective that
  // run() polls. latency_ticks: L of the postal model.
  void begin_residence(std::uint32_t latency_ticks = 1);
  // Returns how long blocks stayed in nodes. Lock step: counts all blocks (0 without Model::route).
  // Asynchronous: see begin_residence().
  [[nodiscard]] Residence residence() const;

  // Since construction: sent() returns the blocks that node has begun to send, received() those
  // that have begun to arrive at node.
  [[nodiscard]] std::uint64_t sent(std::uint32_t node) const;
  [[nodiscard]] std::uint64_t received(std::uint32_t node) const;
  // Since construction: blocks() returns the blocks that all nodes have begun to send, events() the
  // number of network events.
  [[nodiscard]] std::uint64_t blocks() const;
  [[nodiscard]] std::uint64_t events() const;
  // Returns one line that names an incomplete post of a live node; empty if there is none.
  [[nodiscard]] std::string outstanding() const;

 private:
  explicit Network(std::unique_ptr<NetworkState> state);
  friend class Runner;
  std::unique_ptr<NetworkState> state_;
};

// Links between all pairs: node v's link to u is u if u < v, otherwise u-1.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> complete_links(std::uint32_t nodes);

}  // namespace espalier::sim
