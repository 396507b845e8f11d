// Clusters in simulation that lose a link or a node in the middle of a collective: every survivor
// goes on by itself, and all later collectives are right. In virtual time: the same each time.
//
// Every moment (event of the network) of every loss takes long: by default a sample, all with
// ESPALIER_WHOLE=1.

#include "espalier/collectives/machine/recovery.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/splitmix64.h"
#include "espalier/hal/sim/network.h"
#include "firmware/image/image_writer.h"
#include "hal/serial/testing/hub.h"
#include "tests/whole.h"
#include "tools/image/spares.h"
#include "tools/select/prove.h"
#include "tools/select/selection.h"

namespace espalier::testing {
namespace {

constexpr std::uint32_t kLater = 10;  // collectives after the loss
// Sets of links: one node may come back.
constexpr std::uint32_t kGenerations = Recovery::kGenerations + Recovery::kGenerationsPerReturn;

// What all nodes run, over and over, in this order.
struct Step {
  Collective collective;
  const char* algorithm;
  std::uint32_t root;
  std::uint64_t count;  // of the whole message, or of each rank's part
};
constexpr Step kSteps[] = {
    {Collective::kAllreduce, "two-tree", 0, 700}, {Collective::kBroadcast, "chain", 2, 500},
    {Collective::kAllgather, "ring", 0, 60},      {Collective::kReduce, "two-tree", 1, 300},
    {Collective::kReduceScatter, "ring", 0, 40},  {Collective::kBarrier, "dissemination", 0, 0},
    {Collective::kAllreduce, "two-tree", 0, 1},
};

// The proven programs of a topology for all losses, in the images of its nodes; made once.
class Library {
 public:
  explicit Library(const std::string& spec) : topology_(tools::parse_topology(spec)) {
    for (const Step& step : kSteps) {
      tools::Selection selection;
      selection.topology = spec;
      selection.collective = collective_name(step.collective);
      selection.algorithm = step.algorithm;
      if (has_root(step.collective)) selection.root = std::to_string(step.root);
      selection.links = "hop-by-hop";
      selection.embedding = "none";
      std::vector<std::uint8_t> bytes = tools::compile(tools::select_algorithm(selection));
      (void)tools::prove_compiled("main", bytes, true);
      main_.push_back(tools::load_schedule("main", std::move(bytes), ""));
    }
    spares_.push_back(tools::make_spare(*topology_, main_, Loss()));
    for (const Loss& loss : tools::single_losses(*topology_, true, true)) {
      spares_.push_back(tools::make_spare(*topology_, main_, loss));
    }
    for (std::uint32_t node = 0; node < topology_->nodes(); ++node) build_image(node);
  }
  [[nodiscard]] const topology::Topology& topology() const { return *topology_; }
  // The node's image, checked.
  [[nodiscard]] Image image(std::uint32_t node) const {
    Expectation own;
    own.board = "simulated";
    own.node = node;
    own.topology_digest = topology_->digest();
    own.authority = &kTakesUnsigned;
    Image image;
    EXPECT_EQ(check_image(images_[node].data(), images_[node].size(), own, image), Status::kOk);
    return image;
  }
  [[nodiscard]] std::vector<std::vector<std::uint32_t>> links() const {
    std::vector<std::vector<std::uint32_t>> peers(topology_->nodes());
    for (const topology::Link& link : topology_->links()) peers[link.from].push_back(link.to);
    return peers;
  }

 private:
  void build_image(std::uint32_t node) {
    ImageContent content;
    content.board = "simulated";
    content.topology_digest = topology_->digest();
    content.node = node;
    std::vector<std::uint32_t> peers;
    for (const tools::LoadedSchedule& schedule : main_) {
      content.programs.push_back(tools::image_descriptor(schedule, node));
    }
    for (const tools::Spare& spare : spares_) {
      if (spare.loss == Loss::node(node)) continue;
      content.spares.push_back(tools::image_spare(main_, spare, node, peers));
    }
    const std::vector<std::vector<std::uint32_t>> all = links();
    for (const std::uint32_t peer : all[node]) {
      content.links.push_back({peer, 0, static_cast<std::uint16_t>(content.links.size())});
    }
    EXPECT_EQ(write_image(content, images_.emplace_back()), Status::kOk);
  }

  std::unique_ptr<topology::Topology> topology_;
  std::vector<tools::LoadedSchedule> main_;
  std::vector<tools::Spare> spares_;
  std::vector<std::vector<std::uint8_t>> images_;
};

const Library& library(const std::string& spec) {
  static std::map<std::string, std::unique_ptr<Library>> made;
  std::unique_ptr<Library>& one = made[spec];
  if (one == nullptr) one = std::make_unique<Library>(spec);
  return *one;
}

// Which inputs a node's caller still has when a collective fails.
enum class Keeps : std::uint8_t {
  kAll,      // of all collectives so far
  kPresent,  // of the present one
  kNothing,  // not even of that: it ran in place
};

struct Scenario {
  std::string spec = "mesh:2x3";
  SpareKinds kinds = SpareKinds::kBoth;
  Loss loss;                 // what is cut or killed
  std::uint64_t moment = 0;  // after so many events of the network
  Loss second;               // what is cut or killed `after` collectives later
  std::uint32_t after = 3;
  Keeps keeps = Keeps::kAll;
  std::uint64_t eager_bytes = 1024;
  bool framed = false;      // over framed links; some frames are lost, repeated, late or damaged
  bool comes_back = false;  // the lost node, ...
  std::uint64_t back_after = 0;   // so many events after the loss
  Loss again;                     // what is cut or killed ...
  std::uint64_t again_after = 0;  // so many events after that
  bool returns_again = false;     // the node that is lost again starts anew until it is refused
};
constexpr std::uint32_t kLookEvery =
    4;  // collectives: between two looks for a node that comes back

// Links in virtual time, of all generations.
class World {
 public:
  virtual ~World() = default;
  [[nodiscard]] virtual std::uint64_t deadline_ns() const = 0;  // D
  [[nodiscard]] virtual Endpoint& endpoint(std::uint32_t node) = 0;
  [[nodiscard]] virtual bool reopen(std::uint32_t node, std::uint32_t generation) = 0;
  virtual void lose(const Loss& loss) = 0;
  // Starts a node anew that was killed.
  virtual void revive(std::uint32_t node) = 0;
  [[nodiscard]] virtual bool alive(std::uint32_t node) const = 0;
  [[nodiscard]] virtual std::uint64_t now_ns() const = 0;
  // Lets time pass until something happens, or until `until_ns`.
  virtual void pass(std::uint64_t until_ns) = 0;
};

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

class ClusterUnderTest;

// A node: a caller that runs the collectives in order, and its recovery.
class NodeUnderTest final : public Spares {
 public:
  // comes_back: it was killed, and starts anew.
  NodeUnderTest(ClusterUnderTest& cluster, std::uint32_t node, bool comes_back = false);

  [[nodiscard]] SpareKinds kinds() const override;
  [[nodiscard]] const Program* load(const Loss& loss) override;
  [[nodiscard]] std::uint32_t generations() const override { return kGenerations; }
  [[nodiscard]] Endpoint* open(std::uint32_t generation) override;

  void poll();
  [[nodiscard]] std::uint64_t next_deadline() const;

  const bool comes_back;
  bool ended = false;     // with `status`
  bool switched = false;  // runs on a spare
  Status status = Status::kOk;
  std::uint32_t number = 0;    // of the collective that it runs, or runs next
  std::uint32_t from = 0;      // the collective with which it began to use its present links
  std::uint32_t repeated = 0;  // collectives that were complete here and were run again
  Recovery recovery;
  std::string wrong;  // the first wrong result

 private:
  void start();
  void check();
  void failed();
  [[nodiscard]] std::uint32_t last() const;

  ClusterUnderTest& cluster_;
  std::uint32_t node_;
  Machine machine_;
  const Image image_;
  std::uint32_t spare_ = 0;  // that it has loaded
  // The main programs, then in their place the agreement, then the programs of the spare. None if
  // its root is lost: without ranks.
  std::vector<DecodedProgram> programs_;
  bool running_ = false, recovering_ = false;
  std::uint32_t looked_ = UINT32_MAX;  // before this collective
  std::uint32_t generation_ = 0;       // of its links
  struct alignas(16) Slot {
    std::uint8_t bytes[16];
  };
  std::vector<std::uint32_t> input_, output_;
  std::vector<Slot> scratch_;
};

class ClusterUnderTest {
 public:
  explicit ClusterUnderTest(const Scenario& the_scenario)
      : scenario(the_scenario),
        programs(library(the_scenario.spec)),
        world(make(the_scenario, programs.links())) {
    for (std::uint32_t v = 0; v < programs.topology().nodes(); ++v) {
      nodes.push_back(std::make_unique<NodeUnderTest>(*this, v));
    }
  }

  // Runs until all have ended or done everything. Returns whether the loss came before that.
  bool run() {
    bool lost = false, lost_second = scenario.second.kind == Loss::Kind::kNothing;
    for (std::uint64_t rounds = 0;; ++rounds) {
      std::uint64_t next = UINT64_MAX;
      bool busy = false;
      for (std::uint32_t v = 0; v < nodes.size(); ++v) {
        if (!world->alive(v)) continue;
        nodes[v]->poll();
        busy = busy || !done(v);
        next = std::min(next, nodes[v]->next_deadline());
      }
      if (!lost && events >= scenario.moment) {
        world->lose(scenario.loss);
        lost = true;
        continue;
      }
      if (lost && scenario.comes_back && !came_back &&
          events >= scenario.moment + scenario.back_after) {
        world->revive(scenario.loss.a);
        nodes[scenario.loss.a] = std::make_unique<NodeUnderTest>(*this, scenario.loss.a, true);
        came_back = true;
        continue;
      }
      const NodeUnderTest& returned = *nodes[scenario.loss.a];
      if (came_back && returned.ended && !returned.switched && !lost_again) {
        EXPECT_EQ(returned.status, Status::kUnsupported);
        world->lose(scenario.loss);  // no one answered: it starts anew
        world->revive(scenario.loss.a);
        nodes[scenario.loss.a] = std::make_unique<NodeUnderTest>(*this, scenario.loss.a, true);
        continue;
      }
      const bool has_again = scenario.again.kind != Loss::Kind::kNothing;
      if (came_back && has_again && !lost_again &&
          events >= scenario.moment + scenario.back_after + scenario.again_after) {
        world->lose(scenario.again);
        lost_again = true;
        for (const auto& node : nodes) last_before = std::max(last_before, node->number);
        continue;
      }
      if (lost_again && scenario.returns_again && !refused && starts_again()) continue;
      if (!lost_second && is_time_for_second()) {
        world->lose(scenario.second);
        lost_second = true;
        continue;
      }
      if (!busy) return lost;
      if (rounds > 300'000) {
        ADD_FAILURE() << "it does not end";
        for (std::uint32_t v = 0; v < nodes.size(); ++v) {
          std::printf("node %u: collective %u of %u, generation %u, %s%s%s, next %.3f of %.3f ms\n",
                      v, nodes[v]->number, last(v), nodes[v]->recovery.generation(),
                      tools::loss_text(nodes[v]->recovery.loss()).c_str(),
                      nodes[v]->ended ? ", ended" : "", world->alive(v) ? "" : ", dead",
                      static_cast<double>(nodes[v]->next_deadline()) * 1e-6,
                      static_cast<double>(world->now_ns()) * 1e-6);
        }
        return lost;
      }
      if (came_back && taken_in_at == 0 && nodes[scenario.loss.a]->switched) taken_in_at = events;
      if (next <= world->now_ns()) continue;
      world->pass(next);
      ++events;
    }
  }

  [[nodiscard]] bool done(std::uint32_t v) const {
    // A node that asks in vain, because all others ended or another node was lost before.
    if (nodes[v]->comes_back && !nodes[v]->switched && lost_again) {
      return refused || !scenario.returns_again;
    }
    return nodes[v]->ended || nodes[v]->number >= last(v);
  }
  [[nodiscard]] std::uint32_t last(std::uint32_t v) const {
    const NodeUnderTest& node = *nodes[v];
    const bool is_in = node.switched && node.recovery.loss().kind == Loss::Kind::kNothing;
    const bool has_again = scenario.again.kind != Loss::Kind::kNothing;
    if (scenario.comes_back && !lost_again && (has_again || !is_in)) {
      return UINT32_MAX;  // until it is taken in, and until the next loss
    }
    if (!node.switched) return static_cast<std::uint32_t>(std::size(kSteps));
    return std::max(node.from, last_before) + kLater;
  }

  const Scenario scenario;
  const Library& programs;
  const std::unique_ptr<World> world;
  std::vector<std::unique_ptr<NodeUnderTest>> nodes;
  bool came_back = false, lost_again = false, refused = false;
  std::uint32_t last_before = 0;  // the furthest collective at the last loss
  std::uint64_t events = 0;
  std::uint64_t taken_in_at = 0;  // event at which the node that comes back runs collectives again

 private:
  static std::unique_ptr<World> make(const Scenario& scenario,
                                     const std::vector<std::vector<std::uint32_t>>& links) {
    if (scenario.framed) return std::make_unique<FramedWorld>(scenario, links);
    return std::make_unique<SimulatedWorld>(scenario, links);
  }
  // Starts the node anew that was lost again, once the others went on without it, and each time
  // that no one answered it. Returns whether it did.
  bool starts_again() {
    const std::uint32_t v = scenario.again.a;
    const NodeUnderTest& node = *nodes[v];
    const bool alive = world->alive(v);
    refused = alive && node.ended && node.status == Status::kTooLarge;
    if (refused || (alive && !node.ended)) return false;
    for (std::uint32_t other = 0; other < nodes.size(); ++other) {
      if (other != v && nodes[other]->number <= last_before) return false;
    }
    if (alive) {
      EXPECT_EQ(node.status, Status::kUnsupported);
      world->lose(scenario.again);
    }
    world->revive(v);
    nodes[v] = std::make_unique<NodeUnderTest>(*this, v, true);
    return true;
  }
  [[nodiscard]] bool is_time_for_second() const {
    for (const auto& one : nodes) {
      const NodeUnderTest& node = *one;
      if (node.switched && node.number >= node.recovery.point().next + scenario.after) return true;
    }
    return false;
  }
};

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
    switch (step.collective) {
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

// What is left goes on: all that the loss left, on one spare, from one point, with right results.
void expect_all_go_on(const ClusterUnderTest& cluster) {
  const Scenario& scenario = cluster.scenario;
  const NodeUnderTest* first = nullptr;
  for (std::uint32_t v = 0; v < cluster.nodes.size(); ++v) {
    const NodeUnderTest& node = *cluster.nodes[v];
    EXPECT_EQ(node.wrong, "") << "node " << v;
    if (scenario.loss == Loss::node(v) && !scenario.comes_back) continue;
    if (node.recovery.expelled()) {
      EXPECT_EQ(scenario.kinds, SpareKinds::kNodes);
      EXPECT_TRUE(node.ended && node.status == Status::kDeadLink);
      continue;
    }
    EXPECT_FALSE(node.ended) << "node " << v << ": " << status_name(node.status) << ", node "
                             << node.recovery.cause().detector << " lost "
                             << node.recovery.cause().peer;
    if (first == nullptr) first = &node;
    EXPECT_EQ(node.switched, first->switched) << "node " << v;
    EXPECT_EQ(node.recovery.loss(), first->recovery.loss()) << "node " << v;
    EXPECT_EQ(node.recovery.point().next, first->recovery.point().next) << "node " << v;
    EXPECT_EQ(node.recovery.point().completed, first->recovery.point().completed);
  }
  ASSERT_NE(first, nullptr);
  if (!first->switched) return;
  const RecoveryPoint& point = first->recovery.point();
  const std::uint32_t lost = point.next - point.completed;
  if (scenario.keeps == Keeps::kAll) {
    EXPECT_EQ(lost, 0u);
  }
  if (scenario.comes_back) {
    EXPECT_EQ(first->recovery.loss(), Loss());
  } else if (scenario.kinds == SpareKinds::kBoth) {
    EXPECT_EQ(first->recovery.loss(), scenario.loss);
  }
}

class RecoveryTest : public ::testing::Test {
 protected:
  // Runs the scenario with the loss at every `stride`-th moment, until it comes too late.
  void at_all_moments(Scenario scenario, std::uint64_t stride) {
    for (;; scenario.moment += stride) {
      if (!goes_on(scenario) || HasFailure()) return;
    }
  }
  // Of moments: a sample, or all.
  static std::uint64_t stride(std::uint64_t usual) {
    return whole() ? 1 : small_sample() ? 4 * usual + 1 : usual;
  }
  // Runs the scenario. Returns whether the loss came in time.
  bool goes_on(const Scenario& scenario) {
    ClusterUnderTest cluster(scenario);
    if (!cluster.run()) return false;
    SCOPED_TRACE(text(scenario));
    expect_all_go_on(cluster);
    for (const auto& one : cluster.nodes) {
      const NodeUnderTest& node = *one;
      recoveries_ += node.switched ? 1 : 0;
      if (!node.switched) continue;
      const RecoveryPoint& point = node.recovery.point();
      lost_ += point.next - point.completed;
      repeated_ += node.repeated;
    }
    return true;
  }
  static std::string text(const Scenario& scenario) {
    return scenario.spec + ", " + tools::loss_text(scenario.loss) + ", event " +
           std::to_string(scenario.moment) +
           (scenario.comes_back ? ", back after " + std::to_string(scenario.back_after) : "") +
           (scenario.comes_back ? ", again after " + std::to_string(scenario.again_after) : "") +
           ", spares " + std::to_string(static_cast<int>(scenario.kinds)) + ", keeps " +
           std::to_string(static_cast<int>(scenario.keeps));
  }
  ~RecoveryTest() override {
    std::printf("a node went on with a spare %u times, ran %u collectives again, lost %u\n",
                recoveries_, repeated_, lost_);
  }

  std::uint32_t recoveries_ = 0, repeated_ = 0, lost_ = 0;
};

TEST_F(RecoveryTest, GoesOnWithoutALink) {
  for (const Loss& loss : tools::single_losses(library("mesh:2x3").topology(), true, false)) {
    for (const SpareKinds kinds : {SpareKinds::kLinks, SpareKinds::kBoth}) {
      Scenario scenario;
      scenario.loss = loss;
      scenario.kinds = kinds;
      scenario.moment = whole() ? 0 : loss.a + loss.b;
      at_all_moments(scenario, stride(97));
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(recoveries_, small_sample() ? 80u : 300u);
}

TEST_F(RecoveryTest, GoesOnWithoutANode) {
  for (const Loss& loss : tools::single_losses(library("mesh:2x3").topology(), false, true)) {
    for (const SpareKinds kinds : {SpareKinds::kNodes, SpareKinds::kBoth}) {
      Scenario scenario;
      scenario.loss = loss;
      scenario.kinds = kinds;
      scenario.moment = whole() ? 0 : loss.a;
      at_all_moments(scenario, stride(97));
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(recoveries_, small_sample() ? 60u : 250u);
}

// Spares for nodes only: one end of the link goes, knows that, and is silent.
TEST_F(RecoveryTest, ExpelsAnEndOfALink) {
  for (const Loss& loss : tools::single_losses(library("mesh:2x3").topology(), true, false)) {
    Scenario scenario;
    scenario.loss = loss;
    scenario.kinds = SpareKinds::kNodes;
    scenario.moment = whole() ? 0 : 2 * loss.a;
    at_all_moments(scenario, stride(131));
    if (HasFailure()) return;
  }
  EXPECT_GT(recoveries_, small_sample() ? 25u : 100u);
}

// All 12 links and 9 nodes of a mesh of nine.
TEST_F(RecoveryTest, GoesOnOnAMeshOfNine) {
  for (const Loss& loss : tools::single_losses(library("mesh:3x3").topology(), true, true)) {
    Scenario scenario;
    scenario.spec = "mesh:3x3";
    scenario.loss = loss;
    scenario.moment = whole() ? 0 : 5 * loss.a;
    at_all_moments(scenario, stride(151));
    if (HasFailure()) return;
  }
  EXPECT_GT(recoveries_, small_sample() ? 200u : 400u);
}

// All of them over framed links that lose, repeat, delay and damage frames.
TEST_F(RecoveryTest, GoesOnOverFramedLinks) {
  for (const Loss& loss : tools::single_losses(library("mesh:3x3").topology(), true, true)) {
    Scenario scenario;
    scenario.spec = "mesh:3x3";
    scenario.loss = loss;
    scenario.framed = true;
    scenario.moment = whole() ? 0 : 20 * loss.a;
    at_all_moments(scenario, whole() ? 7 : 4 * stride(151));
    if (HasFailure()) return;
  }
  EXPECT_GT(recoveries_, small_sample() ? 100u : 150u);
}

// What callers have of their inputs decides what is run again; all learn the same.
TEST_F(RecoveryTest, RunsAgainWhatIsUntouched) {
  for (const Keeps keeps : {Keeps::kAll, Keeps::kPresent, Keeps::kNothing}) {
    lost_ = repeated_ = 0;
    for (const Loss& loss : tools::single_losses(library("mesh:2x3").topology(), true, true)) {
      Scenario scenario;
      scenario.loss = loss;
      scenario.keeps = keeps;
      scenario.eager_bytes = 1 << 20;  // so that a root is several collectives ahead
      scenario.moment = whole() ? 0 : loss.a;
      at_all_moments(scenario, stride(61));
      if (HasFailure()) return;
    }
    if (small_sample()) continue;
    EXPECT_EQ(lost_ != 0, keeps != Keeps::kAll);
    EXPECT_EQ(repeated_ != 0, keeps == Keeps::kAll);
  }
}

// A second failure ends the cluster: all that hear of it name it by the numbers of the start.
TEST_F(RecoveryTest, EndsAtASecondFailure) {
  const auto losses = tools::single_losses(library("mesh:2x3").topology(), true, true);
  std::uint32_t ends = 0;
  for (const Loss& first : losses) {
    for (const Loss& second : losses) {
      if (first == second) continue;
      // Nothing is lost with it any more.
      if (first.kind == Loss::Kind::kNode && second.kind == Loss::Kind::kLink &&
          first.closes(second.a, second.b)) {
        continue;
      }
      if (!whole() && (first.a + second.a + second.b) % 4 != 0) continue;
      Scenario scenario;
      scenario.loss = first;
      scenario.second = second;
      scenario.moment = 150;
      ClusterUnderTest cluster(scenario);
      ASSERT_TRUE(cluster.run());
      for (std::uint32_t v = 0; v < cluster.nodes.size(); ++v) {
        const NodeUnderTest& node = *cluster.nodes[v];
        SCOPED_TRACE(text(scenario) + ", then " + tools::loss_text(second) + ", node " +
                     std::to_string(v));
        EXPECT_EQ(node.wrong, "");
        if (!cluster.world->alive(v) || !node.ended) continue;
        ++ends;
        EXPECT_EQ(node.status, Status::kDeadLink);
        const Cause& cause = node.recovery.cause();
        EXPECT_TRUE(second.closes(cause.detector, cause.peer))
            << "node " << cause.detector << " lost " << cause.peer;
      }
    }
  }
  EXPECT_GT(ends, 20u);
  recoveries_ = ends;
}

// A node that was lost comes back, at any moment from its loss on: all take it in at one point, and
// go on with the main programs.
TEST_F(RecoveryTest, TakesInANodeThatComesBack) {
  std::uint32_t returns = 0;
  const auto come_back = [&](Scenario scenario, std::uint64_t step, std::uint64_t end) {
    for (scenario.back_after = scenario.loss.a; scenario.back_after < end && !HasFailure();
         scenario.back_after += step) {
      EXPECT_TRUE(goes_on(scenario));
      ++returns;
    }
  };
  for (const Loss& loss : tools::single_losses(library("mesh:2x3").topology(), false, true)) {
    for (const SpareKinds kinds : {SpareKinds::kNodes, SpareKinds::kBoth}) {
      Scenario scenario;
      scenario.loss = loss;
      scenario.kinds = kinds;
      scenario.comes_back = true;
      scenario.moment = 150 + 40 * loss.a;
      come_back(scenario, stride(293), 2000);
      scenario.framed = true;
      come_back(scenario, whole() ? 100 : 15'000, small_sample() ? 10 : 20'000);
    }
  }
  std::printf("a node came back %u times\n", returns);
}

// A node is lost, comes back, and `again` is lost then: at each `stride`-th moment until a while
// after it was taken in, and at the last one.
template <typename Check>
void lose_again(const Loss& loss, const Loss& again, SpareKinds kinds, std::uint64_t stride,
                Check check) {
  Scenario scenario;
  scenario.loss = loss;
  scenario.kinds = kinds;
  scenario.comes_back = true;
  scenario.moment = 170;
  scenario.back_after = 1500;
  ClusterUnderTest quiet(scenario);
  ASSERT_TRUE(quiet.run());
  ASSERT_NE(quiet.taken_in_at, 0u);
  scenario.again = again;
  const std::uint64_t last = quiet.taken_in_at + 149 - scenario.moment - scenario.back_after;
  std::uint64_t after = (loss.a + again.a) % stride;
  for (bool more = true; more; after += stride) {
    more = after < last;
    scenario.again_after = std::min(after, last);
    ClusterUnderTest cluster(scenario);
    ASSERT_TRUE(cluster.run());
    check(cluster);
    if (::testing::Test::HasFailure()) return;
  }
}

// It is lost again while it comes back: the others go on without it.
TEST_F(RecoveryTest, GoesOnIfTheNodeIsLostAgain) {
  std::uint32_t taken_in = 0, in_vain = 0;
  for (const Loss& loss : tools::single_losses(library("mesh:2x3").topology(), false, true)) {
    for (const SpareKinds kinds : {SpareKinds::kNodes, SpareKinds::kBoth}) {
      lose_again(loss, loss, kinds, stride(149), [&](const ClusterUnderTest& cluster) {
        SCOPED_TRACE(text(cluster.scenario));
        const NodeUnderTest& first = *cluster.nodes[loss.a == 0 ? 1 : 0];
        for (std::uint32_t v = 0; v < cluster.nodes.size(); ++v) {
          const NodeUnderTest& node = *cluster.nodes[v];
          EXPECT_EQ(node.wrong, "") << "node " << v;
          if (v == loss.a) continue;
          EXPECT_FALSE(node.ended) << "node " << v << ": " << status_name(node.status);
          EXPECT_EQ(node.recovery.loss(), loss) << "node " << v;
          EXPECT_EQ(node.recovery.generation(), first.recovery.generation()) << "node " << v;
          EXPECT_EQ(node.from, first.from) << "node " << v;
        }
        (cluster.nodes[loss.a]->switched ? taken_in : in_vain) += 1;
      });
      if (HasFailure()) return;
    }
  }
  std::printf("it was taken in before %u times, lost before that %u times\n", taken_in, in_vain);
  EXPECT_GT(taken_in, 0u);
  EXPECT_GT(in_vain, 0u);
}

// Once the sets of links are used up, a node that comes back learns that, and the others go on
// without it.
TEST_F(RecoveryTest, RefusesAReturnWithoutLinksForIt) {
  for (const Loss& loss : tools::single_losses(library("mesh:2x3").topology(), false, true)) {
    for (const SpareKinds kinds : {SpareKinds::kNodes, SpareKinds::kBoth}) {
      Scenario scenario;
      scenario.loss = loss;
      scenario.kinds = kinds;
      scenario.comes_back = true;
      scenario.moment = 170;
      scenario.back_after = 1500;
      ClusterUnderTest first(scenario);
      ASSERT_TRUE(first.run());
      ASSERT_NE(first.taken_in_at, 0u);
      scenario.again = loss;
      scenario.again_after = first.taken_in_at + 50 - scenario.moment - scenario.back_after;
      scenario.returns_again = true;
      SCOPED_TRACE(text(scenario));
      ClusterUnderTest cluster(scenario);
      ASSERT_TRUE(cluster.run());
      EXPECT_TRUE(cluster.refused);
      for (std::uint32_t v = 0; v < cluster.nodes.size(); ++v) {
        const NodeUnderTest& node = *cluster.nodes[v];
        EXPECT_EQ(node.wrong, "") << "node " << v;
        if (v == loss.a) continue;
        EXPECT_FALSE(node.ended) << "node " << v << ": " << status_name(node.status);
        EXPECT_EQ(node.recovery.loss(), loss) << "node " << v;
      }
      if (HasFailure()) return;
    }
  }
}

// Another link or node is lost while one comes back. All that go on do so from one point, with one
// spare; the others end with a cause.
TEST_F(RecoveryTest, AgreesIfAnotherIsLostMeanwhile) {
  std::uint32_t go_on = 0, end = 0;
  const auto losses = tools::single_losses(library("mesh:2x3").topology(), true, true);
  for (const Loss& loss : tools::single_losses(library("mesh:2x3").topology(), false, true)) {
    for (const Loss& again : losses) {
      if (again == loss || (again.kind == Loss::Kind::kLink && loss.closes(again.a, again.b))) {
        continue;
      }
      lose_again(loss, again, SpareKinds::kBoth, whole() ? 1 : 4 * stride(149),
                 [&](const ClusterUnderTest& all) {
                   SCOPED_TRACE(text(all.scenario) + ", then " + tools::loss_text(again));
                   const NodeUnderTest* first = nullptr;
                   for (std::uint32_t v = 0; v < all.nodes.size(); ++v) {
                     const NodeUnderTest& node = *all.nodes[v];
                     EXPECT_EQ(node.wrong, "") << "node " << v;
                     if (!all.world->alive(v) || (node.comes_back && !node.switched)) continue;
                     if (node.ended) {
                       EXPECT_NE(node.status, Status::kOk);
                       ++end;
                       continue;
                     }
                     if (first == nullptr) first = &node;
                     ++go_on;
                     EXPECT_EQ(node.recovery.loss(), first->recovery.loss()) << "node " << v;
                     EXPECT_EQ(node.recovery.generation(), first->recovery.generation())
                         << "node " << v;
                     EXPECT_EQ(node.from, first->from) << "node " << v;
                   }
                 });
      if (HasFailure()) return;
    }
  }
  std::printf("nodes went on %u times, ended %u times\n", go_on, end);
  EXPECT_GT(go_on, 0u);
  EXPECT_GT(end, 0u);
}

// Without spares for what is lost, all survivors end with a cause that names it.
TEST_F(RecoveryTest, EndsWithoutASpare) {
  for (const Loss& loss : tools::single_losses(library("mesh:2x3").topology(), false, true)) {
    Scenario scenario;
    scenario.loss = loss;
    scenario.kinds = SpareKinds::kLinks;
    scenario.moment = 100;
    ClusterUnderTest cluster(scenario);
    ASSERT_TRUE(cluster.run());
    for (std::uint32_t v = 0; v < cluster.nodes.size(); ++v) {
      if (!cluster.world->alive(v)) continue;
      EXPECT_TRUE(cluster.nodes[v]->ended) << "node " << v;
      EXPECT_EQ(cluster.nodes[v]->status, Status::kDeadLink);
      EXPECT_EQ(cluster.nodes[v]->recovery.cause().peer, loss.a);
    }
  }
}

}  // namespace
}  // namespace espalier::testing
