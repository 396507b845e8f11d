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

BackEnd back_end(const std::string& provider) {
  return {provider, [provider](const ClusterSpec& spec) -> std::unique_ptr<Cluster> {
            ofi::Config config;
            config.provider = provider;
            config.window = spec.window;
            config.eager_bytes = spec.eager_bytes;
            auto cluster = std::make_unique<FabricCluster>(config, spec);
            EXPECT_EQ(cluster->error(), "");
            if (!cluster->error().empty()) return nullptr;
            return cluster;
          }};
}

INSTANTIATE_TEST_SUITE_P(Ofi, ConformanceTest, testing::Values(back_end("tcp"), back_end("shm")),
                         back_end_name);

}  // namespace
}  // namespace espalier::conformance
