#include <deque>
#include <optional>
#include <vector>

#include "hal/serial/testing/hub.h"
#include "tests/storm/carrier.h"

namespace espalier::storm {
namespace {

constexpr std::uint8_t kKey[16] = {9, 8, 7, 6, 5, 4, 3, 2, 1};
constexpr std::uint64_t kBeginNs = 1'000'000;  // the hub's clock at the beginning
// Six frames in a row must be lost before a peer is silent for D/2.
constexpr std::uint64_t kResendsPerDeadline = 100;

// A fault of lines: what goes from one side to the other is lost for some time.
struct LostFrames {
  Fault fault;
  std::size_t number;
  std::uint64_t until_ns;
  bool struck = false;

  [[nodiscard]] bool loses(std::uint32_t from, std::uint32_t to, std::uint64_t now_ns) const {
    if (now_ns < fault.at_ns || now_ns >= until_ns) return false;
    switch (fault.kind) {
      case Kind::kDeaf: return to == fault.node;
      case Kind::kPartition: return (from < fault.node) != (to < fault.node);
      default: return from == fault.node && to == fault.peer;
    }
  }
};

class FramedCarrier final : public Carrier {
 public:
  FramedCarrier(const Plan& plan, const Schedule& schedule)
      : plan_(plan),
        schedule_(schedule),
        hub_(schedule.peers, line_of(plan)),
        nodes_(schedule.peers.size()),
        boots_(schedule.peers.size()) {
    for (std::uint32_t v = 0; v < nodes_.size(); ++v) boot(v);
  }

  [[nodiscard]] Endpoint& endpoint(std::uint32_t node) override { return nodes_[node]->endpoint(); }
  [[nodiscard]] std::uint64_t now_ns() override { return hub_.now() - kBeginNs; }
  bool advance(std::uint64_t until_ns) override {
    return hub_.pass(until_ns == kNever ? kNever : until_ns + kBeginNs);
  }
  [[nodiscard]] bool ready(std::uint32_t node) override { return hub_.ready(node); }
  [[nodiscard]] std::uint64_t due_ns(std::uint32_t node) override {
    const std::uint64_t due = hub_.due(node);
    return due == kNever ? kNever : due - kBeginNs;
  }
  void kill(std::uint32_t node) override { hub_.cut(node); }
  [[nodiscard]] bool start_again(std::uint32_t node) override {
    nodes_[node].reset();
    hub_.restore(node);
    boot(node);
    return true;
  }

  [[nodiscard]] bool take_fault(const Fault& fault, std::size_t number) override {
    const bool ends = fault.kind == Kind::kOutage;
    lost_.push_back({fault, number, ends ? fault.at_ns + fault.ns : kNever});
    hub_.lose([this](std::uint32_t from, std::uint32_t to) { return loses(from, to); });
    return true;
  }
  [[nodiscard]] bool has_struck(std::size_t number) override {
    for (const LostFrames& lost : lost_) {
      if (lost.number == number) return lost.struck;
    }
    return false;
  }

 private:
  static serial::CarrierFaults line_of(const Plan& plan) {
    serial::CarrierFaults line{.seed = static_cast<unsigned>(plan.seed),
                               .bytes = plan.over == Over::kBytes,
                               .mtu = plan.mtu};
    line.lose = line.repeat = line.damage = plan.line_ppm / 1e6;
    line.delay = line.bytes ? 0 : line.lose;
    return line;
  }

  void boot(std::uint32_t v) {
    const std::uint32_t boots = boots_[v]++;
    SerialConfig config;
    config.session = 1 + v + 4096 * boots;
    config.window = plan_.endpoint_window;
    config.key = plan_.keyed ? kKey : nullptr;
    config.nonce = 77 + boots;
    SerialPortConfig port{.resend_ns = plan_.deadline_ns / kResendsPerDeadline};
    nodes_[v].emplace(hub_, v, schedule_.peers[v], config, port);
  }

  bool loses(std::uint32_t from, std::uint32_t to) {
    for (LostFrames& lost : lost_) {
      if (!lost.loses(from, to, now_ns())) continue;
      lost.struck = true;
      return true;
    }
    return false;
  }

  const Plan& plan_;
  const Schedule& schedule_;
  serial::Hub hub_;
  std::deque<std::optional<serial::SerialNode>> nodes_;
  std::vector<std::uint32_t> boots_;
  std::vector<LostFrames> lost_;
};

}  // namespace

std::unique_ptr<Carrier> framed_carrier(const Plan& plan, const Schedule& schedule) {
  return std::make_unique<FramedCarrier>(plan, schedule);
}

}  // namespace espalier::storm
