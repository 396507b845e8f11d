// The conformance suite over libfabric, all endpoints in one process.

#include "hal/conformance/conformance.h"

#include <sched.h>

#include <algorithm>

#include "hal/fabric/testing/local_endpoints.h"

namespace espalier::conformance {
namespace {

template <class AnyConfig>
class OfiEndpoints final : public ConnectedEndpoints {
 public:
  OfiEndpoints(const AnyConfig& config, const EndpointsSpec& spec)
      : endpoints_(config, spec.peers) {}
  [[nodiscard]] const std::string& error() const { return endpoints_.error; }
  [[nodiscard]] Endpoint& endpoint(std::uint32_t node) override { return endpoints_[node]; }
  bool progress() override {
    sched_yield();
    return true;
  }

 private:
  ofi::LocalEndpoints<AnyConfig> endpoints_;
};

// lanes = 0: the fabric routes. kAdded: it routes, and links are added and connected one by one.
// Otherwise hop by hop, with `lanes` lanes per link and direction.
constexpr std::uint32_t kAdded = 0xffffffff;

// kTwoHosts: as kAdded, and the nodes are on two hosts in turn.
constexpr std::uint32_t kTwoHosts = 0xfffffffe;

// kOwnAddresses: hop by hop with two lanes per link and direction, of which each binds an address
// of its own.
constexpr std::uint32_t kOwnAddresses = 0xfffffffd;

// The same, and each lane has a domain of its own.
constexpr std::uint32_t kOwnDomains = 0xfffffffc;

// kCables: links over two cables per pair of nodes, each of two lanes. Over mem+tcp, the nodes are
// on two hosts in turn.
constexpr std::uint32_t kCables = 0xfffffffb;

// The endpoints of a closed fabric have a job secret; kData: they also authenticate payloads.
enum class Closed : std::uint8_t { kNo, kWords, kData };

template <class AnyConfig>
std::unique_ptr<ConnectedEndpoints> connect(AnyConfig config, const std::string& provider,
                                            Closed closed, const EndpointsSpec& spec) {
  config.provider = provider;
  config.window = spec.window;
  config.has_secret = closed != Closed::kNo;
  config.secret.fill(7);
  config.authenticate_data = closed == Closed::kData;
  config.eager_bytes = spec.eager_bytes;
  auto cluster = std::make_unique<OfiEndpoints<AnyConfig>>(config, spec);
  EXPECT_EQ(cluster->error(), "");
  if (!cluster->error().empty()) return nullptr;
  return cluster;
}

BackEnd back_end(const std::string& provider, std::uint32_t lanes, Closed closed = Closed::kNo) {
  std::string name = lanes == 0               ? provider
                     : lanes == kAdded        ? provider + "_added"
                     : lanes == kTwoHosts     ? provider + "_two_hosts"
                     : lanes == kOwnAddresses ? provider + "_own_addresses"
                     : lanes == kOwnDomains   ? provider + "_own_domains"
                     : lanes == kCables       ? provider + "_cables"
                                              : provider + "_hop_by_hop_" + std::to_string(lanes);
  if (closed != Closed::kNo) name += closed == Closed::kData ? "_closed_data" : "_closed";
  for (const char other : {';', '+'}) std::replace(name.begin(), name.end(), other, '_');
  return {
      name,
      [provider, lanes, closed](const EndpointsSpec& spec) -> std::unique_ptr<ConnectedEndpoints> {
        if (lanes == kAdded || lanes == kTwoHosts || lanes == kCables) {
          ofi::AddedConfig config;
          config.max_links = 16;
          const bool has_hosts = lanes == kTwoHosts || (lanes == kCables && provider != "tcp");
          config.host = has_hosts ? "ab" : "";
          if (lanes == kCables)
            config.cables = {{.number = 2, .local_address = "127.3", .lanes = 2}};
          return connect(config, provider, closed, spec);
        }
        ofi::FixedConfig config;
        if (lanes != 0) config.lanes = {{lanes, lanes}};
        if (lanes == kOwnAddresses || lanes == kOwnDomains) {
          config.lanes = {{2, 2}};
          config.lane_addresses = {"127.2"};
          config.separate_domains = lanes == kOwnDomains;
        }
        return connect(config, provider, closed, spec);
      }};
}

INSTANTIATE_TEST_SUITE_P(Ofi, ConformanceTest,
                         testing::Values(back_end("tcp", 0), back_end("tcp", 3, Closed::kWords),
                                         back_end("tcp", 1, Closed::kData),
                                         back_end("tcp", kOwnAddresses, Closed::kWords),
                                         back_end("tcp", kOwnDomains, Closed::kData),
                                         back_end("tcp", kAdded, Closed::kData), back_end("mem", 0),
                                         back_end("mem", 3, Closed::kWords),
                                         back_end("mem", kAdded, Closed::kWords),
                                         back_end("mem+tcp", kAdded, Closed::kWords),
                                         back_end("mem+tcp", kTwoHosts, Closed::kData),
                                         back_end("tcp", kCables, Closed::kNo),
                                         back_end("mem+tcp", kCables, Closed::kData)),
                         back_end_name);

}  // namespace
}  // namespace espalier::conformance
