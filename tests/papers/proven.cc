#include "tests/papers/proven.h"

#include <algorithm>

#include "base/testing/results.h"
#include "collectives/algorithms/testing/generate_all.h"
#include "collectives/algorithms/testing/parameters.h"
#include "collectives/search/fractional_mesh.h"
#include "collectives/verify/testing/verdict_of.h"
#include "espalier/collectives/embed/place.h"
#include "espalier/collectives/lower/lower.h"
#include "espalier/collectives/search.h"
#include "espalier/collectives/verify/verify.h"
#include "espalier/topology/topology.h"
#include "planner/make/shape.h"

namespace espalier::papers {
namespace {

CollectiveParameters parameters_of(const topology::Topology& topology, const topology::Shape& shape,
                                   const Question& question) {
  CollectiveParameters parameters = topology_parameters(topology, question.root);
  set_shape(shape, parameters);
  parameters.run_length = question.run_length;
  parameters.radix = question.radix;
  parameters.ratio_numerator = question.ratio_numerator;
  parameters.ratio_denominator = question.ratio_denominator;
  parameters.send_ticks = question.send_ticks;
  parameters.latency_ticks = question.latency_ticks;
  parameters.window = std::max<std::uint32_t>(8, question.latency_ticks);
  return parameters;
}

Result<Programs> make_programs(const topology::Topology& topology,
                               const CollectiveParameters& parameters, const Question& question);

// By the embedding.
Result<Programs> make_placed(const topology::Topology& topology, CollectiveParameters parameters,
                             Question question) {
  const auto embedding = topology::known_embedding(question.embedding);
  if (!embedding) return fail("no embedding " + question.embedding);
  question.embedding.clear();
  parameters.run_length = embedding->run_length;
  if (!embedding->groups.empty()) {
    parameters.root = embedding->node_of.front();
    return searched::fractional_mesh(topology, parameters, *embedding);
  }
  parameters.root = 0;
  auto programs = make_programs(topology, parameters, question);
  if (!programs) return programs;
  const Status status = embed::place_all(embedding->node_of, *programs);
  if (status != Status::kOk) return fail(status_name(status));
  return programs;
}

// Lowered onto the topology's links.
Result<Programs> make_lowered(const topology::Topology& topology,
                              const CollectiveParameters& parameters, Question question) {
  question.single_send_hops = false;
  const auto routed = make_programs(topology, parameters, question);
  if (!routed) return routed;
  lower::Report report;
  return lower::lower(topology, parameters, PortModel::kSingleSend, *routed, report);
}

// Returns all nodes' programs. Error: there are none.
Result<Programs> make_programs(const topology::Topology& topology,
                               const CollectiveParameters& parameters, const Question& question) {
  if (question.single_send_hops) return make_lowered(topology, parameters, question);
  if (!question.embedding.empty()) return make_placed(topology, parameters, question);
  const Algorithm* algorithm = find_algorithm(question.collective, question.algorithm.c_str());
  if (algorithm == nullptr) {
    const auto* searched = searched::find_searched(question.collective, question.algorithm);
    if (searched == nullptr) return fail("no algorithm " + question.algorithm);
    return searched->search(topology, parameters);
  }
  Programs programs;
  const Status status = generate_all(*algorithm, parameters, programs);
  if (status != Status::kOk) return fail(status_name(status));
  return programs;
}

}  // namespace

std::string proven_steps(const Question& question, std::int64_t first, std::int64_t last) {
  const auto topology = or_throw(topology::parse(question.topology));
  const topology::Shape shape = topology->shape();
  const auto programs =
      make_programs(*topology, parameters_of(*topology, shape, question), question);
  if (!programs) return programs.error().message;
  verify::VerifyOptions options;
  if (!question.every_blocks) options.max_blocks = last;
  const auto verdict = verify::verdict_of(*topology, *programs, options);
  if (!verdict.valid) return verdict.counterexample.message;
  if (question.every_blocks && !verdict.for_all) return "not proven for every N";
  std::string text;
  for (std::int64_t blocks = first; blocks <= last; ++blocks) {
    text += (text.empty() ? "" : " ") + std::to_string(phase_steps((*programs)[0], blocks));
  }
  return text;
}

std::string proven_load(const Question& question) {
  const auto topology = or_throw(topology::parse(question.topology));
  const topology::Shape shape = topology->shape();
  const auto programs =
      make_programs(*topology, parameters_of(*topology, shape, question), question);
  if (!programs) return programs.error().message;
  const auto verdict = verify::verdict_of(*topology, *programs);
  if (!verdict.valid) return verdict.counterexample.message;
  return std::to_string(verdict.busiest.load);
}

std::string proven_steps(const Question& question) {
  return proven_steps(question, question.blocks, question.blocks);
}

}  // namespace espalier::papers
