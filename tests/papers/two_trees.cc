// [SST09] and [SST07], Sanders, Speck and Träff: two trees at once. Their h is ceil(log2(p+1)),
// their k ([SST07]: N/2) the blocks of one tree.

#include "collectives/algorithms/trees/two_trees.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "tests/papers/item.h"
#include "tests/papers/proven.h"

namespace espalier::papers {
namespace {

constexpr char kTreesThemselves[] = "the trees themselves";

std::string complete(std::int64_t ranks) { return "complete:" + std::to_string(ranks); }

// The colour of the edge into an even PE of T1 by [SST09], Fig. 3; n PEs, mirrored trees.
// `as_printed`: the bit is compared with 1, not with 0.
unsigned in_edge_colour(std::uint32_t n, std::uint32_t i, std::uint32_t h, bool as_printed) {
  std::uint32_t root = 1;
  while (2 * root <= n) root *= 2;
  if (i == root) return 1;
  while ((i & (1u << h)) == 0) ++h;
  const std::uint32_t bit = (2u << h) & i;
  const bool right = (as_printed ? bit == 1 : bit != 0) || i + (1u << h) > n;
  const std::uint32_t parent = right ? i - (1u << h) : i + (1u << h);
  if (parent == 0 || parent > n) return 2;  // no such PE: the printed rule has left the tree
  return in_edge_colour(n, parent, h, as_printed) ^ (n / 2 % 2) ^ (parent > i ? 1 : 0);
}

std::int64_t wrong_colours(std::uint32_t most, bool as_printed) {
  std::int64_t wrong = 0;
  for (std::uint32_t n = 2; n < most; n += 2) {
    const TwoTrees trees(n, Pairing::kMirror);
    for (std::uint32_t pe = 2; pe <= n; pe += 2) {
      wrong += in_edge_colour(n, pe, 1, as_printed) != trees.edge(0, pe).colour ? 1 : 0;
    }
  }
  return wrong;
}

void construction(Chapter& chapter) {
  const std::int64_t printed = wrong_colours(1200, true);
  chapter.items.push_back(
      {"[SST09] Fig. 3", "inEdgeColor, PEs of the wrong colour, all even p < 1200", kNothing,
       std::to_string(printed), "0", std::to_string(wrong_colours(1200, false)), kTreesThemselves,
       "printed: 2^(h+1) bitand i = 1, which never holds for h >= 1; it must be != 0"});
  std::int64_t inner_in_both = 0;
  for (std::uint32_t n = 2; n <= 300; ++n) {
    const TwoTrees trees(n, Pairing::kShift);
    for (std::uint32_t pe = 1; pe <= n; ++pe) {
      inner_in_both += trees.is_inner(0, pe) && trees.is_inner(1, pe) ? 1 : 0;
    }
  }
  chapter.items.push_back(
      {"[SST09] section 3", "shifting, PEs that are inner in both trees, all n <= 300", kNothing,
       "1 for every odd n", "0", std::to_string(inner_in_both), kTreesThemselves,
       "printed: PE p-1 becomes a child of PE p-2, right for even n only; T2 "
       "is T1 of n+1 nodes, shifted, without "
       "its first leaf"});
  std::int64_t in_tree = 0;
  const TwoTrees nine(8, Pairing::kShift);
  for (std::uint32_t pe = 1; pe <= 8; ++pe) {
    std::uint32_t top = pe;
    for (int hops = 0; hops < 8 && nine.parent(0, top) != 0; ++hops) top = nine.parent(0, top);
    in_tree += top == nine.root(0) ? 1 : 0;
  }
  chapter.items.push_back({"[SST07] section 2", "PEs in T1 for p = 9", kNothing, "7", "8",
                           std::to_string(in_tree), kTreesThemselves,
                           "2^h - 1 with 2^h >= p-1; 2^h must be more than p-1"});
}

// The steps for three blocks a tree less factor * (h + 3), for p = first, first + stride, ... up to
// 130: "least to most".
std::string steps_less(Collective collective, const std::string& algorithm, std::int64_t first,
                       std::int64_t stride, std::int64_t factor) {
  std::int64_t least = 100, most = -100;
  for (std::int64_t p = first; p <= 130; p += stride) {
    const std::int64_t h = static_cast<std::int64_t>(std::ceil(std::log2(p + 1)));
    const std::string steps = proven_steps(
        {.topology = complete(p), .collective = collective, .algorithm = algorithm, .blocks = 3});
    const std::int64_t slack = std::atoll(steps.c_str()) - factor * (h + 3);
    least = std::min(least, slack);
    most = std::max(most, slack);
  }
  return std::to_string(least) + " to " + std::to_string(most);
}

void broadcast_and_reduce(Chapter& chapter) {
  // Steps for 1 and 4 blocks per tree by n = p-1, from a separate simulation.
  const struct {
    std::int64_t n, one, four;
  } simulated[] = {{2, 4, 10},  {3, 4, 10},  {4, 5, 11},  {5, 5, 11},  {6, 6, 12},  {7, 6, 12},
                   {8, 7, 13},  {9, 7, 13},  {10, 7, 13}, {11, 7, 13}, {12, 7, 13}, {13, 7, 13},
                   {14, 8, 14}, {15, 8, 14}, {16, 9, 15}, {17, 9, 15}};
  for (const auto& [n, one, four] : simulated) {
    const std::int64_t h = static_cast<std::int64_t>(std::ceil(std::log2(n + 2)));
    for (const auto& [name, collective] : {std::pair{"broadcast", Collective::kBroadcast},
                                           std::pair{"reduction", Collective::kReduce}}) {
      const Question question{
          .topology = complete(n + 1), .collective = collective, .algorithm = "two-tree"};
      Question more = question;
      more.blocks = 4;
      chapter.items.push_back(
          {"[SST09] section 4.1",
           std::string(name) + ", steps for 1 and 4 blocks a tree, p = " + std::to_string(n + 1),
           kNothing, "at most " + std::to_string(2 * h + 2) + " and " + std::to_string(2 * h + 8),
           std::to_string(one) + " and " + std::to_string(four),
           proven_steps(question) + " and " + proven_steps(more), kProven});
    }
  }
  chapter.items.push_back(
      {"[SST09] section 4.1", "broadcast, steps less 2h + 2k, all p in 3 .. 130, k = 3", kNothing,
       "at most 0", "-4 to -2", steps_less(Collective::kBroadcast, "two-tree", 3, 1, 2), kProven,
       "a footnote: the actual number is one less; 2h + 2k - 1 is never "
       "attained"});
  for (const Collective collective : {Collective::kBroadcast, Collective::kReduce}) {
    chapter.items.push_back(
        {collective == Collective::kReduce ? "[SST09] section 4.2" : "[SST09] section 4.1",
         std::string("mirroring, ") + collective_name(collective) +
             ", steps less 2h + 2k, all odd p in 3 .. 130, k = 3",
         kNothing, "at most 0", "-3 to -2", steps_less(collective, "two-tree-mirror", 3, 2, 2),
         kProven, "the trees have the p - 1 PEs except the root"});
  }
}

// The trees have all PEs if p is even; otherwise PE p-1 is above both roots.
void mirrored_scan(Chapter& chapter) {
  for (const Collective collective : {Collective::kScan, Collective::kExscan}) {
    const bool waits = collective == Collective::kExscan;
    for (const std::int64_t first : {2, 3}) {
      const std::string expected =
          first == 2 ? (waits ? "-10 to -9" : "-10 to -10") : (waits ? "-8 to -6" : "-8 to -7");
      chapter.items.push_back(
          {"[SST09] section 4.3",
           std::string("mirroring, ") + collective_name(collective) + ", steps less 4h + 4k, all " +
               (first == 2 ? "even" : "odd") + " p in " + std::to_string(first) + " .. 130, k = 3",
           kNothing, "at most 0", expected, steps_less(collective, "two-tree-mirror", first, 2, 4),
           kProven,
           first == 2 ? "twice a broadcast's 2h + 2k"
                      : "section 3: for odd p, PE p-1 is a new root of both trees"});
    }
  }
}

void scan(Chapter& chapter) {
  for (const auto& [blocks, steps] :
       {std::pair{1, 14}, std::pair{2, 18}, std::pair{4, 26}, std::pair{8, 42}}) {
    const std::int64_t printed = 4 * 5 - 2 + 2 * (2 * blocks - 2);
    chapter.items.push_back(
        {"[SST07] section 2.3",
         "scan, p = 30, " + std::to_string(2 * blocks) + " blocks in both trees, steps", kNothing,
         std::to_string(printed), std::to_string(steps),
         proven_steps({.topology = complete(30),
                       .collective = Collective::kScan,
                       .algorithm = "two-tree",
                       .blocks = blocks}),
         kProven, "4h - 2 + 2(N - 2) is a bound; 4h + 2N - 10 are enough"});
  }
}

// An algorithm that a paper compares its own with.
struct Baseline {
  const char* where;
  const char* name;  // the paper's
  Collective collective;
  const char* algorithm;  // this library's
  std::int64_t ranks, blocks;
  std::int64_t formula;  // steps by the paper; 0: it has none
  std::int64_t steps;
  const char* note = "";
};

void add(Chapter& chapter, const Baseline& baseline) {
  const Question question{.topology = complete(baseline.ranks),
                          .collective = baseline.collective,
                          .algorithm = baseline.algorithm,
                          .blocks = baseline.blocks};
  const std::string blocks =
      baseline.blocks == 1 ? "" : ", " + std::to_string(baseline.blocks) + " blocks";
  const bool exact = baseline.formula == baseline.steps;
  chapter.items.push_back({baseline.where,
                           std::string(baseline.name) + " (" + baseline.algorithm + "), " +
                               collective_name(baseline.collective) +
                               ", p = " + std::to_string(baseline.ranks) + blocks + ", steps",
                           kNothing, baseline.formula == 0 ? "" : std::to_string(baseline.formula),
                           exact ? "" : std::to_string(baseline.steps), proven_steps(question),
                           kProven, baseline.note});
}

std::int64_t log_of(std::int64_t ranks) {
  return static_cast<std::int64_t>(std::ceil(std::log2(ranks)));
}

// The steps of one block down this library's binary tree: the k-th step reaches P_k ranks,
// P_k = 1 + P_(k-1) + P_(k-2).
std::int64_t binary_depth(std::int64_t ranks) {
  std::int64_t steps = 1;
  for (std::int64_t before = 1, reach = 2; reach < ranks; ++steps) {
    before = std::exchange(reach, 1 + reach + before);
  }
  return steps;
}

// Figs. 5 to 8: the algorithms of 28 and 150 nodes, in about 16 blocks.
void baselines(Chapter& chapter) {
  constexpr Collective kBroadcast = Collective::kBroadcast, kReduce = Collective::kReduce;
  constexpr char kBroadcasts[] = "[SST09] section 6.1", kReduces[] = "[SST09] section 6.2";
  for (const auto& [p, k] : {std::pair<std::int64_t, std::int64_t>{28, 16}, {150, 17}}) {
    const std::int64_t log = log_of(p);
    add(chapter, {kBroadcasts, "circulant graph", kBroadcast, "circulant", p, k, 0, log + k - 1});
    add(chapter, {kBroadcasts, "scatter-allgather", kBroadcast, "scatter-allgather", p, 1, 0,
                  log + p - 1, "p segments; the paper: a factor two in the amount of data"});
    for (const Collective collective : {kBroadcast, kReduce}) {
      const char* where = collective == kReduce ? kReduces : kBroadcasts;
      add(chapter, {where, "binomial tree", collective, "binomial", p, 1, log, log});
      add(chapter, {where, "pipelined binary tree", collective, "binary", p, k, 2 * (log + k),
                    binary_depth(p) - 1 + 2 * k - 1,
                    "2(log p + k) is for a complete tree; this one has the depth of Fibonacci's"});
      add(chapter, {where, "linear pipeline", collective, "chain", p, k, p + k, p - 2 + k,
                    "p + k is an approximation"});
    }
    add(chapter, {kReduces, "butterfly", kReduce, "rabenseifner", p, 1, 0, 2 * (log - 1) + 1,
                  "halving, then a gather; one step more because p is not a power of two"});
  }
  const std::int64_t h = 5;
  for (const std::int64_t blocks : {1, 8}) {
    add(chapter, {"[SST07] section 2", "pipelined binary tree", kBroadcast, "binary", 31, blocks,
                  2 * (h + blocks - 1), binary_depth(31) - 1 + 2 * blocks - 1,
                  "2(h + N - 1) counts the levels; a complete tree takes 2(h - 1 + N - 1)"});
    add(chapter, {"[SST07] section 2", "linear pipeline", kBroadcast, "chain", 31, blocks, 0,
                  31 - 2 + blocks, "the root of the time bound has h - 1 instead of p - 2"});
  }
}

// Fig. 9: 27 nodes. And the statements on steps that both papers make.
void scan_baselines(Chapter& chapter) {
  constexpr char kScans[] = "[SST09] section 6.3";
  const std::int64_t log = log_of(27), blocks = 16;
  for (const Collective collective : {Collective::kScan, Collective::kExscan}) {
    add(chapter,
        {kScans, "simultaneous binomial trees", collective, "recursive-doubling", 27, 1, log, log});
    // Up to the root 2 + 2 + 3 steps (27, 13 and 6 ranks), down from it 2 for each of 4 levels.
    add(chapter,
        {kScans, "doubly pipelined binary tree", collective, "doubly-pipelined", 27, blocks,
         3 * blocks + 4 * log, 7 + 8 - 2 + 3 * (blocks - 1), "section 2: about 3k + 4 log p"});
    add(chapter, {kScans, "linear pipeline", collective, "chain", 27, blocks, 27 + blocks,
                  27 - 2 + blocks, "p + k is an approximation"});
    for (const auto& [p, h] : {std::pair<std::int64_t, std::int64_t>{7, 3}, {15, 4}, {31, 5}}) {
      add(chapter, {"[SST07] section 2.3", "doubly pipelined", collective, "doubly-pipelined", p,
                    blocks, 4 * h - 2 + 3 * (blocks - 1), 4 * h - 6 + 3 * (blocks - 1),
                    "4h - 2 + 3(N - 1) is a bound; the root need not wait: 4 less"});
    }
  }
  add(chapter, {"[SST09] section 4.3", "2Tree-scan", Collective::kScan, "two-tree", 30, 8,
                2 * (2 * 5 + 2 * 8), 4 * 5 + 4 * 8 - 10, "about twice a broadcast's 2h + 2k"});
}

// The minimum of (2(h-1) + 2N)(alpha + beta m / 2N) over N, in units of alpha.
double least_time(double h, double bm) {
  double least = 1e300;
  for (int blocks = 1; blocks < 100000; ++blocks) {
    least = std::min(least, (2 * (h - 1) + 2 * blocks) * (1 + bm / (2 * blocks)));
  }
  return least;
}

void time_bounds(Chapter& chapter) {
  const double h = 5, bm = 1000;
  chapter.items.push_back(
      {"[SST07] section 2", "time bound for h = 5, alpha = 1, beta m = 1000", kNothing,
       fixed(4 * (h - 1) + 4 * std::sqrt(h - 1) * std::sqrt(bm / 2) + bm, 1),
       fixed(2 * (h - 1) + std::sqrt(8 * (h - 1) * bm) + bm, 1), fixed(least_time(h, bm), 1),
       "least over N", "2(h-1) alpha + sqrt(8 (h-1) alpha beta m) + beta m, as [SST09] has it"});
  chapter.items.push_back({"[SST07] section 2", "lower bound for h = 5, alpha = 1, beta m = 1000",
                           kNothing, fixed(std::min(h, bm), 1), fixed(std::max(h, bm), 1),
                           fixed(std::max(h, bm), 1), "closed form",
                           "printed: min; both bounds hold, so it is the larger"});
}

// Twice the steps of the two-tree of the couples and the root. If p is even, the root serves one
// more rank, which takes no further step.
void couples(Chapter& chapter) {
  for (const auto& [name, collective] :
       {std::pair{"broadcast", Collective::kBroadcast}, std::pair{"reduction", Collective::kReduce},
        std::pair{"reduction and broadcast", Collective::kAllreduce}}) {
    for (const std::int64_t p : {7, 8, 15, 31, 32, 63}) {
      Question question{.topology = complete((p + 1) / 2),
                        .collective = collective,
                        .algorithm = "two-tree",
                        .blocks = 4};
      const std::int64_t duplex = std::atoll(proven_steps(question).c_str());
      question.topology = complete(p);
      question.algorithm = "two-tree-simplex";
      chapter.items.push_back({"[SST09] section 5.2",
                               std::string("simplex ") + name + " by couples, p = " +
                                   std::to_string(p) + ", 4 blocks a tree, steps",
                               kNothing, std::to_string(2 * duplex), "", proven_steps(question),
                               kProven, "twice the two-tree's of the (p-1)/2 couples"});
    }
  }
}

// The paper says how a couple imitates one step of the trees. Its PEs also exchange sums before the
// first and after the last of these steps.
void scan_by_couples(Chapter& chapter) {
  const struct {
    std::int64_t p;
    const char *scan, *exscan;
  } steps[] = {{14, "44", "45"}, {15, "45", "46"}, {30, "52", "53"},
               {31, "53", "54"}, {62, "60", "61"}, {63, "61", "62"}};
  for (const auto& [p, scan, exscan] : steps) {
    for (const auto& [name, collective, corrected] :
         {std::tuple{"scan", Collective::kScan, scan},
          std::tuple{"exclusive scan", Collective::kExscan, exscan}}) {
      Question question{.topology = complete(p / 2),
                        .collective = collective,
                        .algorithm = "two-tree",
                        .blocks = 4};
      const std::int64_t duplex = std::atoll(proven_steps(question).c_str());
      question.topology = complete(p);
      question.algorithm = "two-tree-simplex";
      chapter.items.push_back(
          {"[SST09] section 5.2",
           std::string("simplex ") + name + " by couples, p = " + std::to_string(p) +
               ", 4 blocks a tree, steps",
           kNothing, std::to_string(2 * duplex), corrected, proven_steps(question), kProven,
           p % 2 == 0 ? "twice the two-tree's of p/2 PEs; a couple's PEs also "
                        "exchange sums before and after"
                      : "as for p-1; PE p-1 needs the sums of right spines"});
    }
  }
}

void fibonacci_trees(Chapter& chapter) {
  for (const auto& [n, latency] : {std::pair{64, 8}, std::pair{126, 10}, std::pair{256, 11},
                                   std::pair{512, 12}, std::pair{1023, 14}}) {
    const std::string steps = proven_steps({.topology = complete(n + 1),
                                            .collective = Collective::kBroadcast,
                                            .algorithm = "double-fibonacci"});
    chapter.items.push_back(
        {"[SST09] section 7",
         "two Fibonacci trees, n = " + std::to_string(n) + ", steps less both trees' blocks",
         kNothing, "", std::to_string(latency), std::to_string(std::atoll(steps.c_str()) - 2),
         kProven, "the manuscript that the paper cites could not be had"});
  }
}

void precomputation(Chapter& chapter) {
  chapter.items.push_back({"[SST09] Table 1", "circulant schedules, 100 000 PEs, microseconds",
                           "48803.58", "", "248803.58", "see precomputation.md", "-",
                           "[SST07]'s Table 1 has the leading 2; both were measured by the authors",
                           true});
  chapter.items.push_back({"[SST07] Table 1", "two-tree, 100 .. 1 000 000 PEs, microseconds",
                           "71.75 443.37 13651.42 209919.33 1990228.74", "", "",
                           "see precomputation.md", "-", "measured by the authors", true});
}

}  // namespace

Chapter two_trees() {
  Chapter chapter{
      "[SST09] and [SST07]",
      "Two-tree algorithms for full bandwidth broadcast, reduction and scan (Sanders, Speck, "
      "Traff)",
      {},
      {}};
  construction(chapter);
  colourings(chapter);
  bandwidths(chapter);
  broadcast_and_reduce(chapter);
  scan(chapter);
  mirrored_scan(chapter);
  baselines(chapter);
  scan_baselines(chapter);
  time_bounds(chapter);
  couples(chapter);
  scan_by_couples(chapter);
  fibonacci_trees(chapter);
  precomputation(chapter);
  return chapter;
}

}  // namespace espalier::papers
