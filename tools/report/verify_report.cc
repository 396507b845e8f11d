#include "tools/report/verify_report.h"

#include "espalier/collectives/algorithms/algorithms.h"
#include "planner/files/prove.h"
#include "planner/make/blocks.h"
#include "tools/common/output.h"
#include "tools/report/bound.h"
#include "tools/report/show_text.h"
#include "tools/report/witness.h"

namespace espalier::tools {
namespace {

std::string steps_text(const Program& program) {
  return count_text(program.counts[program.steps_ref]);
}

std::string links_text(const Proof& proof) {
  if (!proof.links.empty()) return "links need a fabric that routes: " + proof.links;
  const verify::Verdict& verdict = proof.verdict;
  if (verdict.async) return "links suffice under any timing skew (ASYNC)";
  return verdict.slot ? "links suffice in lock step only (SLOT)"
                      : "links suffice as the contention guarantee claims";
}

std::string name_of(const Program& program) {
  return program.algorithm[0] == 0 ? collective_name(program.collective)
                                   : std::string(collective_name(program.collective)) + " by " +
                                         one_line(program.algorithm);
}

// "topic  text", the text indented where it breaks.
std::string topic(const char* name, const std::string& text) {
  std::string line = "  " + std::string(name);
  line.resize(14, ' ');
  return line + text + "\n";
}

// "the inputs of ranks 0 to 7 combined, each once, in rank order: ..."
std::string combined_text(const Program& program, const std::string& ranks) {
  return "the inputs of " + ranks + " combined, each once, " +
         (program.needs_commutative ? "not in rank order: the operator must commute"
                                    : "in rank order: the operator need not commute");
}

std::string flow_text(const Program& program) {
  const std::string root = "rank " + std::to_string(program.root) + "'s ";
  const std::string all =
      program.ranks == 1 ? "rank 0" : "ranks 0 to " + std::to_string(program.ranks - 1);
  switch (program.collective) {
    case Collective::kBroadcast:
      return "every output block of every other rank ends as that block of " + root + "input";
    case Collective::kReduce:
      return "every block of " + root + "output ends as " + combined_text(program, all);
    case Collective::kScan:
      return "every block of rank r's output ends as " + combined_text(program, "ranks 0 to r");
    case Collective::kExscan:
      return "every block of rank r's output, r > 0, ends as " +
             combined_text(program, "ranks 0 to r-1");
    case Collective::kScatter:
      return "every output block of rank r ends as that block of segment r of " + root + "input";
    case Collective::kGather:
      return "every block of segment r of " + root + "output ends as that block of rank r's input";
    case Collective::kAllgather:
      return "every block of segment r of every rank's output ends as that block of rank r's input";
    case Collective::kReduceScatter:
      return "every block of rank r's output ends as that block of segment r of " +
             combined_text(program, all);
    case Collective::kAllToAll:
      return "every block of segment q of rank r's output ends as that block of segment r of rank "
             "q's input";
    case Collective::kBarrier:
      return "every rank ends only after it has heard, by others or itself, of " + all;
    default: return "every block of every rank's output ends as " + combined_text(program, all);
  }
}

std::string claims_text(const Program& program, const Proof& proof) {
  const std::string scratch =
      proof.least_scratch == proof.max_scratch
          ? counted(proof.max_scratch, "block")
          : std::to_string(proof.least_scratch) + " to " + counted(proof.max_scratch, "block");
  return "slots lie within the claimed scratch of " + scratch + " a node; the window of " +
         counted(program.window, "step") + " is one the hazards are absent for, and so is any less";
}

std::string busiest_text(Source& source, const Proof& proof) {
  if (!proof.links.empty()) {
    return "not proven of the topology's own links, a fabric that routes is assumed: " +
           proof.links;
  }
  const verify::LinkLoad& busiest = proof.verdict.busiest;
  if (busiest.load == 0) return "nothing crosses a link";
  const topology::Topology& topology = source.topology();
  return "the topology's own " + links_text(proof) + "; the fullest, " +
         topology.node_name(busiest.from) + " -> " + topology.node_name(busiest.to) + ", carries " +
         std::to_string(busiest.load) + " of " + std::to_string(busiest.capacity) + " at once";
}

std::string range_text(const Program& program, const verify::Verdict& verdict) {
  std::string text = planner::proven_for(program, verdict) + ": ";
  if (!planner::cuts_messages(program)) {
    text += "proven for it";
  } else if (verdict.for_all) {
    text +=
        "between ranks by progressions that are the same for all N; within each kind of rank up "
        "to N* = " +
        std::to_string(verdict.proven_blocks) + ", beyond which all repeats every " +
        counted(verdict.period, "block");
  } else {
    text += "each one by one, up to " + std::to_string(verdict.proven_blocks);
    if (!verdict.limited.empty()) text += "; not beyond: " + verdict.limited;
  }
  return text + "; " + counted(verdict.instances, "instance") + " expanded";
}

Json counterexample_json(const verify::Counterexample& wrong) {
  Json json = {{"property", verify::property_name(wrong.property)}, {"message", wrong.message}};
  const auto add = [&json](const char* name, std::int64_t value) {
    if (value >= 0) json[name] = value;
  };
  add("blocks", wrong.blocks);
  add("node", wrong.node);
  add("step", wrong.step);
  add("from", wrong.from);
  add("to", wrong.to);
  add("segment", wrong.segment);
  add("block", wrong.block);
  add("action", wrong.action);
  if (!wrong.cycle.empty()) json["cycle"] = wrong.cycle;
  return json;
}

}  // namespace

std::string summary(Source& source, const Proof& proof) {
  const Program& program = source.program(0);
  const verify::Verdict& verdict = proof.verdict;
  return one_line(source.name()) + ": valid: " + name_of(program) + " on " +
         source.topology().title() + ", proven for " + planner::proven_for(program, verdict) +
         ": " + counted(steps_text(program), "step") + ", at least " +
         bound_text(verdict.lower_bounds, program) + "; " + links_text(proof) +
         (verdict.in_place ? "; in place too\n" : "; not in place\n");
}

std::string explanation(Source& source, const Proof& proof) {
  const Program& program = source.program(0);
  const verify::Verdict& verdict = proof.verdict;
  const std::string steps = steps_text(program);
  std::string text = topic("for", range_text(program, verdict));
  text += topic("form",
                counted(program_nodes(program), "program") + " that nodes would load agree on " +
                    collective_name(program.collective) + ", root " + std::to_string(program.root) +
                    ", " + counted(program.segments, "segment") + ", window " +
                    std::to_string(program.window) + ", schedule " + hex(program.schedule_digest) +
                    "; at most " + counted(proof.max_links, "link") + " a node");
  text += topic("matching",
                "each send meets the receive of the same block in the same step, and the other "
                "way round");
  text += topic("ports", std::string(port_model_name(program.port_model)) +
                             " kept in every step; one send and one receive a link and step");
  text += topic("links", busiest_text(source, proof));
  text += topic(
      "deadlock",
      "none, with rendezvous, under any timing skew, for any windows: both ends of a transfer "
      "name the same step and every wait is for an earlier one");
  text += topic("hazards", "none under any timing skew that the window allows: " +
                               counted(verdict.checks, "use") +
                               " of places ordered after those before");
  text += topic("claims", claims_text(program, proof));
  text += topic("data flow", flow_text(program));
  text += topic("in place", verdict.in_place
                                ? "yes: on no rank is an input block read after the output block "
                                  "in its place is written"
                                : "no: input and output must be different memory");
  text += topic("steps", steps + " exactly: " + std::to_string(verdict.steps_at_one) +
                             " for the smallest N, " + std::to_string(verdict.steps_at_most) +
                             " for N = " + std::to_string(verdict.proven_blocks));
  text += topic("bound", "no schedule takes fewer than " +
                             counted(bound_text(verdict.lower_bounds, program), "step"));
  for (const verify::LowerBound& bound : verdict.lower_bounds) {
    const std::string cut = cut_text(source.topology(), bound);
    text += topic("", lower_bound_text(bound) + (cut.empty() ? "" : ": " + cut));
  }
  if (!verdict.bounds_limited.empty()) text += topic("", "not all: " + verdict.bounds_limited);
  text += topic("not proven", "that the bound is the best one; that the machine keeps the rules");
  return text;
}

Json to_json(Source& source, const Proof& proof) {
  const Program& program = source.program(0);
  const verify::Verdict& verdict = proof.verdict;
  Json json = {{"file", source.name()},
               {"topology", source.topology().spec()},
               {"algorithm", program.algorithm},
               {"valid", verdict.valid},
               {"proven_blocks", verdict.proven_blocks},
               {"instances", verdict.instances}};
  if (!verdict.valid) {
    json["counterexample"] = counterexample_json(verdict.counterexample);
    return json;
  }
  json["for_all"] = verdict.for_all;
  if (verdict.for_all) json["period"] = verdict.period;
  if (!verdict.limited.empty()) json["limited"] = verdict.limited;
  json["proven_for"] = planner::proven_for(program, verdict);
  json["checks"] = verdict.checks;
  json["progressions"] = verdict.progressions;
  json["steps"] = steps_text(program);
  json["steps_at_one"] = verdict.steps_at_one;
  json["steps_at_most"] = verdict.steps_at_most;
  json["bound"] = bound_text(verdict.lower_bounds, program);
  json["claimed_bound"] = count_text(program.counts[program.bound_ref]);
  json["lower_bounds"] = Json::array();
  for (const verify::LowerBound& bound : verdict.lower_bounds) {
    json["lower_bounds"].push_back(lower_bound_text(bound));
  }
  json["certificate"] = certificate_json(source.topology(), program, verdict.bound_facts,
                                         verdict.lower_bounds, verdict.bounds_limited);
  json["port_model"] = port_model_name(program.port_model);
  json["window"] = program.window;
  json["least_scratch_blocks"] = proof.least_scratch;
  json["most_scratch_blocks"] = proof.max_scratch;
  json["in_place"] = verdict.in_place;
  json["fits_links"] = proof.links.empty();
  if (proof.links.empty()) {
    json["links_in_lock_step"] = verdict.slot;
    json["links_under_skew"] = verdict.async;
    json["busiest_link"] = {{"from", verdict.busiest.from},
                            {"to", verdict.busiest.to},
                            {"load", verdict.busiest.load},
                            {"capacity", verdict.busiest.capacity}};
  } else {
    json["links"] = proof.links;
  }
  return json;
}

}  // namespace espalier::tools
