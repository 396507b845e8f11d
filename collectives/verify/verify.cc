// How far the exhaustive check goes: every N from 1 to settling_bound(); beyond it proves nothing.
//
// The bound is chosen so that what can happen does happen below it. A program repeats every
// `period` steps. With N so large that ramp-up and drain are further apart than the first steps of
// its actions are, plus what a window and `after` can reach, a node sees one whole undisturbed
// period; from then on more blocks add more periods of the same. What depends on N otherwise
// (segments, links and slots that change with the instance, the divisors of counts, the residue)
// repeats after so many blocks, of which one round more is checked.

#include "espalier/collectives/verify/verify.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "collectives/verify/check.h"
#include "collectives/verify/flow.h"
#include "collectives/verify/periodic.h"
#include "collectives/verify/repeat.h"
#include "collectives/verify/waits.h"
#include "espalier/base/arithmetic.h"

namespace espalier::verify {
namespace {

constexpr std::int64_t kMostRounds = 256;   // of divisors; no schedule here comes near
constexpr std::int64_t kMostBlocks = 4096;  // however odd the descriptor

void join(std::int64_t& rounds, std::uint64_t divisor) {
  if (divisor == 0) return;
  const std::int64_t joined = std::lcm(rounds, static_cast<std::int64_t>(divisor));
  rounds = std::min(joined, kMostRounds);
}

// Blocks after which all that an action names besides blocks is the same again.
void join_action(std::int64_t& rounds, const Program& program, const Action& action) {
  const bool send = action.kind == espalier_Kind_SEND;
  const auto of = [&](std::uint32_t ref) { return repeat_of(program, program.indices[ref]); };
  const Repeat block = of((send ? action.a : action.into).block_ref);
  std::int64_t every = block.every;
  const auto with = [&](bool present, std::uint32_t ref) {
    if (present) every = common_every(every, of(ref).every);
  };
  with(action.kind == espalier_Kind_SEND || action.kind == espalier_Kind_RECEIVE, action.link_ref);
  with(action.pace_ref != 0, action.pace_ref);
  for (const auto& [present, place] :
       {std::pair(action.has_into, &action.into), std::pair(action.has_a, &action.a),
        std::pair(action.has_b, &action.b)}) {
    with(present, place->segment_ref);
    with(present && place->buffer == espalier_Buffer_SCRATCH, place->slot_ref);
  }
  if (every == 0 || block.add <= 0) {
    rounds = kMostRounds;  // it cannot be told
  } else {
    join(rounds, static_cast<std::uint64_t>(every / block.every * block.add));
  }
}

std::int64_t divisor_rounds(const Program& program) {
  std::int64_t rounds = 1;
  join(rounds, program.residue_mod);
  for (std::uint32_t k = 0; k < program.counts_count; ++k) {
    if (program.counts[k].c != 0) join(rounds, program.counts[k].e);
  }
  for (std::uint32_t k = 0; k < program.actions_count; ++k) {
    join_action(rounds, program, program.actions[k]);
  }
  return rounds;
}

// Blocks of a segment in a period, rounded up: more than one where instances skip blocks.
std::int64_t blocks_a_period(const Program& program) {
  std::int64_t most = 1;
  for (std::uint32_t k = 0; k < program.actions_count; ++k) {
    const Action& action = program.actions[k];
    const bool send = action.kind == espalier_Kind_SEND;
    const Repeat block =
        repeat_of(program, program.indices[(send ? action.a : action.into).block_ref]);
    if (block.every > 0) most = std::max(most, (block.add + block.every - 1) / block.every);
  }
  return std::min(most, kMostRounds);
}

// Keeps products of what a descriptor says inside 64 bits; nothing real is cut.
std::int64_t cut(std::int64_t value) {
  constexpr std::int64_t kMost = std::int64_t{1} << 24;
  return std::clamp(value, -kMost, kMost);
}

// Steps that ramp-up, drain, window and dependencies of one phase reach over.
std::int64_t reach(const Program& program, std::uint32_t phase, std::uint32_t first_action) {
  const std::int64_t period = program.phases[phase].period;
  std::int64_t earliest = 0, latest = 0, after = 0;
  for (std::uint32_t k = 0; k < program.phases[phase].actions; ++k) {
    const Action& action = program.actions[first_action + k];
    const Place& place = action.kind == espalier_Kind_SEND ? action.a : action.into;
    // A block index that begins below 0 delays its first instance, one that begins above it means
    // that some came before.
    // Far below 0 are instances that are not meant to be.
    std::int64_t block = index_value(program, place.block_ref, 0);
    if (std::abs(block) > kMostBlocks) block = 0;
    const std::int64_t begin =
        cut(count_value(program.counts[action.t0_ref], 1)) - cut(period) * block;
    earliest = k == 0 ? begin : std::min(earliest, begin);
    latest = k == 0 ? begin : std::max(latest, begin);
    // Whatever is further back than the window has retired.
    after = std::max<std::int64_t>(after, std::min<std::uint32_t>(action.after, program.window));
  }
  return latest - earliest + 2 * std::int64_t{program.window} + after;
}

}  // namespace

void set_blocks(Case& at, std::int64_t blocks) {
  at.blocks = blocks;
  at.held = 0;
  at.phase_first.assign(1, 0);
  for (std::uint32_t phase = 0; phase < at.common->phases_count; ++phase) {
    const Count& steps = at.common->counts[at.common->phases[phase].steps_ref];
    at.phase_first.push_back(at.phase_first.back() +
                             std::max<std::int64_t>(0, count_value(steps, blocks)));
  }
}

std::int64_t next_blocks(const Program& program, std::int64_t blocks) {
  const std::int64_t mod = std::max<std::int64_t>(1, program.residue_mod);
  return blocks + floor_mod(program.residue - blocks, mod);
}

bool cuts_messages(const Program& program) {
  bool cuts = false;
  for (std::uint32_t rule = 0; rule < program.blocks_count; ++rule) {
    cuts = cuts || program.blocks[rule].block_bytes != 0;
  }
  return cuts;
}

std::int64_t settling_bound(const Program& program) {
  std::int64_t bound = 0;
  std::uint32_t first_action = 0;
  for (std::uint32_t phase = 0; phase < program.phases_count; ++phase) {
    const std::int64_t period = program.phases[phase].period;
    const std::int64_t periods = (reach(program, phase, first_action) + period - 1) / period;
    bound = std::max(bound, periods * blocks_a_period(program));
    first_action += program.phases[phase].actions;
  }
  return std::clamp<std::int64_t>(bound + divisor_rounds(program) + 1, 1, kMostBlocks);
}

namespace {

class Run {
 public:
  Run(const topology::Topology& topology, const Programs& programs, const Options& options)
      : topology_(topology), programs_(programs), options_(options) {}

  Verdict verify() {
    verdict_.slot = verdict_.async = options_.links;
    if (Finding finding = check_form()) return refused(*finding);
    std::int64_t last = options_.max_blocks > 0 ? options_.max_blocks : bound_;
    const std::int64_t mod = std::max<std::int64_t>(1, common_.residue_mod);
    const std::int64_t first = next_blocks(common_, 1);
    last = cuts_messages(common_) ? std::max(last, first) : first;
    // A case costs about N instances, so progress goes by N squared.
    const double whole = static_cast<double>(last) * static_cast<double>(last);
    for (std::int64_t blocks = first; blocks <= last; blocks += mod) {
      if (Finding finding = check_blocks(blocks)) return refused(*finding);
      if (blocks == first) verdict_.steps_at_one = phase_steps(common_, blocks);
      verdict_.steps_at_most = phase_steps(common_, blocks);
      verdict_.proven_blocks = blocks;
      if (options_.progress) {
        options_.progress(static_cast<double>(blocks) * static_cast<double>(blocks) / whole);
      }
    }
    verdict_.valid = true;
    verdict_.for_all = !cuts_messages(common_);
    verdict_.witnesses = describe(at_.witnesses);
    return verdict_;
  }

 private:
  Verdict refused(const Counterexample& example) {
    verdict_.valid = false;
    verdict_.counterexample = example;
    if (example.point == Point::kDeadlock && example.blocks > 0) {
      add_cycle(verdict_.counterexample);
    }
    return verdict_;
  }

  void add_cycle(Counterexample& example) {
    example.cycle = wait_cycle(topology_, programs_, example.blocks);
    for (std::size_t at = 0; at < example.cycle.size(); ++at) {
      example.message += (at == 0 ? "; wait cycle: " : "; ") + example.cycle[at];
    }
  }

  Finding check_form() {
    std::int64_t run = 1;
    bool neighbours = true;
    // How many nodes there are is rank 0's word, which is checked before the second is asked for.
    for (std::uint32_t node = 0; node == 0 || node < program_nodes(common_); ++node) {
      const Program& program = programs_(node);
      if (node == 0) common_ = program;
      if (Finding finding = check_agreement(topology_, common_, node, program)) return finding;
      bound_ = std::max(bound_, settling_bound(program));
      run = std::max(run, longest_run(program));
      neighbours = neighbours && only_neighbours(topology_, program);
    }
    at_.witnesses = witnesses(topology_, common_, run, {options_.links, neighbours});
    return std::nullopt;
  }

  Finding check_blocks(std::int64_t blocks) {
    at_.topology = &topology_;
    at_.common = &common_;
    at_.most_instances = options_.max_instances;
    at_.most_in_total = options_.max_instances_total;
    set_blocks(at_, blocks);
    add_steps(at_);
    const std::uint32_t nodes = program_nodes(common_);
    at_.instances.assign(nodes, {});
    for (std::uint32_t node = 0; node < nodes; ++node) {
      const Program& program = programs_(node);
      if (Finding finding = check_size(at_, node, program)) return finding;
      at_.instances[node] = expand(program, blocks);
      verdict_.instances += at_.instances[node].size();
      if (Finding finding = check_instances(at_, node, program)) return finding;
    }
    for (std::uint32_t node = 0; node < nodes; ++node) {
      if (Finding finding = check_ports(at_, node)) return finding;
    }
    if (Finding finding = check_matching(at_)) return finding;
    if (Finding finding = check_steps(at_)) return finding;
    for (std::uint32_t node = 0; node < nodes; ++node) {
      if (Finding finding = check_hazards(at_, node, verdict_)) return finding;
    }
    if (Finding finding = flow_.check(at_)) return finding;
    if (options_.links) {
      if (Finding finding = check_links(at_, verdict_)) return finding;
    }
    return check_witnesses(at_, at_.steps());
  }

  const topology::Topology& topology_;
  const Programs& programs_;
  const Options& options_;
  OwnedProgram common_;
  std::int64_t bound_ = 1;
  Case at_;
  DataFlow flow_;
  Verdict verdict_;
};

}  // namespace

namespace {

Verdict prove(const topology::Topology& topology, const Programs& programs,
              const Options& options) {
  Verdict verdict;
  const bool at_once = options.method != Method::kExhaustive && options.max_blocks == 0;
  const Outcome outcome =
      at_once ? prove_every_blocks(topology, programs, options, verdict) : Outcome::kUnknown;
  if (outcome == Outcome::kProven || verdict.counterexample.too_large) return verdict;
  if (options.method == Method::kPeriodic) {
    if (outcome == Outcome::kUnknown) {
      verdict.counterexample.message =
          "form: it cannot be proven for every N at once: " + verdict.limited;
    }
    return verdict;
  }
  if (outcome == Outcome::kRefused && topology.ranks() > kMostRanksToPhrase) return verdict;
  Verdict exhaustive = Run(topology, programs, options).verify();
  const bool phrased = !exhaustive.valid && !exhaustive.counterexample.too_large;
  if (outcome == Outcome::kRefused && !phrased) return verdict;
  if (!exhaustive.for_all) {
    exhaustive.limited = at_once ? verdict.limited : "only these N were asked for";
  }
  return exhaustive;
}

}  // namespace

Verdict verify(const topology::Topology& topology, const Programs& programs,
               const Options& options) {
  Verdict verdict = prove(topology, programs, options);
  if (options.progress) options.progress(1);
  return verdict;
}

}  // namespace espalier::verify
