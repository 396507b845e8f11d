// The whole suite over links with a carrier each, which lose and duplicate frames.

#include <algorithm>
#include <cstring>
#include <deque>
#include <random>
#include <vector>

#include "hal/conformance/conformance.h"
#include "hal/serial/wired_endpoint.h"

namespace espalier::conformance {
namespace {

constexpr std::uint32_t kMtu = 512;
constexpr std::size_t kRoom = 8;  // frames that an end holds

// A node's end of a cable.
class CableEnd final : public Carrier {
 public:
  CableEnd(double loses, double repeats, unsigned seed)
      : loses_(loses), repeats_(repeats), random_(seed) {}
  void join(CableEnd& other) { other_ = &other; }
  [[nodiscard]] std::uint32_t mtu() const override { return kMtu; }
  [[nodiscard]] Status send(const std::uint8_t* frame, std::uint32_t size) override {
    if (other_->inbox_.size() >= kRoom) return Status::kTryAgain;
    if (happens(loses_)) return Status::kOk;
    for (int copies = happens(repeats_) ? 2 : 1; copies > 0; --copies) {
      other_->inbox_.emplace_back(frame, frame + size);
    }
    return Status::kOk;
  }
  [[nodiscard]] std::uint32_t receive(std::uint8_t* frame) override {
    if (inbox_.empty()) return 0;
    const auto size = static_cast<std::uint32_t>(inbox_.front().size());
    std::memcpy(frame, inbox_.front().data(), size);
    inbox_.pop_front();
    return size;
  }
  [[nodiscard]] bool waits() const { return !inbox_.empty(); }

 private:
  bool happens(double chance) {
    return std::uniform_real_distribution<double>(0, 1)(random_) < chance;
  }

  double loses_, repeats_;
  std::mt19937 random_;
  CableEnd* other_ = nullptr;
  std::deque<std::vector<std::uint8_t>> inbox_;
};

class VirtualClock final : public Clock {
 public:
  [[nodiscard]] std::uint64_t now() override { return now_; }
  void wait(std::uint64_t until) override {
    if (until != UINT64_MAX) advance(until);
  }
  void advance(std::uint64_t until) { now_ = std::max(now_ + 1, until); }

 private:
  std::uint64_t now_ = 1'000'000;
};

class WiredNode {
 public:
  WiredNode(Clock& clock, std::deque<CableEnd>& ends, std::uint32_t node,
            const std::vector<std::uint32_t>& peers, std::uint32_t window)
      : clock_(clock),
        frames_(peers.size() * 2 * kMtu / sizeof(std::uint32_t)),
        wires_(reinterpret_cast<SerialWire*>(
            ::operator new(std::max<std::size_t>(peers.size(), 1) * sizeof(SerialWire)))) {
    SerialConfig config{.session = 77 + node, .window = window};
    auto* const frames = reinterpret_cast<std::uint8_t*>(frames_.data());
    for (std::size_t link = 0; link < peers.size(); ++link) {
      new (wires_ + link)
          SerialWire(ends[link], clock_, frames + link * 2 * kMtu, node, peers[link], {}, config);
    }
    endpoint_.emplace_back(clock_, wires_, static_cast<std::uint32_t>(peers.size()), node);
  }
  WiredNode(const WiredNode&) = delete;
  WiredNode& operator=(const WiredNode&) = delete;
  ~WiredNode() { ::operator delete(wires_); }
  WiredEndpoint& endpoint() { return endpoint_[0]; }

 private:
  WiredClock clock_;
  std::vector<std::uint32_t> frames_;
  SerialWire* wires_;
  std::deque<WiredEndpoint> endpoint_;
};

class WiredEndpoints final : public ConnectedEndpoints {
 public:
  WiredEndpoints(const EndpointsSpec& spec, double loses, double repeats) {
    unsigned seed = 1;
    ends_.resize(spec.peers.size());
    for (std::size_t v = 0; v < spec.peers.size(); ++v) {
      for (std::size_t link = 0; link < spec.peers[v].size(); ++link) {
        ends_[v].emplace_back(loses, repeats, seed++);
      }
    }
    for (std::uint32_t v = 0; v < spec.peers.size(); ++v) {
      for (std::size_t link = 0; link < spec.peers[v].size(); ++link) {
        const std::uint32_t peer = spec.peers[v][link];
        const auto& back = spec.peers[peer];
        ends_[v][link].join(ends_[peer][std::find(back.begin(), back.end(), v) - back.begin()]);
      }
      nodes_.emplace_back(clock_, ends_[v], v, spec.peers[v], spec.window);
    }
  }
  Endpoint& endpoint(std::uint32_t node) override { return nodes_[node].endpoint(); }
  bool progress() override {
    std::uint64_t due = UINT64_MAX;
    for (WiredNode& node : nodes_) due = std::min(due, node.endpoint().due(UINT64_MAX));
    for (const auto& ends : ends_) {
      for (const CableEnd& end : ends) {
        if (end.waits()) return true;
      }
    }
    if (due == UINT64_MAX) return false;
    clock_.advance(due);
    return true;
  }

 private:
  VirtualClock clock_;
  std::deque<std::deque<CableEnd>> ends_;
  std::deque<WiredNode> nodes_;
};

BackEnd back_end(const char* name, double loses, double repeats) {
  return {name, [=](const EndpointsSpec& spec) -> std::unique_ptr<ConnectedEndpoints> {
            return std::make_unique<WiredEndpoints>(spec, loses, repeats);
          }};
}

INSTANTIATE_TEST_SUITE_P(Wired, ConformanceTest,
                         testing::Values(back_end("perfect", 0, 0), back_end("lossy", 0.1, 0.1)),
                         back_end_name);

}  // namespace
}  // namespace espalier::conformance
