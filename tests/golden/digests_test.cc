// Every processor and compiler makes the same programs: encodings/digests.txt has a digest of
// all nodes' descriptors for each algorithm, and this test runs on every architecture. (Arguments
// that each add a row to a program's tables have no fixed order, for example.)
// ESPALIER_UPDATE_GOLDEN=1 in the environment writes the file anew.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/testing/results.h"
#include "collectives/schedule/testing/sample_program.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/topology/topology.h"
#include "planner/make/shape.h"

namespace espalier {
namespace {

const std::filesystem::path kDigests =
    std::filesystem::path(ESPALIER_SOURCE_ROOT) / "tests/golden/encodings/digests.txt";

std::vector<std::string> specs_for(Where where) {
  switch (where) {
    case Where::kFatTree: return {"fattree:k=2,h=3,c=1", "fattree:k=3,h=2,c=1"};
    case Where::kHosts: return {"hosts:1x4", "hosts:2x3", "hosts:3x4", "hosts:5x1", "hosts:4x8"};
    case Where::kGrid: return {"mesh:1x5", "mesh:2x2", "mesh:3x4", "mesh:5x7", "mesh:2x3x4"};
    case Where::kTorus: return {"ring:2", "ring:5", "torus:2x2", "torus:3x4", "torus:2x3x4"};
    case Where::kAnywhere: break;
  }
  std::vector<std::string> specs;
  for (const char* ranks : {"2", "3", "4", "5", "7", "8", "12", "13", "16", "17", "31", "40"}) {
    specs.push_back(std::string("complete:") + ranks);
  }
  return specs;
}

// Adds the descriptors of all nodes to `digest`. False: there are no programs for the parameters.
bool add_programs(const Algorithm& algorithm, const CollectiveParameters& parameters,
                  std::uint64_t& digest) {
  static OwnedProgram program;
  for (std::uint32_t node = 0; node < algorithm_nodes(algorithm, parameters); ++node) {
    program.clear();
    if (algorithm.generate(parameters, node, program) != Status::kOk) return false;
    std::snprintf(program.producer, sizeof program.producer, "golden");
    const std::vector<std::uint8_t> bytes = encoded(program);
    digest = digest_bytes(digest, bytes.data(), bytes.size());
  }
  return true;
}

// One line per algorithm: its programs on all topologies that it takes, with the first rank and one
// or two later ones as root.
std::string line_of(const Algorithm& algorithm) {
  std::uint64_t digest = kDigestSeed;
  int schedules = 0;
  for (const std::string& spec : specs_for(algorithm.where)) {
    const auto topology = or_throw(topology::parse(spec));
    const topology::Shape shape = topology->shape();
    CollectiveParameters parameters{.ranks = topology->ranks()};
    parameters.topology_digest = topology->digest();
    set_shape(shape, parameters);
    const std::uint32_t last = has_root(algorithm.collective) ? parameters.ranks - 1 : 0;
    for (parameters.root = 0; parameters.root <= last;
         parameters.root += std::max(1u, (last + 1) / 2)) {
      schedules += add_programs(algorithm, parameters, digest) ? 1 : 0;
    }
  }
  char text[200];
  std::snprintf(text, sizeof text, "%s %s: %d schedules, 0x%016llx\n",
                collective_name(algorithm.collective), algorithm.name, schedules,
                static_cast<unsigned long long>(digest));
  return text;
}

TEST(Golden, ProgramsOfAllSizesAreTheSameOnEveryProcessor) {
  std::string lines;
  for (const Algorithm& algorithm : algorithms()) {
    lines += line_of(algorithm);
    EXPECT_EQ(lines.find(": 0 schedules"), std::string::npos) << lines;
  }
  if (std::getenv("ESPALIER_UPDATE_GOLDEN") != nullptr) std::ofstream(kDigests) << lines;
  std::ifstream file(kDigests);
  std::stringstream known;
  known << file.rdbuf();
  std::string line, expected;
  std::stringstream made(lines);
  while (std::getline(made, line)) {
    std::getline(known, expected);
    EXPECT_EQ(expected, line) << "ESPALIER_UPDATE_GOLDEN=1 rewrites it, if the change is meant";
  }
  EXPECT_FALSE(std::getline(known, expected)) << expected;
}

}  // namespace
}  // namespace espalier
