#pragma once
// Choosing what to compile by --topology, --collective, --algorithm and their parameters, and
// compiling it.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/lower/lower.h"
#include "espalier/collectives/search.h"
#include "espalier/topology/embedding.h"
#include "espalier/topology/topology.h"
#include "tools/common/command_line.h"

namespace espalier::tools {

// The --algorithm that leaves the choice to a model (tools/choose).
inline constexpr const char* kAuto = "auto";
// The --run-length that the algorithm chooses by the number of ranks, for every message.
inline constexpr const char* kOwnRunLength = "own";

// As typed; empty: not given.
struct Selection {
  std::string topology, collective, algorithm = kAuto, root = "0";
  // parameters of some algorithms
  std::string run_length = {}, radix = {}, lambda = {}, ratio = {};
  std::string window = {};             // steps in flight that the schedule must allow
  bool window_is_limit = false;        // a schedule that allows fewer will do
  std::string links = {}, ports = {};  // "routed" or "hop-by-hop", "multiport" or "single-send"
  std::string limits = {};             // "boards" or "host": the tables of programs
  // placement of ranks: none, snake, z-order, a known embedding's name, a file
  std::string embedding = {};
};

// Adds all options except those below; `required`: topology and collective must be given.
void add_selection(Command command, Selection& selection, bool required);
void add_schedule_window(Command command, Selection& selection);
void add_links(Command command, Selection& selection);  // --links and --ports
// --limits. Returns whether `text` names the limits of hosts; empty: it does not. Throws Failure
// (bad input) for other words.
void add_limits(Command command, std::string& limits);
[[nodiscard]] bool is_for_hosts(const std::string& limits);

// One of the algorithms of collectives/algorithms: rank-local, or searched on this host.
struct AlgorithmEntry {
  std::string name;
  Collective collective = Collective::kNone;
  bool needs_commutative = false;
  std::string summary;
  std::string topologies;  // the topologies it is for: "any topology"
  bool any_topology = false;
  bool is_chain = false;                                // as Algorithm::is_chain
  bool has_groups = false;                              // as SearchedAlgorithm::has_groups
  std::vector<std::string> parameters;                  // "--run-length", "--radix", ...
  std::uint32_t max_run_length = 0;                     // of --run-length; 0 where it takes none
  const Algorithm* generator = nullptr;                 // null: searched
  const searched::SearchedAlgorithm* search = nullptr;  // null: rank-local
};
// All of them, by collective.
[[nodiscard]] const std::vector<AlgorithmEntry>& algorithm_entries();

struct SelectedAlgorithm {
  std::unique_ptr<topology::Topology> topology;
  topology::Shape shape;  // of the topology; parameters.capacities points into it
  AlgorithmEntry algorithm;
  CollectiveParameters parameters;
  Programs found;           // all nodes' programs, of a searched algorithm or a lowered schedule
  lower::Report report;     // on its lowering
  std::uint32_t nodes = 0;  // that have programs: ranks, and routers where they run
  std::optional<topology::Embedding> embedding;  // the placement of ranks; nothing: as numbered
  std::vector<std::uint32_t> rank_at;            // of an embedding: virtual rank of each node
  std::vector<BlockRule> rules;        // the block table, from a model; empty: the algorithm's own
  std::uint64_t selection_digest = 0;  // of the selection that it is one of; 0: of none
};

// Throws Failure (bad input) with a line that says what was wrong and what would be right.
[[nodiscard]] std::unique_ptr<topology::Topology> parse_topology(const std::string& spec);
// Checks what does not depend on the algorithm: topology, collective and root. Returns the
// topology. Throws Failure (bad input).
[[nodiscard]] std::unique_ptr<topology::Topology> check_selection(const Selection& selection);
// Whether a model chooses (tools/choose): the algorithm, or the run length of one that is named.
[[nodiscard]] bool is_chosen(const Selection& selection);
// What the model chooses, for messages: "auto" or "run length".
[[nodiscard]] const char* choice_word(const Selection& selection);
// selection.algorithm must be a name: tools/choose replaces kAuto. Without a run length, it is the
// algorithm's own.
[[nodiscard]] SelectedAlgorithm select_algorithm(const Selection& selection);

// Writes node's program into `program`. Throws Failure if the algorithm cannot do it.
void generate(const SelectedAlgorithm& selected, std::uint32_t node, OwnedProgram& program);

// The schedule file: a descriptor for each node. Throws Failure if the algorithm cannot do it.
[[nodiscard]] std::vector<std::uint8_t> compile(const SelectedAlgorithm& selected);

}  // namespace espalier::tools
