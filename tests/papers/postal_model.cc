// [Bruck96], Bruck, De Coster, Dewulf, Ho and Lauwereins: broadcast and combine in the postal
// model.

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "collectives/algorithms/trees/postal.h"
#include "tests/papers/cost/alpha.h"
#include "tests/papers/item.h"
#include "tests/papers/proven.h"
#include "tools/report/line_plot.h"

namespace espalier::papers {
namespace {

constexpr char kRecurrence[] = "recurrence";

using cost::Lambda;

double value_of(const Lambda& lambda) { return static_cast<double>(lambda.latency) / lambda.send; }
std::string name_of(const Lambda& lambda) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value_of(lambda));
  return text;
}

// N_lambda(t) at the ticks 0 .. last.
std::string reached(const Lambda& lambda, std::int64_t most) {
  std::string text;
  for (const std::int64_t n : cost::reach_table(lambda, most)) {
    text += (text.empty() ? "" : " ") + std::to_string(n);
  }
  return text;
}

// Returns the ticks of the binomial tree.
std::string binomial_ticks(const Lambda& lambda, std::int64_t n) {
  return proven_steps({.topology = "complete:" + std::to_string(n),
                       .collective = Collective::kBroadcast,
                       .algorithm = "knomial",
                       .send_ticks = lambda.send,
                       .latency_ticks = lambda.latency,
                       .radix = 2});
}

std::string broadcast_ticks(const Lambda& lambda, std::int64_t n) {
  return proven_steps({.topology = "complete:" + std::to_string(n),
                       .collective = Collective::kBroadcast,
                       .algorithm = "lambda-tree",
                       .send_ticks = lambda.send,
                       .latency_ticks = lambda.latency});
}

void trees(Chapter& chapter) {
  chapter.items.push_back({"section 2.1", "N_2(t), t = 0 ..", "1 1 2 3 5 8 13", "", "",
                           reached({1, 2}, 13), kRecurrence});
  chapter.items.push_back(
      {"section 2.5", "N'(t') for lambda = 1.8 (f = 5, u = 9), t' = 0 ..", kNothing, "",
       "1 1 1 1 1 1 1 1 1 2 2 2 2 2 3 3 3 3 4 5 5 5 5 7 8 8 8 9 12 13 13 13 16 "
       "20 21 21 22 28 33 34 34 38 "
       "48 54 55 56 66",
       reached({5, 9}, 66), kRecurrence, "the paper gives the recurrence only"});
  chapter.items.push_back({"Fig. 1b", "binomial broadcast, n = 8, lambda = 2, steps", "6", "", "",
                           binomial_ticks({1, 2}, 8), kProven});
  chapter.items.push_back({"Fig. 2", "lambda-tree broadcast, n = 8, lambda = 2, steps", "5", "", "",
                           broadcast_ticks({1, 2}, 8), kProven});
  for (const Lambda& lambda :
       {Lambda{1, 1}, Lambda{1, 2}, Lambda{1, 3}, Lambda{5, 9}, Lambda{2, 5}}) {
    for (const std::int64_t n : {13, 64, 100}) {
      chapter.items.push_back(
          {"section 2.3",
           "lambda-tree broadcast, lambda = " + name_of(lambda) + ", n = " + std::to_string(n) +
               ", ticks of 1/" + std::to_string(lambda.send),
           kNothing, std::to_string(cost::reach_table(lambda, n).size() - 1), "",
           broadcast_ticks(lambda, n), kProven, "T_lambda(n), the optimum"});
    }
  }
  const std::vector<std::int64_t> reach = cost::reach_table({1, 2}, 14);
  const auto split = [&](std::int64_t n) {
    const cost::Kept kept = cost::optimal_kept(reach, {1, 2}, n);
    std::string text;
    for (std::int64_t k = kept.least; k <= kept.most; ++k) {
      text += (text.empty() ? "(" : " (") + std::to_string(k) + "," + std::to_string(n - k) + ")";
    }
    return text;
  };
  chapter.items.push_back({"section 2.4", "optimal (n', n'') for n = 13, lambda = 2", "(8,5)", "",
                           "", split(13), kRecurrence});
  chapter.items.push_back({"section 2.4", "optimal (n', n'') for n = 14, lambda = 2",
                           "(6,8) (7,7) ... (13,1)", "",
                           "(6,8) (7,7) (8,6) (9,5) (10,4) (11,3) (12,2) (13,1)", split(14),
                           kRecurrence, "the same, in full"});
}

std::string alpha_ticks_of(const char* algorithm, const Lambda& lambda, std::int64_t n,
                           std::uint32_t numerator = 0, std::uint32_t denominator = 0) {
  return proven_steps({.topology = "complete:" + std::to_string(n),
                       .algorithm = algorithm,
                       .send_ticks = lambda.send,
                       .latency_ticks = lambda.latency,
                       .ratio_numerator = numerator,
                       .ratio_denominator = denominator});
}

std::string optimum(const Lambda& lambda, std::int64_t n) {
  return std::to_string(cost::reach_table(lambda, n).size() - 1);
}

// Trees by a fixed alpha, and by the look-up table.
void alpha_trees(Chapter& chapter) {
  int later = 0;
  for (std::int64_t n = 2; n <= 250; ++n) {
    later += alpha_ticks_of("alpha-tree", {1, 2}, n, 618, 1000) != optimum({1, 2}, n);
  }
  chapter.items.push_back({"Fig. 6",
                           "alpha-tree, alpha = 0.618, lambda = 2, n = 2 .. 250: n whose ticks are "
                           "not T_lambda(n)",
                           "0", "", "", std::to_string(later), kProven});
  const struct {
    Lambda lambda;
    std::int64_t n;
    std::uint32_t hundredths;  // 0: the algorithm's alpha
    const char* ticks;
  } trees[] = {{{20, 39}, 64, 60, "197"}, {{20, 39}, 250, 60, "255"}, {{20, 39}, 1000, 0, "314"},
               {{5, 9}, 64, 58, "46"},    {{5, 9}, 64, 50, "54"},     {{5, 9}, 1000, 0, "74"},
               {{41, 53}, 100, 0, "340"}, {{41, 53}, 250, 0, "405"},  {{2, 5}, 1000, 0, "36"}};
  for (const auto& [lambda, n, hundredths, ticks] : trees) {
    const std::string alpha = hundredths == 0 ? "the default" : fixed(hundredths / 100.0, 2);
    chapter.items.push_back(
        {"section 2.4",
         "alpha-tree, alpha = " + alpha + ", lambda = " + name_of(lambda) +
             ", n = " + std::to_string(n) + ", ticks of 1/" + std::to_string(lambda.send),
         kNothing, optimum(lambda, n), ticks,
         alpha_ticks_of("alpha-tree", lambda, n, hundredths, hundredths == 0 ? 0 : 100), kProven,
         "T_lambda(n) is a bound: no fixed alpha is optimal for all n"});
  }
  for (const Lambda& lambda : {Lambda{1, 2}, Lambda{20, 39}, Lambda{5, 9}, Lambda{41, 53}}) {
    for (const std::int64_t n : {64, 250, 1000}) {
      chapter.items.push_back(
          {"section 2.4",
           "alpha-table, lambda = " + name_of(lambda) + ", n = " + std::to_string(n) +
               ", ticks of 1/" + std::to_string(lambda.send),
           kNothing, optimum(lambda, n), "", alpha_ticks_of("alpha-table", lambda, n), kProven,
           "T_lambda(n): the look-up table is optimal"});
    }
  }
}

std::string range_text(const std::optional<cost::AlphaRange>& range) {
  if (!range) return "none";
  return "[" + fixed(range->low, 5) + ", " + fixed(range->high, 5) + ")";
}

// The lower and upper ends of the optimal alpha by n: the paper's "Christmas tree".
Picture christmas_tree(const Lambda& lambda, std::int64_t last, const std::string& file) {
  const std::vector<std::int64_t> reach = cost::reach_table(lambda, last);
  tools::PlotLine low{"least alpha", {}}, high{"largest alpha", {}};
  for (std::int64_t n = 2; n <= last; ++n) {
    const cost::AlphaRange range = cost::optimal_alpha(reach, lambda, n);
    low.points.emplace_back(n, range.low);
    high.points.emplace_back(n, range.high);
  }
  const std::string title = "Optimal alpha by n, lambda = " + name_of(lambda);
  return {file, title, tools::plot_svg(title, {"n"}, {"alpha"}, {low, high})};
}

void ratios(Chapter& chapter) {
  chapter.items.push_back({"Fig. 6", "a fixed alpha for n = 2 .. 250, lambda = 2", "exists", "",
                           "[0.61588, 0.62017)", range_text(cost::common_alpha({1, 2}, 250)),
                           kRecurrence,
                           "the figure shows that there is one; the interval is ours"});
  for (const Lambda& lambda : {Lambda{20, 39}, Lambda{5, 9}, Lambda{1000, 1293}}) {
    const bool figure = lambda.latency == 39;
    chapter.items.push_back({figure ? "Fig. 7" : "section 2.4",
                             "a fixed alpha for n = 2 .. 250, lambda = " + name_of(lambda),
                             figure ? Printed("none") : kNothing, "", figure ? "" : "none",
                             range_text(cost::common_alpha(lambda, 250)), kRecurrence});
  }
  const struct {
    Lambda lambda;
    const char* sizes;
  } tables[] = {{{1000, 1293}, "9 32 64"},
                {{20, 39}, "10 33 64"},
                {{5, 9}, "10 29 51"},
                {{2, 5}, "1 5 12"},
                {{1, 2}, "1 1 1"}};
  for (const auto& table : tables) {
    std::string sizes;
    for (const std::int64_t last : {100, 1000, 10000}) {
      sizes +=
          (sizes.empty() ? "" : " ") + std::to_string(cost::alpha_table(table.lambda, last).size());
    }
    chapter.items.push_back({"Fig. 9",
                             "entries of the look-up table up to n = 100, 1000, 10000, lambda = " +
                                 name_of(table.lambda),
                             kNothing, "", table.sizes, sizes, kRecurrence,
                             "the figure has no numbers; alpha-table computes the table's entries, "
                             "lambda-tree needs none"});
  }
  chapter.pictures.push_back(christmas_tree({1, 2}, 250, "bruck96-fig6.svg"));
  chapter.pictures.push_back(christmas_tree({20, 39}, 250, "bruck96-fig7.svg"));
  tools::PlotLine sizes{"lambda = 1.293", {}};
  const std::vector<cost::AlphaEntry> table = cost::alpha_table({1000, 1293}, 10000);
  for (std::size_t i = 0; i < table.size(); ++i) {
    sizes.points.emplace_back(static_cast<double>(table[i].first), static_cast<double>(i + 1));
  }
  const std::string title = "Entries of the look-up table by n";
  chapter.pictures.push_back(
      {"bruck96-fig9.svg", title, tools::plot_svg(title, {"n", true}, {"entries"}, {sizes})});
}

void predicted_time(Chapter& chapter) {
  const Lambda lambda{5, 9};
  tools::PlotLine line{"n = 64, lambda = 1.8", {}};
  double least = 1e9;
  for (int alpha = 40; alpha <= 80; ++alpha) {
    const double steps =
        static_cast<double>(cost::alpha_tree_ticks(lambda, 64, alpha / 100.0)) / lambda.send;
    line.points.emplace_back(alpha / 100.0, steps);
    least = std::min(least, steps);
  }
  std::string best;
  for (const auto& [alpha, steps] : line.points) {
    if (steps == least) best += (best.empty() ? "" : " ") + fixed(alpha, 2);
  }
  chapter.items.push_back({"Fig. 12", "alpha with the least predicted time, n = 64, lambda = 1.8",
                           "0.56 to 0.59", "", "0.56 0.57 0.58 0.59", best, kRecurrence,
                           "the same, in hundredths"});
  chapter.items.push_back({"Fig. 12", "least predicted time, steps", kNothing, "", "9.2",
                           fixed(least, 1), kRecurrence,
                           "the figure's axis was lost; T_1.8(64) = 9.2 too"});
  chapter.items.push_back({"Fig. 12", "predicted time of the binomial tree (alpha = 0.5), steps",
                           kNothing, "", "10.8",
                           fixed(std::stod(binomial_ticks(lambda, 64)) / lambda.send, 1), kProven,
                           "14.8 % more than the least; 21 % were measured on the Delta"});
  const std::string title = "Predicted broadcast time by alpha, n = 64, lambda = 1.8";
  chapter.pictures.push_back(
      {"bruck96-fig12.svg", title, tools::plot_svg(title, {"alpha"}, {"steps"}, {line})});
}

// The growth of N_lambda: gamma^lambda = gamma^(lambda-1) + 1.
double growth(int lambda) {
  double low = 1, high = 2;
  for (int round = 0; round < 200; ++round) {
    const double middle = (low + high) / 2;
    (std::pow(middle, lambda) < std::pow(middle, lambda - 1) + 1 ? low : high) = middle;
  }
  return high;
}

void combine(Chapter& chapter) {
  static constexpr Printed kTable1[] = {"2.000", "1.618", "1.466", "1.380", "1.325",
                                        "1.285", "1.255", "1.232", "1.213", "1.197"};
  const char* table2[] = {"1.4404", "2.5178", "3.5581", "4.5844", "5.6035",
                          "6.6183", "7.6303", "8.6402", "9.6487"};
  for (int lambda = 1; lambda <= 10; ++lambda) {
    const bool rounds_up = lambda == 10;  // 1.19749 and more digits
    chapter.items.push_back({"Table 1", "gamma(" + std::to_string(lambda) + ")",
                             kTable1[lambda - 1], "", "", fixed(growth(lambda), 3), kRecurrence,
                             rounds_up ? "1.19749 to five digits" : ""});
  }
  for (int lambda = 1; lambda <= 9; ++lambda) {
    const double even = lambda * std::log(growth(lambda)) / std::log(growth(lambda + 1));
    chapter.items.push_back(
        {"Table 2",
         "break-even lambda of delay-send and delay-receive, floor " + std::to_string(lambda),
         lambda == 1 ? Printed("1.44") : kNothing, "", table2[lambda - 1], fixed(even, 4),
         kRecurrence,
         lambda == 1 ? "the paper rounds; it is the limit for large n"
                     : "the printed table is not legible"});
  }
  const struct {
    std::int64_t n;
    const char* exact;
  } finite[] = {{8, "1.667"}, {64, "1.667"}, {100, "1.571"}, {1024, "1.600"}};
  for (const auto& [n, exact] : finite) {
    const auto size = static_cast<std::uint32_t>(n);
    chapter.items.push_back(
        {"section 3", "break-even lambda between 1 and 2 for n = " + std::to_string(n), "1.44", "",
         exact, fixed(static_cast<double>(postal_ticks(size, 1, 2)) / postal_ticks(size, 1, 1), 3),
         kRecurrence, "the paper's holds for large n; schedules compare the exact times"});
  }
  for (const std::uint32_t lambda : {1u, 2u, 3u}) {
    for (const std::int64_t n : {5, 6, 7, 11, 20, 64}) {
      chapter.items.push_back({"section 3.1",
                               "global combine, lambda = " + std::to_string(lambda) +
                                   ", n = " + std::to_string(n) + ", rounds",
                               kNothing,
                               std::to_string(cost::reach_table({1, lambda}, n).size() - 1), "",
                               proven_steps({.topology = "complete:" + std::to_string(n),
                                             .collective = Collective::kAllreduce,
                                             .algorithm = "combine",
                                             .send_ticks = 1,
                                             .latency_ticks = lambda}),
                               kProven, "T_lambda(n): optimal for every n, by the deficiencies"});
    }
  }
}

// The row-major list that begins at the source and wraps around is the order that ranks have
// anyway.
void postal_meshes(Chapter& chapter) {
  for (const std::uint32_t lambda : {1u, 2u}) {
    std::string most = "0";
    for (const auto& [rows, columns] :
         {std::pair{1, 8}, {2, 2}, {3, 5}, {4, 4}, {5, 3}, {7, 6}, {8, 8}}) {
      for (int root = 0; root < rows * columns; root += std::max(1, rows * columns / 7)) {
        const std::string load =
            proven_load({.topology = "mesh:" + std::to_string(rows) + "x" + std::to_string(columns),
                         .algorithm = "lambda-tree",
                         .root = static_cast<std::uint32_t>(root),
                         .send_ticks = 1,
                         .latency_ticks = lambda});
        if (load.size() > 1 || load > most) most = load;
      }
    }
    chapter.items.push_back(
        {"section 2.6",
         "row-major list on meshes up to 8 x 8, several sources, lambda = " +
             std::to_string(lambda) + ": messages on a link at once",
         "congestion-free", "", "1", most, kProven,
         "where a message holds its links for one step, not for all of lambda"});
  }
}

// A postal network without contention, experiment by experiment ([Bruck96], section 2.2), in send
// times.
double first_experiment(int k, double lambda) {
  // Message i leaves in i - 1 .. i and arrives at i - 1 + lambda; its answer arrives lambda later.
  double last = 0;
  for (int i = 1; i <= k; ++i) last = std::max(last, i - 1 + lambda + lambda);
  return last;
}
double second_experiment(int k, double lambda) {
  // P_k begins its k messages to P_{k-1}, ..., P_0 when its own message has arrived.
  const double begun = k - 1 + lambda;
  return begun + (k - 1) + lambda;
}

void measuring(Chapter& chapter) {
  for (const int k : {1, 4, 16}) {
    const double lambda = 1.8;
    chapter.items.push_back({"section 2.2",
                             "first experiment, k = " + std::to_string(k) + ", lambda = 1.8, T/t_s",
                             kNothing, fixed(k - 1 + 2 * lambda, 1), "",
                             fixed(first_experiment(k, lambda), 1), "message by message"});
    chapter.items.push_back(
        {"section 2.2", "second experiment, k = " + std::to_string(k) + ", lambda = 1.8, T/t_s",
         kNothing, fixed(2 * (k - 1 + lambda), 1), "", fixed(second_experiment(k, lambda), 1),
         "message by message"});
  }
}

}  // namespace

Chapter postal_model() {
  Chapter chapter{"[Bruck96]",
                  "Broadcast and global combine in the postal model (Bruck, De Coster, Dewulf, Ho, "
                  "Lauwereins)",
                  {},
                  {}};
  trees(chapter);
  measuring(chapter);
  ratios(chapter);
  alpha_trees(chapter);
  predicted_time(chapter);
  combine(chapter);
  postal_meshes(chapter);
  postal_theory(chapter);
  postal_figures(chapter);
  return chapter;
}

}  // namespace espalier::papers
