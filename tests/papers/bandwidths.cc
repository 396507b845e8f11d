// [SST09], section 6, and [SST07], section 3: the measured bandwidths again, as simulations and as
// runs. The drawings are lost, and with them the start-up times and bandwidths of the two clusters:
// the alpha and beta of the simulations are ours. Runs: tests/bench/paper_figures.py. Every
// sentence about a figure is a row for each of them.

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "base/testing/results.h"
#include "collectives/algorithms/testing/generate_all.h"
#include "collectives/predict/block_rules.h"
#include "collectives/predict/predict.h"
#include "espalier/topology/topology.h"
#include "tests/papers/item.h"
#include "tools/report/line_plot.h"

namespace espalier::papers {
namespace {

using Bytes = std::uint64_t;
constexpr Bytes kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;

constexpr char kTwoTree[] = "two trees", kPipeline[] = "linear pipeline", kBinary[] = "binary tree",
               kBinomial[] = "binomial tree", kCirculant[] = "circulant graph",
               kScatterAllgather[] = "scatter-allgather", kButterfly[] = "butterfly",
               kDoubly[] = "doubly pipelined tree", kSimultaneous[] = "simultaneous binomial trees";

// The papers' name of an algorithm, and this library's.
using Contenders = std::vector<std::pair<const char*, const char*>>;

// The sentences of the papers that do not hold here: figure, setting and subject.
constexpr const char* kNotHere[] = {
    "Fig. 5, Myrinet, 28 nodes: latency of the binomial tree next to the binary tree",
    "Fig. 5, Myrinet, 28 nodes: circulant graph next to the linear pipeline, 16 MiB",
    "Fig. 5, 28 hosts of 25 Mbit/s: two trees next to the circulant graph, small problems",
    "Fig. 5, 28 hosts of 25 Mbit/s: latency of the binomial tree next to the binary tree",
    "Fig. 5, 28 hosts of 25 Mbit/s: two trees next to the linear pipeline, 4 MiB",
    "Fig. 5, 28 hosts of 25 Mbit/s: circulant graph next to the linear pipeline, 4 MiB",
    "Fig. 6, InfiniBand, 150 nodes: latency of the binomial tree next to the binary tree",
    "Fig. 7, Myrinet, 28 nodes: two trees next to the second best, 1 MiB",
    "Fig. 7, Myrinet, 28 nodes: linear pipeline faster than two trees",
    "Fig. 7, 28 hosts of 25 Mbit/s: two trees next to the second best, 256 KiB",
    "Fig. 8, InfiniBand, 150 nodes: the second best algorithm, 1 MiB",
    "Fig. 8, InfiniBand, 150 nodes: linear pipeline faster than two trees",
    "Fig. 5, InfiniBand, 150 nodes: linear pipeline faster than two trees",
    "Fig. 9, Myrinet, 27 nodes: next to simultaneous binomial trees, 16 MiB",
    "Fig. 9, Myrinet, 27 nodes: doubly pipelined tree, drop of bandwidth around 4 MiB",
    "Fig. 9, 27 hosts of 25 Mbit/s: next to simultaneous binomial trees, 4 MiB",
};

struct Cluster {
  const char* name;
  double alpha, beta;  // s, s/B
};
constexpr Cluster kMyrinet = {"Myrinet", 10e-6, 1 / 250e6};
constexpr Cluster kInfiniBand = {"InfiniBand", 5e-6, 1 / 800e6};

// The time of one algorithm on a cluster, by its programs with the block lengths that are best
// there.
class Simulated {
 public:
  Simulated(const Cluster& cluster, std::uint32_t ranks, Collective collective,
            const std::string& algorithm)
      : topology_(or_throw(topology::parse("complete:" + std::to_string(ranks)))),
        model_(predict::line_model(cluster.alpha, cluster.beta)),
        programs_(
            must_generate(collective, algorithm,
                          {.ranks = ranks, .topology_digest = topology_->digest(), .window = 16})) {
    const predict::StepLengths lengths(
        ranks, [this](std::uint32_t node) -> const Program& { return programs_[node]; });
    const auto rules =
        predict::block_rules(programs_[0], lengths, model_.links[0], predict::kMaxBlockRules);
    for (Program& program : programs_) predict::set_block_rules(rules, program);
  }

  [[nodiscard]] double seconds(Bytes bytes) const {
    Layout layout;
    if (make_layout(programs_[0], bytes, 1, layout) != Status::kOk) {
      throw std::runtime_error("no layout");
    }
    return 1e-12 *
           static_cast<double>(predict::predict(*topology_, programs_, layout, model_, {}).time);
  }

 private:
  std::unique_ptr<topology::Topology> topology_;
  predict::Model model_;
  Programs programs_;
};

// The times of figure_runs.csv, s, by "5 two-tree 4096": figure, algorithm, bytes.
std::map<std::string, double> read_runs() {
  std::ifstream file(ESPALIER_FIGURE_RUNS);
  if (!file) throw std::runtime_error("cannot read " ESPALIER_FIGURE_RUNS);
  std::map<std::string, double> runs;
  for (std::string line; std::getline(file, line);) {
    const std::size_t last = line.rfind(',');
    std::string key = line.substr(0, last);
    std::replace(key.begin(), key.end(), ',', ' ');
    runs[key] = std::stod(line.substr(last + 1));
  }
  return runs;
}

// The sizes at which sentences are judged: what the papers call small and large.
struct Sizes {
  Bytes small, medium, large, very_large;
};
constexpr Sizes kOfSimulations = {kKiB, kMiB, 16 * kMiB, kGiB};
constexpr Sizes kOfRuns = {4 * kKiB, 256 * kKiB, 4 * kMiB, 4 * kMiB};

std::string size_text(Bytes bytes) {
  if (bytes < kKiB) return std::to_string(bytes) + " B";
  if (bytes < kMiB) return std::to_string(bytes / kKiB) + " KiB";
  return bytes < kGiB ? std::to_string(bytes / kMiB) + " MiB"
                      : std::to_string(bytes / kGiB) + " GiB";
}

// A figure: the bandwidths of algorithms of one collective, as the papers have them: the message's
// length by the time of the slowest.
class Figure {
 public:
  using Seconds = std::function<double(const std::string& algorithm, Bytes bytes)>;
  Figure(const char* where, std::string setting, const char* how, Sizes judged,
         Contenders contenders, Seconds seconds)
      : at(judged),
        where_(where),
        setting_(std::move(setting)),
        how_(how),
        contenders_(std::move(contenders)),
        seconds_(std::move(seconds)) {}

  const Sizes at;
  [[nodiscard]] bool is_simulated() const { return how_ == kSimulated; }

  // B/s
  [[nodiscard]] double bandwidth(const std::string& name, Bytes bytes) const {
    double& kept = known_[{name, bytes}];
    for (const auto& [paper, algorithm] : contenders_) {
      if (kept == 0 && name == paper) {
        kept = static_cast<double>(bytes) / seconds_(algorithm, bytes);
      }
    }
    return kept;
  }
  // Returns the ratio of two algorithms' bandwidths.
  [[nodiscard]] double ratio(const std::string& name, const std::string& other, Bytes bytes) const {
    return bandwidth(name, bytes) / bandwidth(other, bytes);
  }
  // The fastest but for the two trees and the linear pipeline.
  [[nodiscard]] std::string second_best(Bytes bytes) const {
    std::string best;
    for (const auto& [name, algorithm] : contenders_) {
      if (name == kTwoTree || name == kPipeline) continue;
      if (best.empty() || bandwidth(name, bytes) > bandwidth(best, bytes)) best = name;
    }
    return best;
  }
  // The least power of two up to 4 GiB from which on `name` has the higher bandwidth; 0: none.
  [[nodiscard]] Bytes ahead_from(const std::string& name, const std::string& other) const {
    Bytes from = 0;
    for (Bytes bytes = 4 * kGiB; bytes >= kKiB && ratio(name, other, bytes) > 1; bytes /= 2) {
      from = bytes;
    }
    return from;
  }

  // Adds a row: whether the papers' sentence holds.
  void say(Chapter& chapter, const std::string& about, Printed words, bool holds,
           const std::string& note) const {
    say_of(where_, chapter, about, words, holds, note);
  }
  void say_of(const std::string& where, Chapter& chapter, const std::string& about, Printed words,
              bool holds, const std::string& note) const {
    const std::string what = setting_ + ": " + about;
    const bool expected = std::find(std::begin(kNotHere), std::end(kNotHere),
                                    where.substr(8) + ", " + what) == std::end(kNotHere);
    chapter.items.push_back({where, what, words, "true", expected ? "" : "not here",
                             holds ? "true" : "not here", how_, note});
  }

  void draw(Chapter& chapter, const std::string& file, const std::string& collective) const {
    std::vector<tools::PlotLine> lines;
    for (const auto& [name, algorithm] : contenders_) {
      tools::PlotLine line{name, {}};
      for (Bytes bytes = at.small; bytes <= at.large; bytes *= 2) {
        line.points.emplace_back(static_cast<double>(bytes), bandwidth(name, bytes) / 1e6);
      }
      lines.push_back(line);
    }
    const std::string title = "Bandwidth of " + collective + ", " + setting_;
    chapter.pictures.push_back(
        {file, title, tools::plot_svg(title, {"message", true, true}, {"MB/s"}, lines)});
  }

 private:
  const char* where_;
  std::string setting_;
  const char* how_;
  Contenders contenders_;
  Seconds seconds_;
  mutable std::map<std::pair<std::string, Bytes>, double> known_;
};

Figure simulated(const char* where, const Cluster& cluster, std::uint32_t ranks,
                 Collective collective, const Contenders& contenders) {
  const auto made = std::make_shared<std::map<std::string, Simulated>>();
  for (const auto& [name, algorithm] : contenders) {
    made->emplace(algorithm, Simulated(cluster, ranks, collective, algorithm));
  }
  return {where,
          std::string(cluster.name) + ", " + std::to_string(ranks) + " nodes",
          kSimulated,
          kOfSimulations,
          contenders,
          [made](const std::string& algorithm, Bytes bytes) {
            return made->at(algorithm).seconds(bytes);
          }};
}

Figure run(const char* where, std::uint32_t hosts, const Contenders& contenders) {
  static const std::map<std::string, double> runs = read_runs();
  const std::string figure = std::string(where).substr(std::string("[SST09] Fig. ").size()) + " ";
  return {where,
          std::to_string(hosts) + " hosts of 25 Mbit/s",
          kRun,
          kOfRuns,
          contenders,
          [figure](const std::string& algorithm, Bytes bytes) {
            const std::string row = figure + algorithm + " " + std::to_string(bytes);
            const auto time = runs.find(row);
            if (time == runs.end()) {
              throw std::runtime_error("no row '" + row + "' in " ESPALIER_FIGURE_RUNS);
            }
            return time->second;
          }};
}

std::string times_text(double ratio) { return "factor " + fixed(ratio, 2); }

std::string from_text(Bytes bytes) {
  return bytes == 0 ? "nowhere up to 4 GiB" : "from " + size_text(bytes) + " on";
}

bool is_about(double value, double printed) {
  return value > printed / 1.2 && value < printed * 1.2;
}

void broadcasts(Chapter& chapter, const Figure& figure) {
  const Sizes at = figure.at;
  const double circulant = figure.ratio(kTwoTree, kCirculant, at.very_large);
  figure.say(chapter, "two trees and circulant graph, asymptotically", "the same bandwidth",
             circulant > 0.95, times_text(circulant) + " at " + size_text(at.very_large));
  const double small = figure.ratio(kCirculant, kTwoTree, at.small);
  figure.say(chapter, "two trees next to the circulant graph, small problems",
             "can of course not compete", small > 1,
             "the circulant graph has a " + times_text(small) + " at " + size_text(at.small));
  const double latency = figure.ratio(kBinomial, kBinary, 8);
  figure.say(chapter, "latency of the binomial tree next to the binary tree",
             "only half the latency", is_about(latency, 2),
             times_text(latency) + " at 8 B: the binary trees here are skewed, log_1.62 p deep");
  for (const char* name : {kTwoTree, kCirculant}) {
    const double pipeline = figure.ratio(name, kPipeline, at.large);
    figure.say(chapter, std::string(name) + " next to the linear pipeline, " + size_text(at.large),
               "fare better than the linear pipeline", pipeline > 1, times_text(pipeline));
  }
}

void on_myrinet(Chapter& chapter, const Figure& figure) {
  broadcasts(chapter, figure);
  const std::string where = ", " + size_text(figure.at.large);
  for (const char* name : {kScatterAllgather, kBinary}) {
    const double two_trees = figure.ratio(kTwoTree, name, figure.at.large);
    const double circulant = figure.ratio(kCirculant, name, figure.at.large);
    figure.say(chapter, std::string("both next to the ") + name + where,
               "more than 1.5 times the bandwidth", std::min(two_trees, circulant) > 1.5,
               "two trees " + times_text(two_trees) + ", circulant graph " + times_text(circulant));
  }
  const double binomial = figure.ratio(kTwoTree, kBinomial, figure.at.large);
  figure.say(chapter, "next to the binomial tree" + where, "a factor 3 higher bandwidth",
             binomial >= 3, times_text(binomial));
}

void broadcast_figures(Chapter& chapter) {
  const Contenders contenders = {
      {kTwoTree, "two-tree"},  {kCirculant, "circulant"}, {kScatterAllgather, "scatter-allgather"},
      {kBinomial, "binomial"}, {kBinary, "binary"},       {kPipeline, "chain"}};
  const Figure myrinet =
      simulated("[SST09] Fig. 5", kMyrinet, 28, Collective::kBroadcast, contenders);
  on_myrinet(chapter, myrinet);
  on_myrinet(chapter, run("[SST09] Fig. 5", 28, contenders));
  myrinet.draw(chapter, "sst09-fig5.svg", "broadcasts");

  const Figure infiniband =
      simulated("[SST09] Fig. 6", kInfiniBand, 150, Collective::kBroadcast, contenders);
  broadcasts(chapter, infiniband);
  const Bytes large = infiniband.at.large;
  const double used = kInfiniBand.beta * std::max(infiniband.bandwidth(kTwoTree, large),
                                                  infiniband.bandwidth(kCirculant, large));
  infiniband.say(chapter, "full bandwidth at " + size_text(large), "none of the algorithms",
                 used < 0.95, "at most " + fixed(100 * used, 0) + " % of the links'");
  infiniband.draw(chapter, "sst09-fig6.svg", "broadcasts");
}

// `who` the paper found second best; `crossing`: above this size the linear pipeline was faster.
void reductions(Chapter& chapter, const Figure& figure, const char* second, Printed who,
                Printed crossing, Bytes printed) {
  const Bytes at = figure.at.medium;
  const std::string found = figure.second_best(at);
  const double factor = figure.ratio(kTwoTree, found, at);
  figure.say(chapter, "the second best algorithm, " + size_text(at), who, found == second,
             "the " + found);
  figure.say(chapter, "two trees next to the second best, " + size_text(at),
             "about a factor 1.5 higher bandwidth", is_about(factor, 1.5), times_text(factor));
  if (figure.is_simulated()) {
    const Bytes from = figure.ahead_from(kPipeline, kTwoTree);
    figure.say(chapter, "linear pipeline faster than two trees", crossing,
               from >= printed / 2 && from <= printed * 2, from_text(from));
  }
  const double small = figure.ratio(kPipeline, kTwoTree, figure.at.small);
  figure.say(chapter, "linear pipeline next to two trees, " + size_text(figure.at.small),
             "is inferior", small < 1, times_text(small));
}

void reduction_figures(Chapter& chapter) {
  const Contenders contenders = {{kTwoTree, "two-tree"},
                                 {kButterfly, "rabenseifner"},
                                 {kBinomial, "binomial"},
                                 {kBinary, "binary"},
                                 {kPipeline, "chain"}};
  const Figure myrinet = simulated("[SST09] Fig. 7", kMyrinet, 28, Collective::kReduce, contenders);
  for (const Figure& figure : {myrinet, run("[SST09] Fig. 7", 28, contenders)}) {
    reductions(chapter, figure, kBinary, "the pipelined binary tree", "larger than 1MByte", kMiB);
  }
  myrinet.draw(chapter, "sst09-fig7.svg", "reductions");
  const Figure infiniband =
      simulated("[SST09] Fig. 8", kInfiniBand, 150, Collective::kReduce, contenders);
  reductions(chapter, infiniband, kButterfly, "the butterfly", "larger than 16Mbyte", 16 * kMiB);
  infiniband.draw(chapter, "sst09-fig8.svg", "reductions");
  const Bytes from = infiniband.ahead_from(kPipeline, kTwoTree);
  infiniband.say_of("[SST07] Fig. 5", chapter, "linear pipeline faster than two trees",
                    "larger than 512Mbyte", from >= 256 * kMiB && from <= kGiB,
                    from_text(from) + "; [SST09] prints 16Mbyte of the same figure");
  for (const auto& [where, what, note] :
       {std::tuple{"[SST09] Fig. 8", "two butterflies of different makers, a factor of 2",
                   "two programs of one algorithm, on that machine"},
        {"[SST09] Fig. 7", "sudden drop of the butterfly",
         "the authors name a change of protocol of that machine's library"}}) {
    chapter.items.push_back({where, what, kNothing, "", "", "", "-", note, true});
  }
}

void scans(Chapter& chapter, const Figure& figure) {
  const Sizes at = figure.at;
  const std::string where = ", " + size_text(at.large);
  const double simultaneous = figure.ratio(kTwoTree, kSimultaneous, at.large);
  figure.say(chapter, "next to simultaneous binomial trees" + where, "almost three times",
             is_about(simultaneous, 3), times_text(simultaneous));
  const double doubly = figure.ratio(kTwoTree, kDoubly, at.large);
  figure.say(chapter, "next to the doubly pipelined tree" + where, "about one third better",
             is_about(doubly, 4.0 / 3), times_text(doubly));
  if (figure.is_simulated()) {
    const double drop =
        figure.ratio(kDoubly, kTwoTree, 4 * kMiB) / figure.ratio(kDoubly, kTwoTree, kMiB);
    figure.say(chapter, "doubly pipelined tree, drop of bandwidth around 4 MiB",
               "a considerable drop", drop < 0.9,
               "next to two trees " + times_text(drop) +
                   " of that at 1 MiB; the authors suspect the block length, here it is the best");
  }
  const double very_large = figure.ratio(kPipeline, kTwoTree, at.very_large);
  figure.say(chapter, "two trees next to the linear pipeline, " + size_text(at.very_large),
             "cannot compete", very_large > 1, "the pipeline has a " + times_text(very_large));
  if (figure.is_simulated()) {
    const double limit = figure.ratio(kPipeline, kTwoTree, 4 * kGiB);
    figure.say(chapter, "linear pipeline over two trees, in the limit", "βm, compared to 2βm",
               is_about(limit, 2), times_text(limit) + " at 4 GiB");
  }
}

void scan_figure(Chapter& chapter) {
  const Contenders contenders = {{kTwoTree, "two-tree"},
                                 {kSimultaneous, "recursive-doubling"},
                                 {kDoubly, "doubly-pipelined"},
                                 {kPipeline, "chain"}};
  const Figure myrinet = simulated("[SST09] Fig. 9", kMyrinet, 27, Collective::kScan, contenders);
  scans(chapter, myrinet);
  scans(chapter, run("[SST09] Fig. 9", 27, contenders));
  myrinet.draw(chapter, "sst09-fig9.svg", "scans");
}

}  // namespace

void bandwidths(Chapter& chapter) {
  broadcast_figures(chapter);
  reduction_figures(chapter);
  scan_figure(chapter);
}

}  // namespace espalier::papers
