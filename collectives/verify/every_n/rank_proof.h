#pragma once
// The properties that one node alone decides, for every N. Internal to collectives/verify.

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collectives/verify/every_n/port_residues.h"
#include "collectives/verify/every_n/progressions.h"
#include "collectives/verify/every_n/stage_proof.h"
#include "collectives/verify/properties/expanded_schedule.h"

namespace espalier::verify {

// The sources of a node's data, by progression. They are the same for all blocks and every N.
struct RankFlow {
  std::vector<StageProof::Sources> sources;  // by progression
  // By output segment, then block below RankProgressions::blocks_that_differ(): the last
  // progression that writes there; -1: none.
  std::vector<std::int32_t> results;
};

// Renumbers things in the order of their first use.
class FirstUseNames {
 public:
  void reserve(std::size_t things) {
    if (names_.size() < things) names_.resize(things, -1);
  }
  std::int32_t name(std::int32_t thing) {
    std::int32_t& name = names_[static_cast<std::size_t>(thing)];
    if (name < 0) {
      name = static_cast<std::int32_t>(named_.size());
      named_.push_back(thing);
    }
    return name;
  }
  [[nodiscard]] const std::vector<std::int32_t>& named() const { return named_; }
  void clear() {
    for (const std::int32_t thing : named_) names_[static_cast<std::size_t>(thing)] = -1;
    named_.clear();
  }

 private:
  std::vector<std::int32_t> names_;  // by thing; -1: none yet
  std::vector<std::int32_t> named_;  // by name
};

// Proves each node alone: ports, hazards, and that each operand comes from the same progression for
// every N. A stage whose form was proven before is not proven again (stage_proof.h).
class RankProofs {
 public:
  // `schedule`: topology and common are set, and instances has an element per node; the rest is
  // working memory. Adds the numbers of instances and checks to `verdict`, and clears its in_place
  // if input and output may not be the same memory.
  RankProofs(ExpandedSchedule& schedule, Verdict& verdict)
      : schedule_(schedule), verdict_(verdict), ports_(*schedule.topology) {}

  // Proves the program of `node`. `flow` becomes null unless that passes.
  [[nodiscard]] ProofResult prove(std::uint32_t node, const Program& program,
                                  const RankProgressions& ranks, const RankFlow*& flow);
  // Expands the smallest N >= wrong_from.blocks that occurs, and returns its counterexample.
  // Undecided, with the reason `otherwise`, if that N has no error or is too large to expand.
  [[nodiscard]] ProofResult expand_wrong(std::uint32_t node, const Program& program,
                                         WrongFrom wrong_from, const std::string& otherwise);

  [[nodiscard]] std::int64_t max_blocks() const { return max_blocks_; }  // N* of all ranks
  // The busiest link in relation to its capacity, if all messages go to neighbours.
  [[nodiscard]] const LinkLoad& busiest() const { return ports_.busiest(); }

 private:
  // The state of a block of the node's output.
  struct Result {
    std::int32_t by = -1;     // the progression that wrote it last; -1: none
    std::int64_t step = 0;    // of its stage, in which it was written last
    std::int32_t stage = -1;  // the stage in which it was written last
    bool changed = false;     // by anything except a copy of the same block of INPUT
  };
  // The time of a use in a stage: first step, and position in time order.
  using Time = std::pair<std::int64_t, std::size_t>;
  struct BlockTimes {
    Time last_read{-1, 0}, first_change{INT64_MAX, 0};
    std::int64_t first_receive = INT64_MAX;
  };
  [[nodiscard]] ProofResult prove_stage_of(std::uint32_t node, const Program& program,
                                           const RankProgressions& ranks, std::size_t stage);
  [[nodiscard]] const StageProof& proof_of_form();
  void make_form(const Program& program, const RankProgressions& ranks, std::size_t stage);
  void make_places(const Program& program, const RankProgressions& ranks, std::size_t begin,
                   std::size_t end);
  void name_links(const RankProgressions& ranks, std::size_t begin);
  [[nodiscard]] FormOperand form_operand(bool present, const Operand& operand, std::int32_t segment,
                                         std::int32_t slot);
  void add_sources(const RankProgressions& ranks, std::size_t stage, const StageProof& proof);
  void add_results(const Program& program, const RankProgressions& ranks, std::size_t stage);
  [[nodiscard]] bool is_in_place(const Program& program, const RankProgressions& ranks,
                                 std::size_t stage);

  ExpandedSchedule& schedule_;
  Verdict& verdict_;
  PortResidues ports_;
  std::unordered_map<std::string, StageProof> proofs_;  // by stage_key()
  std::size_t kept_bytes_ = 0;                          // of the keys and sources of proofs_
  StageProof alone_;                                    // the latest proof that is not kept
  StageForm form_;
  RankFlow flow_;
  std::vector<Result> results_;    // of the current node, indexed as RankFlow::results
  std::vector<BlockTimes> times_;  // scratch of is_in_place()
  FirstUseNames segments_, inputs_, outputs_, links_;  // in the form
  std::int64_t max_blocks_ = 1;
};

}  // namespace espalier::verify
