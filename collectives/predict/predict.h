#pragma once
// Predicts the time of a schedule, in integer picoseconds. Two predictions:
//
//   by_steps()  the steps one after the other, each as long as its longest message takes: the time
//               in lock step if no link is shared. From the programs' counts, for any size.
//   predict()   the time of nodes that run freely, with shared links, o, gamma and ranks that share
//               processors: a replay (replay.h). Many blocks take as long as a few, plus the time
//               that each further block adds: a schedule repeats itself after some blocks.
//
// Host only.

#include <cstdint>
#include <functional>

#include "collectives/predict/model.h"
#include "collectives/predict/replay.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/topology/topology.h"

namespace espalier::predict {

// Returns the program of `node`; valid until the next call.
using ProgramOf = std::function<const Program&(std::uint32_t node)>;

// The longest message of each step, in segments of one block.
class StepLengths {
 public:
  // Reads the programs of `nodes` nodes. N matters only where it is always 1.
  StepLengths(std::uint32_t nodes, const ProgramOf& program);
  // The sum over all steps of a program whose blocks are cut by `layout`, each step as long as its
  // longest message takes; in the postal model a step is one of the send_ticks of a send. Links
  // with bursts: beta is not charged for one burst of a full pipeline, nor for half a burst per
  // filling step. Without a pipeline every step counts as filling.
  [[nodiscard]] Picoseconds time(const Program& first, const Layout& layout,
                                 const LinkCost& cost) const;

 private:
  std::vector<std::uint32_t> longest_;  // by step; empty: every message has one segment
};

[[nodiscard]] Picoseconds by_steps(std::uint32_t nodes, const ProgramOf& program,
                                   const Layout& layout, const LinkCost& cost);

struct Prediction {
  Picoseconds time = 0;
  // Whether the replay was too long for conditions.max_instances: `time` is by_steps() then.
  bool is_by_steps = false;
};
// Requires a schedule that verifies, and the layout of its programs.
[[nodiscard]] Prediction predict(const topology::Topology& topology, const Programs& programs,
                                 const Layout& layout, const Model& model,
                                 const Conditions& conditions);

}  // namespace espalier::predict
