// Fuzz target: any text is refused with one reason, or is an embedding that names each rank of its
// topology once, and that is the same after writing.

#include <set>
#include <string>

#include "espalier/topology/topology.h"
#include "tests/fuzz/expect.h"

namespace espalier::fuzz {
namespace {

void examine(const topology::Embedding& embedding) {
  const auto topology = topology::parse(embedding.topology);
  expect(topology.has_value(), "the topology exists");
  const std::set<std::uint32_t> nodes(embedding.node_of.begin(), embedding.node_of.end());
  expect(nodes.size() == embedding.node_of.size() && nodes.size() == (*topology)->ranks() &&
             *nodes.rbegin() < nodes.size(),
         "an embedding names each rank once");
  for (std::uint32_t group = 1; group < embedding.groups.size(); ++group) {
    expect(embedding.groups[group].parent < group, "parents precede children");
  }
  const std::string text = topology::write_embedding(embedding);
  const auto again = topology::parse_embedding(text, "again");
  expect(again && topology::write_embedding(*again) == text, "what is written stays as it is");
  expect(again->algorithm == embedding.algorithm && again->collective == embedding.collective &&
             again->found_by == embedding.found_by && again->node_of == embedding.node_of &&
             again->switching == embedding.switching &&
             again->groups.size() == embedding.groups.size(),
         "what is written is the same embedding");
  if ((*topology)->shape().rows > 0) (void)topology::reversed(embedding, "reduce");
}

}  // namespace

void run(Input& input) {
  const auto embedding = topology::parse_embedding(input.text(), "input");
  if (embedding) {
    examine(*embedding);
  } else {
    expect(embedding.error().message.starts_with("input:") &&
               embedding.error().message.find("expected ") != std::string::npos,
           "an error says where it is and what is expected");
  }
}

}  // namespace espalier::fuzz
