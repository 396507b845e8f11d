#pragma once
// The candidates for a collective on a topology: every algorithm of the tables, with the parameters
// and placements that it may have. Host only.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "board.pb.h"
#include "collectives/predict/predict.h"
#include "espalier/collectives/verify/verify.h"
#include "planner/make/selection.h"
#include "planner/workload/workload.h"

namespace espalier::planner {

// A request to choose among candidates.
struct ChoiceRequest {
  Selection selection;  // with algorithm kAuto, or a name; all else that is given holds for every
                        // candidate
  OperatorOptions combining;
  predict::Model model = predict::default_model();
  predict::Conditions conditions;
  // Limits of the nodes' firmware, all fields given; null: those of hosts.
  const board::BoardFile::Limits* limits = nullptr;
  // The largest port model that the nodes have.
  PortModel ports = PortModel::kMultiport;
};

// Where messages crowd, an exchange is tried with this window, too: about two peers send to a node
// at once, and a step does not wait for the end of the step before it.
inline constexpr std::uint32_t kShortWindow = 2;

// What decides how messages of several peers meet (predict::Crowding).
struct Crowd {
  std::uint32_t fan_in = 0;    // the most peers that send to one node
  std::uint64_t segments = 0;  // of one block, sent by a node, on average and rounded up
  bool is_exchange = false;    // each node sends only what it has, and receives in each step
};

struct Candidate {
  Selection selection;     // by name: select_algorithm() makes the same schedule
  std::string name;        // "fractional, run length 4"
  std::string dropped;     // why it is not considered, one line; empty: it is
  bool is_placed = false;  // by an embedding, also if it is dropped
  // Only of a candidate that is considered.
  std::unique_ptr<SelectedAlgorithm> selected;  // with the block table of the model
  Programs programs;                            // of all nodes, or of few if there are very many
  bool has_all_programs = false;
  std::unique_ptr<predict::StepLengths> lengths;
  Crowd crowd;  // of the programs that are kept
  std::vector<verify::LowerBound> bounds;
  // Those that would hold if each message carried one segment: (b * N) / d blocks pass some port or
  // link one after the other, however many a message carries.
  std::vector<verify::LowerBound> volume_bounds;
};

// Returns all candidates, also those that are dropped, in the order of the tables. Throws Failure
// (bad input) if the request itself is wrong: its topology, its root, its operator.
[[nodiscard]] std::vector<Candidate> make_candidates(const ChoiceRequest& request);

// Returns the name of the candidate that the selection, which names an algorithm, makes.
[[nodiscard]] std::string candidate_name(const Selection& selection);

// What the model knows of runs of the selection's collective on its topology; null: nothing. Runs
// are with the options' defaults, so with a window, ports or links it knows nothing.
[[nodiscard]] const predict::Tuning* tuning_of(const predict::Model& model,
                                               const Selection& selection);

// Makes the schedule that request.selection names, with the block table of the model. Throws
// Failure (bad input): there is none, or the nodes cannot have it.
[[nodiscard]] SelectedAlgorithm fit_named(const ChoiceRequest& request);

// Returns the operator of the request's collective; kNone of bytes if it combines nothing. Throws
// Failure (bad input).
[[nodiscard]] Operator operator_of(const ChoiceRequest& request);

}  // namespace espalier::planner
