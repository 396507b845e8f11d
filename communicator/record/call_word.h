#pragma once
// A call in 64 bits, which travels with the cause of a failure: so both ends of a link on which the
// calls differ can name them. Host only.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "espalier/collectives/machine/operators.h"
#include "espalier/internal/collectives/schedule/collective.h"

namespace espalier::communicator {

// The word of a rank that ends the communicator. 0 is the word of a rank whose call is not known.
inline constexpr std::uint64_t kLeavingWord = 15;

// The call of the program that runs a collective: the collective itself, or another function, which
// errors then name.
enum class Caller : std::uint8_t {
  kProgram,
  kSplit,
  kNeighborCounts,
  // These have no words of their own, because ranks in accept() run collectives with those that
  // join.
  kJoin,
  kRejoin,
  kAccept,
  kLeave,
};
// Returns the name of the function; of kProgram that of the collective.
[[nodiscard]] const char* call_name(Caller caller, Collective collective);

// The fields of a call (espalier/communicator.h) that a word has.
struct WordFields {
  Collective collective = Collective::kNone;
  Type type = Type::kBytes;
  Op op = Op::kNone;
  std::uint32_t root = 0;
  std::uint64_t count = 0;
  std::span<const std::uint64_t> counts = {};
  bool own_counts = false;  // each rank has counts of its own, which may differ
  Caller caller = Caller::kProgram;
};

// Returns the word of a call.
[[nodiscard]] std::uint64_t call_word(const WordFields& call);

// Returns what a rank did: "called allreduce of 50 f32, sum", "called split". Accepts any word
// except 0.
[[nodiscard]] std::string call_text(std::uint64_t word);

// A field in which the calls of two words differ, with both values.
struct WordDifference {
  std::string field, a, b;
};
// Returns the fields that both calls have and that differ. Accepts words of calls.
[[nodiscard]] std::vector<WordDifference> differences(std::uint64_t a, std::uint64_t b);
[[nodiscard]] Collective collective_of_word(std::uint64_t word);
[[nodiscard]] bool has_same_type(std::uint64_t a, std::uint64_t b);

// What a word says of a call, for programs.
struct CallParts {
  std::string collective = {};  // "leave" of kLeavingWord; otherwise call_name()
  std::uint64_t count = 0;      // the largest one that a word has stands for all above
  bool has_counts = false;      // one for each rank; `count` is then of no use
  std::string type = {};
  std::string op = {};     // empty: the collective combines nothing
  std::uint32_t root = 0;  // 0 if the collective has none
};
[[nodiscard]] CallParts parts_of(std::uint64_t word);

// For ranks that know no more than two words: what differs, if these do not show it.
[[nodiscard]] std::string hidden_difference(std::uint64_t a, std::uint64_t b);

}  // namespace espalier::communicator
