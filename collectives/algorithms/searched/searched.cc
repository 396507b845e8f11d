#include "collectives/algorithms/searched/searched.h"

#include "collectives/algorithms/searched/searches.h"

namespace espalier::searched {
namespace {

bool anywhere(const topology::Topology&) { return true; }
bool on_crossbar(const topology::Topology& topology) { return topology.shape().modules > 0; }

constexpr SearchedAlgorithm kAlgorithms[] = {
    {"double-fibonacci", espalier_Collective_BROADCAST, double_fibonacci_broadcast, false,
     "two pipelined Fibonacci trees, half the message each: D-1+2N steps, D about 1.44 log2 p",
     "any topology", anywhere},
    {"double-fibonacci", espalier_Collective_REDUCE, double_fibonacci_reduce, true,
     "two pipelined Fibonacci trees, half the message each: D-1+2N steps, D about 1.44 log2 p",
     "any topology", anywhere},
    {"fractional-direct", espalier_Collective_BROADCAST, fractional_direct_broadcast, false,
     "a fractional tree for simplex ports, --run r: a+(2r+1)N/r steps, N a multiple of r",
     "any topology", anywhere},
    {"crossbar-a", espalier_Collective_BROADCAST, crossbar_a_broadcast, false,
     "a fractional tree, --run r, two channels in and out of a module: d+N+ceil(N/r)-1 steps",
     "crossbar:AxB", on_crossbar},
    {"crossbar-b", espalier_Collective_BROADCAST, crossbar_b_broadcast, false,
     "a fractional tree, --run r, one channel in and two out of a module: d+N+ceil(N/r)-1 steps",
     "crossbar:AxB", on_crossbar},
};

}  // namespace

std::span<const SearchedAlgorithm> searched_algorithms() { return kAlgorithms; }

const SearchedAlgorithm* find_searched(Collective collective, const std::string& name) {
  for (const SearchedAlgorithm& algorithm : kAlgorithms) {
    if (algorithm.collective == collective && algorithm.name == name) return &algorithm;
  }
  return nullptr;
}

}  // namespace espalier::searched
