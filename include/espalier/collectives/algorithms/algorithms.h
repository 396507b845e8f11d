#pragma once
// Every rank-local generator, by name. Freestanding. A generator takes O(log p) time (on fat trees
// O(k h)) and no memory except `out`.
//
// Buffers: see buffer_extent (program.h). A broadcast's root sends from INPUT; the others receive
// into OUTPUT and forward from there. The root is used if has_root(). INPUT and OUTPUT may be the
// same memory if both hold the whole message, except in exscan/two-tree, exscan/two-tree-mirror,
// exscan/two-tree-simplex, exscan/doubly-pipelined, exscan/hosts-chain, all-to-all/pairwise and
// all-to-all/hosts-pairwise.

#include <cstddef>
#include <cstdint>

#include "espalier/collectives/schedule/program.h"
#include "espalier/internal/collectives/build/parameters.h"

namespace espalier {

// The networks that an algorithm is for.
enum class Where : std::uint8_t {
  kAnywhere,  // any rank may send to any other: all nodes are ranks, and the fabric routes
  kFatTree,   // ranks and routers of a fat tree have programs, with links only to their neighbours
  kHosts,     // hosts:HxR: hosts of several ranks, which share a link to the network
  kGrid,      // meshes, tori and rings with dimension-order routing: all nodes are ranks
  kTorus,     // tori and rings
};

// Writes the program of node `me`: a rank or, if the algorithm has programs for routers, a router.
// The collective is one of those for which the generator has a row.
// kUnsupported: the algorithm cannot serve these parameters; kTooLarge: a table of `out` is too
// small for them (both: top of the algorithm's file); kBadArgument: root or me is not a rank.
using Generator = Status(const CollectiveParameters& parameters, std::uint32_t me,
                         Collective collective, Program& out);

// A rank-local generator, with the limits and parameters that a caller must know to choose it.
struct Algorithm {
  const char* name = nullptr;  // "two-tree"
  Collective collective = {};
  Generator* generator = nullptr;
  bool needs_commutative = false;  // for some roots at least; each program states whether it does
  const char* summary = nullptr;   // one line with the step count
  Where where = Where::kAnywhere;
  std::uint32_t max_run_length = 0;  // maximum of `run_length`; 0: it has no run length
  bool takes_lambda = false;         // the caller may set `send_ticks` and `latency_ticks`
  bool needs_odd_ranks = false;      // kUnsupported for an even number of ranks
  // Messages pass only between consecutive ranks, or between the last and the first.
  bool is_chain = false;
  bool takes_radix = false;     // the caller may set `radix`
  std::uint32_t max_ranks = 0;  // a rank has a link to every other; 0: no such limit
  bool takes_ratio = false;     // the caller may set `ratio_numerator` and `ratio_denominator`

  // Writes the program of node `me` (Generator).
  [[nodiscard]] Status generate(const CollectiveParameters& parameters, std::uint32_t me,
                                Program& out) const {
    return generator(parameters, me, collective, out);
  }
};
// Whether `parameters` name a topology of the family that the algorithm is for.
[[nodiscard]] bool runs_on(const Algorithm& algorithm, const CollectiveParameters& parameters);
// Number of nodes that have a program under `algorithm`: the ranks, and routers if any.
[[nodiscard]] std::uint32_t algorithm_nodes(const Algorithm& algorithm,
                                            const CollectiveParameters& parameters);

// All algorithms, by collective: in the order of `espalier list`.
struct AlgorithmList {
  // Goes through the list.
  struct Iterator {
    std::size_t number;  // of the row, from 0

    // Returns the row. Requires number < size().
    const Algorithm& operator*() const { return AlgorithmList()[number]; }
    // Goes on to the next row.
    Iterator& operator++() { return ++number, *this; }
    bool operator==(const Iterator&) const = default;
  };
  // Number of rows.
  [[nodiscard]] static std::size_t size();
  // The first row.
  [[nodiscard]] static Iterator begin() { return {0}; }
  // The place behind the last row.
  [[nodiscard]] static Iterator end() { return {size()}; }
  // Returns a row. Requires number < size().
  const Algorithm& operator[](std::size_t number) const;
};
// Returns the list.
[[nodiscard]] inline AlgorithmList algorithms() { return {}; }
// Returns null if there is no such algorithm.
[[nodiscard]] const Algorithm* find_algorithm(Collective collective, const char* name);

// Finds the collective with this collective_name(). False if there is none.
[[nodiscard]] bool parse_collective(const char* name, Collective& collective);

}  // namespace espalier
