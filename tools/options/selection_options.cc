#include "tools/options/selection_options.h"

#include "espalier/topology/topology.h"
#include "tools/common/failure.h"
#include "tools/common/numbers.h"
#include "tools/common/output.h"

namespace espalier::tools {

void add_selection(Command command, planner::Selection& selection, bool required) {
  command.text("--topology", selection.topology, topology::kSpecificationForms).required(required);
  command.text("--collective", selection.collective, planner::collective_names())
      .required(required);
  command
      .text("--algorithm", selection.algorithm,
            "auto (the one that the model predicts to be fastest) or one that 'espalier list' "
            "names")
      .show_default(selection.algorithm);
  command
      .text("--root", selection.root,
            "rank that has (broadcast, scatter) or gets (reduce, gather) the data")
      .show_default(selection.root);
  command.text("--run-length", selection.run_length,
               "fractional trees: r, blocks per run, or own: chosen by the number of ranks alone; "
               "default: by the model, for each size of messages");
  command.text(
      "--radix", selection.radix,
      "k-nomial trees: k, parts of an interval; default: the fewest ticks, 2 for lambda 1");
  command.text("--lambda", selection.lambda,
               "postal model: L/S, a send takes S ticks and arrives after L; default: 1");
  command.text("--ratio", selection.ratio,
               "alpha-tree: A/B or a decimal, the share of its ranks that a sender keeps; default: "
               "the algorithm's choice");
  command.text(
      "--embedding", selection.embedding,
      "placement of the ranks: none (as numbered), snake, z-order, a name that 'espalier list "
      "--embeddings' prints, or a file; default: the best one known");
}

void add_schedule_window(Command command, planner::Selection& selection) {
  command.text("--window", selection.window,
               "steps in flight that the schedule must allow; default: 8");
}

void add_links(Command command, planner::Selection& selection) {
  command.text("--links", selection.links,
               "routed: the fabric routes; hop-by-hop: every message crosses one link of the "
               "topology, routers have programs; default: routed");
  command.text("--ports", selection.ports,
               "With --links hop-by-hop: multiport, or single-send, one send per node and step; "
               "default: multiport");
}

void add_limits(Command command, std::string& limits) {
  command.text("--limits", limits,
               "boards: programs that boards have room for; host: larger ones, which boards "
               "refuse; default: boards");
}

const char* choice_word(const planner::Selection& selection) {
  return selection.algorithm == planner::kAuto ? planner::kAuto : "run length";
}

void add_schedule_option(Command command, std::string& number) {
  command.text("--schedule", number, "Of a selection: this schedule, by its number in the table");
}

std::optional<std::size_t> given_member(const planner::ScheduleSet& set,
                                        const std::string& number) {
  if (!number.empty()) {
    return static_cast<std::size_t>(whole_number("--schedule", number, 0, set.members.size() - 1));
  }
  if (set.selected) return std::nullopt;
  return 0;
}

const planner::ScheduleSet::Member& need_member(const planner::ScheduleSet& set,
                                                std::string_view number, std::string_view what) {
  const auto member = given_member(set, std::string(number));
  if (member) return set.members[*member];
  bad_input(std::string(what) + " is of one schedule, and '" + one_line(set.name) + "' has " +
            std::to_string(set.members.size()) + "; expected --schedule 0 to " +
            std::to_string(set.members.size() - 1));
}

}  // namespace espalier::tools
