// [SST09], section 6, and [SST07], section 3: the measured bandwidths again, as simulations. The
// drawings are lost, and with them the start-up times and bandwidths of the two clusters: the alpha
// and beta here are ours. Every sentence about a figure is a row.

#include <algorithm>
#include <map>
#include <stdexcept>
#include <vector>

#include "base/testing/results.h"
#include "collectives/predict/block_rules.h"
#include "collectives/predict/predict.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/topology/topology.h"
#include "tests/papers/item.h"
#include "tools/report/line_plot.h"

namespace espalier::papers {
namespace {

using Bytes = std::uint64_t;
constexpr Bytes kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;
// What the figures show, and what they call large.
constexpr Bytes kLeast = kKiB, kLarge = 16 * kMiB, kVeryLarge = 4 * kGiB;

struct Cluster {
  const char* name;
  double alpha, beta;  // s, s/B
};
constexpr Cluster kMyrinet = {"Myrinet", 10e-6, 1 / 250e6};
constexpr Cluster kInfiniBand = {"InfiniBand", 5e-6, 1 / 800e6};

// One algorithm in a figure: its programs, with the block lengths that are best for the cluster.
class Contender {
 public:
  Contender(const Cluster& cluster, std::uint32_t ranks, Collective collective,
            const std::string& algorithm)
      : topology_(or_throw(topology::parse("complete:" + std::to_string(ranks)))),
        model_(predict::line_model(cluster.alpha, cluster.beta)) {
    const Algorithm* found = find_algorithm(collective, algorithm.c_str());
    if (found == nullptr) throw std::runtime_error("no algorithm " + algorithm);
    CollectiveParameters parameters;
    parameters.ranks = ranks;
    parameters.topology_digest = topology_->digest();
    parameters.window = 16;
    programs_.resize(ranks);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      if (found->generate(parameters, rank, programs_[rank]) != Status::kOk) {
        throw std::runtime_error(algorithm + " has no program for rank " + std::to_string(rank));
      }
    }
    const predict::StepLengths lengths(
        ranks, [this](std::uint32_t node) -> const Program& { return programs_[node]; });
    const auto rules =
        predict::block_rules(programs_[0], lengths, model_.links[0], predict::kMaxBlockRules);
    for (Program& program : programs_) predict::set_block_rules(rules, program);
  }

  // Bandwidth as the papers have it: the message's length by the time of the slowest, B/s.
  [[nodiscard]] double bandwidth(Bytes bytes) const {
    const auto kept = known_.find(bytes);
    if (kept != known_.end()) return kept->second;
    Layout layout;
    if (make_layout(programs_[0], bytes, 1, layout) != Status::kOk) {
      throw std::runtime_error("no layout");
    }
    const predict::Prediction found =
        predict::predict(*topology_, programs_, layout, model_, predict::Conditions{});
    return known_[bytes] = static_cast<double>(bytes) / (static_cast<double>(found.time) * 1e-12);
  }

 private:
  std::unique_ptr<topology::Topology> topology_;
  predict::Model model_;
  Programs programs_;
  mutable std::map<Bytes, double> known_;
};

// A figure: algorithms of one collective on one cluster, by the papers' names for them.
class Figure {
 public:
  Figure(std::string where, const Cluster& cluster, std::uint32_t ranks, Collective collective,
         const std::vector<std::pair<std::string, std::string>>& algorithms)
      : where_(std::move(where)), cluster_(cluster), ranks_(ranks) {
    for (const auto& [name, algorithm] : algorithms) {
      names_.push_back(name);
      contenders_.emplace(name, Contender(cluster, ranks, collective, algorithm));
    }
  }

  [[nodiscard]] double bandwidth(const std::string& name, Bytes bytes) const {
    return contenders_.at(name).bandwidth(bytes);
  }
  // Of two algorithms' bandwidths.
  [[nodiscard]] double ratio(const std::string& name, const std::string& other, Bytes bytes) const {
    return bandwidth(name, bytes) / bandwidth(other, bytes);
  }
  // The part of the links' bandwidth that the algorithm reaches.
  [[nodiscard]] double utilization(const std::string& name, Bytes bytes) const {
    return bandwidth(name, bytes) * cluster_.beta;
  }
  // The fastest but for two.
  [[nodiscard]] std::string best_without(const std::string& one, const std::string& other,
                                         Bytes bytes) const {
    std::string best;
    for (const std::string& name : names_) {
      if (name == one || name == other) continue;
      if (best.empty() || bandwidth(name, bytes) > bandwidth(best, bytes)) best = name;
    }
    return best;
  }
  // The least power of two from which on `name` has the higher bandwidth; 0: none up to 4 GiB.
  [[nodiscard]] Bytes ahead_from(const std::string& name, const std::string& other) const {
    Bytes from = 0;
    for (Bytes bytes = kVeryLarge; bytes >= kLeast && ratio(name, other, bytes) > 1; bytes /= 2) {
      from = bytes;
    }
    return from;
  }

  // A row of the figure: whether the papers' sentence is true of the simulation.
  void say(Chapter& chapter, const std::string& what, Printed words, bool holds, bool expected,
           const std::string& note) const {
    chapter.items.push_back(
        {where_, std::string(cluster_.name) + ", " + std::to_string(ranks_) + " nodes: " + what,
         words, "true", expected ? "" : "not here", holds ? "true" : "not here", kSimulated, note});
  }

  [[nodiscard]] Picture picture(const std::string& file, const std::string& collective) const {
    std::vector<tools::PlotLine> lines;
    for (const std::string& name : names_) {
      tools::PlotLine line{name, {}};
      for (Bytes bytes = kLeast; bytes <= kLarge; bytes *= 2) {
        line.points.emplace_back(static_cast<double>(bytes), bandwidth(name, bytes) / 1e6);
      }
      lines.push_back(line);
    }
    const std::string title = "Bandwidth of " + collective + ", " + cluster_.name + ", " +
                              std::to_string(ranks_) + " nodes, simulated";
    return {file, title, tools::plot_svg(title, {"message", true, true}, {"MB/s"}, lines)};
  }

 private:
  std::string where_;
  Cluster cluster_;
  std::uint32_t ranks_;
  std::vector<std::string> names_;
  std::map<std::string, Contender> contenders_;
};

constexpr char kTwoTree[] = "two trees", kPipeline[] = "linear pipeline", kBinary[] = "binary tree",
               kBinomial[] = "binomial tree", kCirculant[] = "circulant graph",
               kScatterAllgather[] = "scatter-allgather", kButterfly[] = "butterfly",
               kDoubly[] = "doubly pipelined tree", kSimultaneous[] = "simultaneous binomial trees";

std::string times_text(double ratio) { return "factor " + fixed(ratio, 2); }

// "at least 16 MiB"
std::string from_text(Bytes bytes) {
  if (bytes == 0) return "nowhere up to 4 GiB";
  return bytes < kMiB ? "from " + std::to_string(bytes / kKiB) + " KiB on"
                      : "from " + std::to_string(bytes / kMiB) + " MiB on";
}

bool is_about(double value, double printed) {
  return value > printed / 1.2 && value < printed * 1.2;
}

void broadcasts(Chapter& chapter, const Figure& figure) {
  const double circulant = figure.ratio(kTwoTree, kCirculant, kGiB);
  figure.say(chapter, "two trees and circulant graph, asymptotically", "the same bandwidth",
             circulant > 0.95, true, times_text(circulant) + " at 1 GiB");
  const double small = figure.ratio(kCirculant, kTwoTree, kLeast);
  figure.say(chapter, "two trees next to the circulant graph, small problems",
             "can of course not compete", small > 1, true,
             "the circulant graph is faster by a " + times_text(small) + " at 1 KiB");
  const double latency = figure.ratio(kBinomial, kBinary, 8);
  figure.say(
      chapter, "latency of the binomial tree next to the binary tree", "only half the latency",
      is_about(latency, 2), false,
      times_text(latency) + " at 8 bytes: the binary trees here are skewed, log_1.62 p deep");
  for (const char* name : {kTwoTree, kCirculant}) {
    const double pipeline = figure.ratio(name, kPipeline, kLarge);
    figure.say(chapter, std::string(name) + " next to the linear pipeline, 16 MiB",
               "fare better than the linear pipeline", pipeline > 1, true, times_text(pipeline));
  }
}

void broadcast_figures(Chapter& chapter) {
  const std::vector<std::pair<std::string, std::string>> algorithms = {
      {kTwoTree, "two-tree"},  {kCirculant, "circulant"}, {kScatterAllgather, "scatter-allgather"},
      {kBinomial, "binomial"}, {kBinary, "binary"},       {kPipeline, "chain"}};
  const Figure myrinet("[SST09] Fig. 5", kMyrinet, 28, Collective::kBroadcast, algorithms);
  broadcasts(chapter, myrinet);
  for (const char* name : {kScatterAllgather, kBinary}) {
    const double two_trees = myrinet.ratio(kTwoTree, name, kLarge);
    const double circulant = myrinet.ratio(kCirculant, name, kLarge);
    myrinet.say(
        chapter, std::string("both next to the ") + name + ", 16 MiB",
        "more than 1.5 times the bandwidth", std::min(two_trees, circulant) > 1.5, true,
        "two trees " + times_text(two_trees) + ", circulant graph " + times_text(circulant));
  }
  const double binomial = myrinet.ratio(kTwoTree, kBinomial, kLarge);
  myrinet.say(chapter, "next to the binomial tree, 16 MiB", "a factor 3 higher bandwidth",
              binomial >= 3, true, times_text(binomial));
  chapter.pictures.push_back(myrinet.picture("sst09-fig5.svg", "broadcasts"));

  const Figure infiniband("[SST09] Fig. 6", kInfiniBand, 150, Collective::kBroadcast, algorithms);
  broadcasts(chapter, infiniband);
  const double used = std::max(infiniband.utilization(kTwoTree, kLarge),
                               infiniband.utilization(kCirculant, kLarge));
  infiniband.say(chapter, "full bandwidth at 16 MiB", "none of the algorithms", used < 0.95, true,
                 "at most " + fixed(100 * used, 0) + " % of the links'");
  chapter.pictures.push_back(infiniband.picture("sst09-fig6.svg", "broadcasts"));
}

// `printed`: the size above which the linear pipeline was faster.
void reductions(Chapter& chapter, const Figure& figure, const std::string& second, Printed who,
                bool is_second, bool is_factor, Printed crossing, Bytes printed) {
  const Bytes at = kMiB;
  const std::string found = figure.best_without(kTwoTree, kPipeline, at);
  const double factor = figure.ratio(kTwoTree, found, at);
  figure.say(chapter, "the second best algorithm, 1 MiB", who, found == second, is_second,
             "the " + found);
  figure.say(chapter, "two trees next to the second best, 1 MiB",
             "about a factor 1.5 higher bandwidth", is_about(factor, 1.5), is_factor,
             times_text(factor));
  const Bytes from = figure.ahead_from(kPipeline, kTwoTree);
  figure.say(chapter, "linear pipeline faster than two trees", crossing,
             from >= printed / 2 && from <= printed * 2, false, from_text(from));
  const double small = figure.ratio(kPipeline, kTwoTree, 64 * kKiB);
  figure.say(chapter, "linear pipeline next to two trees, 64 KiB", "is inferior", small < 1, true,
             times_text(small));
}

void reduction_figures(Chapter& chapter) {
  const std::vector<std::pair<std::string, std::string>> algorithms = {{kTwoTree, "two-tree"},
                                                                       {kButterfly, "rabenseifner"},
                                                                       {kBinomial, "binomial"},
                                                                       {kBinary, "binary"},
                                                                       {kPipeline, "chain"}};
  const Figure myrinet("[SST09] Fig. 7", kMyrinet, 28, Collective::kReduce, algorithms);
  reductions(chapter, myrinet, kBinary, "the pipelined binary tree", true, true,
             "larger than 1MByte", kMiB);
  chapter.pictures.push_back(myrinet.picture("sst09-fig7.svg", "reductions"));
  const Figure infiniband("[SST09] Fig. 8", kInfiniBand, 150, Collective::kReduce, algorithms);
  reductions(chapter, infiniband, kButterfly, "the butterfly", true, true, "larger than 16Mbyte",
             16 * kMiB);
  chapter.pictures.push_back(infiniband.picture("sst09-fig8.svg", "reductions"));
  const Bytes from = infiniband.ahead_from(kPipeline, kTwoTree);
  const Figure earlier("[SST07] Fig. 5", kInfiniBand, 150, Collective::kReduce, {});
  earlier.say(chapter, "linear pipeline faster than two trees", "larger than 512Mbyte",
              from >= 256 * kMiB && from <= kGiB, true,
              from_text(from) + "; [SST09] prints 16Mbyte of the same figure");
  for (const auto& [where, what, note] :
       {std::tuple{"[SST09] Fig. 8", "two butterflies of different makers, a factor of 2",
                   "two programs of one algorithm, on that machine"},
        {"[SST09] Fig. 7", "sudden drop of the butterfly",
         "the authors name a change of protocol of that machine's library"}}) {
    chapter.items.push_back({where, what, kNothing, "", "", "", "-", note, true});
  }
}

void scan_figure(Chapter& chapter) {
  const Figure figure("[SST09] Fig. 9", kMyrinet, 27, Collective::kScan,
                      {{kTwoTree, "two-tree"},
                       {kSimultaneous, "recursive-doubling"},
                       {kDoubly, "doubly-pipelined"},
                       {kPipeline, "chain"}});
  const double simultaneous = figure.ratio(kTwoTree, kSimultaneous, kLarge);
  figure.say(chapter, "next to simultaneous binomial trees, 16 MiB", "almost three times",
             is_about(simultaneous, 3), false, times_text(simultaneous));
  const double doubly = figure.ratio(kTwoTree, kDoubly, kLarge);
  figure.say(chapter, "next to the doubly pipelined tree, 16 MiB", "about one third better",
             is_about(doubly, 4.0 / 3), true, times_text(doubly));
  const double drop =
      figure.ratio(kDoubly, kTwoTree, 4 * kMiB) / figure.ratio(kDoubly, kTwoTree, kMiB);
  figure.say(chapter, "doubly pipelined tree, drop of bandwidth around 4 MiB",
             "a considerable drop", drop < 0.9, false,
             "next to two trees " + times_text(drop) +
                 " of that at 1 MiB; the authors suspect the block length, here it is the best");
  const double very_large = figure.ratio(kPipeline, kTwoTree, kGiB);
  figure.say(chapter, "two trees next to the linear pipeline, 1 GiB", "cannot compete",
             very_large > 1, true, "the pipeline is faster by a " + times_text(very_large));
  const double limit = figure.ratio(kPipeline, kTwoTree, kVeryLarge);
  figure.say(chapter, "linear pipeline over two trees, in the limit", "βm, compared to 2βm",
             is_about(limit, 2), true, times_text(limit) + " at 4 GiB");
  chapter.pictures.push_back(figure.picture("sst09-fig9.svg", "scans"));
}

}  // namespace

void bandwidths(Chapter& chapter) {
  broadcast_figures(chapter);
  reduction_figures(chapter);
  scan_figure(chapter);
}

}  // namespace espalier::papers
