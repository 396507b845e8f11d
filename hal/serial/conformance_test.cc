// The whole suite over intact frames, over frames that are lost, duplicated, late and damaged, and
// over bytes.

#include "hal/conformance/conformance.h"

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "hal/serial/testing/hub.h"

namespace espalier::conformance {
namespace {

class SerialEndpoints final : public ConnectedEndpoints {
 public:
  SerialEndpoints(const EndpointsSpec& spec, const serial::CarrierFaults& faults,
                  const std::uint8_t* key)
      : hub_(spec.peers, faults) {
    for (std::uint32_t v = 0; v < hub_.nodes(); ++v) {
      nodes_.emplace_back(
          hub_, v, spec.peers[v],
          SerialConfig{.session = 77 + v, .window = spec.window, .key = key, .nonce = 5000 + v});
    }
  }
  Endpoint& endpoint(std::uint32_t node) override { return nodes_[node].endpoint(); }
  bool progress() override { return hub_.advance(UINT64_MAX); }

 private:
  serial::Hub hub_;
  std::deque<serial::SerialNode> nodes_;
};

constexpr std::uint8_t kKey[16] = {1, 2, 3};

BackEnd back_end(const std::string& name, const serial::CarrierFaults& faults,
                 const std::uint8_t* key) {
  return {name, [=](const EndpointsSpec& spec) -> std::unique_ptr<ConnectedEndpoints> {
            return std::make_unique<SerialEndpoints>(spec, faults, key);
          }};
}

serial::CarrierFaults faults(double lose, double repeat, double damage, double delay) {
  return {.lose = lose, .repeat = repeat, .damage = damage, .delay = delay};
}

serial::CarrierFaults over_bytes(serial::CarrierFaults faults, std::uint32_t mtu) {
  faults.bytes = true;
  faults.mtu = mtu;
  return faults;
}

// Every kind of line, without a key and with one.
std::vector<BackEnd> back_ends() {
  const std::pair<std::string, serial::CarrierFaults> lines[] = {
      {"perfect", {}},
      {"lossy", faults(0.1, 0, 0, 0)},
      {"mostly_lossy", faults(0.5, 0, 0, 0)},
      {"repeating_and_late", faults(0, 0.2, 0, 0.2)},
      {"damaging", faults(0, 0, 0.1, 0)},
      {"all_faults", faults(0.05, 0.05, 0.05, 0.05)},
      {"bytes", over_bytes({}, 512)},
      {"damaged_bytes", over_bytes(faults(0.00003, 0.00003, 0.00003, 0), 300)},
  };
  std::vector<BackEnd> all;
  for (const auto& [name, faults] : lines) {
    all.push_back(back_end(name, faults, nullptr));
    all.push_back(back_end("keyed_" + name, faults, kKey));
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Serial, ConformanceTest, testing::ValuesIn(back_ends()), back_end_name);

}  // namespace
}  // namespace espalier::conformance
