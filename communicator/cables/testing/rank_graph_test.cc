// The graph of ranks: which rank has which cable, what links are worth, and what cannot be.

#include "communicator/cables/rank_graph.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/testing/results.h"
#include "communicator/cables/testing/cabled_job.h"

namespace espalier::communicator {
namespace {

using testing::cabled_graph;
using testing::cabled_shape;
using testing::rank_graph;
using Numbers = std::vector<std::uint32_t>;

TEST(RankGraph, HasTheCablesOfHostsWithOneRank) {
  const auto graph = rank_graph(*cabled_graph(cabled_shape("line4"), 1));
  EXPECT_FALSE(graph->is_one_host());
  EXPECT_EQ(graph->neighbors(0), Numbers{1});
  EXPECT_EQ(graph->neighbors(2), (Numbers{1, 3}));
  EXPECT_TRUE(graph->has_link(2, 3));
  EXPECT_FALSE(graph->has_link(0, 2));
  EXPECT_EQ(graph->radius(), 2u);
  EXPECT_EQ(graph->topology()->capacity(0, 1), 1u);
}

TEST(RankGraph, DealsCablesOutToTheRanksOfAHost) {
  const auto graph = rank_graph(*cabled_graph(cabled_shape("triangle"), 2));
  // The first cable of each host is its first rank's.
  EXPECT_EQ(graph->neighbors(0), (Numbers{1, 2}));
  EXPECT_EQ(graph->neighbors(1), (Numbers{0, 4}));
  EXPECT_EQ(graph->neighbors(2), (Numbers{0, 3}));
  EXPECT_EQ(graph->neighbors(3), (Numbers{2, 5}));
  EXPECT_EQ(graph->neighbors(4), (Numbers{1, 5}));
  EXPECT_EQ(graph->topology()->link_class(0, 1), topology::LinkClass::kMemory);
  EXPECT_EQ(graph->topology()->link_class(0, 2), topology::LinkClass::kFabric);
  EXPECT_EQ(graph->topology()->capacity(0, 1), 2u);  // as much as all cables of the host
}

TEST(RankGraph, ParallelCablesAreLanesOfOneLink) {
  const auto graph = rank_graph(*cabled_graph(cabled_shape("mesh2x4-double"), 1));
  EXPECT_EQ(graph->topology()->capacity(0, 1), 2u);
  ofi::AddedConfig config;
  config.provider = "tcp";
  ASSERT_TRUE(graph->configure(0, config));
  ASSERT_EQ(config.cables.size(), 4u);
  EXPECT_EQ(config.cables[0].node, 1u);
  EXPECT_EQ(config.cables[1].node, 1u);
  EXPECT_EQ(config.cables[2].node, 4u);
  EXPECT_NE(config.cables[0].number, config.cables[1].number);
  EXPECT_EQ(config.host, "box0");
}

TEST(RankGraph, LinkLocalAddressesGetTheirInterface) {
  auto job = cabled_graph(cabled_shape("pair"), 1);
  job->cables[0].a.address = "fe80::7";
  ofi::AddedConfig config;
  config.provider = "mem+tcp";
  ASSERT_TRUE(rank_graph(*job)->configure(0, config));
  EXPECT_EQ(config.cables.at(0).local_address, "fe80::7%to1");
}

TEST(RankGraph, LanesAreInProportionToRates) {
  EXPECT_EQ(lanes_of({}), Numbers{});
  EXPECT_EQ(lanes_of({0, 0}), (Numbers{1, 1}));
  EXPECT_EQ(lanes_of({100, 98, 104}), (Numbers{1, 1, 1}));
  EXPECT_EQ(lanes_of({10'000, 25'000}), (Numbers{2, 5}));
  EXPECT_EQ(lanes_of({1000, 4000, 0}), (Numbers{1, 4, 1}));
  EXPECT_EQ(lanes_of({10, 1000}), (Numbers{1, 8}));
  EXPECT_EQ(lanes_of({100, 150}), (Numbers{2, 3}));
}

TEST(RankGraph, KeepsTheProportionsOfTheDrivers) {
  auto job = cabled_graph(cabled_shape("triangle"), 1);
  job->cables[2].rate_mbits = 4000;
  cables::JobGraph measured = *job;
  measured.cables[0].rate_mbits = 110;
  measured.cables[1].rate_mbits = 90;
  measured.cables[2].rate_mbits = 400;
  scale_rates(measured, *job);
  EXPECT_EQ(job->cables[0].rate_mbits, 100u);
  EXPECT_EQ(job->cables[2].rate_mbits, 400u);
}

TEST(RankGraph, RatesAreRoundedAndKept) {
  auto job = cabled_graph(cabled_shape("ring4"), 1);
  for (cables::JobCable& cable : job->cables) cable.rate_mbits = 94;
  EXPECT_EQ(rank_graph(*job)->lane_mbits(), 64u);
  EXPECT_FALSE(has_link_local(*job));
  // After a rejoin without host 0, the others have other places.
  cables::JobGraph rest = *job;
  rest.hosts.erase(rest.hosts.begin());
  std::erase_if(rest.cables, [](const cables::JobCable& cable) { return cable.a.host == 0; });
  for (cables::JobCable& cable : rest.cables) {
    --cable.a.host;
    --cable.b.host;
    cable.rate_mbits = 10'000;
  }
  take_rates(*job, rest);
  ASSERT_EQ(rest.cables.size(), 2u);
  EXPECT_EQ(rest.cables[0].rate_mbits, 94u);
  EXPECT_EQ(rest.cables[1].rate_mbits, 94u);
}

TEST(RankGraph, IsTheSameForEveryOrderOfRanksOnHosts) {
  const auto job = cabled_graph(cabled_shape("ring4"), 2, true);
  const auto graph = rank_graph(*job);
  EXPECT_TRUE(graph->has_link(0, 4));  // of host 0
  EXPECT_EQ(graph->topology()->digest(), rank_graph(*job)->topology()->digest());
  EXPECT_NE(graph->topology()->digest(),
            rank_graph(*cabled_graph(cabled_shape("ring4"), 2))->topology()->digest());
}

// A part gets the cables anew: each column of two ranks per host has all cables.
TEST(RankGraph, PartsHaveTheCablesBetweenTheirHosts) {
  const auto job = cabled_graph(cabled_shape("triangle"), 2);
  const auto column = or_throw(RankGraph::make(*job, {1, 3, 5}));
  EXPECT_EQ(column->topology()->link_count(), 6u);
  const auto host = or_throw(RankGraph::make(*job, {2, 3}));
  EXPECT_TRUE(host->is_one_host());
  ofi::AddedConfig config;
  config.provider = "mem+tcp";
  ASSERT_TRUE(host->configure(0, config));
  EXPECT_EQ(config.host, "box1");
  EXPECT_TRUE(config.cables.empty());
}

TEST(RankGraph, NamesRanksThatNoCablesConnect) {
  const auto job = cabled_graph(cabled_shape("line4"), 1);
  EXPECT_EQ(message_of(RankGraph::make(*job, {0, 2})),
            "no cables connect ranks 0 and 2 (hosts 'box0' and 'box2')");
  EXPECT_EQ(message_of(RankGraph::make(*job, {0, 9})), "rank 9 is on no host of the job's cables");
}

TEST(RankGraph, RefusesProvidersThatDoNotServe) {
  ofi::AddedConfig config;
  config.provider = "tcp";
  const auto two = rank_graph(*cabled_graph(cabled_shape("pair"), 2));
  EXPECT_EQ(message_of(two->configure(0, config)),
            "provider 'tcp': no cable joins ranks of one host, and 'box0' has several; expected "
            "mem+tcp");
  config.provider = "mem";
  EXPECT_EQ(message_of(two->configure(0, config)),
            "provider 'mem' does not run over cables; expected one with IP addresses, e.g. "
            "mem+tcp or tcp");
}

}  // namespace
}  // namespace espalier::communicator
