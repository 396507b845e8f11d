#include "tests/spares/testing/world.h"

namespace espalier::testing {
namespace {

class SimulatedWorld final : public World {
 public:
  SimulatedWorld(const Links& links, const sim::Model& model) : network_(model, links) {}
  [[nodiscard]] std::uint64_t deadline_ns() const override { return 1'000'000; }
  [[nodiscard]] Endpoint& endpoint(std::uint32_t node) override { return network_.endpoint(node); }
  [[nodiscard]] bool reopen(std::uint32_t node, std::uint32_t generation) override {
    return network_.reopen(node, generation) == Status::kOk;
  }
  void lose(const Loss& loss) override {
    if (loss.kind == Loss::Kind::kLink) network_.cut(loss.a, loss.b);
    if (loss.kind == Loss::Kind::kNode) network_.kill(loss.a);
  }
  void revive(std::uint32_t node) override { network_.revive(node); }
  [[nodiscard]] bool alive(std::uint32_t node) const override { return network_.alive(node); }
  [[nodiscard]] std::uint64_t now_ns() override { return network_.now_ns(); }
  void pass(std::uint64_t until_ns) override { (void)network_.advance(until_ns); }

 private:
  sim::Network network_;
};

// Each node has one carrier, as a board has; a generation is a set of its channels.
class FramedWorld final : public World {
 public:
  FramedWorld(const Links& links, std::uint32_t generations, const serial::CarrierFaults& faults,
              const std::uint8_t* key)
      : links_(links), key_(key), hub_(channels(links, generations), faults), dead_(links.size()) {
    nodes_.resize(links.size());
    for (std::uint32_t v = 0; v < links.size(); ++v) start(v);
    hub_.lose([this](std::uint32_t from, std::uint32_t to) {
      for (const Loss& cut : cuts_) {
        if (cut.closes(from, to)) return true;
      }
      return false;
    });
  }
  [[nodiscard]] std::uint64_t deadline_ns() const override { return 2'000'000'000; }
  [[nodiscard]] Endpoint& endpoint(std::uint32_t node) override { return nodes_[node]->endpoint(); }
  [[nodiscard]] bool reopen(std::uint32_t node, std::uint32_t generation) override {
    nodes_[node]->endpoint().reopen(static_cast<std::uint8_t>(generation * links_[node].size()));
    return true;
  }
  void lose(const Loss& loss) override {
    if (loss.kind == Loss::Kind::kLink) cuts_.push_back(loss);
    if (loss.kind == Loss::Kind::kNode) {
      hub_.cut(loss.a);
      dead_[loss.a] = true;
    }
  }
  void revive(std::uint32_t node) override {
    dead_[node] = false;
    nodes_[node].reset();
    hub_.restore(node);
    start(node);
  }
  [[nodiscard]] bool alive(std::uint32_t node) const override { return !dead_[node]; }
  [[nodiscard]] std::uint64_t now_ns() override { return hub_.now(); }
  void pass(std::uint64_t until_ns) override { (void)hub_.advance(until_ns); }

 private:
  void start(std::uint32_t node) {
    SerialConfig config;
    config.key = key_;
    config.nonce = 5000 + sessions_;
    config.session = 77 + sessions_++;
    nodes_[node] = std::make_unique<serial::SerialNode>(hub_, node, links_[node], config);
  }
  static Links channels(Links links, std::uint32_t generations) {
    for (std::vector<std::uint32_t>& peers : links) {
      const std::vector<std::uint32_t> once = peers;
      for (std::uint32_t g = 1; g < generations; ++g) {
        peers.insert(peers.end(), once.begin(), once.end());
      }
    }
    return links;
  }
  const Links links_;
  const std::uint8_t* const key_;
  serial::Hub hub_;
  std::vector<std::unique_ptr<serial::SerialNode>> nodes_;
  std::uint32_t sessions_ = 0;
  std::vector<Loss> cuts_;
  std::vector<bool> dead_;
};

}  // namespace

std::unique_ptr<World> simulated_world(const World::Links& links, const sim::Model& model) {
  return std::make_unique<SimulatedWorld>(links, model);
}

std::unique_ptr<World> framed_world(const World::Links& links, std::uint32_t generations,
                                    const serial::CarrierFaults& faults, const std::uint8_t* key) {
  return std::make_unique<FramedWorld>(links, generations, faults, key);
}

}  // namespace espalier::testing
