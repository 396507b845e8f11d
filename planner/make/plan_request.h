#pragma once
// A request for one schedule, and the names that its parts have for users. Host only.

#include <cstdint>
#include <memory>
#include <string>

#include "espalier/collectives/schedule/program.h"
#include "espalier/topology/topology.h"
#include "planner/make/algorithms.h"

namespace espalier::planner {

// The placement of the ranks.
struct Placement {
  enum class Kind : std::uint8_t {
    kBest,        // the best one known
    kAsNumbered,  // each rank is on the node of its number
    kSnake,
    kZOrder,
    kGiven,
  };
  Kind kind = Kind::kBest;
  std::shared_ptr<const topology::Embedding> given = nullptr;  // of kGiven

  bool operator==(const Placement&) const = default;
  // "none", "snake", "z-order" or the embedding's name; empty: kBest.
  [[nodiscard]] std::string name() const;
};

// A number above / below; 0 / 0: not given.
struct Fraction {
  std::uint32_t above = 0, below = 0;

  bool operator==(const Fraction&) const = default;
  [[nodiscard]] bool is_given() const { return below != 0; }
};

// Numbers of 0 are not given. An algorithm takes the parameters that its entry lists.
struct PlanRequest {
  std::shared_ptr<const topology::Topology> topology = {};  // never null
  Collective collective = Collective::kNone;
  const AlgorithmEntry* algorithm = nullptr;  // of the collective; null: a model chooses
  std::uint32_t root = 0;                     // below the number of ranks; 0 where there is none
  std::uint32_t run_length = 0;
  bool has_own_run_length = false;  // the algorithm's own run length, for every message
  std::uint32_t radix = 0;
  Fraction lambda = {};                     // ticks L/S: a send takes S ticks and arrives after L
  Fraction ratio = {};                      // of an alpha-tree, in lowest terms
  std::uint32_t window = 0;                 // steps in flight that the schedule must allow
  bool window_is_limit = false;             // a schedule that allows fewer will do
  bool is_hop_by_hop = false;               // every message crosses one link of the topology
  PortModel ports = PortModel::kMultiport;  // of a hop-by-hop schedule
  bool is_for_hosts = false;                // the tables of programs may be larger than boards'
  Placement placement = {};

  bool operator==(const PlanRequest&) const = default;
};

// "3/2", or "3" for 3/1; empty: not given.
[[nodiscard]] std::string text_of(const Fraction& fraction);
// "4" or "own"; empty: not given.
[[nodiscard]] std::string run_length_text(const PlanRequest& request);
// The name of the candidate that a request with an algorithm is: "fractional, run length 4".
[[nodiscard]] std::string candidate_name(const PlanRequest& request);
// Whether a model chooses (planner/choose): the algorithm, or the run length of one that is named.
[[nodiscard]] bool is_chosen(const PlanRequest& request);

}  // namespace espalier::planner
