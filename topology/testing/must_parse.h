#pragma once
// Topologies of tests, and what holds for every topology. Host only.

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/testing/results.h"
#include "espalier/topology/topology.h"

namespace espalier::topology {

using Nodes = std::vector<std::uint32_t>;

// Returns the topology of a specification that must be right; throws otherwise.
inline std::unique_ptr<Topology> must_parse(const std::string& spec) {
  return or_throw(parse(spec));
}

// The number of times that `piece` is in `text`.
inline std::size_t count_of(const std::string& text, const std::string& piece) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(piece, at)) != std::string::npos; ++at) ++count;
  return count;
}

// The specifications of a list, which spaces separate.
inline std::vector<std::string> specs_in(const std::string& list) {
  std::istringstream words(list);
  std::vector<std::string> all;
  for (std::string word; words >> word;) all.push_back(word);
  return all;
}

// Checks that every node reaches every other over links, visiting no node twice.
inline void expect_routes(const Topology& topology) {
  for (std::uint32_t from = 0; from < topology.nodes(); ++from) {
    for (std::uint32_t to = 0; to < topology.nodes(); ++to) {
      const Nodes route = topology.route(from, to);
      ASSERT_EQ(route.front(), from);
      ASSERT_EQ(route.back(), to);
      EXPECT_EQ(std::set(route.begin(), route.end()).size(), route.size());
      for (std::size_t i = 1; i < route.size(); ++i) {
        EXPECT_GT(topology.capacity(route[i - 1], route[i]), 0u)
            << from << " -> " << to << ", hop " << i;
      }
    }
  }
}

// Checks that each of `paths` is the route between its ends.
inline void expect_paths(const Topology& topology, const std::vector<Nodes>& paths) {
  for (const Nodes& path : paths) EXPECT_EQ(topology.route(path.front(), path.back()), path);
}

// Checks that links(), link_count() and capacity() agree, and that no link is listed twice.
inline void expect_links(const Topology& topology) {
  std::uint64_t links = 0;
  std::set<std::pair<std::uint32_t, std::uint32_t>> listed;
  for (const Link& one : topology.links()) {
    EXPECT_TRUE(listed.insert({one.from, one.to}).second);
    EXPECT_EQ(topology.capacity(one.from, one.to), one.capacity);
  }
  for (std::uint32_t from = 0; from < topology.nodes(); ++from) {
    for (std::uint32_t to = 0; to < topology.nodes(); ++to) {
      links += topology.capacity(from, to) > 0;
    }
  }
  EXPECT_EQ(links, topology.link_count());
  EXPECT_EQ(topology.links().size(), links);
}

}  // namespace espalier::topology
