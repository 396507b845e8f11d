#pragma once
// The candidates for a collective on a topology: every algorithm of the tables, with the parameters
// and placements that it may have. Host only.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "board.pb.h"
#include "collectives/predict/predict.h"
#include "espalier/base/result.h"
#include "espalier/collectives/machine/operators.h"
#include "espalier/collectives/verify/verify.h"
#include "planner/make/plan.h"

namespace espalier::planner {

// A request to choose among candidates.
struct ChoiceRequest {
  PlanRequest plan = {};  // all that is given holds for every candidate
  Operator op = {};       // kNone of bytes if the collective combines nothing
  predict::Model model = predict::default_model();
  predict::Conditions conditions = {};
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
  PlanRequest plan;        // with an algorithm: make_schedule() makes the same schedule
  std::string name;        // for users: "fractional, run length 4"
  std::string dropped;     // why it is not considered, one line; empty: it is
  bool is_placed = false;  // by an embedding, also if it is dropped
  // Only of a candidate that is considered.
  std::unique_ptr<PlannedSchedule> schedule;  // with the block table of the model
  Programs programs;                          // of all nodes, or of few if there are very many
  bool has_all_programs = false;
  std::unique_ptr<predict::StepLengths> lengths;
  Crowd crowd;  // of the programs that are kept
  std::vector<verify::LowerBound> bounds;
  // Those that would hold if each message carried one segment: (b * N) / d blocks pass some port or
  // link one after the other, however many a message carries.
  std::vector<verify::LowerBound> volume_bounds;
};

// Returns all candidates, also those that are dropped, in the order of the tables.
[[nodiscard]] std::vector<Candidate> make_candidates(const ChoiceRequest& request);

// What the model knows of runs of the request's collective on its topology; null: nothing. Runs are
// with the options' defaults, so with a window, ports or links it knows nothing.
[[nodiscard]] const predict::Tuning* tuning_of(const predict::Model& model,
                                               const PlanRequest& request);

// Makes the schedule that request.plan names, with the block table of the model. Error: there is
// none, or the nodes cannot have it.
[[nodiscard]] Result<PlannedSchedule> fit_named(const ChoiceRequest& request);

}  // namespace espalier::planner
