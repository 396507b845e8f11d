// Four nodes plan a two-tree allreduce for themselves, prove it, and sum one vector each over
// libfabric. Here they share one process; on a cluster each has its own, and a launcher carries the
// addresses between them.

#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/machine/machine.h"
#include "espalier/collectives/verify/verify.h"
#include "espalier/hal/ofi/ofi_endpoint.h"
#include "espalier/topology/topology.h"

namespace {

constexpr std::uint32_t kNodes = 4;
constexpr std::uint64_t kCount = 10'000;

struct Node {
  espalier::Program program = {};
  std::unique_ptr<espalier::ofi::FixedLinks> endpoint;
  espalier::Machine machine;
  std::vector<float> input, output;
  std::vector<double> scratch;  // any memory aligned to 16 bytes
};

int fail(const char* what, const std::string& why) {
  std::fprintf(stderr, "sum: %s: %s\n", what, why.c_str());
  return 1;
}

// Element i of the node's input. A whole number, so that the sum is exact.
float value(std::uint32_t node, std::uint64_t i) { return static_cast<float>((node + i) % 1000); }

// Computes and verifies every node's program.
espalier::Result<void> plan(std::vector<Node>& nodes) {
  const auto topology = espalier::topology::parse("complete:" + std::to_string(kNodes));
  if (!topology) return espalier::fail(topology.error());
  espalier::CollectiveParameters parameters{.ranks = kNodes,
                                            .topology_digest = (*topology)->digest()};
  const espalier::Algorithm* two_tree =
      espalier::find_algorithm(espalier::Collective::kAllreduce, "two-tree");
  for (std::uint32_t me = 0; me < kNodes; ++me) {
    const espalier::Status status = two_tree->generate(parameters, me, nodes[me].program);
    if (status != espalier::Status::kOk) return espalier::fail(espalier::status_name(status));
  }
  const auto program = [&](std::uint32_t node) -> const espalier::Program& {
    return nodes[node].program;
  };
  const espalier::verify::Verdict verdict = espalier::verify::verify(**topology, program, {});
  if (!verdict.valid) return espalier::fail(verdict.counterexample.message);
  return {};
}

// The addresses that the nodes of this process have published: its launcher.
struct Launcher {
  std::mutex mutex;
  std::condition_variable published;
  std::vector<std::vector<std::string>> addresses{kNodes};  // by node, then lane
  std::vector<std::vector<std::uint32_t>> peers{kNodes};
};

class LocalWireUp : public espalier::ofi::WireUp {
 public:
  explicit LocalWireUp(Launcher& launcher) : launcher_(launcher) {}
  espalier::Result<void> publish(std::uint32_t node, const std::vector<std::string>& addresses,
                                 const std::vector<std::uint32_t>& peers) override {
    const std::lock_guard lock(launcher_.mutex);
    node_ = node;
    launcher_.addresses[node] = addresses;
    launcher_.peers[node] = peers;
    launcher_.published.notify_all();
    return {};
  }
  espalier::Result<std::vector<std::string>> collect() override {
    std::unique_lock lock(launcher_.mutex);
    std::vector<std::string> addresses;
    const std::vector<std::uint32_t>& peers = launcher_.peers[node_];
    for (std::uint32_t lane = 0; lane < peers.size(); ++lane) {
      const std::vector<std::string>& published = launcher_.addresses[peers[lane]];
      launcher_.published.wait(lock, [&] { return !published.empty(); });
      addresses.push_back(published[espalier::ofi::other_end(launcher_.peers, node_, lane)]);
    }
    return addresses;
  }

 private:
  Launcher& launcher_;
  std::uint32_t node_ = 0;
};

// Opens an endpoint per node and connects each with all others.
espalier::Result<void> connect(std::vector<Node>& nodes) {
  for (std::uint32_t me = 0; me < kNodes; ++me) {
    espalier::ofi::FixedConfig config;  // provider tcp
    config.node = me;
    for (std::uint32_t peer = 0; peer < kNodes; ++peer) {
      if (peer != me) config.peers.push_back(peer);
    }
    auto endpoint = espalier::ofi::FixedLinks::open(config);
    if (!endpoint) return espalier::fail(endpoint.error());
    nodes[me].endpoint = *std::move(endpoint);
  }
  Launcher launcher;
  std::vector<espalier::Result<void>> connected(kNodes);
  std::vector<std::thread> threads;
  for (std::uint32_t me = 0; me < kNodes; ++me) {
    threads.emplace_back([&, me] {
      LocalWireUp wire_up(launcher);
      connected[me] = espalier::ofi::connect(*nodes[me].endpoint, me, wire_up);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : connected) {
    if (!result) return result;
  }
  return {};
}

// Starts the collective on every node, then polls all machines in turn until each is done.
espalier::Status run(std::vector<Node>& nodes) {
  const espalier::Operator sum{.op = espalier::Op::kSum, .type = espalier::Type::kF32};
  for (std::uint32_t me = 0; me < kNodes; ++me) {
    Node& node = nodes[me];
    espalier::Layout layout;
    espalier::Status status = espalier::make_layout(node.program, kCount, sizeof(float), layout);
    if (status != espalier::Status::kOk) return status;
    node.input.resize(kCount);
    node.output.resize(kCount);
    node.scratch.resize(espalier::scratch_needed(node.program, layout) / sizeof(double) + 1);
    for (std::uint64_t i = 0; i < kCount; ++i) node.input[i] = value(me, i);
    status = node.machine.init(node.endpoint->endpoint(), {});
    if (status != espalier::Status::kOk) return status;
    const espalier::Buffers buffers{node.input.data(), node.output.data(), node.scratch.data(),
                                    node.scratch.size() * sizeof(double)};
    status = node.machine.start(node.program, buffers, sum, kCount);
    if (status != espalier::Status::kOk) return status;
  }
  bool busy = true;
  while (busy) {
    busy = false;
    for (Node& node : nodes) {
      const espalier::Status status = node.machine.poll();
      if (status != espalier::Status::kOk && status != espalier::Status::kBusy) return status;
      busy |= status == espalier::Status::kBusy;
    }
  }
  return espalier::Status::kOk;
}

}  // namespace

int main() {
  std::vector<Node> nodes(kNodes);
  if (const auto planned = plan(nodes); !planned) {
    return fail("no valid schedule", planned.error().message);
  }
  if (const auto connected = connect(nodes); !connected) {
    return fail("not connected", connected.error().message);
  }
  const espalier::Status status = run(nodes);
  if (status != espalier::Status::kOk) return fail("not finished", espalier::status_name(status));
  for (std::uint64_t i = 0; i < kCount; ++i) {
    float expected = 0;
    for (std::uint32_t node = 0; node < kNodes; ++node) expected += value(node, i);
    for (const Node& node : nodes) {
      if (node.output[i] != expected) return fail("incorrect sum", "element " + std::to_string(i));
    }
  }
  std::printf("%u nodes have the same correct sum of %llu floats, over libfabric\n", kNodes,
              static_cast<unsigned long long>(kCount));
  return 0;
}
