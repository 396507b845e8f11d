#pragma once
// A cluster in simulation that loses a link or a node, in virtual time: the same each time. Each of
// its nodes runs collectives in order and compares their results.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "collectives/machine/recovery.h"
#include "collectives/simulation/node_memory.h"
#include "espalier/collectives/machine/machine.h"
#include "firmware/image/image_writer.h"
#include "planner/files/prove.h"
#include "tests/spares/testing/world.h"
#include "tools/common/schedules.h"
#include "tools/image/spares.h"
#include "tools/options/plan_options.h"

namespace espalier::testing {

inline constexpr std::uint32_t kLater = 10;  // collectives after the loss
// Sets of links: one node may come back.
inline constexpr std::uint32_t kGenerations =
    Recovery::kGenerations + Recovery::kGenerationsPerReturn;

// What all nodes run, over and over, in this order.
struct Step {
  Collective collective;
  const char* algorithm;
  std::uint32_t root;
  std::uint64_t count;  // of the whole message, or of each rank's part
};
inline constexpr Step kSteps[] = {
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
      tools::PlanOptions selection{.topology = spec,
                                   .collective = collective_name(step.collective),
                                   .algorithm = step.algorithm};
      if (has_root(step.collective)) selection.root = std::to_string(step.root);
      selection.links = "hop-by-hop";
      selection.embedding = "none";
      std::vector<std::uint8_t> bytes = tools::compile(tools::make_schedule(selection));
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
    Expectation own{.board = "simulated",
                    .topology_digest = topology_->digest(),
                    .node = node,
                    .authority = &kTakesUnsigned};
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
    ImageContent content{
        .board = "simulated", .topology_digest = topology_->digest(), .node = node};
    std::vector<std::uint32_t> peers;
    for (const planner::LoadedSchedule& schedule : main_) {
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
  std::vector<planner::LoadedSchedule> main_;
  std::vector<tools::Spare> spares_;
  std::vector<std::vector<std::uint8_t>> images_;
};

// The library of a topology; made at the first call.
[[nodiscard]] const Library& library(const std::string& spec);

// Which inputs a node's caller still has when a collective fails.
enum class Keeps : std::uint8_t {
  kAll,      // of all collectives so far
  kPresent,  // of the present one
  kNothing,  // not even of that: it ran in place
};

struct Scenario {
  std::string spec = "mesh:2x3";
  SpareKinds kinds = SpareKinds::kBoth;
  Loss loss = {};            // what is cut or killed
  std::uint64_t moment = 0;  // after so many events of the network
  Loss second = {};          // what is cut or killed `after` collectives later
  std::uint32_t after = 3;
  Keeps keeps = Keeps::kAll;
  std::uint64_t eager_bytes = 1024;
  bool framed = false;      // over framed links; some frames are lost, repeated, late or damaged
  bool comes_back = false;  // the lost node, ...
  std::uint64_t back_after = 0;   // so many events after the loss
  Loss again = {};                // what is cut or killed ...
  std::uint64_t again_after = 0;  // so many events after that
  bool returns_again = false;     // the node that is lost again starts anew until it is refused
  bool at_once = false;           // ... before the others found it dead
};
// Collectives between two looks for a node that comes back.
inline constexpr std::uint32_t kLookEvery = 4;
[[nodiscard]] std::unique_ptr<World> make_world(const Scenario& scenario,
                                                const World::Links& links);

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
  sim::NodeMemory memory_;
};

class ClusterUnderTest {
 public:
  explicit ClusterUnderTest(const Scenario& the_scenario)
      : scenario(the_scenario),
        programs(library(the_scenario.spec)),
        world(make_world(the_scenario, programs.links())) {
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
  // Starts the node anew that was lost again, at once or when the others went on without it, and
  // each time that no one answered it. Returns whether it did.
  bool starts_again() {
    const std::uint32_t v = scenario.again.a;
    const NodeUnderTest& node = *nodes[v];
    const bool alive = world->alive(v);
    refused = alive && node.ended && node.status == Status::kTooLarge;
    if (refused || (alive && !node.ended)) return false;
    for (std::uint32_t other = 0; other < nodes.size() && !scenario.at_once; ++other) {
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

}  // namespace espalier::testing
