// The conformance suite over shared memory, all endpoints in one process.

#include "hal/conformance/conformance.h"

#include <bit>
#include <memory>
#include <string>

#include "base/testing/results.h"
#include "hal/mem/host/host_endpoint.h"

namespace espalier::conformance {
namespace {

class MemEndpoints final : public ConnectedEndpoints {
 public:
  MemEndpoints(const mem::Shape& shape, const EndpointsSpec& spec, bool reads_in_place) {
    for (std::uint32_t node = 0; node < spec.peers.size(); ++node) {
      mem::HostConfig config = {{node, spec.window, shape}, 0, {}, reads_in_place};
      config.blocks = static_cast<std::uint32_t>(spec.peers[node].size());
      endpoints_.push_back(std::make_unique<mem::HostEndpoint>(config));
      or_throw(endpoints_.back()->open());
    }
    for (std::uint32_t node = 0; node < spec.peers.size(); ++node) {
      for (std::uint32_t link = 0; link < spec.peers[node].size(); ++link) {
        const std::uint32_t peer = spec.peers[node][link];
        std::uint32_t other = 0;
        while (spec.peers[peer][other] != node) ++other;
        or_throw(endpoints_[node]->connect(peer, link, endpoints_[peer]->place(), other));
      }
    }
  }
  [[nodiscard]] Endpoint& endpoint(std::uint32_t node) override { return *endpoints_[node]; }
  bool progress() override { return true; }

 private:
  std::vector<std::unique_ptr<mem::HostEndpoint>> endpoints_;
};

// `piece_bytes`: 0: as an endpoint has them by default, and messages are read in place.
BackEnd back_end(const std::string& name, std::uint32_t pieces, std::uint32_t piece_bytes) {
  return {name, [pieces, piece_bytes](const EndpointsSpec& spec) {
            mem::Shape shape{.ring = std::bit_ceil(spec.window),
                             .slot_bytes = (spec.eager_bytes + 63) / 64 * 64};
            if (piece_bytes != 0) {
              shape.pieces = pieces;
              shape.piece_bytes = piece_bytes;
            }
            return std::make_unique<MemEndpoints>(shape, spec, piece_bytes == 0);
          }};
}

INSTANTIATE_TEST_SUITE_P(Mem, ConformanceTest,
                         testing::Values(back_end("in_place", 0, 0), back_end("default", 4, 32768),
                                         back_end("one_piece", 1, 64),
                                         back_end("small_pieces", 3, 192)),
                         back_end_name);

}  // namespace
}  // namespace espalier::conformance
