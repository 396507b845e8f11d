#include "tools/options/plan_options.h"

#include <numeric>

#include "collectives/algorithms/trees/alpha.h"
#include "collectives/build/builder.h"
#include "collectives/schedule/selection.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/verify/verify.h"
#include "espalier/internal/base/limits.h"
#include "tools/common/failure.h"
#include "tools/common/numbers.h"
#include "tools/common/output.h"

namespace espalier::tools {
namespace {

std::string collective_names() {
  std::vector<std::string> names;
  for (const Collective collective : kAllCollectives) {
    names.emplace_back(collective_name(collective));
  }
  return either(names);
}

std::uint32_t number_of(const std::string& what, const std::string& text, std::uint64_t least,
                        std::uint64_t most) {
  return static_cast<std::uint32_t>(whole_number(what, text, least, most));
}

std::uint32_t root_of(const std::string& text, const topology::Topology& topology,
                      Collective collective) {
  const std::string what = "--root on " + topology.title() + ":";
  const std::uint32_t root = number_of(what, text, 0, topology.ranks() - 1);
  if (root != 0 && !has_root(collective)) {
    bad_input(std::string(collective_name(collective)) + " has no root; expected no --root " +
              std::to_string(root));
  }
  return root;
}

// "L/S" or "L".
planner::Fraction lambda_of(const std::string& text) {
  const std::size_t slash = text.find('/');
  const std::string what = "--lambda '" + one_line(text) + "' (L/S ticks, S at most L):";
  const std::uint32_t latency = number_of(what, text.substr(0, slash), 1, kMaxTicks);
  if (slash == std::string::npos) return {latency, 1};
  return {latency, number_of(what, text.substr(slash + 1), 1, latency)};
}

// The digits after the point of a decimal alpha.
constexpr std::size_t kMaxRatioDigits = 9;

// "A/B", or a decimal: ".6", "0.618".
planner::Fraction ratio_of(const std::string& text) {
  const std::string what =
      "--ratio '" + one_line(text) + "' (A/B or a decimal, above 0 and below 1):";
  const std::size_t slash = text.find('/');
  std::uint32_t above = 0, below = 1;
  if (slash != std::string::npos) {
    below = number_of(what, text.substr(slash + 1), 2, kMaxAlphaDenominator);
    above = number_of(what, text.substr(0, slash), 1, below - 1);
  } else {
    const std::size_t point = text.find('.');
    const std::string digits = point == std::string::npos ? "" : text.substr(point + 1);
    const std::string whole = text.substr(0, point);
    if (digits.empty() || digits.size() > kMaxRatioDigits || (whole != "0" && !whole.empty())) {
      bad_input(what + " expected a fraction such as 3/5, or a decimal such as 0.6 with at most " +
                std::to_string(kMaxRatioDigits) + " digits");
    }
    for (std::size_t i = 0; i < digits.size(); ++i) below *= 10;
    above = number_of(what + " digits", digits, 1, below - 1);
  }
  const std::uint32_t divisor = std::gcd(above, below);
  return {above / divisor, below / divisor};
}

planner::Placement placement_of(const std::string& name) {
  using Kind = planner::Placement::Kind;
  if (name.empty()) return {};
  if (name == "none") return {Kind::kAsNumbered};
  if (name == "snake") return {Kind::kSnake};
  if (name == "z-order") return {Kind::kZOrder};
  const auto given = [](topology::Embedding embedding) -> planner::Placement {
    return {Kind::kGiven, std::make_shared<const topology::Embedding>(std::move(embedding))};
  };
  if (auto known = topology::known_embedding(name)) return given(*std::move(known));
  if (name.find('/') != std::string::npos || name.ends_with(".textproto")) {
    return given(or_bad_input(topology::read_embedding(name)));
  }
  bad_input(
      "unknown embedding '" + one_line(name) +
      "'; expected none, snake, z-order, one that 'espalier list --embeddings' names, or a file "
      "(NAME.textproto)");
}

}  // namespace

void add_plan_options(Command command, PlanOptions& options, bool required) {
  command.text("--topology", options.topology, topology::kSpecificationForms).required(required);
  command.text("--collective", options.collective, collective_names()).required(required);
  command
      .text("--algorithm", options.algorithm,
            "auto (the one that the model predicts to be fastest) or one that 'espalier list' "
            "names")
      .show_default(options.algorithm);
  command
      .text("--root", options.root,
            "rank that has (broadcast, scatter) or gets (reduce, gather) the data")
      .show_default(options.root);
  command.text("--run-length", options.run_length,
               "fractional trees: r, blocks per run, or own: chosen by the number of ranks alone; "
               "default: by the model, for each size of messages");
  command.text(
      "--radix", options.radix,
      "k-nomial trees: k, parts of an interval; default: the fewest ticks, 2 for lambda 1");
  command.text("--lambda", options.lambda,
               "postal model: L/S, a send takes S ticks and arrives after L; default: 1");
  command.text("--ratio", options.ratio,
               "alpha-tree: A/B or a decimal, the share of its ranks that a sender keeps; default: "
               "the algorithm's choice");
  command.text(
      "--embedding", options.embedding,
      "placement of the ranks: none (as numbered), snake, z-order, a name that 'espalier list "
      "--embeddings' prints, or a file; default: the best one known");
}

void add_schedule_window(Command command, PlanOptions& options) {
  command.text("--window", options.window,
               "steps in flight that the schedule must allow; default: 8");
}

void add_links(Command command, PlanOptions& options) {
  command.word("--links", {"routed", "hop-by-hop"}, options.links,
               "routed: the fabric routes; hop-by-hop: every message crosses one link of the "
               "topology, routers have programs; default: routed");
  command.word("--ports", {"multiport", "single-send"}, options.ports,
               "With --links hop-by-hop: multiport, or single-send, one send per node and step; "
               "default: multiport");
}

void add_limits(Command command, std::string& limits) {
  command.word("--limits", {"boards", "host"}, limits,
               "boards: programs that boards have room for; host: larger ones, which boards "
               "refuse; default: boards");
}

std::unique_ptr<topology::Topology> parse_topology(const std::string& spec) {
  return or_bad_input(topology::read(spec));
}

Collective collective_of(const std::string& name) {
  Collective collective = Collective::kNone;
  if (!parse_collective(name.c_str(), collective)) {
    bad_input("unknown collective '" + one_line(name) + "'; expected " + collective_names());
  }
  return collective;
}

planner::PlanRequest plan_request(const PlanOptions& options) {
  planner::PlanRequest request{.topology = parse_topology(options.topology),
                               .collective = collective_of(options.collective)};
  if (options.algorithm != kAuto) {
    request.algorithm = or_bad_input(planner::find_entry(request.collective, options.algorithm));
  }
  request.root = root_of(options.root, *request.topology, request.collective);
  request.is_for_hosts = options.limits == "host";
  request.has_own_run_length = options.run_length == "own";
  if (!options.run_length.empty() && !request.has_own_run_length) {
    request.run_length = number_of("--run-length", options.run_length, 1, kMaxFieldWindow);
  }
  if (!options.radix.empty()) {
    request.radix = number_of("--radix", options.radix, 2, kMaxLinearRanks);
  }
  if (!options.lambda.empty()) request.lambda = lambda_of(options.lambda);
  if (!options.ratio.empty()) request.ratio = ratio_of(options.ratio);
  if (!options.window.empty()) {
    request.window = number_of("--window", options.window, 1, verify::kMaxVerifiedWindow);
  }
  request.window_is_limit = options.window_is_limit;
  request.placement = placement_of(options.embedding);
  request.is_hop_by_hop = options.links == "hop-by-hop";
  if (!request.is_hop_by_hop && !options.ports.empty()) {
    bad_input("--ports is for schedules on the links of the topology; expected --links hop-by-hop");
  }
  request.ports = options.ports == "single-send" ? PortModel::kSingleSend : PortModel::kMultiport;
  return request;
}

planner::PlannedSchedule make_schedule(const PlanOptions& options) {
  planner::PlanRequest request = plan_request(options);
  if (request.algorithm == nullptr) {
    request.algorithm = or_bad_input(planner::find_entry(request.collective, options.algorithm));
  }
  return or_bad_input(planner::make_schedule(request));
}

const char* choice_word(const PlanOptions& options) {
  return options.algorithm == kAuto ? kAuto : "run length";
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
