#pragma once
// A random collective that is correct by construction: its messages and operations, the steps of
// each, and the places of their blocks. How a program expresses them is encode.h's part.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "espalier/collectives/schedule/program.h"
#include "espalier/topology/topology.h"
#include "tests/contention/dice.h"

namespace espalier::random {

using contention::Dice;

// Slots of a node's scratch: round k of a progression uses `width` slots, beginning with base +
// width * (k mod turns).
struct Ring {
  std::int64_t base = 0, width = 1, turns = 1;
};

struct Spot {
  Buffer buffer = Buffer::kNone;
  std::uint32_t segment = 0;
  std::int32_t ring = -1;  // SCRATCH: position in NodePlan.rings
  std::uint32_t slot = 0;  // SCRATCH: of the ring's width
};

// One end of a stream of messages, or a stream of operations: round k moves block
// `block` + stride * k in step first + pace * k of its stage.
struct Progression {
  ActionKind kind = ActionKind::kNone;
  std::uint32_t stage = 0;
  std::int64_t first = 0;
  std::uint32_t block = 0;    // below the stage's stride
  std::uint32_t peer = 0;     // SEND, RECEIVE
  std::uint32_t message = 0;  // SEND, RECEIVE: the same number at both ends
  std::uint32_t after = 0, segment_count = 1;
  Spot into, a, b;
};

// Stages of a phase follow one another: no step of a stage comes before the last step of the stages
// before it.
struct Stage {
  std::uint32_t phase = 0;
  std::int64_t stride = 1, pace = 1;  // blocks and steps of a round
  Count start{};                      // step of the phase from which `first` counts
};

struct NodePlan {
  std::vector<Progression> all;
  std::vector<Ring> rings;
  std::uint32_t scratch = 0;  // slots
  std::uint32_t taken = 0;    // of these in the current phase
};

struct Plan {
  std::unique_ptr<topology::Topology> topology;
  bool links = true;      // whether the topology's links carry it; otherwise a routed run
  bool pipelined = true;  // otherwise N = 1
  Collective collective = Collective::kNone;
  PortModel ports = PortModel::kOnePortDuplex;
  ContentionGuarantee contention = ContentionGuarantee::kSlot;
  bool needs_commutative = false;
  bool regular = false;  // a chain whose inner nodes do the same, if it can be
  std::uint32_t root = 0, segments = 1, window = 1, send_ticks = 1, latency_ticks = 1;
  std::uint32_t residue_mod = 0, residue = 0;
  std::vector<Stage> stages;
  std::vector<Count> phase_steps;  // by phase
  Count steps{};
  std::vector<NodePlan> nodes;
};

// Whether the plan's block table and residue allow N = blocks.
[[nodiscard]] bool allows(const Plan& plan, std::int64_t blocks);
// A count with values[N-1] for each N = 1, 2, ... that `wanted[N-1]` names: linear in N, or with
// one divisor up to `divisor`. Nothing if there is none.
[[nodiscard]] std::optional<Count> fit_count(const std::vector<std::int64_t>& values,
                                             const std::vector<bool>& wanted, std::int64_t divisor);

// Nothing if the dice lead to no schedule: throw them again.
[[nodiscard]] std::optional<Plan> make_plan(Dice& dice);

}  // namespace espalier::random
