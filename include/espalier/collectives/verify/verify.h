#pragma once
// The verifier: proves a schedule from its programs alone, or gives a counterexample. Host only.
// Shares no code with the generators.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "espalier/collectives/schedule/program.h"
#include "espalier/topology/topology.h"

namespace espalier::verify {

// The properties that are proven, in this order: docs/verifier.md.
enum class Property : std::uint8_t {
  kForm = 0,      // descriptors are well formed and agree where all nodes must
  kMatching = 1,  // every send has its receive, in the same order on each link
  kPorts = 2,     // the port model holds, and the lanes of links suffice
  kLinks = 3,     // no link carries more than its capacity, along the real routes
  kDeadlock = 4,  // no deadlock under rendezvous, with any windows
  kHazards = 5,   // no read before write, no overwrite before last use
  kClaims = 6,    // scratch and window as claimed
  kDataFlow = 7,  // every result is the one that the collective must give
  kSteps = 8,     // steps and lower bound as claimed
};
// Returns the name of the property for messages, e.g. "data flow". Never null.
[[nodiscard]] const char* property_name(Property property);

// An error in a schedule: where it is, and the reason. Numbers that do not apply are -1.
struct Counterexample {
  Property property = Property::kForm;
  std::int64_t blocks = -1;  // N
  std::int64_t node = -1;
  std::int64_t step = -1;
  std::int64_t from = -1, to = -1;  // the link, as nodes
  std::int64_t segment = -1, block = -1;
  std::int64_t action = -1;
  std::string message = {};  // one line: the error, its place and the correction
  // kDeadlock: ranks that wait for each other, one wait per entry; `message` lists them too. Empty
  // if the ends disagree but no rank is stuck.
  std::vector<std::string> cycle = {};
  // Undecided: the check would exceed the limits in VerifyOptions. No error was found.
  bool too_large = false;
};

// Returns the program of `node`, decoded or generated: of a rank, or of a router if the schedule
// has programs for routers (program_nodes). It is called several times per node. The caller keeps
// the program unchanged until the next call.
using Programs = std::function<const Program&(std::uint32_t node)>;

// The load of a link in one step, in messages, and its capacity, in lanes.
struct LinkLoad {
  std::uint32_t from = 0, to = 0;
  std::uint32_t load = 0, capacity = 1;
};

// What proves a lower bound. A reader who has the topology can recompute the bound from it.
// docs/verifier.md (Bounds and their witnesses) says how.
struct Witness {
  // What the witness names, and what it counts.
  enum class Kind : std::uint8_t {
    kArrival = 0,   // some message must arrive; with one rank, nothing
    kReach = 1,     // one block must reach all ranks, or come from all
    kPort = 2,      // the blocks that the port of rank `from` must carry
    kMessages = 3,  // all messages of the schedule, divided by all ports
    kCut = 4,       // the blocks that cross from some nodes to the others
    kTreeLink = 5,  // a cut of a tree: the blocks that cross the link from -> to
    kBranches = 6,  // the blocks that `from` sends into (receives from) the parts into which the
                    // topology falls without it
    kHops = 7,      // the distance of two ranks, one of which needs data of the other
    kRoutes = 8,    // the pairs of ranks whose route crosses the link from -> to
  };
  // What limits the blocks that cross per step.
  enum class Limit : std::uint8_t {
    kLinks = 0,      // the lanes of the links that cross
    kSenders = 1,    // the ports of the nodes that such links leave
    kReceivers = 2,  // the ports of the nodes that such links enter
    kPairs = 3,      // one message per pair of ranks
  };
  Kind kind = Kind::kArrival;
  Limit limit = Limit::kLinks;
  bool inwards = false;  // of the port of `from`: whether it receives
  bool others = false;   // kCut: whether blocks cross from all nodes except those of `nodes`
  std::uint32_t from = 0, to = 0;
  // kReach, kPort: the messages that a holder can send (receive) per step.
  std::int64_t fan = 1;
  // Steps that each counted block takes before it crosses, and after.
  std::int64_t before = 0, after = 0;
  // kCut: the nodes of one side, ascending.
  std::shared_ptr<const std::vector<std::uint32_t>> nodes = {};
};

// A lower bound on the steps of any schedule of a collective: ceil((a + b*N) / d).
struct LowerBound {
  std::string reason;
  std::int64_t a = 0, b = 0, d = 1;
  Witness witness = {};

  // Returns the bound for N = `blocks`.
  [[nodiscard]] std::int64_t steps(std::int64_t blocks) const {
    return (a + b * blocks + d - 1) / d;
  }
};

// Facts about a schedule on which its lower bounds rest, besides those that its programs share.
struct BoundFacts {
  bool links = false;              // no link carries more than its capacity in a step
  bool neighbours = true;          // every message goes from a node to a neighbour
  bool direct = true;              // ranks send from INPUT only: no node passes data on
  std::int64_t segment_count = 1;  // largest segment count of a message
};

// The result of verify().
struct Verdict {
  bool valid = false;
  std::int64_t proven_blocks = 0;  // every N up to this one that can occur was checked
  std::int64_t steps_at_one = 0, steps_at_most = 0;  // steps for N = 1 and N = proven_blocks
  std::uint64_t instances = 0;                       // instances checked, all N together
  bool in_place = true;           // if valid: input and output may be the same memory on every rank
  LinkLoad busiest;               // the link with the highest load in relation to its capacity
  Counterexample counterexample;  // if not valid
  bool for_all = false;           // proven for every N that can occur, not only up to proven_blocks
  std::string limited;            // why not for every N; empty if for_all
  std::int64_t period = 1;        // blocks after which everything that depends on N repeats
  std::uint64_t checks = 0;       // accesses to places that were checked, all N together
  // All lower bounds on the steps that apply. The greatest of them is the bound.
  std::vector<LowerBound> lower_bounds;
  BoundFacts bound_facts;
  // Why greater bounds may exist that were not searched; empty if the search was complete.
  std::string bounds_limited;
  // Progressions read from the programs of all nodes; those of a program that is read twice count
  // twice. 0 if each N was expanded.
  std::uint64_t progressions = 0;
  // Whether no link exceeds its capacity in lock step (slot), and under any timing skew (async),
  // regardless of the claimed guarantee. Only with VerifyOptions::links.
  bool slot = false, async = false;
};

// How verify() covers the values of N, the blocks per segment.
enum class Method : std::uint8_t {
  // For every N at once if the schedule is periodic (docs/verifier.md), otherwise exhaustively. An
  // error in a small schedule is also expanded exhaustively, to report the smallest wrong N.
  kAuto = 0,
  kExhaustive = 1,  // every N up to the bound
  kPeriodic = 2,    // only for every N at once: a schedule that is not periodic is refused (kForm)
};

// The parameters of verify().
struct VerifyOptions {
  // Whether the claimed guarantee (property links) is checked. All other properties always are.
  bool links = true;
  Method method = Method::kAuto;
  // Above 0: the check is exhaustive, up to this N. 0: an exhaustive check ends at
  // settling_bound().
  std::int64_t max_blocks = 0;
  // Limits. A schedule that exceeds one is refused (Counterexample::too_large). Each of the two
  // ways of proof counts for itself.
  // Maximum of instances and places of all programs for one N: 4 GB of memory. The maximum of hops
  // of routes is four times this.
  std::int64_t max_instances = std::int64_t{5} << 22;
  // Maximum for all N together; 4 hops, or 32 steps in which a rank is idle, count as one: some
  // minutes of one core.
  std::int64_t max_instances_total = std::int64_t{1} << 28;
  std::function<void(double done)> progress = {};  // called with 0 .. 1; may be empty
};

// Limits for all N together that grow with the nodes of the schedule, unless `max_blocks` is set:
// kMaxInstancesAnyFile + kMaxInstancesPerNode * nodes, and never more than max_instances_total. So
// a file of 16 KB takes some seconds of one core.
inline constexpr std::int64_t kMaxInstancesAnyFile = std::int64_t{1} << 23;
inline constexpr std::int64_t kMaxInstancesPerNode = std::int64_t{1} << 14;

// Maximum window of a program: no machine holds more steps in flight (limits.h).
inline constexpr std::uint32_t kMaxVerifiedWindow = 64;

// Returns the N up to which a schedule that is not periodic is checked, from one rank's program.
// Derived in settling_bound.cc. Beyond it nothing is proven.
[[nodiscard]] std::int64_t settling_bound(const Program& program);

// Returns a lower bound that a schedule may claim (bound_ref): the greatest for large N of the
// bounds that verify() knows. It holds for every schedule with the collective, ranks, root,
// segments, port model and ticks of `common`. `segment_count`: the largest segment count of a
// message. `neighbours`: whether every message goes from a node to a neighbour.
[[nodiscard]] Count provable_bound(const topology::Topology& topology, const Program& common,
                                   std::int64_t segment_count, bool neighbours);

// Returns all lower bounds that verify() would find, without proving the schedule. `links`: whether
// the caller knows from verify() that no link exceeds its capacity in a step; false is always
// correct. Empty if the programs do not agree (kForm). `limited`, if given, is set as
// Verdict::bounds_limited.
[[nodiscard]] std::vector<LowerBound> lower_bounds(const topology::Topology& topology,
                                                   const Programs& programs, bool links,
                                                   std::string* limited = nullptr);
// Returns the facts on which these bounds rest, of programs that agree.
[[nodiscard]] BoundFacts bound_facts(const topology::Topology& topology, const Programs& programs,
                                     bool links);
// Returns the fewest bounds of `all` that have the same maximum as `all` for every N >= first.
// Ordered by the N at which each becomes the greatest; the last is the greatest for large N.
[[nodiscard]] std::vector<LowerBound> greatest(const std::vector<LowerBound>& all,
                                               std::int64_t first);

// Returns why the programs are not those of one schedule for `topology`, as one line; empty if they
// are. Each program is one that a node would load, its peers and router programs fit the topology,
// and all agree. This is the part of property form that does not depend on N. Whatever follows peer
// numbers of a schedule that is not proven calls it first.
[[nodiscard]] std::string form_error(const topology::Topology& topology, const Programs& programs);
// Returns why the schedule, whose form_error() is empty, cannot be expanded for N = `blocks`, as
// one line; empty if it can. Every link, segment, block and slot exists, and the instances of all
// nodes are few enough to expand: VerifyOptions().max_instances + 4096 per node.
[[nodiscard]] std::string form_error(const topology::Topology& topology, const Programs& programs,
                                     std::int64_t blocks);

// Proves the schedule, or finds a counterexample. Reads the programs only.
[[nodiscard]] Verdict verify(const topology::Topology& topology, const Programs& programs,
                             const VerifyOptions& options);

}  // namespace espalier::verify
