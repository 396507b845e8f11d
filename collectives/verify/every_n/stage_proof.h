#pragma once
// What one stage of one node decides alone, for every N: hazards, and where its data comes from.
// Internal to collectives/verify. The argument is in docs/verifier.md, "For every N".

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "collectives/verify/every_n/progressions.h"
#include "collectives/verify/report/proof_result.h"

namespace espalier::verify {

// Everything that the proof of a stage reads, and nothing else: it is given no program, node or
// topology. So stages with equal forms are equal to the proof, and one proof holds for all of them.
// stage_key() compares every field of these structs; one that it leaves out does not compile.
struct FormPlace {
  Buffer buffer = espalier_Buffer_BUFFER_NONE;
  // INPUT, OUTPUT: the segment's name, by its first use in that buffer; SCRATCH: the slot of the
  // first block.
  std::int32_t index = 0;
};
struct FormProgression {
  std::int64_t first = 0;  // steps after the stage's earliest
  std::int32_t block = 0;
  // Links are named by their first use; -1: none, or left out. A proof without links knows less of
  // what is certain, so it holds with them too, and more forms are equal.
  std::int32_t link = -1;
  std::int32_t segment = 0;  // segments are named by their first use; in an all-to-all always 0
  std::uint16_t after = 0;
  Kind kind = espalier_Kind_KIND_NONE;
  FormPlace into, a, b;
};
struct StageForm {
  std::uint32_t window = 1;
  std::int64_t stride = 1, period = 1;
  std::int64_t residue_mod = 0, residue = 0;  // of N
  bool single = false;                        // only N = stride: every progression is one instance
  bool slots_before = false;                  // an earlier phase used slots
  std::int32_t outputs = 0, links = 0;        // names in use
  std::vector<std::int32_t> next_slot;        // as RankProgressions::next_slot
  std::int32_t slots = 0;                     // one more than the highest slot
  std::vector<std::uint8_t> written;          // OUTPUT, by earlier phases: segment * stride + block
  std::vector<FormProgression> all;           // in time order
};
[[nodiscard]] std::string stage_key(const StageForm& form);

// Where an operand's data comes from: a progression of the stage, or one of these.
inline constexpr std::int32_t kFromInput = -1;    // the rank's own input
inline constexpr std::int32_t kFromEarlier = -2;  // OUTPUT as an earlier phase left it
inline constexpr std::int32_t kUnknownSource = -3;

struct StageProof {
  struct Sources {
    std::int32_t a = kUnknownSource, b = kUnknownSource;
  };
  std::vector<Sources> sources;            // by progression
  std::int64_t max_blocks = 1;             // N*: everything holds for N = 1 .. N*
  std::int64_t instances = 0, checks = 0;  // events, and accesses to places
  // What is not proven. At most one of these:
  std::int64_t wrong_at = 0;  // above 0: a hazard, or wrong data, for this N
  std::optional<Undecided> undecided;
  bool too_large = false;  // it takes more events than allowed
};
// Takes at most `max_events` events.
[[nodiscard]] StageProof prove_stage(const StageForm& form, std::int64_t max_events);

}  // namespace espalier::verify
