#pragma once
// Choosing for all sizes of messages: the rows of a selection. Host only.

#include <cstdint>
#include <map>
#include <vector>

#include "planner/choose/choice.h"

namespace espalier::planner {

// From from_bytes on, messages are served by a candidate.
struct SizeRow {
  std::uint64_t from_bytes = 0;
  std::size_t candidate = 0;  // number among the choice's candidates
};

// The sizes from an element to `most` bytes, ranked where candidates change: powers of 16, and
// between two of them whose best candidates differ their middles, down to powers of two.
class Sizes {
 public:
  // `choice` must outlive this object. Errors: as Choice::rank().
  [[nodiscard]] static Result<Sizes> make(const Choice& choice, std::uint64_t most);

  // The fewest rows such that at each ranked size the prediction of the row's candidate is at most
  // `percent` % above the best. Between two rows the crossover is found by bisection, to 1/32 of
  // the size. Ascending from 0. Errors: as Choice::rank().
  [[nodiscard]] Result<std::vector<SizeRow>> rows(std::uint64_t percent) const;

 private:
  // Predictions by candidate; those that were not predicted are kMaxPrediction.
  using Times = std::vector<predict::Picoseconds>;
  explicit Sizes(const Choice& choice);
  [[nodiscard]] Result<void> rank(unsigned power);
  [[nodiscard]] Result<void> refine(unsigned low, unsigned high);
  [[nodiscard]] std::uint64_t bytes_of(unsigned power) const;
  [[nodiscard]] Result<std::uint64_t> crossover(std::size_t from, std::size_t to, std::uint64_t low,
                                                std::uint64_t high) const;

  const Choice* choice_;
  std::uint64_t element_;
  std::map<unsigned, Times> times_;          // by the size's power of two
  std::map<unsigned, std::size_t> best_of_;  // candidate
};

}  // namespace espalier::planner
