// espalier embed: searches a placement of a schedule's ranks on a topology.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "collectives/embed/groups.h"
#include "collectives/embed/placement.h"
#include "espalier/collectives/embed/place.h"
#include "planner/make/plan.h"
#include "tools/commands/commands.h"
#include "tools/common/failure.h"
#include "tools/common/json.h"
#include "tools/common/numbers.h"
#include "tools/common/output.h"
#include "tools/options/plan_options.h"

namespace espalier::tools {
namespace {

struct EmbedArguments {
  PlanOptions plan;
  std::string switching = "cut-through", seed = "1", budget = "60s", moves, period, group, tree;
  std::string output;
  Format format = Format::kText;
};

constexpr std::uint64_t kMaxMoves = 1'000'000'000'000;
constexpr std::uint64_t kMaxSeconds = 1'000'000;

// Whether an algorithm of this name is placed by groups of ranks, not rank by rank.
bool has_groups(const PlanOptions& plan) {
  for (const planner::AlgorithmEntry& entry : planner::algorithm_entries()) {
    if (entry.name == plan.algorithm && entry.has_groups) return true;
  }
  return false;
}

// Searches that end with the first placement without excess may have more moves.
std::string moves_of(const EmbedArguments& arguments) {
  if (!arguments.moves.empty()) return arguments.moves;
  const bool is_by_slots = arguments.switching == "cut-through" && !has_groups(arguments.plan);
  return is_by_slots ? "200000000" : "10000000";
}

std::chrono::seconds budget_of(const EmbedArguments& arguments) {
  std::string number = arguments.budget;
  const std::string what = "--budget (seconds, e.g. 60s):";
  if (number.ends_with('s')) number.pop_back();
  return std::chrono::seconds(whole_number(what, number, 1, kMaxSeconds));
}

embed::Search search_of(const EmbedArguments& arguments, const topology::Topology& topology) {
  embed::Search search;
  search.switching =
      arguments.switching == "cut-through" ? Switching::kCutThrough : Switching::kStoreAndForward;
  search.root_moves = arguments.plan.root == "any";
  if (!search.root_moves) {
    const std::string what = "--root on " + topology.title() + " (or any):";
    search.root = static_cast<std::uint32_t>(
        whole_number(what, arguments.plan.root, 0, topology.ranks() - 1));
  }
  search.seed = whole_number("--seed", arguments.seed, 0, ~std::uint64_t{0} >> 1);
  search.moves = whole_number("--moves", moves_of(arguments), 1, kMaxMoves);
  if (!arguments.period.empty()) {
    if (search.switching == Switching::kCutThrough) {
      bad_input(
          "--period is what links carry store-and-forward; expected --switching store-and-forward");
    }
    search.period = static_cast<std::uint32_t>(whole_number("--period", arguments.period, 1, 1000));
  }
  return search;
}

std::string tree_of(const EmbedArguments& arguments) {
  return arguments.tree.empty() ? "least" : arguments.tree;
}

// The command that finds the same, all that matters written out.
std::string command_of(const EmbedArguments& arguments) {
  const PlanOptions& plan = arguments.plan;
  std::string text = "espalier embed --topology " + plan.topology + " --collective " +
                     plan.collective + " --algorithm " + plan.algorithm;
  const auto add = [&text](const char* option, const std::string& value) {
    if (!value.empty()) text += std::string(" ") + option + " " + value;
  };
  add("--run-length", plan.run_length);
  add("--group", arguments.group);
  if (!arguments.group.empty()) add("--tree", tree_of(arguments));
  add("--root", plan.root);
  add("--switching", arguments.switching);
  add("--period", arguments.period);
  add("--seed", arguments.seed);
  add("--moves", moves_of(arguments));
  return one_line(text);
}

void check_size(const topology::Topology& topology) {
  if (topology.ranks() <= embed::kMaxPlaced) return;
  bad_input(topology.title() + " has " + counted(topology.ranks(), "rank") +
            ", too many to place; expected at most " + std::to_string(embed::kMaxPlaced));
}

// "2x4" on a mesh that it divides.
embed::GroupShape shape_of(const std::string& text, const topology::Topology& topology) {
  const topology::Shape mesh = topology.shape();
  if (mesh.rows == 0) bad_input("fractional-mesh is for mesh:RxC, not for " + topology.title());
  const std::size_t times = text.find('x');
  const std::string what = "--group '" + one_line(text) + "' (rows x columns of ranks, e.g. 1x2):";
  if (times == std::string::npos) bad_input(what + " expected RxC");
  const embed::GroupShape shape{
      static_cast<std::uint32_t>(whole_number(what, text.substr(0, times), 1, mesh.rows)),
      static_cast<std::uint32_t>(whole_number(what, text.substr(times + 1), 1, mesh.columns))};
  if (mesh.rows % shape.rows != 0 || mesh.columns % shape.columns != 0) {
    bad_input(what + " such groups do not divide " + topology.title() +
              "; expected divisors of its rows and columns");
  }
  return shape;
}

// The tree that the options ask for.
embed::GroupTree group_tree(const EmbedArguments& arguments, std::uint32_t run_length,
                            std::uint32_t groups) {
  const std::string shape_name = tree_of(arguments);
  const bool complete = shape_name != "least";
  if (complete && (groups & (groups - 1)) != 0) {
    bad_input("a complete tree of " + counted(groups, "group") +
              "; expected a power of two of them, or --tree least");
  }
  embed::GroupTree tree =
      complete ? embed::complete_tree(run_length, groups) : embed::least_tree(run_length, groups);
  tree.keeps_h_tree = shape_name == "h-tree";
  return tree;
}

// Finds the places of a broadcast's groups, root and shape as of `search` and `shape`.
embed::GroupPlacement place_groups(const EmbedArguments& arguments,
                                   const topology::Topology& topology,
                                   const embed::GroupShape& shape, const embed::Search& search) {
  const std::uint32_t run_length = shape.rows * shape.columns;
  const embed::GroupTree tree = group_tree(arguments, run_length, topology.ranks() / run_length);
  embed::GroupPlacement found =
      embed::find_groups(topology, embed::Routes(topology), shape, tree, search);
  if (!search.root_moves && found.placement.node_of.front() != search.root) {
    bad_input("rank " + arguments.plan.root + " is no corner of its group; expected one that is");
  }
  return found;
}

// A reduce is placed as the broadcast on the mesh with rows and columns exchanged.
topology::Embedding find_by_groups(const EmbedArguments& arguments,
                                   const topology::Topology& topology, const embed::Search& search,
                                   embed::Placement& placement) {
  const PlanOptions& plan = arguments.plan;
  const bool reduces = plan.collective == "reduce";
  if ((!reduces && plan.collective != "broadcast") || !plan.run_length.empty()) {
    bad_input(
        "fractional-mesh is a broadcast or reduce whose runs are as long as a group has ranks; "
        "expected --collective broadcast or reduce, and --group RxC");
  }
  check_size(topology);
  const embed::GroupShape shape = shape_of(arguments.group, topology);
  topology::Embedding embedding{.topology = topology.spec()};
  embed::GroupPlacement found;
  if (reduces) {
    const topology::Shape mesh = topology.shape();
    const auto exchanged = or_bad_input(
        topology::parse("mesh:" + std::to_string(mesh.columns) + "x" + std::to_string(mesh.rows)));
    embed::Search turned = search;
    turned.root = search.root % mesh.columns * mesh.rows + search.root / mesh.columns;
    found = place_groups(arguments, *exchanged, {shape.columns, shape.rows}, turned);
    embedding.topology = exchanged->spec();
  } else {
    found = place_groups(arguments, topology, shape, search);
  }
  embedding.node_of = found.placement.node_of;
  placement = std::move(found.placement);
  embedding.run_length = shape.rows * shape.columns;
  for (const embed::GroupTree::TreeGroup& group : found.tree.groups) {
    embedding.groups.push_back({group.parent, group.is_right});
  }
  if (reduces) {
    embedding = topology::reversed(std::move(embedding), plan.collective);
    placement.node_of = embedding.node_of;
  }
  return embedding;
}

// Refuses a placement that a cut shows to be impossible.
void check_cuts(const topology::Topology& topology, const embed::Traffic& traffic,
                const embed::Search& search) {
  if (search.switching != Switching::kCutThrough) return;
  std::optional<std::uint32_t> root;
  if (!search.root_moves) root = search.root;
  if (embed::cuts_leave_room(topology.shape(), traffic, root)) return;
  negative(
      "none exists on " + topology.title() + (root ? " for this root" : "") +
      ": wherever the ranks are, more transfers cross from one line of the mesh to the next in "
      "a slot than there are links; nothing is written. Expected another algorithm, such as "
      "chain, or --switching store-and-forward with a longer --period");
}

topology::Embedding find_by_ranks(const EmbedArguments& arguments, embed::Search& search,
                                  embed::Placement& placement) {
  PlanOptions plan = arguments.plan;
  plan.root = "0";
  plan.embedding = "none";
  const planner::PlannedSchedule schedule = make_schedule(plan);
  check_size(*schedule.topology);
  if (auto placeable = embed::check_placeable(schedule.algorithm.collective); !placeable) {
    bad_input(plan.collective + " takes no embedding: " + placeable.error().message);
  }
  if (!schedule.algorithm.any_topology) {
    bad_input("algorithm '" + schedule.algorithm.name + "' is for " +
              schedule.algorithm.topologies + " as they are; expected one for any topology");
  }
  if (schedule.algorithm.max_run_length > 0 && schedule.parameters.run_length == 0) {
    bad_input("an embedding of " + schedule.algorithm.name +
              " is for one run length; expected --run-length");
  }
  Programs programs(schedule.nodes);
  for (std::uint32_t node = 0; node < schedule.nodes; ++node)
    or_bad_input(planner::generate(schedule, node, programs[node]));
  const embed::Traffic traffic = embed::traffic_of(programs);
  if (search.period == 0) search.period = embed::whole_period(traffic);
  check_cuts(*schedule.topology, traffic, search);
  placement = embed::find_placement(embed::Routes(*schedule.topology), traffic, search);
  return {.run_length = schedule.parameters.run_length};
}

void report(const EmbedArguments& arguments, const topology::Topology& topology,
            const embed::Placement& placement) {
  const bool stored = arguments.switching != "cut-through";
  if (arguments.format == Format::kJson) {
    print_json({{"file", arguments.output},
                {"topology", topology.spec()},
                {"collective", arguments.plan.collective},
                {"algorithm", arguments.plan.algorithm},
                {"root", placement.node_of.front()},
                {"switching", arguments.switching},
                {"latency", placement.latency}});
    return;
  }
  const bool ends_at_root = arguments.plan.collective == "reduce";
  std::printf("%s: %s by %s on %s, root %u: %s; %s first block after %lld %s\n",
              one_line(arguments.output).c_str(), arguments.plan.collective.c_str(),
              arguments.plan.algorithm.c_str(), topology.title().c_str(), placement.node_of.front(),
              stored ? "no link carries more than the period" : "no link twice in a slot",
              ends_at_root ? "the root's" : "the last rank's",
              static_cast<long long>(placement.latency),
              has_groups(arguments.plan) ? "steps" : "hops");
}

// Refuses a search that found none, and says how near it came.
void check_found(const EmbedArguments& arguments, const embed::Search& search,
                 const embed::Placement& placement, bool is_late) {
  const bool stored = search.switching == Switching::kStoreAndForward;
  const std::string within = is_late ? std::to_string(budget_of(arguments).count()) + " s"
                                     : moves_of(arguments) + " moves";
  const std::string more = is_late ? "a longer --budget" : "more --moves";
  if (placement.over > 0) {
    negative("none found in " + within + ": the best has " +
             counted(static_cast<std::uint64_t>(placement.over), "transfer") + " too many on " +
             (stored ? "links that carry " + std::to_string(search.period) + " a period"
                     : "a link in a slot") +
             "; nothing is written. Expected " + more + ", another --seed" +
             (stored ? ", a longer --period" : "") + " or --root any");
  }
  // Which placement it is would depend on the time.
  if (stored && placement.is_cut_short) {
    negative("the " + moves_of(arguments) + " moves take more than " + within +
             "; nothing is written. Expected a longer --budget or fewer --moves");
  }
}

void run_embed(const EmbedArguments& arguments) {
  check_writable(arguments.output);
  const auto topology = parse_topology(arguments.plan.topology);
  embed::Search search = search_of(arguments, *topology);
  embed::Placement placement;
  topology::Embedding embedding;
  bool is_late = false;
  {
    Progress progress("placing");
    const std::chrono::duration<double> budget = budget_of(arguments);
    const auto begin = std::chrono::steady_clock::now();
    double of_budget = 0;
    search.is_late = [&] {
      of_budget = (std::chrono::steady_clock::now() - begin) / budget;
      return is_late = of_budget >= 1;
    };
    search.progress = [&](double of_moves) {
      progress.show(std::min(1.0, std::max(of_moves, of_budget)));
    };
    const bool groups = has_groups(arguments.plan);
    for (const auto& [option, value] :
         {std::pair{"--group", &arguments.group}, std::pair{"--tree", &arguments.tree}}) {
      if (groups || value->empty()) continue;
      bad_input(std::string(option) + " is for --algorithm fractional-mesh alone");
    }
    if (groups && !arguments.period.empty()) {
      bad_input(
          "the period of fractional-mesh is one more than a group has ranks; expected no "
          "--period");
    }
    embedding = groups ? find_by_groups(arguments, *topology, search, placement)
                       : find_by_ranks(arguments, search, placement);
  }
  check_found(arguments, search, placement, is_late);
  embedding.topology = topology->spec();
  embedding.collective = arguments.plan.collective;
  embedding.algorithm = arguments.plan.algorithm;
  embedding.switching = search.switching;
  embedding.node_of = placement.node_of;
  embedding.found_by = command_of(arguments);
  write_file(arguments.output, topology::write_embedding(embedding));
  report(arguments, *topology, placement);
}

}  // namespace

void add_embed(Command app) {
  Command command =
      app.add_command("embed", "Searches for a placement of the ranks on links that suffice");
  auto& arguments = command.bind<EmbedArguments>(run_embed);
  PlanOptions& plan = arguments.plan;
  command.text("--topology", plan.topology, "As for 'espalier compile'").required();
  command.text("--collective", plan.collective, "broadcast, reduce or allreduce").required();
  command.text("--algorithm", plan.algorithm, "one that 'espalier list' names").required();
  command.text("--root", plan.root, "the rank that is the root, or any").show_default(plan.root);
  command.text("--run-length", plan.run_length, "fractional trees: r, blocks per run");
  command
      .word("--switching", {"cut-through", "store-and-forward"}, arguments.switching,
            "how a block crosses several links (see below)")
      .show_default(arguments.switching);
  command.text("--period", arguments.period,
               "Store-and-forward: in this many steps a link may carry at most this many blocks "
               "per lane; default: the algorithm's period");
  command.text("--group", arguments.group, "fractional-mesh: rows x columns of a group, e.g. 1x2");
  command.word("--tree", {"least", "complete", "h-tree"}, arguments.tree,
               "fractional-mesh: least (of least depth), complete, or h-tree (a complete tree "
               "near an H-tree); default: least");
  command.text("--seed", arguments.seed, "The same seed finds the same embedding")
      .show_default(arguments.seed);
  command
      .text("--budget", arguments.budget,
            "maximum time of the search; a placement that is found does not depend on it")
      .show_default(arguments.budget);
  command.text("--moves", arguments.moves,
               "maximum number of moves to try; default: 200000000, or 10000000 for "
               "fractional-mesh and store-and-forward");
  command.text("-o,--output", arguments.output, "The embedding to write").required();
  add_format(command, arguments.format);
  command.set_footer(
      "Searches by simulated annealing. Cut-through: a block holds its whole path for a step, and\n"
      "no link carries two blocks in a step. Store-and-forward: no link carries more blocks per\n"
      "period than --period allows; among these placements the least latency wins.\n"
      "Exit status: 1 if none was found or none exists; nothing is written then.\n"
      "Examples:\n"
      "  espalier embed --topology mesh:8x8 --collective broadcast --algorithm two-tree -o "
      "e.textproto\n"
      "  espalier embed --topology mesh:8x16 --collective broadcast --algorithm fractional-mesh "
      "--group 1x2 --tree h-tree --root any -o f.textproto\n"
      "  espalier compile --topology mesh:8x8 --collective broadcast --algorithm two-tree "
      "--embedding e.textproto -o b.esp");
}

}  // namespace espalier::tools
