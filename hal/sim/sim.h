#pragma once
// The virtual-time network: any number of endpoints in one process, deterministic. Host only.
//
// A block of n bytes holds the sender's out-port and the receiver's in-port (one-port, full duplex)
// for alpha + beta*n seconds of virtual time; a transfer starts when both ports and the post (and,
// above eager_bytes, the receive) are there.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "collectives/machine/machine.h"
#include "hal/endpoint.h"

namespace espalier::sim {

struct Model {
  double alpha = 1e-6;   // s, start-up of a block
  double beta = 1e-9;    // s/B
  bool one_port = true;  // false: every link has ports of its own
  std::uint32_t window = kMaxWindow;
  std::uint64_t eager_bytes = 4096;
  double jitter = 0;  // each transfer takes up to this fraction longer, from `seed`
  std::uint64_t seed = 1;
};

class Network {
 public:
  // peers[v] lists the nodes that node v has links to, by link number. Links must be mutual.
  Network(const Model& model, const std::vector<std::vector<std::uint32_t>>& peers);
  ~Network();
  [[nodiscard]] Endpoint& endpoint(std::uint32_t node);
  [[nodiscard]] double now() const;  // s
  // Moves virtual time to the next event, at most to `until_ns`; false if nothing is scheduled
  // before.
  bool advance(std::uint64_t until_ns);
  // From now on node neither sends, answers nor receives.
  void kill(std::uint32_t node);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct RunResult {
  Status status = Status::kOk;  // of the first machine that failed, else kOk
  double seconds = 0;           // virtual, from the start to the last machine's end
  std::int64_t steps = 0;       // lock step only: steps until all were done
};

// Polls machines (machines[v] bound to endpoint v) until none is busy: free running, at the model's
// speed.
[[nodiscard]] RunResult run(Network& network, const std::vector<Machine*>& machines);
// In lock step: step s+1 is let in when all of step s has finished everywhere. Checks that no port
// is used twice a step (kUnforeseen if so).
[[nodiscard]] RunResult run_lock_step(Network& network, const std::vector<Machine*>& machines);

}  // namespace espalier::sim
