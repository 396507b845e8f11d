#include "tests/spares/testing/recovering_cluster.h"

#include <map>

#include "base/splitmix64.h"
#include "espalier/hal/sim/network.h"
#include "hal/serial/testing/hub.h"

namespace espalier::testing {
namespace {

class SimulatedWorld final : public World {
 public:
  SimulatedWorld(const Scenario& scenario, const std::vector<std::vector<std::uint32_t>>& links)
      : network_(model(scenario), links) {}
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
  [[nodiscard]] std::uint64_t now_ns() const override { return network_.now_ns(); }
  void pass(std::uint64_t until_ns) override { (void)network_.advance(until_ns); }

 private:
  static sim::Model model(const Scenario& scenario) {
    sim::Model model;
    model.one_port = false;
    model.generations = kGenerations;
    model.eager_bytes = scenario.eager_bytes;
    model.poison = true;
    return model;
  }
  sim::Network network_;
};

// Each node has one carrier, as a board has; a generation is a set of its channels.
class FramedWorld final : public World {
 public:
  FramedWorld(const Scenario& scenario, const std::vector<std::vector<std::uint32_t>>& links)
      : links_(links), hub_(channels(links), faults(scenario)), dead_(links.size()) {
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
  [[nodiscard]] std::uint64_t now_ns() const override { return hub_.now(); }
  void pass(std::uint64_t until_ns) override { (void)hub_.advance(until_ns); }

 private:
  void start(std::uint32_t node) {
    SerialConfig config;
    config.session = 77 + sessions_++;
    nodes_[node] = std::make_unique<serial::SerialNode>(hub_, node, links_[node], config);
  }
  static serial::CarrierFaults faults(const Scenario& scenario) {
    serial::CarrierFaults faults;
    faults.lose = faults.damage = 0.01;
    faults.repeat = faults.delay = 0.1;
    faults.seed = static_cast<unsigned>(scenario.moment + 1);
    return faults;
  }
  static std::vector<std::vector<std::uint32_t>> channels(
      std::vector<std::vector<std::uint32_t>> links) {
    for (std::vector<std::uint32_t>& peers : links) {
      const std::vector<std::uint32_t> once = peers;
      for (std::uint32_t g = 1; g < kGenerations; ++g) {
        peers.insert(peers.end(), once.begin(), once.end());
      }
    }
    return links;
  }
  const std::vector<std::vector<std::uint32_t>> links_;
  serial::Hub hub_;
  std::vector<std::unique_ptr<serial::SerialNode>> nodes_;
  std::uint32_t sessions_ = 0;
  std::vector<Loss> cuts_;
  std::vector<bool> dead_;
};

std::uint32_t input_at(std::uint32_t number, std::uint32_t node, std::uint64_t element) {
  return static_cast<std::uint32_t>(
      splitmix64(std::uint64_t{number} << 40 | std::uint64_t{node} << 20 | element));
}

}  // namespace

const Library& library(const std::string& spec) {
  static std::map<std::string, std::unique_ptr<Library>> made;
  std::unique_ptr<Library>& one = made[spec];
  if (one == nullptr) one = std::make_unique<Library>(spec);
  return *one;
}

std::unique_ptr<World> make_world(const Scenario& scenario,
                                  const std::vector<std::vector<std::uint32_t>>& links) {
  if (scenario.framed) return std::make_unique<FramedWorld>(scenario, links);
  return std::make_unique<SimulatedWorld>(scenario, links);
}

NodeUnderTest::NodeUnderTest(ClusterUnderTest& cluster, std::uint32_t node, bool returns)
    : comes_back(returns),
      recovery(machine_, cluster.world->endpoint(node), *this, cluster.world->deadline_ns()),
      cluster_(cluster),
      node_(node),
      image_(cluster.programs.image(node)),
      programs_(image_.programs) {
  for (std::uint32_t i = 0; i < image_.programs; ++i) {
    EXPECT_EQ(image_.load(i, programs_[i]), Status::kOk);
  }
  MachineConfig config;
  config.deadline_ns = cluster.world->deadline_ns();
  EXPECT_EQ(machine_.init(cluster.world->endpoint(node), config), Status::kOk);
  if (!comes_back) return;
  EXPECT_EQ(recovery.come_back(), Status::kBusy);
  recovering_ = true;
}

SpareKinds NodeUnderTest::kinds() const { return cluster_.scenario.kinds; }

const Program* NodeUnderTest::load(const Loss& loss) {
  spare_ = image_.find_spare(loss);
  if (spare_ == image_.spares) return nullptr;
  return image_.load_spare(spare_, 0, programs_[0]) == Status::kOk ? &programs_[0] : nullptr;
}

Endpoint* NodeUnderTest::open(std::uint32_t generation) {
  if (generation >= kGenerations) return nullptr;
  if (!cluster_.world->reopen(node_, generation)) return nullptr;
  return &cluster_.world->endpoint(node_);
}

std::uint64_t NodeUnderTest::next_deadline() const {
  if (ended) return UINT64_MAX;
  return recovering_ ? recovery.next_deadline() : machine_.next_deadline();
}

void NodeUnderTest::poll() {
  if (ended) {
    if (!recovery.expelled()) (void)machine_.poll();
    return;
  }
  status = recovering_ ? recovery.poll() : machine_.poll();
  if (status == Status::kBusy) return;
  if (status != Status::kOk) return failed();
  if (recovering_) {
    recovering_ = false;
    switched = true;
    spare_ = image_.find_spare(recovery.loss());
    for (std::uint32_t i = 0; i < image_.programs; ++i) {
      const Status loaded = image_.load_spare(spare_, 1 + i, programs_[i]);
      EXPECT_TRUE(loaded == Status::kOk || loaded == Status::kUnsupported);
    }
    if (recovery.point().next < number) repeated += number - recovery.point().next;
    number = recovery.point().next;
    if (generation_ != recovery.generation()) {
      from = number;
      looked_ = UINT32_MAX;  // all look before this collective
    }
    generation_ = recovery.generation();
  } else if (running_) {
    running_ = false;
    check();
    ++number;
  }
  if (number < cluster_.last(node_)) start();
}

void NodeUnderTest::failed() {
  if (!recovering_) {
    const Keeps keeps = cluster_.scenario.keeps;
    const std::uint32_t repeatable = keeps == Keeps::kAll       ? 0
                                     : keeps == Keeps::kPresent ? number
                                     : running_                 ? number + 1
                                                                : number;
    status = recovery.begin({number, repeatable});
    running_ = false;
    recovering_ = status == Status::kBusy;
  }
  ended = status != Status::kBusy;
}

void NodeUnderTest::start() {
  if (cluster_.scenario.comes_back && switched && number % kLookEvery == 0 && number != looked_) {
    looked_ = number;
    status = recovery.look(number);
    recovering_ = status == Status::kBusy;
    if (recovering_) return;
    ASSERT_EQ(status, Status::kOk);
  }
  const std::size_t which = number % std::size(kSteps);
  const Program& program = programs_[which];
  if (program.ranks == 0) {  // its root is lost: all leave it out
    ++number;
    if (number < cluster_.last(node_)) start();
    return;
  }
  const std::uint64_t count = kSteps[which].count;
  const std::uint64_t all = counts_per_rank(program.collective) ? count * program.ranks : count;
  input_.resize(all);
  output_.assign(all, 0xabcdabcd);
  for (std::uint64_t i = 0; i < all; ++i) input_[i] = input_at(number, node_, i);
  Operator op;
  op.op = Op::kSum;
  op.type = Type::kU32;
  Layout layout;
  EXPECT_EQ(make_layout(program, count, element_bytes(op), layout), Status::kOk);
  const std::uint64_t scratch = scratch_needed(program, layout);
  scratch_.resize(scratch / 16 + 1);
  status =
      machine_.start(program, {input_.data(), output_.data(), scratch_.data(), scratch}, op, count);
  running_ = status == Status::kOk;
  if (!running_) failed();
}

// Compares the result with the plain reference: what the nodes that took part gave.
void NodeUnderTest::check() {
  const std::size_t which = number % std::size(kSteps);
  const Step& step = kSteps[which];
  const Loss loss = switched ? recovery.loss() : Loss();
  std::vector<std::uint32_t> members;
  for (std::uint32_t v = 0; v < cluster_.programs.topology().ranks(); ++v) {
    if (loss != Loss::node(v)) members.push_back(v);
  }
  const auto sum = [&](std::uint64_t element) {
    std::uint32_t total = 0;
    for (const std::uint32_t v : members) total += input_at(number, v, element);
    return total;
  };
  std::uint64_t begin = 0, end = step.count;  // of the output
  if (step.collective == Collective::kAllgather) end = step.count * members.size();
  if (step.collective == Collective::kReduce && node_ != step.root) return;
  if (step.collective == Collective::kBroadcast && node_ == step.root) return;
  const std::uint64_t own = loss.dense(node_) * step.count;
  for (std::uint64_t i = begin; i < end && wrong.empty(); ++i) {
    std::uint32_t expected = 0;
    switch (step.collective.value()) {
      case Collective::kBroadcast: expected = input_at(number, step.root, i); break;
      case Collective::kAllgather:
        expected = input_at(number, members[i / step.count], i % step.count);
        break;
      case Collective::kReduceScatter: expected = sum(own + i); break;
      default: expected = sum(i);
    }
    if (output_[i] == expected) continue;
    wrong = "collective " + std::to_string(number) + " (" + collective_name(step.collective) +
            "), element " + std::to_string(i);
  }
}

}  // namespace espalier::testing
