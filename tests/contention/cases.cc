#include "tests/contention/cases.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/testing/results.h"
#include "collectives/algorithms/testing/generate_all.h"
#include "collectives/algorithms/testing/parameters.h"
#include "espalier/collectives/search.h"
#include "planner/make/shape.h"
#include "tests/contention/dice.h"
#include "tests/contention/lowered.h"
#include "tests/contention/placed.h"

namespace espalier::contention {
namespace {

constexpr BlockRule kBlocks = {0, 64};
constexpr std::uint32_t kMaxRanks = 20;

std::string text(std::uint32_t number) { return std::to_string(number); }

std::string mesh(Dice& dice) {
  const std::uint32_t rows = dice.number(1, 5);
  return "mesh:" + text(rows) + "x" + text(dice.number(rows == 1 ? 2 : 1, kMaxRanks / 5));
}

// Grids of other kinds, and dragonflies.
std::string other_grid(Dice& dice) {
  const std::uint32_t rows = dice.number(2, 4), columns = dice.number(2, 5);
  const std::string plane = text(rows) + "x" + text(columns);
  const std::string space =
      text(dice.number(1, 2)) + "x" + text(dice.number(2, 3)) + "x" + text(dice.number(2, 3));
  switch (dice.number(0, 7)) {
    case 0: return "torus:" + plane;
    case 1: return "torus:" + space;
    case 2: return "mesh:" + space;
    case 3: return "ring:" + text(dice.number(2, kMaxRanks));
    case 4: return "hypercube:" + text(dice.number(1, 4));
    case 5: return "hyperx:" + plane;
    case 6: return "hyperx:" + space;
    default: return "dragonfly:" + space;
  }
}

std::string fat_tree(Dice& dice) {
  const std::uint32_t arity = dice.number(2, 4);
  const std::uint32_t height = dice.number(1, arity == 2 ? 4 : 2);
  std::string spec = "fattree:k=" + text(arity);
  if (height == 2 && dice.one_in(2)) spec += "x" + text(dice.number(2, 4));
  spec += ",h=" + text(height) + ",c=";
  if (dice.one_in(3)) return spec + "1";
  if (dice.one_in(2)) return spec + "k";
  for (std::uint32_t level = 0; level < height; ++level) {
    spec += (level == 0 ? "" : ",") + text(dice.number(1, 1 + level));
  }
  return spec;
}

std::string crossbar(Dice& dice) {
  std::string spec = "crossbar:" + text(dice.number(1, 4)) + "x";
  if (dice.one_in(4)) {  // modules of modules
    spec = "crossbar:2x" + text(dice.number(1, 3)) + "x" + text(dice.number(2, 3));
    if (dice.one_in(2)) return spec;
    return spec + ",in=2/" + text(dice.number(1, 2)) + ",out=" + text(dice.number(1, 2)) + "/2";
  }
  spec += text(dice.number(2, 5));
  if (dice.one_in(2)) return spec;
  return spec + ",in=" + text(dice.number(1, 3)) + ",out=" + text(dice.number(1, 3));
}

std::string hosts(Dice& dice) {
  return "hosts:" + text(dice.number(1, 4)) + "x" + text(dice.number(2, 5));
}

std::string link_text(std::uint32_t from, std::uint32_t to, std::uint32_t lanes) {
  return "link { from: " + text(from) + " to: " + text(to) + " capacity: " + text(lanes) + " } ";
}

// A connected mesh without some of its links; routes are the shortest.
std::string broken_mesh(Dice& dice) {
  const std::uint32_t rows = dice.number(2, 4), columns = dice.number(2, 5);
  std::string spec = "custom:name: \"broken\" ranks: " + text(rows * columns) + " ";
  for (std::uint32_t node = 0; node < rows * columns; ++node) {
    // The first column and all rows' links keep the mesh connected, so links of the other columns
    // may be missing.
    const std::uint32_t column = node % columns;
    if (column + 1 < columns) spec += link_text(node, node + 1, 1);
    if (node + columns < rows * columns && (column == 0 || !dice.one_in(3))) {
      spec += link_text(node, node + columns, 1);
    }
  }
  return spec;
}

std::string choose_topology(Dice& dice, ContentionCase& contention_case,
                            const std::string& examples) {
  switch (dice.number(0, 12)) {
    case 0:
      contention_case.family = "complete graph";
      return "complete:" + text(dice.number(2, 12));
    case 1:
    case 2:
    case 3: contention_case.family = "mesh"; return mesh(dice);
    case 4:
    case 5: contention_case.family = "fat tree"; return fat_tree(dice);
    case 6: contention_case.family = "crossbar"; return crossbar(dice);
    case 7: {
      contention_case.family = "irregular";
      const std::uint32_t ranks = dice.number(2, 12);
      return irregular_topology(dice, ranks, dice.number(0, 4));
    }
    case 8: contention_case.family = "broken mesh"; return broken_mesh(dice);
    case 9: contention_case.family = "hosts"; return hosts(dice);
    case 10:
    case 11: contention_case.family = "other grid"; return other_grid(dice);
    default:
      contention_case.family = "example file";
      return "file:" + examples + (dice.one_in(2) ? "/broken-mesh" : "/uneven-tree") + ".textproto";
  }
}

CollectiveParameters parameters_on(const topology::Topology& topology, const topology::Shape& shape,
                                   Dice& dice) {
  CollectiveParameters parameters =
      topology_parameters(topology, dice.number(0, topology.ranks() - 1), &kBlocks);
  set_shape(shape, parameters);
  return parameters;
}

std::string name_of(Collective collective, const std::string& algorithm,
                    const CollectiveParameters& parameters) {
  std::string name = collective_name(collective) + (" " + algorithm);
  if (algorithm.starts_with("fractional") || algorithm.starts_with("crossbar")) {
    name += " r " + text(parameters.run_length);
  } else if (algorithm == "knomial") {
    name += " k " + text(parameters.radix);
  }
  if (algorithm == "alpha-tree" && parameters.ratio_denominator > 0) {
    name += " ratio " + text(parameters.ratio_numerator) + "/" + text(parameters.ratio_denominator);
  }
  if (algorithm == "lambda-tree" || algorithm.starts_with("alpha-") || algorithm == "combine" ||
      algorithm == "knomial") {
    name += " lambda " + text(parameters.latency_ticks) + "/" + text(parameters.send_ticks);
  }
  return name;
}

// Chooses a random algorithm that supports the topology and makes its programs; returns its name.
std::string choose_programs(Dice& dice, const topology::Topology& topology,
                            const topology::Shape& shape, bool placed,
                            ContentionCase& contention_case) {
  CollectiveParameters parameters = parameters_on(topology, shape, dice);
  const AlgorithmList table = algorithms();
  const auto searched = searched::searched_algorithms();
  for (;;) {
    const std::uint32_t pick =
        dice.number(0, static_cast<std::uint32_t>(table.size() + searched.size()) - 1);
    parameters.run_length = dice.number(0, 3);
    parameters.radix = parameters.run_length == 1 ? 0 : parameters.run_length;
    parameters.ratio_numerator = parameters.run_length;
    parameters.ratio_denominator = parameters.run_length == 0 ? 0 : 4;
    parameters.send_ticks = dice.number(1, 2);
    parameters.latency_ticks = parameters.send_ticks + dice.number(0, 2);
    contention_case.root = parameters.root;
    if (pick >= table.size()) {
      const searched::SearchedAlgorithm& one = searched[pick - table.size()];
      if (!one.applies(topology)) continue;
      auto found = one.search(topology, parameters);
      if (!found) continue;
      contention_case.programs = *std::move(found);
      return name_of(one.collective, one.name, parameters);
    }
    const Algorithm& one = table[pick];
    // Programs for one family are for its own numbering.
    if (one.where != Where::kAnywhere && (!runs_on(one, parameters) || placed)) continue;
    const Status status = generate_all(one, parameters, contention_case.programs);
    if (status == Status::kOk) return name_of(one.collective, one.name, parameters);
    EXPECT_EQ(status, Status::kUnsupported) << one.name << " on " << topology.spec();
  }
}

}  // namespace

ContentionCase random_case(std::uint64_t seed, const std::string& examples) {
  Dice dice(seed);
  ContentionCase contention_case;
  const std::string spec = choose_topology(dice, contention_case, examples);
  auto real = or_throw(topology::read(spec));
  topology::Shape shape = real->shape();
  std::vector<std::uint32_t> place(real->ranks());
  for (std::uint32_t rank = 0; rank < place.size(); ++rank) place[rank] = rank;
  const std::uint32_t how = dice.number(0, 5);
  contention_case.placement = how < 2 ? "as numbered" : how < 4 ? "a few exchanged" : "anyhow";
  if (how >= 4) dice.shuffle(place);
  for (std::uint32_t swaps = how < 4 && how >= 2 ? dice.number(1, 2) : 0; swaps > 0; --swaps) {
    const auto last = static_cast<std::uint32_t>(place.size()) - 1;
    std::swap(place[dice.number(0, last)], place[dice.number(0, last)]);
  }
  if (how >= 2) {  // NOLINT(bugprone-branch-clone): another type is assigned
    contention_case.topology = std::make_unique<Placed>(std::move(real), std::move(place));
  } else {
    contention_case.topology = std::move(real);
  }
  const std::string algorithm =
      choose_programs(dice, *contention_case.topology, shape, how >= 2, contention_case);
  std::string lowering;
  if (dice.one_in(3)) lowering = lower_case(dice, contention_case);
  const bool pipelined = contention_case.programs[0].blocks[0].block_bytes != 0;
  contention_case.blocks = pipelined ? dice.number(1, 6) : 1;
  // Some schedules restrict N to a residue.
  const std::int64_t every = std::max<std::int64_t>(1, contention_case.programs[0].residue_mod);
  while ((contention_case.blocks - contention_case.programs[0].residue) % every != 0)
    ++contention_case.blocks;
  contention_case.missing = dice.number(0, 5);
  if (!lowering.empty() && !dice.one_in(3)) lowering += move_hop(dice, contention_case);
  contention_case.name = algorithm + lowering + " on " + contention_case.topology->spec() +
                         ", root " + text(contention_case.root) + ", N " +
                         std::to_string(contention_case.blocks) + ", " +
                         std::to_string(contention_case.missing) + " elements short";
  return contention_case;
}

sim::Model model_of(const ContentionCase& contention_case) {
  const topology::Topology& topology = *contention_case.topology;
  sim::Model model = testing::model_for(
      contention_case.programs[0],
      [&topology](std::uint32_t from, std::uint32_t to) { return topology.capacity(from, to); });
  model.route = [&topology](std::uint32_t from, std::uint32_t to) {
    return topology.route(from, to);
  };
  model.send_ticks = contention_case.programs[0].send_ticks;
  return model;
}

testing::Job job_of(const ContentionCase& contention_case, std::int64_t blocks) {
  return testing::sum_job(contention_case.programs, contention_case.root,
                          static_cast<std::uint64_t>(blocks), contention_case.missing);
}

}  // namespace espalier::contention
