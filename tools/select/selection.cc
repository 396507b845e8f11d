#include "tools/select/selection.h"

#include <algorithm>

#include "collectives/algorithms/searched/fractional_mesh.h"
#include "collectives/embed/place.h"
#include "collectives/schedule/file_writer.h"
#include "collectives/verify/verify.h"
#include "tools/common/failure.h"
#include "tools/common/numbers.h"
#include "tools/common/output.h"
#include "tools/select/embedding.h"

namespace espalier::tools {
namespace {

std::string collective_names() {
  std::vector<std::string> names;
  for (int at = espalier_Collective_BROADCAST; at <= espalier_Collective_BARRIER; ++at) {
    names.emplace_back(collective_name(static_cast<Collective>(at)));
  }
  return either(names);
}

Offer choose_algorithm(Collective collective, const std::string& name) {
  std::vector<std::string> names;
  bool known = false;
  for (Offer& offer : offers()) {
    known = known || offer.name == name;
    if (offer.collective != collective) continue;
    if (offer.name == name) return std::move(offer);
    names.push_back(offer.name);
  }
  const std::string wanted = collective_name(collective);
  const std::string expected = "; expected " + either(names);
  if (known) bad_input("algorithm '" + name + "' cannot do " + wanted + expected);
  bad_input("unknown algorithm '" + one_line(name) + "' for " + wanted + expected);
}

std::uint32_t choose_root(const std::string& text, const topology::Topology& topology,
                          Collective collective) {
  const std::string what = "--root on " + topology.title() + ":";
  const auto root = static_cast<std::uint32_t>(whole_number(what, text, 0, topology.ranks() - 1));
  if (root != 0 && !has_root(collective)) {
    bad_input(std::string(collective_name(collective)) + " has no root; expected no --root " +
              std::to_string(root));
  }
  return root;
}

// "L/S" or "L".
void choose_lambda(const std::string& text, Group& group) {
  const std::size_t slash = text.find('/');
  const bool whole = slash == std::string::npos;
  const std::string what = "--lambda '" + one_line(text) + "' (L/S ticks, S at most L):";
  const std::string latency = text.substr(0, slash);
  const std::string send = whole ? "1" : text.substr(slash + 1);
  group.latency_ticks = static_cast<std::uint32_t>(whole_number(what, latency, 1, kMaxTicks));
  group.send_ticks = static_cast<std::uint32_t>(whole_number(what, send, 1, group.latency_ticks));
}

void choose_parameters(const Selection& selection, Choice& choice) {
  const Offer& offer = choice.algorithm;
  const auto refuse = [&offer](const char* option) {
    bad_input(std::string(option) + " is no parameter of algorithm '" + offer.name + "'" +
              (offer.parameter.empty() ? "" : ", which takes " + offer.parameter) +
              "; 'espalier list' says which takes what");
  };
  Group& group = choice.group;
  if (!selection.run.empty()) {
    if (offer.parameter != "--run") refuse("--run");
    group.run =
        static_cast<std::uint32_t>(whole_number("--run", selection.run, 1, kMaxFieldWindow));
    if (group.run > offer.max_run) {
      bad_input("--run " + std::to_string(group.run) + " is above " +
                std::to_string(offer.max_run) + ", the longest run of algorithm '" + offer.name +
                "' of " + collective_name(offer.collective));
    }
  }
  if (!selection.lambda.empty()) {
    if (offer.parameter != "--lambda") refuse("--lambda");
    choose_lambda(selection.lambda, group);
  }
  if (!selection.window.empty()) {
    group.window = static_cast<std::uint32_t>(
        whole_number("--window", selection.window, 1, verify::kMostWindow));
  }
}

// Sets the topology's numbers, for algorithms that are made for one.
void choose_shape(Choice& choice) {
  topology::Shape shape = choice.topology->shape();
  Group& group = choice.group;
  group.rows = shape.rows;
  group.columns = shape.columns;
  group.arity = shape.arity;
  group.height = shape.height;
  choice.capacities = std::move(shape.capacities);
  group.capacities = choice.capacities.empty() ? nullptr : choice.capacities.data();
}

void choose_places(const Selection& selection, Choice& choice) {
  choice.embedding = choose_embedding(selection, choice);
  if (!choice.embedding) return;
  choice.rank_at.resize(choice.group.ranks);
  for (std::uint32_t rank = 0; rank < choice.group.ranks; ++rank) {
    choice.rank_at[choice.embedding->node_of[rank]] = rank;
  }
}

// The group to generate for before placing: the root is virtual rank 0.
Group virtual_group(const Choice& choice) {
  Group group = choice.group;
  if (choice.embedding) {
    group.root = 0;
    if (choice.embedding->run != 0) group.run = choice.embedding->run;
  }
  return group;
}

void check_placed(const Choice& choice, Status status) {
  if (status == Status::kOk) return;
  bad_input("algorithm '" + choice.algorithm.name + "' cannot stand as embedding " +
            quoted_name(*choice.embedding) + " says: " + status_name(status) +
            "; expected --embedding none");
}

// Checks that the algorithm is for this topology, and counts the nodes that it has programs for.
void choose_nodes(Choice& choice) {
  const Offer& offer = choice.algorithm;
  const bool applies = offer.search != nullptr
                           ? offer.search->applies(*choice.topology)
                           : offer.generator->where == Where::kAnywhere || choice.group.arity > 0;
  if (!applies) {
    bad_input("algorithm '" + offer.name + "' of " + collective_name(offer.collective) +
              " is for " + offer.topologies + ", not for " + choice.topology->title() +
              "; 'espalier list' says which runs where");
  }
  if (offer.search == nullptr) {
    choice.nodes = algorithm_nodes(*offer.generator, choice.group);
    return;
  }
  const bool by_groups = choice.embedding && !choice.embedding->groups.empty();
  const std::string error =
      by_groups ? searched::fractional_mesh(*choice.topology, choice.group, *choice.embedding,
                                            choice.found)
                : offer.search->search(*choice.topology, virtual_group(choice), choice.found);
  if (!error.empty()) bad_input(one_line(error));  // it names the algorithm
  if (choice.embedding && !by_groups) {
    check_placed(choice, embed::place_all(choice.embedding->node_of, choice.found));
  }
  choice.nodes = static_cast<std::uint32_t>(choice.found.size());
}

// Why a rank-local algorithm makes no program for this selection, and what it needs.
std::string reason(const Choice& choice, Status status) {
  const std::string& name = choice.algorithm.name;
  const Group& group = choice.group;
  const std::string ranks = counted(group.ranks, "rank");
  switch (status) {
    case Status::kTooLarge:
      return "a node's program is larger than nodes have room for (proto/schedule.options); "
             "expected fewer than " +
             ranks + (group.latency_ticks > 1 ? ", or a smaller --lambda" : "");
    case Status::kMalformed:
      return "a program of it breaks the format's rules, which is a fault of this espalier; "
             "expected another algorithm";
    case Status::kUnsupported: break;
    default: return std::string(status_name(status)) + "; expected another algorithm";
  }
  if (name == "two-tree-mirror") {
    return "its mirrored trees need an odd number of ranks, not " + std::to_string(group.ranks) +
           "; expected two-tree";
  }
  if (choice.algorithm.parameter == "--run") {
    return "it has no runs of " + std::to_string(group.run) + " blocks; expected a smaller --run";
  }
  if (choice.algorithm.generator->where == Where::kFatTree) {
    return "it is for one lane at the leaves, and on each level at most k times the lanes of the "
           "level below; expected such capacities c";
  }
  return "it is not for " + ranks + "; expected another algorithm";
}

[[noreturn]] void cannot_do(const Choice& choice, Status status) {
  const Offer& offer = choice.algorithm;
  const std::string root =
      has_root(offer.collective) ? " with root " + std::to_string(choice.group.root) : "";
  bad_input("algorithm '" + offer.name + "' cannot do " + collective_name(offer.collective) +
            " on " + choice.topology->title() + root + ": " + reason(choice, status));
}

bool is_modelled(const Selection& selection) {
  if (selection.links.empty() || selection.links == "direct") {
    if (selection.ports.empty()) return false;
    bad_input("--ports is for schedules on the links of the topology; expected --links modelled");
  }
  if (selection.links == "modelled") return true;
  bad_input("unknown --links '" + one_line(selection.links) + "'; expected direct or modelled");
}

PortModel choose_ports(const Selection& selection) {
  if (selection.ports.empty() || selection.ports == "multiport") {
    return espalier_PortModel_MULTIPORT;
  }
  if (selection.ports == "single-send") return espalier_PortModel_SINGLE_SEND;
  bad_input("unknown --ports '" + one_line(selection.ports) +
            "'; expected multiport or single-send");
}

// Generates the placed program of a rank-local algorithm.
void generate_here(const Choice& choice, std::uint32_t node, Program& program) {
  program.clear();
  const std::uint32_t rank = choice.embedding ? choice.rank_at.at(node) : node;
  const Status status = choice.algorithm.generator->generate(virtual_group(choice), rank, program);
  if (status != Status::kOk) cannot_do(choice, status);
  if (choice.embedding) check_placed(choice, embed::place(choice.embedding->node_of, program));
}

void lower_choice(PortModel ports, Choice& choice) {
  if (choice.found.empty()) {
    choice.found.resize(choice.nodes);
    for (std::uint32_t node = 0; node < choice.nodes; ++node) {
      generate_here(choice, node, choice.found[node]);
    }
  }
  Programs lowered;
  const std::string error =
      lower::lower(*choice.topology, choice.group, ports, choice.found, lowered, choice.report);
  if (!error.empty()) bad_input(one_line(error));
  choice.found = std::move(lowered);
  choice.nodes = static_cast<std::uint32_t>(choice.found.size());
}

// Refuses a window that the schedule exceeds, or that it has no room for.
void check_window(const Selection& selection, const Choice& choice) {
  if (selection.window.empty()) return;
  const auto first = std::make_unique<OwnedProgram>();
  generate(choice, 0, *first);
  const bool fewer = first->window < choice.group.window;
  if (fewer ? selection.window_is_limit : first->window == choice.group.window) return;
  bad_input("algorithm '" + choice.algorithm.name + "' on " + choice.topology->title() +
            (fewer ? " has room for " : " needs ") + counted(first->window, "step") +
            " in flight; expected --window " + std::to_string(first->window));
}

std::string parameter_of(const std::string& name, std::uint32_t max_run) {
  if (max_run > 0) return "--run";
  return name == "lambda-tree" || name == "combine" ? "--lambda" : "";
}

}  // namespace

std::vector<Offer> offers() {
  std::vector<Offer> all;
  std::uint32_t count = 0;
  const Algorithm* generators = algorithms(count);
  for (std::uint32_t at = 0; at < count; ++at) {
    const Algorithm& one = generators[at];
    const bool tree = one.where == Where::kFatTree;
    all.push_back({one.name, one.collective, one.needs_commutative, one.summary,
                   tree ? "fat trees, whose routers run programs too" : "any topology",
                   parameter_of(one.name, one.max_run), one.max_run, &one, nullptr});
  }
  for (const searched::SearchedAlgorithm& one : searched::searched_algorithms()) {
    all.push_back({one.name, one.collective, one.needs_commutative, one.summary, one.topologies,
                   parameter_of(one.name, one.max_run), one.max_run, nullptr, &one});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Offer& a, const Offer& b) { return a.collective < b.collective; });
  return all;
}

void add_selection(Command command, Selection& selection, bool required) {
  command
      .text("--topology", selection.topology,
            "complete:N, mesh:RxC, fattree:k=K,h=H,c=1|k|c1,..,cH, crossbar:AxB or file:PATH")
      .required(required);
  command.text("--collective", selection.collective, collective_names()).required(required);
  command.text("--algorithm", selection.algorithm, "one that 'espalier list' names")
      .required(required);
  command
      .text("--root", selection.root,
            "rank that has (broadcast, scatter) or gets (reduce, gather) the data")
      .show_default(selection.root);
  command.text("--run", selection.run,
               "fractional trees: r, blocks a run; default: the algorithm's choice");
  command.text("--lambda", selection.lambda,
               "postal model: L/S, a send takes S ticks and arrives after L; default: 1");
  command.text("--embedding", selection.embedding,
               "where ranks stand: none (as numbered), snake, a name that 'espalier list "
               "--embeddings' prints, or a file; default: the best one known");
}

void add_schedule_window(Command command, Selection& selection) {
  command.text("--window", selection.window,
               "Steps in flight that the schedule is to allow; default: 8");
}

void add_links(Command command, Selection& selection) {
  command.text("--links", selection.links,
               "direct: the fabric routes; modelled: every message crosses one link of the "
               "topology, routers have programs; default: direct");
  command.text("--ports", selection.ports,
               "With --links modelled: multiport, or single-send, one send a node and step; "
               "default: multiport");
}

std::unique_ptr<topology::Topology> parse_topology(const std::string& spec) {
  std::string error;
  auto topology = topology::read(spec, error);
  if (topology == nullptr) bad_input(one_line(error));
  return topology;
}

Choice choose(const Selection& selection) {
  Choice choice;
  choice.topology = parse_topology(selection.topology);
  Collective collective = espalier_Collective_COLLECTIVE_NONE;
  if (!parse_collective(selection.collective.c_str(), collective)) {
    bad_input("unknown collective '" + one_line(selection.collective) + "'; expected " +
              collective_names());
  }
  choice.algorithm = choose_algorithm(collective, selection.algorithm);
  choice.group.ranks = choice.topology->ranks();
  choice.group.root = choose_root(selection.root, *choice.topology, collective);
  choice.group.topology_digest = choice.topology->digest();
  choose_parameters(selection, choice);
  choose_shape(choice);
  choose_places(selection, choice);
  choose_nodes(choice);
  if (is_modelled(selection)) lower_choice(choose_ports(selection), choice);
  check_window(selection, choice);
  return choice;
}

void generate(const Choice& choice, std::uint32_t node, OwnedProgram& program) {
  if (choice.found.empty()) {
    generate_here(choice, node, program);
  } else {
    program = choice.found.at(node);
  }
}

std::vector<std::uint8_t> compile(const Choice& choice) {
  const Group& group = choice.group;
  ScheduleFileWriter writer(choice.topology->spec(), group.topology_digest, group.ranks,
                            choice.nodes);
  Progress progress("compiling");
  auto program = std::make_unique<OwnedProgram>();
  for (std::uint32_t node = 0; node < choice.nodes; ++node) {
    generate(choice, node, *program);
    const Status status = writer.add(*program);
    if (status != Status::kOk) cannot_do(choice, status);
    progress.at(static_cast<double>(node) / choice.nodes);
  }
  std::vector<std::uint8_t> file;
  const Status status = writer.finish(file);
  if (status != Status::kOk)
    bad_input(std::string("cannot write a schedule file: ") + status_name(status));
  return file;
}

}  // namespace espalier::tools
