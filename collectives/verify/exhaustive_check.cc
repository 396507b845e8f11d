#include "collectives/verify/exhaustive_check.h"

#include <algorithm>
#include <vector>

#include "collectives/schedule/programs.h"
#include "collectives/verify/bounds/claimed_bound.h"
#include "collectives/verify/bounds/lower_bounds.h"
#include "collectives/verify/properties/data_flow.h"
#include "collectives/verify/properties/expanded_schedule.h"
#include "collectives/verify/properties/form.h"
#include "collectives/verify/properties/hazards.h"
#include "collectives/verify/properties/instances.h"
#include "collectives/verify/properties/links.h"
#include "collectives/verify/properties/matching.h"
#include "collectives/verify/properties/ports.h"
#include "collectives/verify/properties/program_facts.h"
#include "collectives/verify/properties/size.h"
#include "collectives/verify/properties/steps.h"
#include "collectives/verify/report/counterexample.h"
#include "collectives/verify/report/wait_cycle.h"

namespace espalier::verify {
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
    at_.max_instances = options_.max_instances;
    at_.max_instances_total = options_.max_instances_total;
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

Verdict check_exhaustively(const topology::Topology& topology, const Programs& programs,
                           const Options& options) {
  return Run(topology, programs, options).verify();
}

}  // namespace espalier::verify
