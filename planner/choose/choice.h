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
  std::vector<Estimate> estimates = {};

  [[nodiscard]] const Estimate& best() const { return estimates.front(); }
};

class Choice {
 public:
  // Error: every candidate is dropped.
  [[nodiscard]] static Result<Choice> make(ChoiceRequest request);

  [[nodiscard]] const ChoiceRequest& request() const { return request_; }
  [[nodiscard]] const std::vector<Candidate>& candidates() const { return candidates_; }
  // Ranks the candidates for a message of `bytes` (of one rank's part, where counts are per rank).
  // Candidates that by their steps take more than twice as long as the best are not replayed,
  // unless `all`. Error: no schedule takes a message of this size.
  [[nodiscard]] Result<Ranking> rank(std::uint64_t bytes, bool all = false) const;
  // What is predicted of one candidate. Errors: as rank().
  [[nodiscard]] Result<Estimate> predict(std::size_t candidate, std::uint64_t bytes) const;
  // What the model knows of runs of these candidates; null: nothing.
  [[nodiscard]] const predict::Tuning* tuning() const {
    return tuning_of(request_.model, request_.plan);
  }
  // The schedule of a candidate.
  [[nodiscard]] const PlannedSchedule& schedule(const Estimate& estimate) const {
    return *candidates_.at(estimate.candidate).schedule;
  }
  // Moves it out; the candidate must not be used any more.
  [[nodiscard]] PlannedSchedule take(std::size_t candidate) {
    return std::move(*candidates_.at(candidate).schedule);
  }

 private:
  explicit Choice(ChoiceRequest request);
  [[nodiscard]] Error error() const;
  // With the layout of the message.
  [[nodiscard]] Estimate estimate(std::size_t number, const Layout& layout) const;
  void replay(const Layout& layout, Estimate& estimate) const;
  [[nodiscard]] predict::Picoseconds crowded(const Candidate& candidate, const Layout& layout,
                                             predict::Picoseconds time) const;
  // Ranks per processor.
  [[nodiscard]] std::uint32_t sharing(const topology::Topology& topology) const;
  [[nodiscard]] predict::Picoseconds bound_of(const Candidate& candidate,
                                              std::uint64_t bytes) const;
  [[nodiscard]] Result<Layout> layout_for(std::size_t candidate, std::uint64_t bytes) const;
  // Makes the predicted times those of runs, if the model is tuned.
  void tune(std::uint64_t bytes, std::span<Estimate> estimates) const;

  ChoiceRequest request_;
  std::vector<Candidate> candidates_;
};

}  // namespace espalier::planner
