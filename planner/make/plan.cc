#include "planner/make/plan.h"

#include "base/counted.h"
#include "base/digest.h"
#include "base/try.h"
#include "collectives/predict/block_rules.h"
#include "collectives/schedule/excess_words.h"
#include "collectives/schedule/selection.h"
#include "collectives/search/fractional_mesh.h"
#include "espalier/collectives/embed/place.h"
#include "espalier/internal/base/assert.h"
#include "planner/make/embedding.h"
#include "planner/make/shape.h"

namespace espalier::planner {
namespace {

// Sets the parameters. Error: the algorithm does not take one of them.
Result<void> choose_parameters(const PlanRequest& request, PlannedSchedule& schedule) {
  const AlgorithmEntry& entry = schedule.algorithm;
  const struct {
    const char* name;
    bool is_given;
  } given[] = {{"--run-length", request.run_length != 0 || request.has_own_run_length},
               {"--radix", request.radix != 0},
               {"--lambda", request.lambda.is_given()},
               {"--ratio", request.ratio.is_given()}};
  for (const auto& parameter : given) {
    if (!parameter.is_given || takes(entry, parameter.name)) continue;
    return fail(std::string(parameter.name) + " is no parameter of algorithm '" + entry.name + "'" +
                (entry.parameters.empty() ? "" : ", which takes " + either(entry.parameters)) +
                "; 'espalier list' says which takes what");
  }
  if (request.run_length > entry.max_run_length) {
    return fail("--run-length " + std::to_string(request.run_length) + " is above " +
                std::to_string(entry.max_run_length) + ", the longest run length of algorithm '" +
                entry.name + "' of " + collective_name(entry.collective));
  }
  CollectiveParameters& parameters = schedule.parameters;
  if (request.run_length != 0) parameters.run_length = request.run_length;
  if (request.radix != 0) parameters.radix = request.radix;
  if (request.lambda.is_given()) {
    parameters.latency_ticks = request.lambda.above;
    parameters.send_ticks = request.lambda.below;
  }
  parameters.ratio_numerator = request.ratio.above;
  parameters.ratio_denominator = request.ratio.below;
  if (request.window != 0) parameters.window = request.window;
  return {};
}

Result<void> choose_places(const PlanRequest& request, PlannedSchedule& schedule) {
  ESPALIER_TRY_TO(auto embedding, choose_embedding(request, schedule));
  schedule.embedding = std::move(embedding);
  if (!schedule.embedding) return {};
  schedule.rank_at.resize(schedule.parameters.ranks);
  for (std::uint32_t rank = 0; rank < schedule.parameters.ranks; ++rank) {
    schedule.rank_at[schedule.embedding->node_of[rank]] = rank;
  }
  return {};
}

// The parameters to generate for before placing: the root is virtual rank 0.
CollectiveParameters virtual_parameters(const PlannedSchedule& schedule) {
  CollectiveParameters parameters = schedule.parameters;
  if (schedule.embedding) {
    parameters.root = 0;
    if (schedule.embedding->run_length != 0) parameters.run_length = schedule.embedding->run_length;
  }
  return parameters;
}

Result<void> check_placed(const PlannedSchedule& schedule, Status status) {
  if (status == Status::kOk) return {};
  return fail("algorithm '" + schedule.algorithm.name + "' cannot stand as embedding " +
              quoted_name(*schedule.embedding) + " says: " + status_name(status) +
              "; expected --embedding none");
}

// Checks that the algorithm is for this topology, and counts the nodes that it has programs for.
Result<void> choose_nodes(PlannedSchedule& schedule) {
  const AlgorithmEntry& entry = schedule.algorithm;
  const bool applies = entry.search != nullptr ? entry.search->applies(*schedule.topology)
                                               : runs_on(*entry.generator, schedule.parameters);
  if (!applies) {
    return fail("algorithm '" + entry.name + "' of " + collective_name(entry.collective) +
                " is for " + entry.topologies + ", not for " + schedule.topology->title() +
                "; 'espalier list' says which runs where");
  }
  if (entry.search == nullptr) {
    schedule.nodes = algorithm_nodes(*entry.generator, schedule.parameters);
    return {};
  }
  const bool by_groups = schedule.embedding && !schedule.embedding->groups.empty();
  // The error names the algorithm.
  ESPALIER_TRY_TO(
      auto found,
      by_groups
          ? searched::fractional_mesh(*schedule.topology, schedule.parameters, *schedule.embedding)
          : entry.search->search(*schedule.topology, virtual_parameters(schedule)));
  schedule.found = std::move(found);
  schedule.nodes = static_cast<std::uint32_t>(schedule.found.size());
  if (!schedule.embedding || by_groups) return {};
  return check_placed(schedule, embed::place_all(schedule.embedding->node_of, schedule.found));
}

std::string reason_too_large(const PlannedSchedule& schedule, const TableExcess& excess) {
  const CollectiveParameters& parameters = schedule.parameters;
  const std::uint32_t max_ranks = schedule.algorithm.generator->max_ranks;
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
std::string reason(const PlannedSchedule& schedule, Status status, const TableExcess& excess) {
  const CollectiveParameters& parameters = schedule.parameters;
  const std::string ranks = counted(parameters.ranks, "rank");
  switch (status) {
    case Status::kTooLarge: return reason_too_large(schedule, excess);
    case Status::kMalformed:
      return "a program of it breaks the format's rules, which is a fault of this espalier; "
             "expected another algorithm";
    case Status::kUnsupported: break;
    default: return std::string(status_name(status)) + "; expected another algorithm";
  }
  const Algorithm& generator = *schedule.algorithm.generator;
  if (generator.needs_odd_ranks && parameters.ranks % 2 == 0) {
    return "its mirrored trees need an odd number of ranks, not " +
           std::to_string(parameters.ranks) + "; expected two-tree";
  }
  return "it is not for " + ranks + "; expected another algorithm";
}

tl::unexpected<Error> cannot_do(const PlannedSchedule& schedule, Status status,
                                const TableExcess& excess = {}) {
  const AlgorithmEntry& entry = schedule.algorithm;
  const std::string root =
      has_root(entry.collective) ? " with root " + std::to_string(schedule.parameters.root) : "";
  return fail("algorithm '" + entry.name + "' cannot do " + collective_name(entry.collective) +
              " on " + schedule.topology->title() + root + ": " + reason(schedule, status, excess));
}

// Generates the placed program of a rank-local algorithm.
Result<void> generate_here(const PlannedSchedule& schedule, std::uint32_t node, Program& program) {
  program.clear();
  const std::uint32_t rank = schedule.embedding ? schedule.rank_at.at(node) : node;
  const Status status =
      schedule.algorithm.generator->generate(virtual_parameters(schedule), rank, program);
  if (status == Status::kTooLarge) {
    CollectiveParameters parameters = virtual_parameters(schedule);
    TableExcess excess;
    parameters.excess = &excess;
    (void)schedule.algorithm.generator->generate(parameters, rank, program);
    return cannot_do(schedule, status, excess);
  }
  if (status != Status::kOk) return cannot_do(schedule, status);
  if (!schedule.embedding) return {};
  return check_placed(schedule, embed::place(schedule.embedding->node_of, program));
}

Result<void> lower_choice(PortModel ports, PlannedSchedule& schedule) {
  if (schedule.found.empty()) {
    schedule.found.resize(schedule.nodes);
    for (std::uint32_t node = 0; node < schedule.nodes; ++node) {
      ESPALIER_TRY(generate_here(schedule, node, schedule.found[node]));
    }
  }
  ESPALIER_TRY_TO(schedule.found, lower::lower(*schedule.topology, schedule.parameters, ports,
                                               schedule.found, schedule.report));
  schedule.nodes = static_cast<std::uint32_t>(schedule.found.size());
  return {};
}

// Refuses a window that the schedule exceeds, or that it has no room for.
Result<void> check_window(const PlanRequest& request, const PlannedSchedule& schedule) {
  if (request.window == 0) return {};
  const auto first = std::make_unique<OwnedProgram>();
  ESPALIER_TRY(generate(schedule, 0, *first));
  const bool fewer = first->window < schedule.parameters.window;
  if (fewer ? request.window_is_limit : first->window == schedule.parameters.window) return {};
  return fail("algorithm '" + schedule.algorithm.name + "' on " + schedule.topology->title() +
              (fewer ? " has room for " : " needs ") + counted(first->window, "step") +
              " in flight; expected --window " + std::to_string(first->window));
}

}  // namespace

Result<PlannedSchedule> make_schedule(const PlanRequest& request) {
  PlannedSchedule schedule;
  schedule.topology = request.topology;
  schedule.algorithm = *request.algorithm;
  schedule.parameters.ranks = request.topology->ranks();
  ESPALIER_ASSERT(request.root < schedule.parameters.ranks);
  schedule.parameters.root = request.root;
  schedule.parameters.topology_digest = request.topology->digest();
  schedule.parameters.host_limits = request.is_for_hosts;
  ESPALIER_TRY(choose_parameters(request, schedule));
  schedule.shape = request.topology->shape();
  set_shape(schedule.shape, schedule.parameters);
  ESPALIER_TRY(choose_places(request, schedule));
  ESPALIER_TRY(choose_nodes(schedule));
  if (request.is_hop_by_hop) {
    ESPALIER_TRY(lower_choice(request.ports, schedule));
  }
  ESPALIER_TRY(check_window(request, schedule));
  return schedule;
}

Result<void> generate(const PlannedSchedule& schedule, std::uint32_t node, OwnedProgram& program) {
  if (schedule.found.empty()) {
    ESPALIER_TRY(generate_here(schedule, node, program));
  } else {
    program = schedule.found.at(node);
  }
  std::uint64_t digest = program.schedule_digest;
  if (!schedule.rules.empty()) predict::set_block_rules(schedule.rules, program);
  for (const BlockRule& rule : schedule.rules) {
    digest = digest_u64(digest_u64(digest, rule.from_bytes), rule.block_bytes);
  }
  if (schedule.selection_digest != 0) {
    digest = digest_in_selection(schedule.selection_digest, digest);
  }
  program.schedule_digest = digest;
  return {};
}

Result<std::vector<std::uint8_t>> compile(const PlannedSchedule& schedule,
                                          const ShowProgress& progress) {
  const CollectiveParameters& parameters = schedule.parameters;
  ScheduleFileWriter writer(schedule.topology->spec(), parameters.topology_digest, parameters.ranks,
                            schedule.nodes);
  auto program = std::make_unique<OwnedProgram>();
  for (std::uint32_t node = 0; node < schedule.nodes; ++node) {
    ESPALIER_TRY(generate(schedule, node, *program));
    const Status status = writer.add(*program);
    if (status != Status::kOk) return cannot_do(schedule, status);
    show(progress, static_cast<double>(node) / schedule.nodes);
  }
  std::vector<std::uint8_t> file;
  const Status status = writer.finish(file);
  if (status != Status::kOk) {
    return fail(std::string("cannot write a schedule file: ") + status_name(status));
  }
  return file;
}

}  // namespace espalier::planner
