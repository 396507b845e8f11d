#include "tests/mutation/judge.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "base/testing/results.h"
#include "collectives/verify/testing/verdict_of.h"
#include "tests/mutation/interpreter.h"

namespace espalier::mutation {
namespace {

verify::Verdict verdict_of(const Schedule& schedule, const Programs& programs,
                           std::int64_t max_blocks = 0) {
  return verify::verdict_of(*schedule.topology, programs,
                            {.links = schedule.links, .max_blocks = max_blocks});
}

// Empty if no link of the topology carries more than it can in any step of a lock-step run.
std::string check_loads(const topology::Topology& topology, const Play& play) {
  using Link = std::pair<std::uint32_t, std::uint32_t>;
  std::map<Link, std::uint32_t> capacities;
  for (const topology::Link& link : topology.links()) {
    capacities[{link.from, link.to}] = link.capacity;
  }
  std::map<std::pair<std::int64_t, Link>, std::uint32_t> loads;
  const auto ticks = static_cast<std::size_t>(play.send_ticks);
  for (std::uint32_t me = 0; me < play.parts.size(); ++me) {
    for (const Move& move : play.parts[me].moves) {
      if (move.kind != ActionKind::kSend) continue;
      const auto nodes = topology.route(me, static_cast<std::uint32_t>(move.peer));
      for (std::size_t i = 0; i < (nodes.size() - 1) * ticks; ++i) {
        const std::size_t hop = i / ticks;
        const std::int64_t step = move.step + static_cast<std::int64_t>(i % ticks);
        const Link link{nodes[hop], nodes[hop + 1]};
        if (++loads[{step, link}] <= capacities[link]) continue;
        return "the link from node " + std::to_string(link.first) + " to node " +
               std::to_string(link.second) + " is overloaded in step " + std::to_string(step);
      }
    }
  }
  return {};
}

// The N that the block table and residue of the program can give, up to `most`.
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

std::string Schedule::family() const {
  const std::string spec = topology->spec();
  return spec.substr(0, spec.find(':')) + (links ? "" : ", routed run");
}

Schedule make_schedule(const std::string& spec, Made made) {
  Schedule schedule{.name = std::move(made.name),
                    .topology = or_throw(topology::parse(spec)),
                    .programs = std::move(made.programs)};
  verify::Verdict verdict = verdict_of(schedule, schedule.programs);
  if (!verdict.valid && verdict.counterexample.property == verify::Property::kLinks) {
    schedule.links = false;
    verdict = verdict_of(schedule, schedule.programs);
  }
  if (!verdict.valid) {
    std::cerr << schedule.name << ": not valid: " << verdict.counterexample.message << "\n";
    std::exit(1);
  }
  schedule.proven_blocks = verdict.proven_blocks;
  return schedule;
}

Judgement Judge::judge(const Schedule& schedule, Programs& mutant,
                       const std::vector<std::uint32_t>& changed) {
  Judgement judgement;
  static thread_local std::vector<std::uint8_t> bytes(2 * kMaxDescriptorBytes);
  for (const std::uint32_t rank : changed) {
    std::size_t size = 0;
    Status status = encode_program(mutant[rank], bytes.data(), bytes.size(), size);
    if (status == Status::kOk) {
      static thread_local DecodedProgram decoded;
      status = decode_program(bytes.data(), size, schedule.topology->digest(), rank, decoded);
      mutant[rank] = decoded;
    }
    if (status != Status::kOk) {
      judgement.reason = status_name(status);
      return judgement;
    }
  }
  const verify::Verdict verdict = verdict_of(schedule, mutant);
  if (!verdict.valid) {
    judgement.fate = Fate::kKilled;
    judgement.reason = verdict.counterexample.message;
    judgement.counterexample = verdict.counterexample;
    return judgement;
  }
  bool new_course = false;
  judgement.reason = interpret_all(schedule, mutant, verdict.proven_blocks, new_course);
  if (new_course && judgement.reason.empty()) {
    // A mutant that is valid up to the settling bound must be valid beyond it.
    const verify::Verdict beyond = verdict_of(schedule, mutant, 2 * verdict.proven_blocks + 1);
    if (!beyond.valid) judgement.reason = "beyond the bound: " + beyond.counterexample.message;
  }
  judgement.fate = judgement.reason.empty() ? Fate::kEquivalent : Fate::kSurvived;
  return judgement;
}

std::string Judge::interpret_unmutated(const Schedule& schedule, const Play& play) {
  const std::lock_guard<std::mutex> guard(schedule.outcomes->lock);
  const auto [outcome, fresh] = schedule.outcomes->by_blocks.try_emplace(play.blocks);
  if (fresh) outcome->second = run_skews(play, skews_);
  ++(fresh ? plays_run_ : plays_known_);
  return outcome->second;
}

std::string Judge::interpret_all(const Schedule& schedule, const Programs& mutant,
                                 std::int64_t proven_blocks, bool& new_course) {
  const std::int64_t most = std::max(proven_blocks, schedule.proven_blocks);
  for (const std::int64_t blocks : possible_blocks(mutant[0], most)) {
    const Play play = unroll(*schedule.topology, mutant, blocks);
    std::string wrong = check_limits(play);
    if (wrong.empty() && schedule.links) wrong = check_loads(*schedule.topology, play);
    if (wrong.empty() && same_course(play, unroll(*schedule.topology, schedule.programs, blocks))) {
      wrong = interpret_unmutated(schedule, play);
    } else if (wrong.empty()) {
      ++plays_run_;
      new_course = true;
      wrong = run_skews(play, skews_);
    }
    if (!wrong.empty()) return "N = " + std::to_string(blocks) + ": " + wrong;
  }
  return {};
}

std::string Judge::second_opinion(const Schedule& schedule, const Programs& mutant,
                                  const verify::Counterexample& counterexample) const {
  std::vector<std::int64_t> tried{counterexample.blocks};
  if (counterexample.blocks <= 0) tried = possible_blocks(mutant[0], 4);
  for (const std::int64_t blocks : tried) {
    const Play play = unroll(*schedule.topology, mutant, blocks);
    std::string wrong = check_limits(play);
    if (wrong.empty() && schedule.links) wrong = check_loads(*schedule.topology, play);
    if (wrong.empty()) wrong = run_skews(play, skews_);
    if (!wrong.empty()) return wrong;
  }
  return {};
}

}  // namespace espalier::mutation
