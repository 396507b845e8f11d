#include "tests/mutation/judge.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "tests/mutation/interpreter.h"

namespace espalier::mutation {
namespace {

verify::Verdict verdict_of(const topology::Topology& topology, const std::vector<Program>& programs,
                           std::int64_t max_blocks = 0) {
  verify::Options options;
  options.max_blocks = max_blocks;
  return verify::verify(
      topology, [&](std::uint32_t node) -> const Program& { return programs[node]; }, options);
}

// The N that the program's block table and residue can give, up to `most`.
std::vector<std::int64_t> possible_blocks(const Program& program, std::int64_t most) {
  bool cuts = false;
  for (std::uint32_t rule = 0; rule < program.blocks_count; ++rule) {
    cuts = cuts || program.blocks[rule].block_bytes != 0;
  }
  std::vector<std::int64_t> possible;
  for (std::int64_t n = 1; n <= most && (cuts || possible.empty()); ++n) {
    if (program.residue_mod == 0 ||
        n % program.residue_mod == program.residue % program.residue_mod) {
      possible.push_back(n);
    }
  }
  return possible;
}

}  // namespace

Schedule make_schedule(const Algorithm& algorithm, std::uint32_t ranks, std::uint32_t root,
                       std::uint32_t window) {
  Schedule schedule;
  schedule.name = std::string(algorithm.name) + " " + collective_name(algorithm.collective) + ", " +
                  std::to_string(ranks) + " ranks, root " + std::to_string(root);
  std::string error;
  schedule.topology = topology::parse("complete:" + std::to_string(ranks), error);
  Group group;
  group.ranks = ranks;
  group.root = root;
  group.window = window;
  group.topology_digest = schedule.topology->digest();
  schedule.programs.resize(ranks);
  for (std::uint32_t me = 0; me < ranks; ++me) {
    const Status status = algorithm.generate(group, me, schedule.programs[me]);
    if (status == Status::kOk) continue;
    if (status != Status::kUnsupported) {
      std::cerr << schedule.name << ": not generated: " << status_name(status) << "\n";
      std::exit(1);
    }
    schedule.programs.clear();
    return schedule;
  }
  const verify::Verdict verdict = verdict_of(*schedule.topology, schedule.programs);
  if (!verdict.valid) {
    std::cerr << schedule.name << ": not valid: " << verdict.counterexample.message << "\n";
    std::exit(1);
  }
  schedule.proven_blocks = verdict.proven_blocks;
  return schedule;
}

Judgement Judge::judge(const Schedule& schedule, std::vector<Program>& mutant,
                       const std::vector<std::uint32_t>& changed) {
  Judgement judgement;
  static thread_local std::vector<std::uint8_t> bytes(2 * kMaxDescriptorBytes);
  for (const std::uint32_t rank : changed) {
    std::size_t size = 0;
    Status status = encode_program(mutant[rank], bytes.data(), bytes.size(), size);
    if (status == Status::kOk) {
      status = decode_program(bytes.data(), size, schedule.topology->digest(), rank, mutant[rank]);
    }
    if (status != Status::kOk) {
      judgement.reason = status_name(status);
      return judgement;
    }
  }
  const verify::Verdict verdict = verdict_of(*schedule.topology, mutant);
  if (!verdict.valid) {
    judgement.fate = Fate::kKilled;
    judgement.reason = verdict.counterexample.message;
    judgement.counterexample = verdict.counterexample;
    return judgement;
  }
  bool new_course = false;
  judgement.reason = interpret_all(schedule, mutant, verdict.proven_blocks, new_course);
  if (new_course && judgement.reason.empty()) {
    // What is valid up to the settling bound must be so beyond it.
    const verify::Verdict beyond =
        verdict_of(*schedule.topology, mutant, 2 * verdict.proven_blocks + 1);
    if (!beyond.valid) judgement.reason = "beyond the bound: " + beyond.counterexample.message;
  }
  judgement.fate = judgement.reason.empty() ? Fate::kEquivalent : Fate::kSurvived;
  return judgement;
}

std::string Judge::interpret_unmutated(const Schedule& schedule, const Play& play) {
  const std::lock_guard<std::mutex> guard(schedule.outcomes->lock);
  const auto [outcome, fresh] = schedule.outcomes->by_blocks.try_emplace(play.blocks);
  if (fresh) outcome->second = run_drifts(play, drifts_);
  ++(fresh ? plays_run_ : plays_known_);
  return outcome->second;
}

std::string Judge::interpret_all(const Schedule& schedule, const std::vector<Program>& mutant,
                                 std::int64_t proven_blocks, bool& new_course) {
  const std::int64_t most = std::max(proven_blocks, schedule.proven_blocks);
  for (const std::int64_t blocks : possible_blocks(mutant[0], most)) {
    const Play play = unroll(mutant, blocks);
    std::string wrong = check_limits(play);
    if (wrong.empty() && same_course(play, unroll(schedule.programs, blocks))) {
      wrong = interpret_unmutated(schedule, play);
    } else if (wrong.empty()) {
      ++plays_run_;
      new_course = true;
      wrong = run_drifts(play, drifts_);
    }
    if (!wrong.empty()) return "N = " + std::to_string(blocks) + ": " + wrong;
  }
  return {};
}

std::string Judge::second_opinion(const std::vector<Program>& mutant,
                                  const verify::Counterexample& counterexample) const {
  if (counterexample.blocks > 0) return interpret(unroll(mutant, counterexample.blocks), drifts_);
  for (const std::int64_t blocks : possible_blocks(mutant[0], 4)) {
    std::string wrong = interpret(unroll(mutant, blocks), drifts_);
    if (!wrong.empty()) return wrong;
  }
  return {};
}

}  // namespace espalier::mutation
