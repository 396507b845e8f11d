#pragma once
// Choosing an algorithm by predictions: `--algorithm auto`, and the table of `espalier explain`.
// Host only.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "planner/choose/candidates.h"

namespace espalier::planner {

// What is predicted of one candidate for one size.
struct Estimate {
  std::size_t candidate = 0;  // number among the candidates
  std::int64_t blocks = 0;    // N
  std::int64_t steps = 0;
  predict::Picoseconds time = 0;
  bool is_by_steps = false;  // `time` is that of lock step, without contention: it was not replayed
};

// The candidates for one size, the fastest first.
struct Ranking {
  std::uint64_t bytes = 0;
  predict::Picoseconds bound = 0;  // no candidate can be faster; 0: none is known
  std::vector<Estimate> estimates;

  [[nodiscard]] const Estimate& best() const { return estimates.front(); }
};

class Choice {
 public:
  // Throws Failure (bad input): the request is wrong, or every candidate is dropped.
  explicit Choice(ChoiceRequest request);

  [[nodiscard]] const ChoiceRequest& request() const { return request_; }
  [[nodiscard]] const std::vector<Candidate>& candidates() const { return candidates_; }
  // Ranks the candidates for a message of `bytes` (of one rank's part, where counts are per rank).
  // Candidates that by their steps take more than twice as long as the best are not replayed,
  // unless `all`. Throws Failure (bad input) if no schedule takes a message of this size.
  [[nodiscard]] Ranking rank(std::uint64_t bytes, bool all = false) const;
  // What is predicted of one candidate. Throws as rank().
  [[nodiscard]] Estimate predict(std::size_t candidate, std::uint64_t bytes) const;
  [[nodiscard]] const Operator& op() const { return op_; }
  // What the model knows of runs of these candidates; null: nothing.
  [[nodiscard]] const predict::Tuning* tuning() const {
    return tuning_of(request_.model, request_.selection);
  }
  // The schedule of a candidate.
  [[nodiscard]] const SelectedAlgorithm& selected(const Estimate& estimate) const {
    return *candidates_.at(estimate.candidate).selected;
  }
  // Moves it out; the candidate must not be used any more.
  [[nodiscard]] SelectedAlgorithm take(const Estimate& estimate) {
    return std::move(*candidates_.at(estimate.candidate).selected);
  }

 private:
  [[nodiscard]] Estimate estimate(std::size_t number, std::uint64_t bytes) const;
  void replay(const Layout& layout, Estimate& estimate) const;
  [[nodiscard]] predict::Picoseconds crowded(const Candidate& candidate, const Layout& layout,
                                             predict::Picoseconds time) const;
  // Ranks per processor.
  [[nodiscard]] std::uint32_t sharing(const topology::Topology& topology) const;
  [[nodiscard]] predict::Picoseconds bound_of(const Candidate& candidate,
                                              std::uint64_t bytes) const;
  [[nodiscard]] Layout layout_for(const Candidate& candidate, std::uint64_t bytes) const;
  // Makes the predicted times those of runs, if the model is tuned.
  void tune(std::uint64_t bytes, std::span<Estimate> estimates) const;

  ChoiceRequest request_;
  Operator op_;
  std::vector<Candidate> candidates_;
};

}  // namespace espalier::planner
