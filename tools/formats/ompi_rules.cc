#include "tools/formats/ompi_rules.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "planner/workload/reference.h"
#include "tools/common/failure.h"
#include "tools/common/output.h"

namespace espalier::tools::formats {
namespace {

constexpr std::uint64_t kMaxRuledBytes = std::uint64_t{1} << 30;

// A collective of Open MPI: its number there (coll_base_functions.h, COLLTYPE_T), and the
// algorithms of both libraries, by the value of coll_tuned_NAME_algorithm.
struct OmpiCollective {
  Collective collective;
  int number;
  std::string_view name;
  struct Algorithm {
    std::string_view name;
    int number;
    bool has_segments;
    int fan_out = 0;  // where Open MPI has a variant of the algorithm for each
  };
  std::vector<Algorithm> algorithms;
};

const std::vector<OmpiCollective>& ompi_table() {
  static const std::vector<OmpiCollective> kTable = {
      {Collective::kAllgather,
       0,
       "allgather",
       // Version 6 takes the fan-out from the rule: with 0 it does not end. Earlier ones ignore it.
       {{"bruck", 2, false, 2}, {"recursive-doubling", 3, false}, {"ring", 4, false}}},
      {Collective::kAllreduce,
       2,
       "allreduce",
       {{"recursive-doubling", 3, false}, {"ring", 4, false}, {"rabenseifner", 6, false}}},
      {Collective::kAllToAll, 3, "alltoall", {{"pairwise", 2, false}, {"bruck", 3, false}}},
      {Collective::kBarrier,
       6,
       "barrier",
       {{"recursive-doubling", 3, false}, {"dissemination", 4, false}}},
      {Collective::kBroadcast,
       7,
       "bcast",
       {{"chain", 3, true},
        {"binary", 5, true},
        {"binomial", 6, false},
        {"scatter-allgather", 9, false}}},
      {Collective::kGather, 9, "gather", {{"linear", 1, false}, {"binomial", 2, false}}},
      {Collective::kReduce,
       11,
       "reduce",
       {{"chain", 3, true},
        {"binary", 4, true},
        {"binomial", 5, false},
        {"rabenseifner", 7, false}}},
      {Collective::kReduceScatter,
       12,
       "reduce_scatter",
       {{"recursive-halving", 2, false}, {"ring", 3, false}}},
      {Collective::kReduceScatter, 13, "reduce_scatter_block", {{"recursive-halving", 3, false}}},
      {Collective::kScatter, 15, "scatter", {{"linear", 1, false}, {"binomial", 2, false}}},
  };
  return kTable;
}

struct OmpiRule {
  std::uint64_t from_bytes = 0;
  int algorithm = 0;
  int fan_out = 0;
  std::uint32_t segment_bytes = 0;
  std::string_view name;
};

// The block length of a message of `bytes` in all; 0: one block.
std::uint32_t block_bytes(const planner::PlannedSchedule& schedule, std::uint64_t bytes) {
  std::uint32_t length = 0;
  for (const BlockRule& rule : schedule.rules) {
    if (rule.from_bytes <= bytes) length = rule.block_bytes;
  }
  return length;
}

// The best candidate that Open MPI has, too.
std::optional<OmpiRule> best_rule(const OmpiCollective& ompi, const planner::Choice& choice,
                                  std::uint64_t bytes, std::uint64_t whole) {
  const planner::Ranking ranking = or_bad_input(choice.rank(bytes, true));
  for (const planner::Estimate& estimate : ranking.estimates) {
    const planner::PlannedSchedule& schedule = choice.schedule(estimate);
    if (choice.candidates()[estimate.candidate].is_placed) continue;
    for (const OmpiCollective::Algorithm& algorithm : ompi.algorithms) {
      if (algorithm.name != schedule.algorithm.name) continue;
      const bool cuts = algorithm.has_segments && estimate.blocks > 1;
      return OmpiRule{0, algorithm.number, algorithm.fan_out,
                      cuts ? block_bytes(schedule, whole) : 0, algorithm.name};
    }
  }
  return std::nullopt;
}

std::vector<OmpiRule> rules_of(const OmpiCollective& ompi, const planner::Choice& choice,
                               std::uint32_t ranks) {
  const bool is_barrier = ompi.collective == Collective::kBarrier;
  const std::uint64_t parts = counts_per_rank(ompi.collective) ? ranks : 1;
  std::vector<OmpiRule> rules;
  for (std::uint64_t size = element_bytes(choice.request().op); size <= kMaxRuledBytes; size *= 2) {
    const std::uint64_t bytes = is_barrier ? 0 : size;
    auto rule = best_rule(ompi, choice, bytes, parts * bytes);
    if (!rule) {
      bad_input("Open MPI has none of the algorithms for " +
                std::string(collective_name(ompi.collective)) + " of " + counted(bytes, "byte") +
                " on this topology; expected other --collective");
    }
    if (!rules.empty() && rules.back().algorithm == rule->algorithm &&
        rules.back().segment_bytes == rule->segment_bytes) {
      continue;
    }
    rule->from_bytes = rules.empty() ? 0 : parts * bytes;
    rules.push_back(*rule);
    if (is_barrier) break;
  }
  return rules;
}

}  // namespace

std::vector<Collective> ompi_collectives() {
  std::vector<Collective> found;
  for (const OmpiCollective& ompi : ompi_table()) {
    if (found.empty() || found.back() != ompi.collective) found.push_back(ompi.collective);
  }
  return found;
}

std::string write_ompi_rules(const planner::ChoiceRequest& given,
                             const std::vector<Collective>& wanted) {
  std::string sets;
  std::size_t count = 0;
  const std::uint32_t ranks = given.plan.topology->ranks();
  Progress progress("ranking");
  for (const OmpiCollective& ompi : ompi_table()) {
    if (std::find(wanted.begin(), wanted.end(), ompi.collective) == wanted.end()) continue;
    planner::ChoiceRequest request{.plan = given.plan};
    request.plan.collective = ompi.collective;
    request.op = reference::default_operator(ompi.collective);
    request.model = given.model;
    const planner::Choice choice = or_bad_input(planner::Choice::make(std::move(request)));
    const std::vector<OmpiRule> rules = rules_of(ompi, choice, ranks);
    ++count;
    sets += std::to_string(ompi.number) + " # " + std::string(ompi.name) + "\n1 # communicator\n" +
            std::to_string(ranks) + " # ranks\n" + std::to_string(rules.size()) + " # rules\n";
    for (const OmpiRule& rule : rules) {
      sets += std::to_string(rule.from_bytes) + " " + std::to_string(rule.algorithm) + " " +
              std::to_string(rule.fan_out) + " " + std::to_string(rule.segment_bytes) + " # " +
              std::string(rule.name) + "\n";
    }
    progress.show(static_cast<double>(count) / static_cast<double>(ompi_table().size()));
  }
  return std::to_string(count) +
         " # collectives; a rule: bytes, algorithm, fan-out, segment bytes\n" + sets;
}

}  // namespace espalier::tools::formats
