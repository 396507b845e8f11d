#include "collectives/verify/methods/exhaustive_check.h"

#include <algorithm>

#include "collectives/verify/bounds/all_bounds.h"
#include "collectives/verify/bounds/claimed_bound.h"
#include "collectives/verify/properties/checks.h"
#include "collectives/verify/properties/counterexample.h"
#include "collectives/verify/properties/data_flow.h"
#include "collectives/verify/properties/expanded_schedule.h"
#include "collectives/verify/properties/program_facts.h"
#include "collectives/verify/report/wait_cycle.h"
#include "espalier/collectives/schedule/programs.h"

namespace espalier::verify {
namespace {

class ExhaustiveCheck {
 public:
  ExhaustiveCheck(const topology::Topology& topology, const Programs& programs,
                  const VerifyOptions& options)
      : topology_(topology), programs_(programs), options_(options) {}

  Verdict verify() {
    verdict_.slot = verdict_.async = options_.links;
    if (Finding finding = check_form()) return refused(*finding);
    std::int64_t last = options_.max_blocks > 0 ? options_.max_blocks : bound_;
    const std::int64_t mod = std::max<std::int64_t>(1, common_.residue_mod);
    const std::int64_t first = next_blocks(common_, 1);
    last = cuts_messages(common_) ? std::max(last, first) : first;
    // One N costs about N instances, so progress is proportional to N squared.
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
    verdict_.lower_bounds = describe(schedule_.bounds);
    return verdict_;
  }

 private:
  Verdict refused(const Counterexample& example) {
    verdict_.valid = false;
    verdict_.counterexample = example;
    if (example.property == Property::kDeadlock && example.blocks > 0) {
      add_cycle(verdict_.counterexample);
    }
    return verdict_;
  }

  void add_cycle(Counterexample& example) {
    example.cycle = wait_cycle(topology_, programs_, example.blocks);
    for (std::size_t i = 0; i < example.cycle.size(); ++i) {
      example.message += (i == 0 ? "; wait cycle: " : "; ") + example.cycle[i];
    }
  }

  Finding check_form() {
    BoundFacts& facts = verdict_.bound_facts;
    facts.links = options_.links;
    // Rank 0's program contains the number of nodes. It is checked before the second is asked for.
    for (std::uint32_t node = 0; node == 0 || node < program_nodes(common_); ++node) {
      const Program& program = programs_(node);
      if (node == 0) common_ = program;
      if (Finding finding = check_agreement(topology_, common_, node, program)) return finding;
      bound_ = std::max(bound_, settling_bound(program));
      add_facts(topology_, program, facts);
    }
    KnownBounds known = all_bounds(topology_, common_, facts);
    schedule_.bounds = std::move(known.all);
    verdict_.bounds_limited = std::move(known.limited);
    return std::nullopt;
  }

  Finding check_blocks(std::int64_t blocks) {
    schedule_.topology = &topology_;
    schedule_.common = &common_;
    schedule_.max_instances = options_.max_instances;
    schedule_.max_instances_total = max_total(options_, program_nodes(common_));
    set_blocks(schedule_, blocks);
    add_steps(schedule_);
    const std::uint32_t nodes = program_nodes(common_);
    schedule_.instances.assign(nodes, {});
    for (std::uint32_t node = 0; node < nodes; ++node) {
      const Program& program = programs_(node);
      if (Finding finding = check_size(schedule_, node, program)) return finding;
      schedule_.instances[node] = expand(program, blocks);
      verdict_.instances += schedule_.instances[node].size();
      if (Finding finding = check_instances(schedule_, node, program)) return finding;
    }
    for (std::uint32_t node = 0; node < nodes; ++node) {
      if (Finding finding = check_ports(schedule_, node)) return finding;
    }
    if (Finding finding = check_matching(schedule_)) return finding;
    if (Finding finding = check_steps(schedule_)) return finding;
    for (std::uint32_t node = 0; node < nodes; ++node) {
      if (Finding finding = check_hazards(schedule_, node, verdict_)) return finding;
    }
    if (Finding finding = flow_.check(schedule_)) return finding;
    if (options_.links) {
      if (Finding finding = check_links(schedule_, verdict_)) return finding;
    }
    return check_known_bounds(schedule_, schedule_.steps());
  }

  const topology::Topology& topology_;
  const Programs& programs_;
  const VerifyOptions& options_;
  OwnedProgram common_;
  std::int64_t bound_ = 1;
  ExpandedSchedule schedule_;
  DataFlow flow_;
  Verdict verdict_;
};

}  // namespace

Verdict check_exhaustively(const topology::Topology& topology, const Programs& programs,
                           const VerifyOptions& options) {
  return ExhaustiveCheck(topology, programs, options).verify();
}

}  // namespace espalier::verify
