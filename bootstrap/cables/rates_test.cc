// Rates of cables: which hosts measure when, and that all ranks get the same rates. The cables are
// addresses of the loopback.

#include "bootstrap/cables/rates.h"

#include <gtest/gtest.h>

#include <future>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/testing/results.h"
#include "bootstrap/testing/members.h"

namespace espalier::cables {
namespace {

JobGraph graph_of(std::uint32_t hosts, std::uint32_t ranks_per_host,
                  const std::vector<std::pair<std::uint32_t, std::uint32_t>>& ends) {
  JobGraph graph;
  for (std::uint32_t host = 0; host < hosts; ++host) {
    graph.hosts.push_back({.name = "box" + std::to_string(host)});
    for (std::uint32_t i = 0; i < ranks_per_host; ++i) {
      graph.hosts.back().ranks.push_back(host + i * hosts);
    }
  }
  for (const auto& [a, b] : ends) {
    const std::string number = std::to_string(graph.cables.size());
    const auto end = [&number](std::uint32_t host) {
      return JobEnd{.host = host,
                    .interface = "lo",
                    .address = "127.6." + std::to_string(host) + "." + number};
    };
    graph.cables.push_back({.a = end(a), .b = end(b), .rate_mbits = 1});
  }
  return graph;
}

TEST(CableRates, NoHostMeasuresWithTwoAtOnce) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> complete;
  for (std::uint32_t a = 0; a < 9; ++a) {
    for (std::uint32_t b = a + 1; b < 9; ++b) complete.push_back({a, b});
  }
  const auto mesh3x3 = std::vector<std::pair<std::uint32_t, std::uint32_t>>{
      {0, 1}, {0, 3}, {1, 2}, {1, 4}, {2, 5}, {3, 4},
      {3, 6}, {4, 5}, {4, 7}, {5, 8}, {6, 7}, {7, 8}};
  for (const auto& [ends, most_turns] : {std::pair(complete, 15U), std::pair(mesh3x3, 5U)}) {
    const JobGraph graph = graph_of(9, 1, ends);
    std::map<std::uint32_t, std::set<std::uint32_t>> busy;  // by turn
    std::set<std::size_t> cables;
    for (const MeasuredPair& pair : measured_pairs(graph)) {
      EXPECT_LT(pair.turn, most_turns);
      EXPECT_TRUE(busy[pair.turn].insert(pair.a).second);
      EXPECT_TRUE(busy[pair.turn].insert(pair.b).second);
      cables.insert(pair.cables.begin(), pair.cables.end());
    }
    EXPECT_EQ(cables.size(), ends.size());
  }
}

TEST(CableRates, ParallelCablesAreMeasuredSideBySide) {
  const auto pairs = measured_pairs(graph_of(3, 1, {{0, 1}, {1, 2}, {0, 1}}));
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[0].cables, (std::vector<std::size_t>{0, 2}));
  EXPECT_EQ(pairs[1].cables, (std::vector<std::size_t>{1}));
  EXPECT_NE(pairs[0].turn, pairs[1].turn);
}

// Returns the rates of each rank's graph.
std::vector<std::vector<std::uint32_t>> measure(const JobGraph& given) {
  std::uint32_t size = 0;
  for (const JobGraph::Host& host : given.hosts)
    size += static_cast<std::uint32_t>(host.ranks.size());
  const auto server = bootstrap::start(size);
  std::vector<std::future<std::vector<std::uint32_t>>> ranks;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    ranks.push_back(std::async(std::launch::async, [&server, rank, size, &given] {
      JobGraph graph = given;
      const auto member =
          or_throw(bootstrap::member(*server, rank, size, std::chrono::minutes(10)));
      or_throw(measure_rates(*member, {}, graph));
      std::vector<std::uint32_t> rates;
      for (const JobCable& cable : graph.cables) rates.push_back(cable.rate_mbits);
      return rates;
    }));
  }
  std::vector<std::vector<std::uint32_t>> found;
  for (auto& each : ranks) found.push_back(each.get());
  return found;
}

TEST(CableRates, AllRanksGetTheSame) {
  const auto found = measure(graph_of(3, 2, {{0, 1}, {0, 2}, {1, 2}, {0, 1}}));
  for (const auto& rates : found) EXPECT_EQ(rates, found.front());
  for (const std::uint32_t rate : found.front()) EXPECT_GT(rate, 1u);
}

TEST(CableRates, ACableThatCarriesNothingKeepsItsRate) {
  JobGraph graph = graph_of(2, 1, {{0, 1}, {0, 1}});
  graph.cables[1].b.address = "127.255.255.255";  // nothing connects to it
  graph.cables[1].rate_mbits = 40'000;
  for (const auto& rates : measure(graph)) {
    EXPECT_GT(rates[0], 1u);
    EXPECT_EQ(rates[1], 40'000u);
  }
}

TEST(CableRates, AJobOfOneHostMeasuresNothing) {
  EXPECT_EQ(measure(graph_of(1, 2, {})), std::vector<std::vector<std::uint32_t>>(2));
}

}  // namespace
}  // namespace espalier::cables
