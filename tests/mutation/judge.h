#pragma once
// The judge of the verifier: determines each mutant's fate.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "espalier/collectives/schedule/programs.h"
#include "espalier/collectives/verify/verify.h"
#include "tests/mutation/interpreter.h"
#include "tests/mutation/schedules.h"

namespace espalier::mutation {

// A valid schedule whose mutants are judged.
struct Schedule {
  std::string name;  // "two-tree reduce, mesh:1x7, root 1"
  std::unique_ptr<topology::Topology> topology;
  Programs programs;
  // "mesh"; of a routed run: "mesh, routed run".
  [[nodiscard]] std::string family() const;
  // Whether the topology's own links carry it; otherwise it is a routed run, for a fabric that
  // routes.
  bool links = true;
  std::int64_t proven_blocks = 0;
  // The interpreter's result for the unmutated schedule, by N; filled on demand, by one thread at a
  // time.
  struct Outcomes {
    std::mutex lock;
    std::map<std::int64_t, std::string> by_blocks;
  };
  std::unique_ptr<Outcomes> outcomes = std::make_unique<Outcomes>();
};
// Ends the process if the verifier refuses it.
[[nodiscard]] Schedule make_schedule(const std::string& spec, Made made);

enum class Fate {
  kRefused,     // by the loader: encode_program or decode_program
  kKilled,      // by the verifier
  kEquivalent,  // passed, and the interpreter finds it right
  kSurvived,    // passed, and the interpreter finds it wrong, or it is invalid beyond the bound
};

struct Judgement {
  Fate fate = Fate::kRefused;
  std::string reason;  // line of the counterexample, or of the interpreter
  verify::Counterexample counterexample;
};

class Judge {
 public:
  // Every play is run in lock step and under `skews` seeded timing skews.
  explicit Judge(std::uint32_t skews) : skews_(skews) {}
  // `mutant`: the programs of all nodes; the programs of `changed` are mutated.
  [[nodiscard]] Judgement judge(const Schedule& schedule, Programs& mutant,
                                const std::vector<std::uint32_t>& changed);
  // The interpreter's result for a killed mutant, at the N where the verifier saw it fail; empty if
  // the interpreter finds nothing wrong.
  [[nodiscard]] std::string second_opinion(const Schedule& schedule, const Programs& mutant,
                                           const verify::Counterexample& counterexample) const;
  // Plays run by the interpreter. A play that equals the unmutated schedule's move for move has a
  // known outcome and is not run again.
  [[nodiscard]] std::uint64_t plays_run() const { return plays_run_; }
  [[nodiscard]] std::uint64_t plays_known() const { return plays_known_; }

 private:
  [[nodiscard]] std::string interpret_all(const Schedule& schedule, const Programs& mutant,
                                          std::int64_t proven_blocks, bool& new_course);
  [[nodiscard]] std::string interpret_unmutated(const Schedule& schedule, const Play& play);
  std::uint32_t skews_;
  std::uint64_t plays_run_ = 0, plays_known_ = 0;
};

}  // namespace espalier::mutation
