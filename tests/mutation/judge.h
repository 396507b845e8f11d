#pragma once
// What becomes of a mutant (design: section 9, the verifier's judge).

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "collectives/algorithms/algorithms.h"
#include "collectives/verify/verify.h"

namespace espalier::mutation {

// A valid schedule whose mutants are judged.
struct Schedule {
  std::string name;  // "two-tree reduce, 7 ranks, root 1"
  std::unique_ptr<topology::Topology> topology;
  std::vector<Program> programs;
  std::int64_t proven_blocks = 0;
};
// Empty `programs` where the algorithm cannot do the group; ends the process where the verifier
// refuses it.
[[nodiscard]] Schedule make_schedule(const Algorithm& algorithm, std::uint32_t ranks,
                                     std::uint32_t root, std::uint32_t window);

enum class Fate {
  kRefused,     // by the loader: encode_program or decode_program
  kKilled,      // by the verifier
  kEquivalent,  // passed, and the interpreter finds it right
  kSurvived,    // passed, and the interpreter finds it wrong
};

struct Judgement {
  Fate fate = Fate::kRefused;
  std::string reason;  // the counterexample's line, or the interpreter's
  verify::Counterexample counterexample;
};

class Judge {
 public:
  explicit Judge(std::uint32_t drifts) : drifts_(drifts) {}
  // `mutant`: all ranks' programs, those of `changed` ranks mutated.
  [[nodiscard]] Judgement judge(const Schedule& schedule, std::vector<Program>& mutant,
                                const std::vector<std::uint32_t>& changed);
  // What the interpreter says of a killed mutant, at the N where the verifier saw it fail; empty:
  // it finds nothing wrong.
  [[nodiscard]] std::string second_opinion(const std::vector<Program>& mutant,
                                           const verify::Counterexample& counterexample) const;
  // Plays run by the interpreter; those that are move for move the unmutated schedule's, whose
  // outcome is known, are not run again.
  [[nodiscard]] std::uint64_t plays_run() const { return plays_run_; }
  [[nodiscard]] std::uint64_t plays_known() const { return plays_known_; }

 private:
  [[nodiscard]] std::string interpret_all(const Schedule& schedule,
                                          const std::vector<Program>& mutant,
                                          std::int64_t proven_blocks);
  std::uint32_t drifts_;
  std::uint64_t plays_run_ = 0, plays_known_ = 0;
  // The unmutated schedule's own outcomes, by N.
  const Schedule* known_of_ = nullptr;
  std::map<std::int64_t, std::string> known_;
};

}  // namespace espalier::mutation
