// Fuzz target: the verifier ends for every schedule, and every schedule that it calls valid is
// correct by the independent interpreter of tests/mutation. The input chooses a valid schedule of
// at most 6 ranks and changes it: single fields, numbers, bytes of a descriptor, whole programs.
//
// The stated bounds: N <= 6 or the proof for every N alone, at most 4096 instances and places for
// each N, 64 times as many in all (VerifyOptions::max_instances, max_instances_total; their
// defaults are for schedules of real size).

#include <string>

#include "base/testing/results.h"
#include "collectives/verify/testing/verdict_of.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/verify/verify.h"
#include "planner/make/shape.h"
#include "tests/fuzz/expect.h"
#include "tests/fuzz/program_edits.h"
#include "tests/mutation/interpreter.h"

namespace espalier::fuzz {
namespace {

using mutation::Scope;

constexpr std::int64_t kMaxBlocks = 6;
constexpr std::int64_t kMaxInstances = 4096;
constexpr std::uint32_t kSkews = 3;
constexpr const char* kSpecs[] = {"complete:1",
                                  "complete:2",
                                  "complete:3",
                                  "complete:4",
                                  "complete:5",
                                  "mesh:2x2",
                                  "mesh:1x5",
                                  "mesh:3x1",
                                  "mesh:1x1",
                                  "mesh:1x2x2",
                                  "torus:2x2",
                                  "torus:1x2x2",
                                  "ring:4",
                                  "ring:5",
                                  "hypercube:2",
                                  "hyperx:2x2",
                                  "dragonfly:2x2x1",
                                  "fattree:k=2,h=2,c=1",
                                  "fattree:k=3,h=1,c=1",
                                  "fattree:k=2,h=2,c=k",
                                  "hosts:2x2",
                                  "hosts:1x3",
                                  "fattree:k=3x2,c=1",
                                  "crossbar:2x2",
                                  "crossbar:2x1x2"};

OwnedProgram generated(Input& input, const CollectiveParameters& parameters, std::uint32_t me) {
  const AlgorithmList table = algorithms();
  OwnedProgram program;
  const Algorithm& algorithm = table[input.below(static_cast<unsigned>(table.size()))];
  const bool fits = runs_on(algorithm, parameters);
  if (!fits || me >= algorithm_nodes(algorithm, parameters) ||
      algorithm.generate(parameters, me, program) != Status::kOk) {
    program.clear();
  }
  return program;
}

void change_bytes(Input& input, OwnedProgram& program) {
  static std::uint8_t room[kMaxDescriptorBytes];
  std::size_t size = 0;
  const unsigned at = input.below(65536), value = input.byte();
  if (encode_program(program, room, sizeof room, size) != Status::kOk || size == 0) return;
  room[at % size] = static_cast<std::uint8_t>(value);
  static DecodedProgram decoded;
  (void)decode_program(room, size, kAnyTopology, kAnyNode, decoded);
  program = decoded;
}

void change(Input& input, const CollectiveParameters& parameters, Programs& programs) {
  const unsigned kind = input.below(8);
  const auto rank = static_cast<std::uint32_t>(input.below(8) % programs.size());
  OwnedProgram& program = programs[rank];
  // Edits of claims (tests/mutation) look up references: only in a program that would be loaded.
  const bool loadable = check_program(program) == Status::kOk;
  switch (kind) {
    case 0:
    case 1: edit_field(input, program, Scope::kRank); break;
    case 2:
      for (OwnedProgram& each : programs) {
        Input same = input;
        if (check_program(each) == Status::kOk) edit_field(same, each, Scope::kShared);
      }
      (void)input.below(65536);
      break;
    case 3: set_number(input, program); break;
    case 4:
      for (OwnedProgram& each : programs) {
        Input same = input;
        set_number(same, each);
      }
      (void)input.word();
      break;
    case 5:
      if (loadable) change_bytes(input, program);
      break;
    case 6: program = generated(input, parameters, input.below(8)); break;
    default: program = programs[input.below(8) % programs.size()];
  }
}

bool cuts(const Program& program) {
  bool any = false;
  for (std::uint32_t rule = 0; rule < program.blocks_count; ++rule) {
    any = any || program.blocks[rule].block_bytes != 0;
  }
  return any;
}

void judge(const topology::Topology& topology, const Programs& programs, bool links,
           bool periodic) {
  const verify::Verdict verdict = verify::verdict_of(
      topology, programs,
      {.links = links,
       .method = periodic ? verify::Method::kPeriodic : verify::Method::kExhaustive,
       .max_blocks = periodic ? 0 : kMaxBlocks,
       .max_instances = kMaxInstances,
       .max_instances_total = 64 * kMaxInstances});
  if (!verdict.valid) {
    const std::string& message = verdict.counterexample.message;
    expect(!message.empty() && message.find('\n') == std::string::npos,
           "a counterexample is one line");
    return;
  }
  expect(verdict.proven_blocks >= 1, "what is valid is proven for some N");
  const Program& first = programs[0];
  const std::int64_t mod = first.residue_mod == 0 ? 1 : first.residue_mod;
  for (std::int64_t blocks = 1; blocks <= (cuts(first) ? kMaxBlocks : 1); ++blocks) {
    if (blocks % mod != first.residue % mod) continue;
    const std::string wrong =
        mutation::interpret(mutation::unroll(topology, programs, blocks), kSkews);
    if (wrong.empty()) continue;
    std::fprintf(stderr, "fuzz: N = %lld: %s\n", static_cast<long long>(blocks), wrong.c_str());
    expect(false, "what the verifier calls valid is right");
  }
}

}  // namespace

void run(Input& input) {
  const auto topology = or_throw(topology::parse(kSpecs[input.below(std::size(kSpecs))]));
  expect(topology != nullptr, "the topologies exist");
  const topology::Shape shape = topology->shape();
  CollectiveParameters parameters{.ranks = topology->ranks()};
  parameters.root = input.below(parameters.ranks);
  parameters.window = 1 + input.below(9);
  parameters.topology_digest = topology->digest();
  set_shape(shape, parameters);
  const unsigned options = input.below(4);
  Programs programs;
  for (std::uint32_t me = 0; me < topology->nodes(); ++me) {
    Input same = input;  // the same algorithm on all nodes
    programs.push_back(generated(same, parameters, me));
  }
  (void)input.byte();
  while (input.left() > 0) change(input, parameters, programs);
  judge(*topology, programs, options % 2 == 1, options / 2 == 1);
}

}  // namespace espalier::fuzz
