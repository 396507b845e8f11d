// [Traff24], Träff: broadcast on circulant graphs, beside all others at two lengths of the message.

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "tests/papers/item.h"
#include "tests/papers/proven.h"

namespace espalier::papers {
namespace {

constexpr std::int64_t kRanks = 1024;

Question question_of(const std::string& algorithm, std::uint32_t run_length) {
  return Question{.topology = "complete:" + std::to_string(kRanks),
                  .algorithm = algorithm,
                  .every_blocks = true,
                  .run_length = run_length};
}

// The least of steps(N) * (t + k / (segments N)) over the N that the residue allows, in units of k,
// with k/t = `ratio`; the steps are those of the schedule.
std::string least_cost(const Question& question, std::int64_t segments, std::int64_t residue_mod,
                       double ratio) {
  constexpr std::int64_t kMostBlocks = 12000;
  const std::string steps = proven_steps(question, 1, kMostBlocks);
  double least = 1e300;
  const char* next = steps.c_str();
  for (std::int64_t blocks = 1; blocks <= kMostBlocks; ++blocks) {
    char* end = nullptr;
    const double taken = std::strtod(next, &end);
    if (end == next) return steps;  // why it is not proven
    next = end;
    if (blocks % residue_mod != 1 % residue_mod) continue;
    least = std::min(least, taken * (1 / ratio + 1 / static_cast<double>(segments * blocks)));
  }
  return fixed(least, 3);
}

void circulant_costs(Chapter& chapter) {
  const struct {
    const char* title;
    const char* algorithm;
    std::uint32_t run_length;
    std::int64_t segments, residue_mod;
    double ratio;
    const char *formula, *corrected, *note;
  } rows[] = {
      {"chain", "chain", 0, 1, 1, 4096, "2.249", "", ""},
      {"Fibonacci tree", "binary", 0, 1, 1, 4096, "2.156", "", ""},
      {"fractional tree, r = 10", "fractional", 10, 1, 1, 4096, "1.385", "", ""},
      {"two trees", "two-tree", 0, 2, 1, 4096, "1.145", "1.137",
       "2h + 2N - 2 steps are a bound; 2N + 18 are enough"},
      {"two Fibonacci trees", "double-fibonacci", 0, 2, 1, 4096, "1.120", "", ""},
      {"circulant graph", "circulant", 0, 1, 10, 4096, "1.096", "",
       "the least that blocks of equal length allow"},
      {"chain", "chain", 0, 1, 1, 64, "24.961", "", ""},
      {"Fibonacci tree", "binary", 0, 1, 1, 64, "3.413", "", ""},
      {"fractional tree, r = 2", "fractional", 2, 1, 1, 64, "3.132", "", ""},
      {"two trees", "two-tree", 0, 2, 1, 64, "2.431", "2.342",
       "2h + 2N - 2 steps are a bound; 2N + 18 are enough"},
      {"two Fibonacci trees", "double-fibonacci", 0, 2, 1, 64, "2.154", "", ""},
      {"circulant graph", "circulant", 0, 1, 10, 64, "1.891", "1.897",
       "1.891 with N = 24; the schedule has N = 1 (mod 10)"},
  };
  for (const auto& row : rows) {
    chapter.items.push_back({"cost",
                             "P = 1024, k/t = " + fixed(row.ratio, 0) + ": T/k, " + row.title,
                             kNothing, row.formula, row.corrected,
                             least_cost(question_of(row.algorithm, row.run_length), row.segments,
                                        row.residue_mod, row.ratio),
                             kProven, row.note});
  }
}

void circulant_steps(Chapter& chapter) {
  for (const std::int64_t p : {2, 3, 17, 100, 1024, 2000}) {
    for (const auto& [name, collective] : {std::pair{"broadcast", Collective::kBroadcast},
                                           std::pair{"reduction", Collective::kReduce}}) {
      std::int64_t rounds = 0;
      while ((std::int64_t{1} << rounds) < p) ++rounds;
      Question question{.topology = "complete:" + std::to_string(p),
                        .collective = collective,
                        .algorithm = "circulant",
                        .blocks = 1 + 3 * rounds,
                        .every_blocks = true};
      chapter.items.push_back(
          {"abstract", std::string(name) + ", p = " + std::to_string(p) + ", n = 1 + 3q, steps",
           kNothing, std::to_string(question.blocks - 1 + rounds), "", proven_steps(question),
           kProven, "n - 1 + q, q = ceil(log2 p); proven for every n = 1 mod q"});
    }
  }
}

}  // namespace

Chapter circulant_graphs() {
  Chapter chapter{
      "[Traff24]",
      "Optimal broadcast schedules in logarithmic time (Traff), beside the other algorithms",
      {},
      {}};
  circulant_steps(chapter);
  circulant_costs(chapter);
  return chapter;
}

}  // namespace espalier::papers
