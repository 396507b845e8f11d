// Prints the bytes of a descriptor, by algorithm and size of the group: descriptors.txt, the record
// of docs/results/descriptors.md. descriptors_page.py makes the page of it.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/testing/results.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/search.h"
#include "espalier/topology/topology.h"

namespace espalier {
namespace {

std::size_t bytes_of(const Program& program) {
  static std::vector<std::uint8_t> bytes(kMaxDescriptorBytes);
  std::size_t written = 0;
  if (encode_program(program, bytes.data(), bytes.size(), written) == Status::kOk) return written;
  std::fprintf(stderr, "descriptors: %s cannot be encoded\n", program.algorithm);
  std::exit(1);
}

// The longest descriptors of ranks and of routers; 0: none.
struct Longest {
  std::size_t rank = 0, router = 0;
  void add(const Program& program) {
    std::size_t& longest = is_router(program) ? router : rank;
    longest = std::max(longest, bytes_of(program));
  }
};

std::string cell(std::size_t bytes) { return bytes == 0 ? "-" : std::to_string(bytes); }

// Every node of small groups, 2000 spread over larger ones.
Longest longest_of(const Algorithm& algorithm, const CollectiveParameters& parameters) {
  constexpr std::uint32_t kMost = 2000;
  const std::uint32_t nodes = algorithm_nodes(algorithm, parameters);
  const std::uint32_t asked = std::min(nodes, kMost);
  Longest longest;
  auto program = std::make_unique<Program>();
  for (std::uint32_t i = 0; i < asked; ++i) {
    const auto node = static_cast<std::uint32_t>(std::uint64_t{i} * nodes / asked);
    if (algorithm.generate(parameters, node, *program) != Status::kOk) return {};
    longest.add(*program);
  }
  return longest;
}

void anywhere() {
  constexpr std::uint32_t kRanks[] = {4, 16, 100, 1000, 10000, 100000};
  std::printf(
      "## Any topology, bytes of the longest descriptor by ranks\n\n| collective | algorithm |");
  for (const std::uint32_t ranks : kRanks) std::printf(" %u |", ranks);
  std::printf("\n|---|---|%s\n", "---|---|---|---|---|---|");
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.where != Where::kAnywhere) continue;
    std::printf("| %s | %s |", collective_name(algorithm.collective), algorithm.name);
    for (std::uint32_t ranks : kRanks) {
      Longest longest = longest_of(algorithm, {.ranks = ranks});
      // Some are for odd numbers of ranks only.
      if (longest.rank == 0) longest = longest_of(algorithm, {.ranks = ranks - 1});
      std::printf(" %s |", cell(longest.rank).c_str());
    }
    std::printf("\n");
  }
}

void fat_trees() {
  struct Tree {
    std::uint32_t arity, height;
  };
  constexpr Tree kTrees[] = {{2, 2}, {2, 4}, {2, 6}, {4, 2}, {4, 4}, {5, 3}};
  std::printf(
      "\n## Fat trees whose routers have programs, bytes of the longest descriptor (leaf, "
      "router)\n\n"
      "| collective | algorithm |");
  for (const Tree& tree : kTrees) std::printf(" k=%u, h=%u |", tree.arity, tree.height);
  std::printf("\n|---|---|---|---|---|---|---|---|\n");
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.where != Where::kFatTree) continue;
    std::printf("| %s | %s |", collective_name(algorithm.collective), algorithm.name);
    for (const Tree& tree : kTrees) {
      CollectiveParameters parameters{.ranks = 1};
      for (std::uint32_t level = 0; level < tree.height; ++level) parameters.ranks *= tree.arity;
      parameters.arity = tree.arity;
      parameters.height = tree.height;
      const Longest longest = longest_of(algorithm, parameters);
      std::printf(" %s, %s |", cell(longest.rank).c_str(), cell(longest.router).c_str());
    }
    std::printf("\n");
  }
}

void searched_ones() {
  std::printf(
      "\n## Searched on the host, bytes of the longest descriptor (rank, router)\n\n"
      "| collective | algorithm | topology | bytes |\n|---|---|---|---|\n");
  for (const searched::SearchedAlgorithm& algorithm : searched::searched_algorithms()) {
    for (const char* spec :
         {"complete:16", "complete:100", "complete:1000", "crossbar:4x16", "crossbar:16x64",
          "fattree:k=2,h=3,c=1", "fattree:k=4,h=2,c=1", "fattree:k=4,h=3,c=1"}) {
      const auto topology = or_throw(topology::parse(spec));
      const bool general = std::string(algorithm.topologies) == "any topology";
      if (!algorithm.applies(*topology) || (general && !std::string(spec).starts_with("complete")))
        continue;
      const topology::Shape shape = topology->shape();
      CollectiveParameters parameters{
          .ranks = topology->ranks(), .arity = shape.arity, .height = shape.height};
      const auto programs = algorithm.search(*topology, parameters);
      if (!programs) continue;
      Longest longest;
      for (const Program& program : *programs) longest.add(program);
      std::printf("| %s | %s | %s | %s, %s |\n", collective_name(algorithm.collective),
                  algorithm.name, spec, cell(longest.rank).c_str(), cell(longest.router).c_str());
    }
  }
}

}  // namespace
}  // namespace espalier

int main() {
  espalier::anywhere();
  espalier::fat_trees();
  espalier::searched_ones();
  return 0;
}
