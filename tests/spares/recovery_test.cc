// Clusters in simulation that lose a link or a node in the middle of a collective: every survivor
// goes on by itself, and all later collectives are right. In virtual time: the same each time.
//
// Every moment (event of the network) of every loss takes long: by default a sample, all with
// ESPALIER_WHOLE=1. ESPALIER_PART=K/N, K from 1: of the tests on returns only the K-th of N parts,
// for processes that share them.

#include "collectives/machine/recovery.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "collectives/machine/recovery.h"
#include "tests/spares/testing/recovering_cluster.h"
#include "tests/whole.h"

namespace espalier::testing {
namespace {

// Whether the scenario with this number is of this process's part.
bool is_in_part(std::uint64_t number) {
  const char* const text = std::getenv("ESPALIER_PART");
  if (text == nullptr) return true;
  unsigned part = 0, parts = 0;
  char more = 0;
  if (std::sscanf(text, "%u/%u%c", &part, &parts, &more) == 2 && part >= 1 && part <= parts) {
    return number % parts == part - 1;
  }
  std::fprintf(stderr, "ESPALIER_PART is %s; expected K/N with K from 1 to N\n", text);
  std::exit(2);
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
  // The same for each loss with each of these spares. The first moment, in a sample: `spread` times
  // the number of the lost node, or of an end of the lost link.
  void at_all_losses(Scenario scenario, bool links, bool nodes,
                     std::initializer_list<SpareKinds> all_kinds, std::uint64_t spread,
                     std::uint64_t stride) {
    for (const Loss& loss : tools::single_losses(library(scenario.spec).topology(), links, nodes)) {
      for (const SpareKinds kinds : all_kinds) {
        if (HasFailure()) return;
        scenario.loss = loss;
        scenario.kinds = kinds;
        scenario.moment = whole() ? 0 : spread * loss.a;
        at_all_moments(scenario, stride);
      }
    }
  }
  // Calls one(loss, kinds) for each node of the mesh, with spares for nodes and for both.
  template <typename One>
  void for_each_node(const One& one) {
    for (const Loss& loss : tools::single_losses(library("mesh:2x3").topology(), false, true)) {
      for (const SpareKinds kinds : {SpareKinds::kNodes, SpareKinds::kBoth}) {
        if (!HasFailure()) one(loss, kinds);
      }
    }
  }
  // Returns the stride of the moments: a sample, or all.
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
  at_all_losses({}, true, false, {SpareKinds::kLinks, SpareKinds::kBoth}, 1, stride(97));
  EXPECT_GT(recoveries_, small_sample() ? 80u : 300u);
}

TEST_F(RecoveryTest, GoesOnWithoutANode) {
  at_all_losses({}, false, true, {SpareKinds::kNodes, SpareKinds::kBoth}, 1, stride(97));
  EXPECT_GT(recoveries_, small_sample() ? 60u : 250u);
}

// Spares for nodes only: one end of the link goes, knows that, and is silent.
TEST_F(RecoveryTest, ExpelsAnEndOfALink) {
  at_all_losses({}, true, false, {SpareKinds::kNodes}, 2, stride(131));
  EXPECT_GT(recoveries_, small_sample() ? 25u : 100u);
}

// All 12 links and 9 nodes of a mesh of nine.
TEST_F(RecoveryTest, GoesOnOnAMeshOfNine) {
  Scenario scenario{.spec = "mesh:3x3"};
  at_all_losses(scenario, true, true, {SpareKinds::kBoth}, 5, stride(151));
  EXPECT_GT(recoveries_, small_sample() ? 200u : 400u);
}

// All of them over framed links that lose, repeat, delay and damage frames.
TEST_F(RecoveryTest, GoesOnOverFramedLinks) {
  Scenario scenario{.spec = "mesh:3x3", .framed = true};
  at_all_losses(scenario, true, true, {SpareKinds::kBoth}, 20, whole() ? 7 : 4 * stride(151));
  EXPECT_GT(recoveries_, small_sample() ? 100u : 150u);
}

// What callers have of their inputs decides what is run again; all learn the same.
TEST_F(RecoveryTest, RunsAgainWhatIsUntouched) {
  for (const Keeps keeps : {Keeps::kAll, Keeps::kPresent, Keeps::kNothing}) {
    lost_ = repeated_ = 0;
    Scenario scenario{.keeps = keeps};
    scenario.eager_bytes = 1 << 20;  // so that a root is several collectives ahead
    at_all_losses(scenario, true, true, {SpareKinds::kBoth}, 1, stride(61));
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
      Scenario scenario{.loss = first, .moment = 150, .second = second};
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
      if (!is_in_part(scenario.back_after / step)) continue;
      EXPECT_TRUE(goes_on(scenario));
      ++returns;
    }
  };
  for_each_node([&](const Loss& loss, SpareKinds kinds) {
    Scenario scenario{
        .kinds = kinds, .loss = loss, .moment = 150 + 40 * loss.a, .comes_back = true};
    come_back(scenario, stride(293), 2000);
    scenario.framed = true;
    come_back(scenario, whole() ? 100 : 15'000, small_sample() ? 10 : 20'000);
  });
  std::printf("a node came back %u times\n", returns);
}

// A node that is lost and comes back.
Scenario returning(const Loss& loss, SpareKinds kinds) {
  return Scenario{
      .kinds = kinds, .loss = loss, .moment = 170, .comes_back = true, .back_after = 1500};
}

// Events from its return until it is taken in, if nothing else is lost.
std::uint64_t events_to_take_in(const Scenario& scenario) {
  ClusterUnderTest quiet(scenario);
  EXPECT_TRUE(quiet.run());
  EXPECT_NE(quiet.taken_in_at, 0u);
  return quiet.taken_in_at - scenario.moment - scenario.back_after;
}

// All but the lost node go on without it, and have right results.
void expect_others_go_on(const ClusterUnderTest& cluster, const Loss& loss) {
  for (std::uint32_t v = 0; v < cluster.nodes.size(); ++v) {
    const NodeUnderTest& node = *cluster.nodes[v];
    EXPECT_EQ(node.wrong, "") << "node " << v;
    if (v == loss.a) continue;
    EXPECT_FALSE(node.ended) << "node " << v << ": " << status_name(node.status);
    EXPECT_EQ(node.recovery.loss(), loss) << "node " << v;
  }
}

// A node is lost, comes back, and `again` is lost then: at each `stride`-th moment until a while
// after it was taken in, and at the last one.
template <typename Check>
void lose_again(const Loss& loss, const Loss& again, SpareKinds kinds, std::uint64_t stride,
                Check check) {
  Scenario scenario = returning(loss, kinds);
  const std::uint64_t last = events_to_take_in(scenario) + 149;
  if (::testing::Test::HasFailure()) return;
  scenario.again = again;
  std::uint64_t after = (loss.a + again.a) % stride;
  for (bool more = true; more; after += stride) {
    more = after < last;
    if (!is_in_part(after / stride)) continue;
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
  for_each_node([&](const Loss& loss, SpareKinds kinds) {
    lose_again(loss, loss, kinds, stride(149), [&](const ClusterUnderTest& cluster) {
      SCOPED_TRACE(text(cluster.scenario));
      const NodeUnderTest& first = *cluster.nodes[loss.a == 0 ? 1 : 0];
      expect_others_go_on(cluster, loss);
      for (std::uint32_t v = 0; v < cluster.nodes.size(); ++v) {
        const NodeUnderTest& node = *cluster.nodes[v];
        if (v == loss.a) continue;
        EXPECT_EQ(node.recovery.generation(), first.recovery.generation()) << "node " << v;
        EXPECT_EQ(node.from, first.from) << "node " << v;
      }
      (cluster.nodes[loss.a]->switched ? taken_in : in_vain) += 1;
    });
  });
  std::printf("it was taken in before %u times, lost before that %u times\n", taken_in, in_vain);
  EXPECT_GT(taken_in, 0u);
  EXPECT_GT(in_vain, 0u);
}

// The node is lost again after it was taken in, and starts anew at once. So it asks over the links
// that the others use, before and while they find it dead, and is in the agreement of the link that
// they try first. They go on without it. Nothing that it asks counts as a sign of life.
TEST_F(RecoveryTest, GoesOnIfTheLostNodeStartsAnewAtOnce) {
  std::uint32_t refused = 0;
  for_each_node([&](const Loss& loss, SpareKinds kinds) {
    Scenario scenario = returning(loss, kinds);
    const std::uint64_t taken_in = events_to_take_in(scenario);
    if (HasFailure()) return;
    scenario.again = loss;
    scenario.returns_again = scenario.at_once = true;
    for (std::uint64_t after = loss.a; after < 150; after += stride(37)) {
      if (!is_in_part(after)) continue;
      scenario.again_after = taken_in + after;
      SCOPED_TRACE(text(scenario));
      ClusterUnderTest cluster(scenario);
      ASSERT_TRUE(cluster.run());
      refused += cluster.refused ? 1 : 0;
      expect_others_go_on(cluster, loss);
    }
  });
  EXPECT_GT(refused, 0u);
}

// Once the sets of links are used up, a node that comes back learns that, and the others go on
// without it.
TEST_F(RecoveryTest, RefusesAReturnWithoutLinksForIt) {
  for_each_node([&](const Loss& loss, SpareKinds kinds) {
    Scenario scenario = returning(loss, kinds);
    const std::uint64_t taken_in = events_to_take_in(scenario);
    if (HasFailure()) return;
    scenario.again = loss;
    scenario.again_after = taken_in + 50;
    scenario.returns_again = true;
    SCOPED_TRACE(text(scenario));
    ClusterUnderTest cluster(scenario);
    ASSERT_TRUE(cluster.run());
    EXPECT_TRUE(cluster.refused);
    expect_others_go_on(cluster, loss);
  });
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
    Scenario scenario{.kinds = SpareKinds::kLinks, .loss = loss, .moment = 100};
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
