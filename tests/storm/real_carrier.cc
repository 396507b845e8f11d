// Endpoints over libfabric, all in one process and polled by one thread, in real time.

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "hal/ofi/testing/local_endpoints.h"
#include "tests/storm/carrier.h"

namespace espalier::storm {
namespace {

// The trial's time does not count what the machine's other processes take from this one: every node
// would be found late, or dead.
constexpr std::uint64_t kMaxStepNs = 1'000'000;

class RealCarrier final : public Carrier {
 public:
  RealCarrier(const ofi::Config& config, const Schedule& schedule)
      : endpoints_(config, schedule.peers), closes_(config.provider != "shm") {
    if (!endpoints_.error.empty()) throw std::runtime_error(endpoints_.error);
    last_ns_ = real_ns();
  }

  [[nodiscard]] Endpoint& endpoint(std::uint32_t node) override { return endpoints_[node]; }
  [[nodiscard]] std::uint64_t now_ns() override { return now_ns_; }
  bool advance(std::uint64_t /*until_ns*/) override {
    sched_yield();
    const std::uint64_t real = real_ns();
    now_ns_ += std::min(real - last_ns_, kMaxStepNs);
    last_ns_ = real;
    return true;
  }
  [[nodiscard]] bool ready(std::uint32_t /*node*/) override { return true; }
  // The queues of shm are in shared memory. Those of a killed process stay there; those of an
  // endpoint that is closed are unmapped, here for its peers, too.
  void kill(std::uint32_t node) override {
    if (closes_) endpoints_.nodes[node].reset();
  }

 private:
  static std::uint64_t real_ns() {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                      std::chrono::nanoseconds(1));
  }

  ofi::LocalEndpoints endpoints_;
  bool closes_;  // whether a kill closes the endpoint
  std::uint64_t now_ns_ = 0;
  std::uint64_t last_ns_ = 0;
};

}  // namespace

std::unique_ptr<Carrier> real_carrier(const Plan& plan, const Schedule& schedule) {
  ofi::Config config;
  config.provider = over_name(plan.over);
  config.window = plan.endpoint_window;
  config.eager_bytes = static_cast<std::uint32_t>(plan.eager_bytes);
  config.has_secret = config.authenticate_data = plan.keyed;
  config.secret.fill(7);
  return std::make_unique<RealCarrier>(config, schedule);
}

}  // namespace espalier::storm
