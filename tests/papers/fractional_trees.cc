// [Sanders03], Sanders and Sibeyn: a bandwidth latency tradeoff for broadcast (fractional trees).

#include <algorithm>
#include <cmath>
#include <tuple>

#include "collectives/search/fractional_direct.h"
#include "collectives/search/simplex_family.h"
#include "tests/papers/cost/fractional.h"
#include "tests/papers/item.h"
#include "tests/papers/proven.h"
#include "tools/report/line_plot.h"

namespace espalier::papers {
namespace {

std::string steps_of(std::int64_t ranks, const char* algorithm, std::int64_t blocks,
                     std::uint32_t run_length = 0, Collective collective = Collective::kBroadcast) {
  return proven_steps({.topology = "complete:" + std::to_string(ranks),
                       .collective = collective,
                       .algorithm = algorithm,
                       .blocks = blocks,
                       .run_length = run_length});
}

void sizes(Chapter& chapter) {
  chapter.items.push_back({"section 2", "PUs reached by a binary tree, P_5", "18", "20", "",
                           std::to_string(cost::fractional_size(1, 5)), kClosed,
                           "the recurrence beside it gives 1, 2, 4, 7, 12, 20"});
  for (const auto& [run_length, size] :
       {std::pair{2, "10"}, std::pair{3, "8"}, std::pair{100, "6"}}) {
    chapter.items.push_back(
        {"Fig. 1",
         run_length == 100 ? std::string("PUs of a chain, last PU after 5 steps")
                           : "PUs, r = " + std::to_string(run_length) + ", last PU after 5 steps",
         kNothing, size, "", std::to_string(cost::fractional_size(run_length, 5)), kClosed,
         "the drawing is lost; P_5 by the recurrence"});
  }
  const struct {
    std::int64_t ranks, run_length, depth;
  } depths[] = {{64, 1, 7},     {64, 2, 11},    {64, 4, 16},    {64, 8, 25},
                {64, 16, 35},   {1024, 1, 13},  {1024, 2, 20},  {1024, 4, 34},
                {1024, 8, 57},  {1024, 10, 68}, {1024, 16, 97}, {16384, 1, 18},
                {16384, 2, 30}, {16384, 4, 52}, {16384, 8, 91}, {16384, 16, 163}};
  for (const auto& [ranks, run_length, depth] : depths) {
    const bool printed = ranks == 1024 && run_length == 8;
    chapter.items.push_back(
        {"section 3", "d, r = " + std::to_string(run_length) + ", P = " + std::to_string(ranks),
         printed ? Printed("57") : kNothing, std::to_string(depth), "",
         std::to_string(cost::fractional_depth(ranks, run_length)), kClosed});
  }
}

void steps(Chapter& chapter) {
  for (const std::int64_t ranks : {16, 64}) {
    chapter.items.push_back({"section 2", "chain, P = " + std::to_string(ranks) + ", s = 20, steps",
                             kNothing, std::to_string(ranks - 2 + 20), "",
                             steps_of(ranks, "chain", 20), kProven, "P - 2 + s"});
    const std::int64_t depth = cost::fractional_depth(ranks, 1);
    chapter.items.push_back(
        {"section 2", "binary tree, P = " + std::to_string(ranks) + ", s = 20, steps", kNothing,
         std::to_string(depth + 40), std::to_string(depth + 39), steps_of(ranks, "binary", 20),
         kProven, "d + 2s is a bound: the last packet saves the pause after it"});
    chapter.items.push_back(
        {"section 2", "reduction by it, P = " + std::to_string(ranks) + ", s = 20, steps", kNothing,
         "", std::to_string(depth + 39), steps_of(ranks, "binary", 20, 0, Collective::kReduce),
         kProven, "the broadcast reversed in time"});
    for (const std::uint32_t run_length : {1u, 2u, 4u, 8u}) {
      const std::int64_t d = cost::fractional_depth(ranks, run_length);
      const std::int64_t s = 16;
      chapter.items.push_back({"equation 7",
                               "fractional tree, P = " + std::to_string(ranks) +
                                   ", r = " + std::to_string(run_length) + ", s = 16, steps",
                               kNothing, std::to_string(d + s + s / run_length),
                               std::to_string(d + s + s / run_length - 1),
                               steps_of(ranks, "fractional", s, run_length), kProven,
                               "d + s(1 + 1/r) is a bound; one less is exact"});
    }
  }
  chapter.items.push_back(
      {"section 3", "fractional tree, s no multiple of r: P = 64, r = 4, s = 7, steps", kNothing,
       "", std::to_string(cost::fractional_depth(64, 4) + 7 + 2 - 1),
       steps_of(64, "fractional", 7, 4), kProven,
       "the program of Fig. 2 wants r to divide s (its example r = 10, s = 503 does not keep "
       "to it); a modulo schedule works for any s"});
}

void example(Chapter& chapter) {
  const double ratio = 4096;
  const auto time = [&](std::int64_t run_length, double packets) {
    return fixed(cost::fractional_tree(1024, run_length).time(packets, ratio) / ratio, 3);
  };
  chapter.items.push_back({"section 3", "P = 1024, k/t = 4096: r by the rule", "8", "7.69", "",
                           fixed(cost::run_by_rule(1024, ratio), 2), kClosed, "printed: about 8"});
  chapter.items.push_back({"section 3", "P = 1024, k/t = 4096: s for r = 8", "456", "", "",
                           fixed(cost::fractional_tree(1024, 8).best_packets(ratio), 0), kClosed});
  chapter.items.push_back({"section 3", "P = 1024, k/t = 4096: T/k for r = 8, s = 456", "1.389", "",
                           "", time(8, 456), kClosed});
  chapter.items.push_back({"section 3", "P = 1024, k/t = 4096: T/k for r = 10, s = 503", "1.387",
                           "", "", time(10, 503), kClosed});
  chapter.items.push_back({"section 3", "P = 1024, k/t = 4096: best r, by trying all", "10", "", "",
                           std::to_string(cost::best_run_length(1024, ratio)), kClosed});
}

void bounds(Chapter& chapter) {
  const double ratio = 4096, log = 10;
  chapter.items.push_back({"equation 6", "P = 1024, k/t = 4096: T/k of the bound for equal packets",
                           kNothing, fixed(std::pow(1 + std::sqrt(log / ratio), 2), 4), "",
                           fixed(cost::block_bound(1024, ratio) / ratio, 4), kClosed});
  double best_packets = 1, least = 1e300;
  for (int packets = 1; packets < 2000; ++packets) {
    const double time = cost::Pipeline{log, 1}.time(packets, ratio);
    if (time < least) best_packets = packets, least = time;
  }
  chapter.items.push_back({"before equation 6", "s of the least bound, P = 1024, k/t = 4096",
                           kNothing, fixed(std::sqrt(ratio / log), 0),
                           fixed(std::sqrt(ratio * log / 1), 0), fixed(best_packets, 0),
                           "trying all s",
                           "printed: sqrt(k t / log P); it must be sqrt(k log P / t)"});
}

Picture gains() {
  std::vector<tools::PlotLine> lines;
  for (const std::int64_t ranks : {64, 1024, 16384}) {
    tools::PlotLine line{"P = " + std::to_string(ranks), {}};
    for (int eighth = 0; eighth <= 8 * 24; ++eighth) {
      const double ratio = std::exp2(eighth / 8.0);
      line.points.emplace_back(ratio, cost::gain(ranks, ratio));
    }
    lines.push_back(std::move(line));
  }
  const std::string title = "Fractional tree over the better of chain and binary tree";
  return {"sanders03-fig3.svg", title,
          tools::plot_svg(title, {"k/t", true}, {"times faster"}, lines)};
}

// The largest gain is where chain and binary tree take the same time: the run there, the packets,
// and the steps of that schedule.
void best_points(Chapter& chapter) {
  const struct {
    std::int64_t ranks, run_length, packets;
  } points[] = {{64, 4, 44}, {1024, 10, 540}, {16384, 23, 4324}};
  for (const auto& [ranks, run_length, packets] : points) {
    const double root =
        std::sqrt(cost::chain(ranks).latency) - std::sqrt(cost::binary_tree(ranks).latency);
    const double ratio = std::pow(root / (std::sqrt(2) - 1), 2);
    const std::string where =
        "largest gain, P = " + std::to_string(ranks) + ", at k/t = " + fixed(ratio, 0);
    chapter.items.push_back({"Fig. 3", where + ": best r, by trying all", kNothing, "",
                             std::to_string(run_length),
                             std::to_string(cost::best_run_length(ranks, ratio)), kClosed});
    const double runs = cost::fractional_tree(ranks, run_length).best_packets(ratio) /
                        static_cast<double>(run_length);
    chapter.items.push_back({"Fig. 3", where + ": s, the nearest multiple of r", kNothing, "",
                             std::to_string(packets),
                             std::to_string(std::lround(runs) * run_length), kClosed});
    const std::int64_t steps =
        cost::fractional_depth(ranks, run_length) + packets + packets / run_length;
    chapter.items.push_back(
        {"equation 7",
         "fractional tree, P = " + std::to_string(ranks) + ", r = " + std::to_string(run_length) +
             ", s = " + std::to_string(packets) + ", steps",
         kNothing, std::to_string(steps), std::to_string(steps - 1),
         proven_steps({.topology = "complete:" + std::to_string(ranks),
                       .collective = Collective::kBroadcast,
                       .algorithm = "fractional",
                       .blocks = packets,
                       .every_blocks = true,
                       .run_length = static_cast<std::uint32_t>(run_length)}),
         kProven, "proven for every s; d + s(1 + 1/r) is a bound; one less is exact"});
  }
}

void figure_3(Chapter& chapter) {
  const struct {
    std::int64_t ranks;
    Printed printed;
    const char* corrected;
  } sizes[] = {{64, "1.29", "1.28"}, {1024, kNothing, "1.57"}, {16384, "1.8", "1.78"}};
  for (const auto& [ranks, printed, corrected] : sizes) {
    double most = 0;
    for (int step = 0; step <= 24 * 64; ++step) {
      most = std::max(most, cost::gain(ranks, std::exp2(step / 64.0)));
    }
    chapter.items.push_back({"Fig. 3", "largest gain, P = " + std::to_string(ranks), printed, "",
                             corrected, fixed(most, 2), kClosed,
                             ranks == 1024 ? "" : "by closed forms with the exact d"});
  }
  best_points(chapter);
  chapter.pictures.push_back(gains());
}

// "By reversing the direction of communication, broadcasting algorithms can usually be turned into
// reduction algorithms": the broadcast in question takes `steps`, and so does its reduction.
void reduction(Chapter& chapter, const std::string& where, const std::string& what,
               Question question, std::int64_t steps) {
  question.collective = Collective::kReduce;
  chapter.items.push_back(
      {where, "reduction by it, " + what + ", s = " + std::to_string(question.blocks) + ", steps",
       kNothing, "", std::to_string(steps), proven_steps(question), kProven,
       "the broadcast reversed in time"});
}

void other_networks(Chapter& chapter) {
  // The depths that a prototype's search found, and ours; our search is exhaustive up to r = 4.
  const struct {
    std::uint32_t run_length, prototype;
    const char* ours;
  } depths[] = {{1, 14, "14"}, {2, 25, "23"}, {3, 41, "34"}, {4, 55, "45"}};
  for (const auto& [run_length, prototype, ours] : depths) {
    const auto tree = searched::direct_tree(searched::simplex_family(run_length), 1024);
    chapter.items.push_back(
        {"section 3",
         "direct simplex version, r = " + std::to_string(run_length) +
             ", P = 1024: steps until the last PU has its first packet",
         kNothing, "", ours, std::to_string(tree.depth), "search",
         "the full paper could not be had; a prototype found " + std::to_string(prototype)});
  }
  for (const std::uint32_t run_length : {1u, 2u, 3u}) {
    const std::int64_t few =
        std::atoll(steps_of(64, "fractional-direct", 4 * run_length, run_length).c_str());
    const std::int64_t more =
        std::atoll(steps_of(64, "fractional-direct", 9 * run_length, run_length).c_str());
    chapter.items.push_back({"section 3",
                             "direct simplex version, P = 64, steps of five runs more, r = " +
                                 std::to_string(run_length),
                             kNothing, std::to_string(5 * (2 * run_length + 1)), "",
                             std::to_string(more - few), kProven, "2r + 1 a run"});
    const Question question{.topology = "complete:64",
                            .algorithm = "fractional-direct",
                            .blocks = 9 * run_length,
                            .run_length = run_length};
    reduction(chapter, "section 3",
              "direct simplex version, P = 64, r = " + std::to_string(run_length), question, more);
  }
  std::int64_t first_depth = 0;  // of variant A
  for (const auto& [name, algorithm, run_length, depth] :
       {std::tuple{"A", "crossbar-a", 8u, 96}, std::tuple{"B", "crossbar-b", 8u, 129},
        std::tuple{"A", "crossbar-a", 16u, 176}, std::tuple{"B", "crossbar-b", 16u, 235}}) {
    // A single packet takes d + 1 steps.
    Question question{
        .topology = "crossbar:256x64", .algorithm = algorithm, .run_length = run_length};
    const std::int64_t steps = std::atoll(proven_steps(question).c_str());
    const std::string what = std::string("256 x 64 hierarchical crossbar, variant ") + name +
                             ", r = " + std::to_string(run_length);
    chapter.items.push_back({"section 4", what + ", d", kNothing, "", std::to_string(depth),
                             std::to_string(steps - 1), kProven,
                             "flat: " + std::to_string(cost::fractional_depth(16384, run_length))});
    if (run_length == 8) {
      question.blocks = run_length + 1;
      reduction(chapter, "section 4", what, question, depth + run_length + 2);
    }
    if (algorithm != std::string("crossbar-b")) {
      first_depth = steps;
      continue;
    }
    chapter.items.push_back(
        {"section 4",
         "256 x 64 hierarchical crossbar, depth of B beyond A, r = " + std::to_string(run_length),
         kNothing, std::to_string((run_length + 1) * 6), run_length == 8 ? "33" : "59",
         std::to_string(steps - first_depth), kProven, "(r + 1) log b is a bound"});
  }
}

// "A generalization to more than two levels of hierarchy is also possible": the 256 modules of the
// crossbar above, in 16 modules of 16.
void third_level(Chapter& chapter) {
  for (const auto& [name, algorithm, depth, two_levels] :
       {std::tuple{"A", "crossbar-a", 100, 96}, std::tuple{"B", "crossbar-b", 163, 129}}) {
    const std::uint32_t run_length = 8;
    Question question{
        .topology = "crossbar:16x16x64", .algorithm = algorithm, .run_length = run_length};
    const std::string what =
        std::string("16 x 16 x 64 hierarchical crossbar, variant ") + name + ", r = 8";
    const std::int64_t found = std::atoll(proven_steps(question).c_str()) - 1;
    chapter.items.push_back({"section 4", what + ", d", kNothing, "", std::to_string(depth),
                             std::to_string(found), kProven,
                             "256 x 64: " + std::to_string(two_levels)});
    chapter.items.push_back({"section 4", what + ", depth beyond 256 x 64", kNothing,
                             std::to_string((run_length + 1) * 4),
                             std::to_string(depth - two_levels), std::to_string(found - two_levels),
                             kProven, "(r + 1) log b is a bound for the level of b = 16 modules"});
    question.blocks = run_length + 1;
    reduction(chapter, "section 4", what, question, depth + run_length + 2);
  }
}

// Trees of groups on meshes: the blocks that a link carries in a step, and the steps until the last
// rank has its first packet.
void fractional_meshes(Chapter& chapter) {
  const struct {
    const char *embedding, *topology, *algorithm, *what, *depth, *note;
  } rows[] = {{"mesh-8x16-broadcast-fractional-mesh-r2-h-tree", "mesh:8x16", "fractional-mesh",
               "8 x 16 mesh, r = 2, H-tree of 1 x 2 groups", "18", "flat, whatever the links: 14"},
              {"mesh-8x16-broadcast-fractional-mesh-r2", "mesh:8x16", "fractional-mesh",
               "8 x 16 mesh, r = 2, 1 x 2 groups, least depth", "17",
               "groups where the search put them; flat: 14"},
              {"mesh-8x16-broadcast-fractional-r2", "mesh:8x16", "fractional",
               "8 x 16 mesh, r = 2, the flat tree, ranks placed one by one", "14",
               "no groups: nothing is lost to the mesh"},
              {"mesh-16x16-broadcast-fractional-mesh-r4-h-tree", "mesh:16x16", "fractional-mesh",
               "16 x 16 mesh, r = 4, H-tree of 2 x 2 snakes", "32", "flat: 26"},
              {"mesh-12x12-broadcast-fractional-mesh-r9", "mesh:12x12", "fractional-mesh",
               "12 x 12 mesh, r = 9, complete tree of 3 x 3 snakes", "47", ""}};
  for (const auto& [embedding, topology, algorithm, what, depth, note] : rows) {
    const Question question{.topology = topology, .algorithm = algorithm, .embedding = embedding};
    const bool drawn = std::string(what) == rows[0].what;
    const std::string where = std::string(topology) == "mesh:8x16" ? "Fig. 4" : "section 4";
    chapter.items.push_back({where, std::string(what) + ": blocks on a link in a step",
                             drawn ? Printed("one") : kNothing, "", "1", proven_load(question),
                             kProven, drawn ? "the drawing is lost" : "\"often\" possible"});
    chapter.items.push_back({where, std::string(what) + ": steps for the first packet", kNothing,
                             "", depth, proven_steps(question), kProven, note});
  }
}

// Reductions on meshes: broadcasts on the mesh with rows and columns exchanged, reversed in time.
void mesh_reductions(Chapter& chapter) {
  const struct {
    const char *mesh, *exchanged, *groups, *what;
  } rows[] = {{"8x16", "16x8", "r2-h-tree", "8 x 16 mesh, r = 2, H-tree of 1 x 2 groups"},
              {"8x16", "16x8", "r2", "8 x 16 mesh, r = 2, 1 x 2 groups, least depth"},
              {"16x16", "16x16", "r4-h-tree", "16 x 16 mesh, r = 4, H-tree of 2 x 2 snakes"},
              {"12x12", "12x12", "r9", "12 x 12 mesh, r = 9, complete tree of 3 x 3 snakes"}};
  for (const auto& [mesh, exchanged, groups, what] : rows) {
    const auto question = [&](const std::string& on, Collective collective) {
      return Question{.topology = "mesh:" + on,
                      .collective = collective,
                      .algorithm = "fractional-mesh",
                      .blocks = 20,
                      .embedding = "mesh-" + on + "-" + collective_name(collective) +
                                   "-fractional-mesh-" + groups};
    };
    const Question reduce = question(mesh, Collective::kReduce);
    const std::string where = std::string(mesh) == "8x16" ? "Fig. 4" : "section 4";
    const std::string name = std::string("reduction by it, ") + what;
    chapter.items.push_back({where, name + ": blocks on a link in a step", kNothing, "", "1",
                             proven_load(reduce), kProven, "x-y routes, reversed, are y-x routes"});
    chapter.items.push_back({where, name + ", s = 20, steps", kNothing, "",
                             proven_steps(question(exchanged, Collective::kBroadcast)),
                             proven_steps(reduce), kProven,
                             "those of the broadcast on " + std::string(exchanged)});
  }
}

}  // namespace

Chapter fractional_trees() {
  Chapter chapter{"[Sanders03]",
                  "A bandwidth latency tradeoff for broadcast and reduction (Sanders, Sibeyn)",
                  {},
                  {}};
  sizes(chapter);
  steps(chapter);
  example(chapter);
  bounds(chapter);
  figure_3(chapter);
  other_networks(chapter);
  third_level(chapter);
  fractional_meshes(chapter);
  mesh_reductions(chapter);
  tradeoff(chapter);
  return chapter;
}

}  // namespace espalier::papers
