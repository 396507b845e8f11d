#pragma once
// The verifier: proves a schedule from its programs alone, or gives a counterexample. Host only.
// Shares no code with the generators.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "espalier/collectives/schedule/program.h"
#include "espalier/topology/topology.h"

namespace espalier::verify {

// What is proven, in this order: docs/verifier.md.
enum class Point : std::uint8_t {
  kForm = 0,      // descriptors well formed, agreeing on what is the same on all nodes
  kMatching = 1,  // every send has its receive, in the same order on each link
  kPorts = 2,
  kLinks = 3,
  kDeadlock = 4,
  kHazards = 5,  // no read before write, no overwrite before last use
  kClaims = 6,   // scratch and window as claimed
  kDataFlow = 7,
  kSteps = 8,
};
[[nodiscard]] const char* point_name(Point point);

// Where and why a schedule is wrong. Numbers that do not apply are -1.
struct Counterexample {
  Point point = Point::kForm;
  std::int64_t blocks = -1;  // N
  std::int64_t node = -1;
  std::int64_t step = -1;
  std::int64_t from = -1, to = -1;  // the link, as nodes
  std::int64_t segment = -1, block = -1;
  std::int64_t action = -1;
  std::string message;  // one line: what was wrong, where, what would be right
  // kDeadlock: ranks that wait for each other, one wait each; `message` has them too. Empty where
  // the ends disagree, but no rank is stuck.
  std::vector<std::string> cycle;
  // Nothing is known to be wrong: to find out would take more than the options allow.
  bool too_large = false;
};

// program(node) decodes or generates node's program, of ranks and, where the schedule has programs
// for them (program_nodes), of routers; called again and again, each kept by the caller until it is
// called for the next.
using Programs = std::function<const Program&(std::uint32_t node)>;

// How much a link carries at once, of how much it can.
struct LinkLoad {
  std::uint32_t from = 0, to = 0;
  std::uint32_t load = 0, capacity = 1;
};

// A lower bound on the steps of any schedule of a collective: ceil((a + b*N) / d).
struct LowerBound {
  std::string reason;
  std::int64_t a = 0, b = 0, d = 1;

  [[nodiscard]] std::int64_t steps(std::int64_t blocks) const {
    return (a + b * blocks + d - 1) / d;
  }
};

struct Verdict {
  bool valid = false;
  std::int64_t proven_blocks = 0;  // every N up to this that can occur was checked
  std::int64_t steps_at_one = 0, steps_at_most = 0;  // steps for N = 1 and N = proven_blocks
  std::uint64_t instances = 0;                       // instances checked, all N together
  bool in_place = true;  // valid, and input and output may be the same memory on every rank
  LinkLoad busiest;      // the link nearest to its capacity, or above it
  Counterexample counterexample;  // where !valid
  bool for_all = false;           // proven for every N that can occur, not only up to proven_blocks
  std::string limited;            // why not for all; empty if for_all, or none was tried
  std::int64_t period = 1;        // blocks after which all that depends on N repeats
  std::uint64_t checks = 0;       // accesses to places ordered against those before, all N together
  std::vector<LowerBound> witnesses;  // of the steps: all that apply; their greatest is the bound
  // Progressions read from all nodes' programs, again where a program is read again; 0 where each N
  // was expanded.
  std::uint64_t progressions = 0;
  // Whether link use holds in lock step, and under any drift, whatever the grade claims. Only with
  // Options::links.
  bool slot = false, async = false;
};

enum class Method : std::uint8_t {
  // For every N at once if the schedule is periodic (docs/verifier.md); otherwise, and to phrase
  // the
  // counterexamples of small schedules, exhaustively.
  kAuto = 0,
  kExhaustive = 1,  // every N up to the bound
  kPeriodic = 2,    // only for every N at once: a schedule that is not periodic is refused (kForm)
};

struct Options {
  // Whether the grade's claim on links (point 3) is checked. Without, everything else still is.
  bool links = true;
  Method method = Method::kAuto;
  std::int64_t max_blocks = 0;  // above 0: exhaustively, up to this N; 0: settling_bound()
  // What needs more is refused (Counterexample::too_large), by each way of proof for itself.
  // Instances and places of all programs for one N, held at once: 4 GB. And 4 times as many hops.
  std::int64_t max_instances = std::int64_t{5} << 22;
  // Of all N together, 4 hops or 32 idle steps of a rank for one: some minutes of one core.
  std::int64_t max_instances_total = std::int64_t{1} << 28;
  std::function<void(double done)> progress;  // 0 .. 1, may be empty
};

// More steps in flight than this no machine holds (include/espalier/base/limits.h); no program may
// claim it.
inline constexpr std::uint32_t kMostWindow = 64;

// The N up to which this cut checks exhaustively, from the descriptors: stated in verify/verify.cc.
[[nodiscard]] std::int64_t settling_bound(const Program& program);

// A lower bound that verify() proves of every valid schedule of this collective, with these ranks,
// root, segments, port model and ticks, all in `common`, whose messages have runs of at most `run`:
// for schedules to claim (bound_ref). The best known for large N. `neighbours`: every message of
// the schedule goes from a node to a neighbour.
[[nodiscard]] Count provable_bound(const topology::Topology& topology, const Program& common,
                                   std::int64_t run, bool neighbours);

// All lower bounds that verify() would find, without proving the schedule. `links`: the links carry
// no more than they can in a step, which verify() must have proven; false is always right. Empty
// where the programs do not agree (kForm).
[[nodiscard]] std::vector<LowerBound> lower_bounds(const topology::Topology& topology,
                                                   const Programs& programs, bool links);
// The fewest of `all` whose maximum is that of all for every N >= first, by the N from which on
// they are the greatest. The last one is the greatest for large N.
[[nodiscard]] std::vector<LowerBound> greatest(const std::vector<LowerBound>& all,
                                               std::int64_t first);

[[nodiscard]] Verdict verify(const topology::Topology& topology, const Programs& programs,
                             const Options& options);

}  // namespace espalier::verify
