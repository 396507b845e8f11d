// Endpoints over libfabric or mem, all in one process and polled by one thread, in real time.

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "hal/fabric/provider_list.h"
#include "hal/fabric/testing/local_endpoints.h"
#include "tests/storm/carrier.h"
#include "tests/storm/draw.h"

namespace espalier::storm {
namespace {

// The trial's time does not count what the machine's other processes take from this one: every node
// would be found late, or dead.
constexpr std::uint64_t kMaxStepNs = 1'000'000;

// AnyConfig: ofi::FixedConfig or ofi::AddedConfig.
template <class AnyConfig>
class RealCarrier final : public Carrier {
  using Endpoints = ofi::LocalEndpoints<AnyConfig>;

 public:
  RealCarrier(const AnyConfig& config, const Schedule& schedule)
      : config_(config),
        peers_(schedule.peers),
        endpoints_(config, peers_),
        newcomers_(peers_.size()),
        new_links_(peers_.size()),
        mistaken_(peers_.size()) {
    if (!endpoints_.error.empty()) throw std::runtime_error(endpoints_.error);
    last_ns_ = real_ns();
    if constexpr (Endpoints::kIsFixed) {
      addresses_ = ofi::addresses_for(endpoints_.nodes);
    } else {
      for (const auto& node : endpoints_.nodes) common_addresses_.push_back(node->address());
    }
  }

  [[nodiscard]] Endpoint& endpoint(std::uint32_t node) override { return endpoints_[node]; }
  [[nodiscard]] std::uint64_t now_ns() override { return now_ns_; }
  bool advance(std::uint64_t /*until_ns*/) override {
    sched_yield();
    const std::uint64_t real = real_ns();
    now_ns_ += std::min(real - last_ns_, kMaxStepNs);
    last_ns_ = real;
    for (std::uint32_t v = 0; v < newcomers_.size(); ++v) {
      if (newcomers_[v] == nullptr) continue;
      const auto connected = go_on_connecting(v);
      mistaken_[v] = mistaken_[v] || (connected && *connected && !peers_[v].empty());
    }
    return true;
  }
  [[nodiscard]] bool ready(std::uint32_t /*node*/) override { return true; }
  void kill(std::uint32_t node) override { endpoints_.nodes[node].reset(); }
  // The node's new process has its peers' addresses, and they have that of the old one.
  [[nodiscard]] bool start_again(std::uint32_t node) override {
    auto opened = Endpoints::Links::open(ofi::for_node(config_, node, peers_[node]));
    if (!opened) throw std::runtime_error(opened.error().message);
    newcomers_[node] = *std::move(opened);
    if (!start_connecting(node)) newcomers_[node].reset();  // a peer has gone, too
    return false;
  }
  [[nodiscard]] bool is_mistaken(std::uint32_t node) override { return mistaken_[node]; }

 private:
  [[nodiscard]] bool start_connecting(std::uint32_t node) {
    typename Endpoints::Links& newcomer = *newcomers_[node];
    if constexpr (Endpoints::kIsFixed) {
      return static_cast<bool>(newcomer.start_connecting(addresses_[node]));
    } else {
      std::vector<std::string> addresses = common_addresses_;
      addresses[node] = newcomer.address();
      if (!newcomer.set_addresses(std::move(addresses))) return false;
      for (const std::uint32_t peer : peers_[node]) {
        const auto link = newcomer.add_link(peer);
        if (!link) return false;
        new_links_[node].push_back(*link);
      }
      return true;
    }
  }
  [[nodiscard]] Result<bool> go_on_connecting(std::uint32_t node) {
    if constexpr (Endpoints::kIsFixed) {
      return newcomers_[node]->go_on_connecting();
    } else {
      return newcomers_[node]->connect_links(new_links_[node]);
    }
  }
  static std::uint64_t real_ns() {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                      std::chrono::nanoseconds(1));
  }

  AnyConfig config_;
  std::vector<std::vector<std::uint32_t>> peers_;
  Endpoints endpoints_;
  std::vector<std::vector<std::string>> addresses_;  // fixed links, by node: those that it needs
  std::vector<std::string> common_addresses_;        // added links, by node: those before a restart
  std::vector<std::unique_ptr<typename Endpoints::Links>> newcomers_;
  std::vector<std::vector<std::uint32_t>> new_links_;  // added links, by node: the newcomer's
  std::vector<bool> mistaken_;
  std::uint64_t now_ns_ = 0;
  std::uint64_t last_ns_ = 0;
};

template <class AnyConfig>
std::unique_ptr<Carrier> carrier_over(AnyConfig config, const Plan& plan,
                                      const Schedule& schedule) {
  config.provider = over_name(plan.over);
  config.window = plan.endpoint_window;
  config.eager_bytes = static_cast<std::uint32_t>(plan.eager_bytes);
  config.has_secret = plan.keyed;
  config.authenticate_data = plan.keyed && ofi::authenticates_data(config.provider);
  config.secret.fill(7);
  return std::make_unique<RealCarrier<AnyConfig>>(config, schedule);
}

}  // namespace

std::unique_ptr<Carrier> real_carrier(const Plan& plan, const Schedule& schedule) {
  if (plan.over != Over::kMixed) {
    ofi::FixedConfig config;
    // About a quarter of the plans: each lane binds an address of its own.
    if (plan.over == Over::kTcp && plan.endpoint_window % 2 == 1) {
      config.lanes = {{1, 1}};
      config.lane_addresses = {"127.5"};
    }
    return carrier_over(std::move(config), plan, schedule);
  }
  ofi::AddedConfig config;
  config.max_links = kMaxRealRanks;
  config.host = "aab";
  return carrier_over(config, plan, schedule);
}

}  // namespace espalier::storm
