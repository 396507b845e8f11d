#pragma once
// Hazards and sources of data inside one stage of one node, for every N. Internal to
// collectives/verify. The proof is in docs/verifier.md, "Inside a stage".

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectives/verify/every_n/progressions.h"
#include "collectives/verify/properties/proof_result.h"

namespace espalier::verify {

// The form of a stage: everything that its proof reads. The proof is given no program, node or
// topology, so one proof holds for all stages with equal forms. stage_key() contains every field of
// these structs; a field that it leaves out does not compile.
struct FormOperand {
  Buffer buffer = Buffer::kNone;
  // INPUT, OUTPUT: number of the segment, by first use in that buffer. SCRATCH: the slot of the
  // first block.
  std::int32_t index = 0;
};
struct FormProgression {
  std::int64_t first = 0;  // steps after the earliest step of the stage
  std::int32_t block = 0;
  // Number of the link, by first use; -1: none, or left out. A proof without links counts fewer
  // events as certain, so it holds with links too, and more forms are equal.
  std::int32_t link = -1;
  std::int32_t segment = 0;  // number of the segment, by first use; always 0 in an all-to-all
  std::uint16_t after = 0;
  ActionKind kind = ActionKind::kNone;
  bool once = false;  // as Progression::once
  FormOperand into, a, b;
};
struct StageForm {
  std::uint32_t window = 1;
  std::int64_t stride = 1, period = 1, head = 0;
  std::int64_t residue_mod = 0, residue = 0;  // of N
  bool single = false;                  // only N = stride occurs: every progression is one instance
  bool slots_before = false;            // whether an earlier phase used slots
  std::int32_t outputs = 0, links = 0;  // numbers in use
  std::vector<std::int32_t> next_slot;  // as RankProgressions::next_slot
  std::int32_t slots = 0;               // one more than the highest slot
  std::vector<std::uint8_t> written;    // OUTPUT, by earlier phases: segment * stride + block
  std::vector<FormProgression> all;     // in time order
};
[[nodiscard]] std::string stage_key(const StageForm& form);

// The source of an operand: the position of a progression of the stage, or one of these.
inline constexpr std::int32_t kFromInput = -1;    // the rank's own input
inline constexpr std::int32_t kFromEarlier = -2;  // OUTPUT as written by an earlier phase
inline constexpr std::int32_t kUnknownSource = -3;

struct StageProof {
  struct Sources {
    std::int32_t a = kUnknownSource, b = kUnknownSource;
  };
  std::vector<Sources> sources;            // by progression
  std::int64_t max_blocks = 1;             // N*: everything holds for N = 1 .. N*
  std::int64_t instances = 0, checks = 0;  // events, and accesses to places
  // At most one of the following is set. Without any, the stage is proven.
  std::int64_t wrong_at = 0;  // above 0: an access fails for this N
  std::optional<Undecided> undecided;
  bool too_large = false;  // the proof would take more than max_events
};
// Proves a stage for every N. Runs at most `max_events` events.
[[nodiscard]] StageProof prove_stage(const StageForm& form, std::int64_t max_events);

}  // namespace espalier::verify
