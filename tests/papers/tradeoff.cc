// [Sanders03]: its time bounds as numbers, each beside the least time that trying every number of
// packets (and every run length) finds, and what the paper says about them in words.

#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/papers/cost/fractional.h"
#include "tests/papers/item.h"
#include "tests/papers/proven.h"

namespace espalier::papers {
namespace {

constexpr char kTryingAll[] = "trying all s";
constexpr double kExampleRatio = 4096;  // k/t of the paper's example
constexpr std::int64_t kExampleRanks = 1024;
constexpr const char* kExample = "P = 1024, k/t = 4096: ";

// The least time over all whole numbers of packets, in units of k.
double least_time(const cost::Pipeline& pipeline, double ratio) {
  double least = 1e300;
  for (int packets = 1; packets < 8192; ++packets) {
    least = std::min(least, pipeline.time(packets, ratio));
  }
  return least / ratio;
}

double log2_of(std::int64_t ranks) { return std::log2(static_cast<double>(ranks)); }

std::int64_t proven(std::int64_t ranks, const char* algorithm, std::int64_t blocks,
                    std::uint32_t run_length = 0) {
  return std::atoll(proven_steps({.topology = "complete:" + std::to_string(ranks),
                                  .collective = Collective::kBroadcast,
                                  .algorithm = algorithm,
                                  .blocks = blocks,
                                  .run_length = run_length})
                        .c_str());
}

void times_of_the_example(Chapter& chapter) {
  chapter.items.push_back(
      {"equation 1", std::string(kExample) + "T/k of the chain, best s", kNothing,
       fixed(std::pow(1 + std::sqrt((kExampleRanks - 2) / kExampleRatio), 2), 3), "",
       fixed(least_time(cost::chain(kExampleRanks), kExampleRatio), 3), kTryingAll});
  chapter.items.push_back(
      {"equation 2", std::string(kExample) + "T/k of the binary tree, best s", kNothing,
       fixed(std::pow(std::sqrt(2.0) + std::sqrt(13 / kExampleRatio), 2), 3), "",
       fixed(least_time(cost::binary_tree(kExampleRanks), kExampleRatio), 3), kTryingAll});
  for (const auto& [run_length, depth] : {std::pair{8.0, 57.0}, std::pair{10.0, 68.0}}) {
    const cost::Pipeline tree =
        cost::fractional_tree(kExampleRanks, static_cast<std::int64_t>(run_length));
    const std::string r = "r = " + fixed(run_length, 0);
    const double root = std::sqrt(depth * run_length / (kExampleRatio * (run_length + 1)));
    chapter.items.push_back({"equation 8", std::string(kExample) + "T/k, " + r + ", best s",
                             kNothing, fixed((1 + 1 / run_length) * std::pow(1 + root, 2), 3), "",
                             fixed(least_time(tree, kExampleRatio), 3), kTryingAll});
    const double cube = std::cbrt(depth / (kExampleRatio * (run_length + 1)));
    chapter.items.push_back({"section 3", std::string(kExample) + "T**/k, " + r, kNothing,
                             fixed(std::pow(1 + cube, 3), 2), "",
                             fixed(least_time(tree, kExampleRatio), 2), kTryingAll,
                             "T** is of the r that is best if d/(r+1) were constant"});
  }
  chapter.items.push_back({"introduction", std::string(kExample) + "T/k on hypercubes", kNothing,
                           fixed(std::pow(1 + std::sqrt(10 / kExampleRatio), 2), 3), "",
                           fixed(least_time({10, 1}, kExampleRatio), 3), kTryingAll,
                           "log P + s steps, as equation 6"});
}

// What stands in words beside the example.
void words_of_the_example(Chapter& chapter) {
  const auto time = [](std::int64_t run_length, double packets) {
    return cost::fractional_tree(kExampleRanks, run_length).time(packets, kExampleRatio);
  };
  chapter.items.push_back({"section 3", "r = 10, s = 503 is better than r = 8, s = 456 by, %",
                           "less than 0:2 %", "", "0.165",
                           fixed((1 - time(10, 503) / time(8, 456)) * 100, 3), kClosed});
  double most = 0;
  for (const std::int64_t run_length : {6, 8, 10}) {
    for (const double packets : {342.0, 456.0, 570.0}) {
      most = std::max(most, time(run_length, packets) / time(8, 456));
    }
  }
  chapter.items.push_back({"section 3", "r and s up to a quarter off: T/k over the example's, most",
                           "quite robust", "", "1.023", fixed(most, 3), kClosed,
                           "r = 6, 8, 10 and s = 342, 456, 570"});
}

void gains_in_words(Chapter& chapter) {
  double most = 0;
  constexpr std::int64_t kMany = std::int64_t{1} << 26;
  for (int step = 20 * 8; step <= 32 * 8; ++step) {
    most = std::max(most, cost::gain(kMany, std::exp2(step / 8.0)));
  }
  chapter.items.push_back({"introduction", "largest gain, P = 2^26", "approaches a factor two", "",
                           "1.96", fixed(most, 2), kClosed,
                           "r up to 64; P = 64: 1.28; P = 16384: 1.78"});
  chapter.items.push_back(
      {"introduction", "the same for simplex, in the limit of large P", "3=2", "1.5", "",
       fixed(static_cast<double>(proven(64, "fractional-direct", 40, 1) -
                                 proven(64, "fractional-direct", 20, 1)) /
                 20 / 2,
             1),
       kProven, "3 steps a packet for r = 1; a direct tree of long runs has 2 + 1/r"});
  // The largest constant in equation 3 where it says something: k above t log P.
  double constant = 0;
  for (const std::int64_t ranks : {64, 1024, 16384}) {
    for (int step = 0; step <= 20 * 4; ++step) {
      const double ratio = log2_of(ranks) * std::exp2(step / 4.0);
      const auto r = cost::best_run_length(ranks, ratio);
      const double above = cost::fractional_tree(ranks, r).best_time(ratio) / ratio - 1;
      constant = std::max(constant, above / std::cbrt(log2_of(ranks) / ratio));
    }
  }
  chapter.items.push_back({"equation 3",
                           "largest (T/k - 1) / (t log P / k)^(1/3), k/t from log P to 2^20 log P, "
                           "P = 64, 1024, 16384",
                           kNothing, "", "5.52", fixed(constant, 2), kClosed,
                           "the constant of the O(); the best r by trying all"});
}

// Schedules against the lower bounds: the least time over the bound.
void lower_bounds(Chapter& chapter) {
  const auto over = [](const char* algorithm, std::int64_t blocks, std::uint32_t run_length,
                       double bound) {
    const double time = static_cast<double>(proven(64, algorithm, blocks, run_length)) *
                        (1 + kExampleRatio / static_cast<double>(blocks));
    return fixed(time / bound, 3);
  };
  const double duplex = kExampleRatio + 6;
  chapter.items.push_back({"equation 4", "P = 64, k/t = 4096: circulant over the bound", kNothing,
                           "", "1.070", over("circulant", 163, 0, duplex), kProven,
                           "s = 163; no schedule is below 1"});
  const auto simplex = [](std::int64_t ranks) {
    const auto p = static_cast<double>(ranks);
    return 2 * (1 - 1 / p) * kExampleRatio + log2_of(ranks) - 4;
  };
  chapter.items.push_back({"equation 5", "P = 64, k/t = 4096: fractional-simplex over the bound",
                           kNothing, "", "1.299", over("fractional-simplex", 400, 8, simplex(64)),
                           kProven, "r = 8, s = 400; no schedule is below 1"});
}

void simplex_in_words(Chapter& chapter) {
  for (const std::uint32_t r : {1u, 2u, 4u}) {
    const auto slope = [&](const char* algorithm) {
      return static_cast<double>(proven(64, algorithm, 9 * r, r) - proven(64, algorithm, 4 * r, r));
    };
    chapter.items.push_back(
        {"section 3", "direct simplex version over duplex, steps a run, r = " + std::to_string(r),
         kNothing, fixed(2 - 1.0 / (r + 1), 3), "",
         fixed(slope("fractional-direct") / slope("fractional"), 3), kProven, "2 - 1/(r + 1)"});
  }
  for (const std::int64_t ranks : {16, 64}) {
    const std::int64_t duplex = proven(ranks / 2, "fractional", 16, 4);
    chapter.items.push_back(
        {"introduction",
         "simplex by couples, P = " + std::to_string(ranks) + ", r = 4, s = 16, steps", kNothing,
         std::to_string(2 * duplex), "", std::to_string(proven(ranks, "fractional-simplex", 16, 4)),
         kProven, "at most twice that for duplex and half as many PUs"});
    chapter.items.push_back({"introduction",
                             "reduction by it, simplex by couples, P = " + std::to_string(ranks) +
                                 ", r = 4, s = 16, steps",
                             kNothing, "", std::to_string(2 * duplex),
                             proven_steps({.topology = "complete:" + std::to_string(ranks),
                                           .collective = Collective::kReduce,
                                           .algorithm = "fractional-simplex",
                                           .blocks = 16,
                                           .run_length = 4}),
                             kProven, "the broadcast reversed in time"});
  }
}

}  // namespace

void tradeoff(Chapter& chapter) {
  times_of_the_example(chapter);
  words_of_the_example(chapter);
  gains_in_words(chapter);
  lower_bounds(chapter);
  simplex_in_words(chapter);
}

}  // namespace espalier::papers
