// The whole suite over intact frames, over frames that are lost, duplicated, late and damaged, and
// over bytes.

#include "hal/conformance/conformance.h"

#include <deque>

#include "hal/serial/testing/hub.h"

namespace espalier::conformance {
namespace {

class SerialEndpoints final : public ConnectedEndpoints {
 public:
  SerialEndpoints(const EndpointsSpec& spec, const serial::CarrierFaults& faults,
                  const std::uint8_t* key)
      : hub_(spec.peers, faults) {
    for (std::uint32_t v = 0; v < hub_.nodes(); ++v) {
      SerialConfig config;
      config.session = 77 + v;
      config.window = spec.window;
      config.key = key;
      config.nonce = 5000 + v;
      nodes_.emplace_back(hub_, v, spec.peers[v], config);
    }
  }
  Endpoint& endpoint(std::uint32_t node) override { return nodes_[node].endpoint(); }
  bool progress() override { return hub_.advance(UINT64_MAX); }

 private:
  serial::Hub hub_;
  std::deque<serial::SerialNode> nodes_;
};

constexpr std::uint8_t kKey[16] = {1, 2, 3};

BackEnd back_end(const char* name, const serial::CarrierFaults& faults,
                 const std::uint8_t* key = nullptr) {
  return {name, [=](const EndpointsSpec& spec) -> std::unique_ptr<ConnectedEndpoints> {
            return std::make_unique<SerialEndpoints>(spec, faults, key);
          }};
}
BackEnd keyed(const char* name, const serial::CarrierFaults& faults) {
  return back_end(name, faults, kKey);
}

serial::CarrierFaults faults(double lose, double repeat, double damage, double delay) {
  serial::CarrierFaults faults;
  faults.lose = lose;
  faults.repeat = repeat;
  faults.damage = damage;
  faults.delay = delay;
  return faults;
}

serial::CarrierFaults over_bytes(serial::CarrierFaults faults, std::uint32_t mtu) {
  faults.bytes = true;
  faults.mtu = mtu;
  return faults;
}

INSTANTIATE_TEST_SUITE_P(
    Serial, ConformanceTest,
    testing::Values(
        back_end("perfect", {}), back_end("lossy", faults(0.1, 0, 0, 0)),
        back_end("mostly_lossy", faults(0.5, 0, 0, 0)),
        back_end("repeating_and_late", faults(0, 0.2, 0, 0.2)),
        back_end("damaging", faults(0, 0, 0.1, 0)),
        back_end("all_faults", faults(0.05, 0.05, 0.05, 0.05)),
        back_end("bytes", over_bytes({}, 512)),
        back_end("damaged_bytes", over_bytes(faults(0.00003, 0.00003, 0.00003, 0), 300)),
        keyed("keyed", {}), keyed("keyed_lossy", faults(0.1, 0, 0, 0)),
        keyed("keyed_mostly_lossy", faults(0.5, 0, 0, 0)),
        keyed("keyed_repeating_and_late", faults(0, 0.2, 0, 0.2)),
        keyed("keyed_damaging", faults(0, 0, 0.1, 0)),
        keyed("keyed_all_faults", faults(0.05, 0.05, 0.05, 0.05)),
        keyed("keyed_bytes", over_bytes({}, 512)),
        keyed("keyed_damaged_bytes", over_bytes(faults(0.00003, 0.00003, 0.00003, 0), 300))),
    back_end_name);

}  // namespace
}  // namespace espalier::conformance
