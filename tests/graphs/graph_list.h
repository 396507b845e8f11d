#pragma once
// Graphs of many kinds as topology specifications, for schedules that take any graph.

#include <cstdint>
#include <string>
#include <vector>

namespace espalier::graphs {

struct NamedGraph {
  std::string name;
  std::string words;  // what it is, for a table
  std::string spec;   // "custom: ..."
};

// The graphs of docs/results/graphs.md. The same list in every run.
[[nodiscard]] std::vector<NamedGraph> graph_list();

// A connected graph of `ranks` ranks and `routers` routers, drawn from the seed: a random spanning
// tree and `more` other links, of 1 to 3 lanes each. one_way: the links of one more random cycle
// through all nodes are one-way.
[[nodiscard]] std::string random_graph(std::uint64_t seed, std::uint32_t ranks,
                                       std::uint32_t routers, std::uint32_t more, bool one_way);

}  // namespace espalier::graphs
