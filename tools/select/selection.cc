#include "tools/select/selection.h"

#include <algorithm>
#include <numeric>

#include "base/counted.h"
#include "collectives/algorithms/trees/alpha.h"
#include "collectives/build/builder.h"
#include "collectives/predict/block_rules.h"
#include "collectives/schedule/excess_words.h"
#include "collectives/search/fractional_mesh.h"
#include "espalier/base/digest.h"
#include "espalier/base/limits.h"
#include "espalier/collectives/embed/place.h"
#include "espalier/collectives/schedule/file_writer.h"
#include "espalier/collectives/schedule/selection.h"
#include "espalier/collectives/verify/verify.h"
#include "tools/common/failure.h"
#include "tools/common/numbers.h"
#include "tools/common/output.h"
#include "tools/select/embedding.h"
#include "tools/select/shape.h"

namespace espalier::tools {
namespace {

std::string collective_names() {
  std::vector<std::string> names;
  for (const Collective collective : kAllCollectives) {
    names.emplace_back(collective_name(collective));
  }
  return either(names);
}

Collective collective_of(const Selection& selection) {
  Collective collective = Collective::kNone;
  if (!parse_collective(selection.collective.c_str(), collective)) {
    bad_input("unknown collective '" + one_line(selection.collective) + "'; expected " +
              collective_names());
  }
  return collective;
}

const AlgorithmEntry& find_entry(Collective collective, const std::string& name) {
  std::vector<std::string> names;
  bool known = false;
  for (const AlgorithmEntry& entry : algorithm_entries()) {
    known = known || entry.name == name;
    if (entry.collective != collective) continue;
    if (entry.name == name) return entry;
    names.push_back(entry.name);
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
void choose_lambda(const std::string& text, CollectiveParameters& parameters) {
  const std::size_t slash = text.find('/');
  const bool whole = slash == std::string::npos;
  const std::string what = "--lambda '" + one_line(text) + "' (L/S ticks, S at most L):";
  const std::string latency = text.substr(0, slash);
  const std::string send = whole ? "1" : text.substr(slash + 1);
  parameters.latency_ticks = static_cast<std::uint32_t>(whole_number(what, latency, 1, kMaxTicks));
  parameters.send_ticks =
      static_cast<std::uint32_t>(whole_number(what, send, 1, parameters.latency_ticks));
}

// The digits after the point of a decimal alpha.
constexpr std::size_t kMaxRatioDigits = 9;

// "A/B", or a decimal: ".6", "0.618".
void choose_ratio(const std::string& text, CollectiveParameters& parameters) {
  const std::string what =
      "--ratio '" + one_line(text) + "' (A/B or a decimal, above 0 and below 1):";
  const std::size_t slash = text.find('/');
  std::uint64_t above = 0, below = 1;
  if (slash != std::string::npos) {
    below = whole_number(what, text.substr(slash + 1), 2, kMaxAlphaDenominator);
    above = whole_number(what, text.substr(0, slash), 1, below - 1);
  } else {
    const std::size_t point = text.find('.');
    const std::string digits = point == std::string::npos ? "" : text.substr(point + 1);
    const std::string whole = text.substr(0, point);
    if (digits.empty() || digits.size() > kMaxRatioDigits || (whole != "0" && !whole.empty())) {
      bad_input(what + " expected a fraction such as 3/5, or a decimal such as 0.6 with at most " +
                std::to_string(kMaxRatioDigits) + " digits");
    }
    for (std::size_t i = 0; i < digits.size(); ++i) below *= 10;
    above = whole_number(what + " digits", digits, 1, below - 1);
  }
  const std::uint64_t divisor = std::gcd(above, below);
  parameters.ratio_numerator = static_cast<std::uint32_t>(above / divisor);
  parameters.ratio_denominator = static_cast<std::uint32_t>(below / divisor);
}

bool takes(const AlgorithmEntry& entry, const std::string& option) {
  return std::find(entry.parameters.begin(), entry.parameters.end(), option) !=
         entry.parameters.end();
}

void choose_parameters(const Selection& selection, SelectedAlgorithm& selected) {
  const AlgorithmEntry& entry = selected.algorithm;
  const auto check_taken = [&entry](const char* option) {
    if (takes(entry, option)) return;
    bad_input(std::string(option) + " is no parameter of algorithm '" + entry.name + "'" +
              (entry.parameters.empty() ? "" : ", which takes " + either(entry.parameters)) +
              "; 'espalier list' says which takes what");
  };
  CollectiveParameters& parameters = selected.parameters;
  if (!selection.run_length.empty()) check_taken("--run-length");
  if (!selection.run_length.empty() && selection.run_length != kOwnRunLength) {
    parameters.run_length = static_cast<std::uint32_t>(
        whole_number("--run-length", selection.run_length, 1, kMaxFieldWindow));
    if (parameters.run_length > entry.max_run_length) {
      bad_input("--run-length " + std::to_string(parameters.run_length) + " is above " +
                std::to_string(entry.max_run_length) + ", the longest run length of algorithm '" +
                entry.name + "' of " + collective_name(entry.collective));
    }
  }
  if (!selection.radix.empty()) {
    check_taken("--radix");
    parameters.radix =
        static_cast<std::uint32_t>(whole_number("--radix", selection.radix, 2, kMaxLinearRanks));
  }
  if (!selection.lambda.empty()) {
    check_taken("--lambda");
    choose_lambda(selection.lambda, parameters);
  }
  if (!selection.ratio.empty()) {
    check_taken("--ratio");
    choose_ratio(selection.ratio, parameters);
  }
  if (!selection.window.empty()) {
    parameters.window = static_cast<std::uint32_t>(
        whole_number("--window", selection.window, 1, verify::kMaxVerifiedWindow));
  }
}

void choose_places(const Selection& selection, SelectedAlgorithm& selected) {
  selected.embedding = choose_embedding(selection, selected);
  if (!selected.embedding) return;
  selected.rank_at.resize(selected.parameters.ranks);
  for (std::uint32_t rank = 0; rank < selected.parameters.ranks; ++rank) {
    selected.rank_at[selected.embedding->node_of[rank]] = rank;
  }
}

// The parameters to generate for before placing: the root is virtual rank 0.
CollectiveParameters virtual_parameters(const SelectedAlgorithm& selected) {
  CollectiveParameters parameters = selected.parameters;
  if (selected.embedding) {
    parameters.root = 0;
    if (selected.embedding->run_length != 0) parameters.run_length = selected.embedding->run_length;
  }
  return parameters;
}

void check_placed(const SelectedAlgorithm& selected, Status status) {
  if (status == Status::kOk) return;
  bad_input("algorithm '" + selected.algorithm.name + "' cannot stand as embedding " +
            quoted_name(*selected.embedding) + " says: " + status_name(status) +
            "; expected --embedding none");
}

// Checks that the algorithm is for this topology, and counts the nodes that it has programs for.
void choose_nodes(SelectedAlgorithm& selected) {
  const AlgorithmEntry& entry = selected.algorithm;
  const bool applies = entry.search != nullptr ? entry.search->applies(*selected.topology)
                                               : runs_on(*entry.generator, selected.parameters);
  if (!applies) {
    bad_input("algorithm '" + entry.name + "' of " + collective_name(entry.collective) +
              " is for " + entry.topologies + ", not for " + selected.topology->title() +
              "; 'espalier list' says which runs where");
  }
  if (entry.search == nullptr) {
    selected.nodes = algorithm_nodes(*entry.generator, selected.parameters);
    return;
  }
  const bool by_groups = selected.embedding && !selected.embedding->groups.empty();
  // The error names the algorithm.
  selected.found = or_bad_input(
      by_groups
          ? searched::fractional_mesh(*selected.topology, selected.parameters, *selected.embedding)
          : entry.search->search(*selected.topology, virtual_parameters(selected)));
  if (selected.embedding && !by_groups) {
    check_placed(selected, embed::place_all(selected.embedding->node_of, selected.found));
  }
  selected.nodes = static_cast<std::uint32_t>(selected.found.size());
}

std::string reason_too_large(const SelectedAlgorithm& selected, const TableExcess& excess) {
  const CollectiveParameters& parameters = selected.parameters;
  const std::uint32_t max_ranks = selected.algorithm.generator->max_ranks;
  if (max_ranks > 0 && parameters.ranks > max_ranks) {
    return "a rank has a link to every other, and a node has at most " +
           counted(max_ranks - 1, "link") + "; expected at most " + counted(max_ranks, "rank") +
           ", or algorithm 'chain'";
  }
  if (parameters.ratio_denominator > 0) {
    return "with this --ratio a rank has more sends than programs have room for, or the tree is "
           "too deep; expected a --ratio nearer to 1/2, or fewer than " +
           counted(parameters.ranks, "rank");
  }
  return (excess.table == nullptr ? "programs have no room for so many" : excess_words(excess)) +
         "; expected fewer than " + counted(parameters.ranks, "rank") +
         (parameters.radix > 2 ? ", or another --radix" : "") +
         (parameters.latency_ticks > 1 ? ", or a smaller --lambda" : "");
}

// The reason why a rank-local algorithm makes no program for this selection, and its requirement.
std::string reason(const SelectedAlgorithm& selected, Status status, const TableExcess& excess) {
  const CollectiveParameters& parameters = selected.parameters;
  const std::string ranks = counted(parameters.ranks, "rank");
  switch (status) {
    case Status::kTooLarge: return reason_too_large(selected, excess);
    case Status::kMalformed:
      return "a program of it breaks the format's rules, which is a fault of this espalier; "
             "expected another algorithm";
    case Status::kUnsupported: break;
    default: return std::string(status_name(status)) + "; expected another algorithm";
  }
  const Algorithm& generator = *selected.algorithm.generator;
  if (generator.needs_odd_ranks && parameters.ranks % 2 == 0) {
    return "its mirrored trees need an odd number of ranks, not " +
           std::to_string(parameters.ranks) + "; expected two-tree";
  }
  return "it is not for " + ranks + "; expected another algorithm";
}

[[noreturn]] void cannot_do(const SelectedAlgorithm& selected, Status status,
                            const TableExcess& excess = {}) {
  const AlgorithmEntry& entry = selected.algorithm;
  const std::string root =
      has_root(entry.collective) ? " with root " + std::to_string(selected.parameters.root) : "";
  bad_input("algorithm '" + entry.name + "' cannot do " + collective_name(entry.collective) +
            " on " + selected.topology->title() + root + ": " + reason(selected, status, excess));
}

bool is_hop_by_hop(const Selection& selection) {
  if (selection.links.empty() || selection.links == "routed") {
    if (selection.ports.empty()) return false;
    bad_input("--ports is for schedules on the links of the topology; expected --links hop-by-hop");
  }
  if (selection.links == "hop-by-hop") return true;
  bad_input("unknown --links '" + one_line(selection.links) + "'; expected routed or hop-by-hop");
}

PortModel choose_ports(const Selection& selection) {
  if (selection.ports.empty() || selection.ports == "multiport") {
    return PortModel::kMultiport;
  }
  if (selection.ports == "single-send") return PortModel::kSingleSend;
  bad_input("unknown --ports '" + one_line(selection.ports) +
            "'; expected multiport or single-send");
}

// Generates the placed program of a rank-local algorithm.
void generate_here(const SelectedAlgorithm& selected, std::uint32_t node, Program& program) {
  program.clear();
  const std::uint32_t rank = selected.embedding ? selected.rank_at.at(node) : node;
  const Status status =
      selected.algorithm.generator->generate(virtual_parameters(selected), rank, program);
  if (status == Status::kTooLarge) {
    CollectiveParameters parameters = virtual_parameters(selected);
    TableExcess excess;
    parameters.excess = &excess;
    (void)selected.algorithm.generator->generate(parameters, rank, program);
    cannot_do(selected, status, excess);
  }
  if (status != Status::kOk) cannot_do(selected, status);
  if (selected.embedding)
    check_placed(selected, embed::place(selected.embedding->node_of, program));
}

void lower_choice(PortModel ports, SelectedAlgorithm& selected) {
  if (selected.found.empty()) {
    selected.found.resize(selected.nodes);
    for (std::uint32_t node = 0; node < selected.nodes; ++node) {
      generate_here(selected, node, selected.found[node]);
    }
  }
  selected.found = or_bad_input(lower::lower(*selected.topology, selected.parameters, ports,
                                             selected.found, selected.report));
  selected.nodes = static_cast<std::uint32_t>(selected.found.size());
}

// Refuses a window that the schedule exceeds, or that it has no room for.
void check_window(const Selection& selection, const SelectedAlgorithm& selected) {
  if (selection.window.empty()) return;
  const auto first = std::make_unique<OwnedProgram>();
  generate(selected, 0, *first);
  const bool fewer = first->window < selected.parameters.window;
  if (fewer ? selection.window_is_limit : first->window == selected.parameters.window) return;
  bad_input("algorithm '" + selected.algorithm.name + "' on " + selected.topology->title() +
            (fewer ? " has room for " : " needs ") + counted(first->window, "step") +
            " in flight; expected --window " + std::to_string(first->window));
}

std::vector<std::string> parameters_of(bool run_length, bool radix, bool lambda, bool ratio) {
  std::vector<std::string> taken;
  if (run_length) taken.emplace_back("--run-length");
  if (radix) taken.emplace_back("--radix");
  if (lambda) taken.emplace_back("--lambda");
  if (ratio) taken.emplace_back("--ratio");
  return taken;
}

std::vector<AlgorithmEntry> list_entries() {
  std::vector<AlgorithmEntry> all;
  for (const Algorithm& one : algorithms()) {
    const char* topologies = one.where == Where::kFatTree
                                 ? "fat trees, whose routers run programs too"
                             : one.where == Where::kHosts ? "hosts:HxR"
                             : one.where == Where::kMesh  ? "mesh:RxC"
                             : one.where == Where::kGrid  ? "meshes, tori and rings"
                             : one.where == Where::kTorus ? "tori and rings"
                                                          : "any topology";
    all.push_back(
        {one.name, one.collective, one.needs_commutative, one.summary, topologies,
         one.where == Where::kAnywhere, one.is_chain, false,
         parameters_of(one.max_run_length > 0, one.takes_radix, one.takes_lambda, one.takes_ratio),
         one.max_run_length, &one, nullptr});
  }
  for (const searched::SearchedAlgorithm& one : searched::searched_algorithms()) {
    all.push_back({one.name, one.collective, one.needs_commutative, one.summary, one.topologies,
                   one.any_topology, false, one.has_groups,
                   parameters_of(one.max_run_length > 0, false, false, false), one.max_run_length,
                   nullptr, &one});
  }
  std::stable_sort(all.begin(), all.end(), [](const AlgorithmEntry& a, const AlgorithmEntry& b) {
    return a.collective < b.collective;
  });
  return all;
}

}  // namespace

const std::vector<AlgorithmEntry>& algorithm_entries() {
  static const std::vector<AlgorithmEntry> all = list_entries();
  return all;
}

void add_selection(Command command, Selection& selection, bool required) {
  command.text("--topology", selection.topology, topology::kSpecificationForms).required(required);
  command.text("--collective", selection.collective, collective_names()).required(required);
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

void add_schedule_window(Command command, Selection& selection) {
  command.text("--window", selection.window,
               "steps in flight that the schedule must allow; default: 8");
}

void add_links(Command command, Selection& selection) {
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

bool is_for_hosts(const std::string& limits) {
  if (!limits.empty() && limits != "boards" && limits != "host") {
    bad_input("unknown --limits '" + one_line(limits) + "'; expected boards or host");
  }
  return limits == "host";
}

std::unique_ptr<topology::Topology> parse_topology(const std::string& spec) {
  return or_bad_input(topology::read(spec));
}

std::unique_ptr<topology::Topology> check_selection(const Selection& selection) {
  auto topology = parse_topology(selection.topology);
  (void)choose_root(selection.root, *topology, collective_of(selection));
  return topology;
}

bool is_chosen(const Selection& selection) {
  if (selection.algorithm == kAuto) return true;
  if (!selection.run_length.empty()) return false;
  const std::vector<AlgorithmEntry>& entries = algorithm_entries();
  return std::any_of(entries.begin(), entries.end(), [&selection](const AlgorithmEntry& entry) {
    // An embedding of groups says how many ranks a group has.
    const bool is_given =
        entry.has_groups && !selection.embedding.empty() && selection.embedding != "none";
    return entry.name == selection.algorithm &&
           collective_name(entry.collective) == selection.collective &&
           takes(entry, "--run-length") && !is_given;
  });
}

const char* choice_word(const Selection& selection) {
  return selection.algorithm == kAuto ? kAuto : "run length";
}

SelectedAlgorithm select_algorithm(const Selection& selection) {
  SelectedAlgorithm selected;
  selected.topology = parse_topology(selection.topology);
  const Collective collective = collective_of(selection);
  selected.algorithm = find_entry(collective, selection.algorithm);
  selected.parameters.ranks = selected.topology->ranks();
  selected.parameters.root = choose_root(selection.root, *selected.topology, collective);
  selected.parameters.topology_digest = selected.topology->digest();
  selected.parameters.host_limits = is_for_hosts(selection.limits);
  choose_parameters(selection, selected);
  selected.shape = selected.topology->shape();
  set_shape(selected.shape, selected.parameters);
  choose_places(selection, selected);
  choose_nodes(selected);
  if (is_hop_by_hop(selection)) lower_choice(choose_ports(selection), selected);
  check_window(selection, selected);
  return selected;
}

void generate(const SelectedAlgorithm& selected, std::uint32_t node, OwnedProgram& program) {
  if (selected.found.empty()) {
    generate_here(selected, node, program);
  } else {
    program = selected.found.at(node);
  }
  std::uint64_t digest = program.schedule_digest;
  if (!selected.rules.empty()) predict::set_block_rules(selected.rules, program);
  for (const BlockRule& rule : selected.rules) {
    digest = digest_u64(digest_u64(digest, rule.from_bytes), rule.block_bytes);
  }
  if (selected.selection_digest != 0) {
    digest = digest_in_selection(selected.selection_digest, digest);
  }
  program.schedule_digest = digest;
}

std::vector<std::uint8_t> compile(const SelectedAlgorithm& selected) {
  const CollectiveParameters& parameters = selected.parameters;
  ScheduleFileWriter writer(selected.topology->spec(), parameters.topology_digest, parameters.ranks,
                            selected.nodes);
  Progress progress("compiling");
  auto program = std::make_unique<OwnedProgram>();
  for (std::uint32_t node = 0; node < selected.nodes; ++node) {
    generate(selected, node, *program);
    const Status status = writer.add(*program);
    if (status != Status::kOk) cannot_do(selected, status);
    progress.show(static_cast<double>(node) / selected.nodes);
  }
  std::vector<std::uint8_t> file;
  const Status status = writer.finish(file);
  if (status != Status::kOk)
    bad_input(std::string("cannot write a schedule file: ") + status_name(status));
  return file;
}

}  // namespace espalier::tools
