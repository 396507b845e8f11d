// [Bruck96], sections 2.3, 2.5 and 3: the greedy tree, the corners of the triangles in the picture
// of optimal alphas, and the two approaches to a global combine whose lambda is no integer.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <queue>
#include <vector>

#include "collectives/algorithms/trees/postal.h"
#include "tests/papers/cost/alpha.h"
#include "tests/papers/item.h"
#include "tests/papers/proven.h"
#include "tools/report/line_plot.h"

namespace espalier::papers {
namespace {

constexpr char kByRecurrence[] = "recurrence";

using cost::Lambda;

std::string lambda_text(const Lambda& lambda) {
  return fixed(static_cast<double>(lambda.latency) / lambda.send, 2);
}

// The ticks of the greedy tree: whoever has the message first, and is free, sends to the next node.
std::int64_t greedy_ticks(const Lambda& lambda, std::int64_t n) {
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> free_at;
  free_at.push(0);
  std::int64_t last = 0;
  for (std::int64_t reached = 1; reached < n; ++reached) {
    const std::int64_t begin = free_at.top();
    free_at.pop();
    free_at.push(begin + lambda.send);
    free_at.push(begin + lambda.latency);
    last = std::max(last, begin + lambda.latency);
  }
  return last;
}

void greedy(Chapter& chapter) {
  for (const Lambda& lambda : {Lambda{1, 2}, Lambda{5, 9}, Lambda{20, 39}, Lambda{2, 5}}) {
    std::int64_t later = 0;
    for (std::int64_t n = 2; n <= 400; ++n) {
      const auto optimum = static_cast<std::int64_t>(cost::reach_table(lambda, n).size()) - 1;
      later += greedy_ticks(lambda, n) == optimum ? 0 : 1;
    }
    chapter.items.push_back({"section 2.3",
                             "greedy tree, n up to 400, lambda = " + lambda_text(lambda) +
                                 ": n whose time is not T_lambda(n)",
                             kNothing, "0", "", std::to_string(later), "simulation"});
  }
}

// 1 / the growth of N' in a tick: N'(t) = N'(t - f) + N'(t - u).
double shrinkage(const Lambda& lambda) {
  double low = 0.5, high = 1;
  for (int round = 0; round < 200; ++round) {
    const double middle = (low + high) / 2;
    (std::pow(middle, lambda.send) + std::pow(middle, lambda.latency) < 1 ? low : high) = middle;
  }
  return high;
}

// The corners of the triangle of the first large n.
void triangles(Chapter& chapter) {
  const int tenths = std::gcd(10, 18);  // of 1 and 1.8
  const auto add = [&chapter](const char* what, Printed printed, const std::string& ours) {
    chapter.items.push_back({"section 2.5", std::string(what) + ", lambda = 1.8", printed, "", "",
                             ours, "closed form"});
  };
  add("gcd(1, lambda)", "0.2", fixed(tenths / 10.0, 1));
  add("lcm(1, lambda)", "9", std::to_string(std::lcm(10, 18) / 10));
  add("f", "5", std::to_string(10 / tenths));
  for (const Lambda& lambda : {Lambda{5, 9}, Lambda{1, 2}, Lambda{1, 3}, Lambda{2, 5}}) {
    const double phi = shrinkage(lambda);
    const int send = static_cast<int>(lambda.send), latency = static_cast<int>(lambda.latency);
    std::vector<std::int64_t> reach = cost::reach_table(lambda, 1'000'000'000'000'000);
    // The first tick of the last value, and the value before.
    const std::int64_t top = reach.back();
    const std::int64_t bottom = *(std::lower_bound(reach.begin(), reach.end(), top) - 1) + 1;
    const auto share = [](std::int64_t kept, std::int64_t n) {
      return fixed(static_cast<double>(kept) / static_cast<double>(n), 2);
    };
    const std::string which = "lambda = " + lambda_text(lambda) + ", ";
    chapter.items.push_back({"section 2.5", which + "top of the triangles", kNothing,
                             fixed(std::pow(phi, send), 2), "",
                             share(cost::optimal_kept(reach, lambda, top).most, top), kByRecurrence,
                             "phi^f; n above 10^15"});
    const cost::Kept kept = cost::optimal_kept(reach, lambda, bottom);
    chapter.items.push_back({"section 2.5", which + "left corner", kNothing,
                             fixed(1 - std::pow(phi, latency - 1), 2), "",
                             share(kept.least, bottom), kByRecurrence, "1 - phi^(u-1)"});
    chapter.items.push_back({"section 2.5", which + "right corner", kNothing,
                             fixed(std::pow(phi, send - 1), 2), "", share(kept.most, bottom),
                             kByRecurrence, "the printed exponent is not legible; phi^(f-1) fits"});
  }
}

// The optimal alphas for large n.
Picture large_n() {
  const Lambda lambda{20, 39};
  const std::vector<std::int64_t> reach = cost::reach_table(lambda, 1'000'000);
  tools::PlotLine low{"least alpha", {}}, high{"largest alpha", {}};
  for (double n = 2; n < 1e6; n = std::max(n + 1, n * 1.01)) {
    const auto whole = static_cast<std::int64_t>(n);
    const cost::AlphaRange range = cost::optimal_alpha(reach, lambda, whole);
    low.points.emplace_back(whole, range.low);
    high.points.emplace_back(whole, range.high);
  }
  const std::string title = "Optimal alpha by n, lambda = 1.95, large n";
  return {"bruck96-fig8.svg", title, tools::plot_svg(title, {"n", true}, {"alpha"}, {low, high})};
}

double growth_of(int lambda) { return 1 / shrinkage({1, static_cast<std::uint32_t>(lambda)}); }

void two_approaches(Chapter& chapter) {
  chapter.items.push_back({"Fig. 15", "delay-receive, lambda = 2.5: steps of a receive", "3", "",
                           "", fixed(std::ceil(2.5), 0), kByRecurrence});
  chapter.items.push_back({"Fig. 16", "delay-send, lambda = 2.5: steps of a send", "1.25", "", "",
                           fixed(2.5 / std::floor(2.5), 2), kByRecurrence});
  for (const std::uint32_t n : {8u, 64u, 100u, 1000u}) {
    const double receive = postal_ticks(n, 1, 3);
    // A send begins in a whole tick of 1/2, and the last one needs no pause behind it.
    const double send = (std::floor((postal_ticks(n, 1, 2) - 2) * 2.5) + 5) / 2;
    const std::string steps = proven_steps({.topology = "complete:" + std::to_string(n),
                                            .collective = Collective::kAllreduce,
                                            .algorithm = "combine",
                                            .send_ticks = 2,
                                            .latency_ticks = 5});
    chapter.items.push_back(
        {"section 3", "global combine, lambda = 2.5, n = " + std::to_string(n) + ", time", kNothing,
         "", fixed(std::min(receive - 0.5, send), 2), fixed(std::atof(steps.c_str()) / 2, 2),
         kProven, "delay-receive " + fixed(receive - 0.5, 2) + ", delay-send " + fixed(send, 2)});
  }
  tools::PlotLine gamma{"gamma(lambda)", {}}, even{"break-even lambda, less its whole part", {}};
  for (int lambda = 1; lambda <= 10; ++lambda) {
    gamma.points.emplace_back(lambda, growth_of(lambda));
    const double at = lambda * std::log(growth_of(lambda)) / std::log(growth_of(lambda + 1));
    if (lambda < 10) even.points.emplace_back(lambda, at - lambda);
  }
  const std::string growth = "Growth of N_lambda", point = "Break-even of delay-send and -receive";
  chapter.pictures.push_back(
      {"bruck96-fig17.svg", growth, tools::plot_svg(growth, {"lambda"}, {"gamma"}, {gamma})});
  chapter.pictures.push_back({"bruck96-fig18.svg", point,
                              tools::plot_svg(point, {"whole part of lambda"}, {"more"}, {even})});
}

}  // namespace

void postal_theory(Chapter& chapter) {
  greedy(chapter);
  triangles(chapter);
  two_approaches(chapter);
  chapter.pictures.push_back(large_n());
}

}  // namespace espalier::papers
