// The conformance suite over libfabric, all endpoints in one process.

#include "hal/conformance/conformance.h"

#include <sched.h>

#include "hal/ofi/cluster.h"

namespace espalier::conformance {
namespace {

class FabricCluster final : public Cluster {
 public:
  FabricCluster(const ofi::Config& config, const ClusterSpec& spec)
      : cluster_(config, spec.peers) {}
  [[nodiscard]] const std::string& error() const { return cluster_.error; }
  [[nodiscard]] Endpoint& endpoint(std::uint32_t node) override { return cluster_[node]; }
  bool progress() override {
    sched_yield();
    return true;
  }

 private:
  ofi::Cluster cluster_;
};

// lanes = 0: direct; else modelled, with so many for each link.
BackEnd back_end(const std::string& provider, std::uint32_t lanes) {
  const std::string name = lanes == 0 ? provider : provider + "_modelled_" + std::to_string(lanes);
  return {name, [provider, lanes](const ClusterSpec& spec) -> std::unique_ptr<Cluster> {
            ofi::Config config;
            config.provider = provider;
            if (lanes != 0) config.lanes = {{lanes, lanes}};
            config.window = spec.window;
            config.eager_bytes = spec.eager_bytes;
            auto cluster = std::make_unique<FabricCluster>(config, spec);
            EXPECT_EQ(cluster->error(), "");
            if (!cluster->error().empty()) return nullptr;
            return cluster;
          }};
}

INSTANTIATE_TEST_SUITE_P(Ofi, ConformanceTest,
                         testing::Values(back_end("tcp", 0), back_end("shm", 0), back_end("tcp", 3),
                                         back_end("shm", 1), back_end("shm", 4)),
                         back_end_name);

}  // namespace
}  // namespace espalier::conformance
