// auto_grid MOST EXAMPLES: the algorithms that `auto` takes on topologies of 2 to MOST ranks of
// every family, as CSV: model, topology, links, ports, order, root, collective, and the algorithm
// for each size of messages (kSizes), the fastest as predicted. EXAMPLES is a folder of topology
// files. tests/docs/algorithm_pages.py --large counts the lines.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/testing/results.h"
#include "planner/choose/choice.h"
#include "planner/workload/reference.h"

namespace espalier {
namespace {

using planner::Candidate;
using planner::Choice;
using planner::Estimate;

constexpr std::uint64_t kSizes[] = {8,         64,      512,      4 << 10,  32 << 10,
                                    256 << 10, 2 << 20, 16 << 20, 128 << 20};
// Fewer numbers of ranks for what is dear: complete:N routed has all.
constexpr std::uint32_t kRanks[] = {2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12,  15,
                                    16, 20, 24, 27, 31, 32, 36, 48, 64, 81, 100, 101};
constexpr std::uint32_t kHopByHopRanks[] = {2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 25, 27, 36};
constexpr std::uint32_t kSingleSendRanks[] = {2, 3, 4, 5, 6, 7, 8, 9, 12, 15};
constexpr std::uint32_t kModelRanks[] = {2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 32, 64};
// Port models, by what they need.
constexpr PortModel kPorts[] = {PortModel::kSimplex, PortModel::kOnePortDuplex,
                                PortModel::kSingleSend, PortModel::kMultiport};
constexpr const char* kPortNames[] = {"simplex", "one-port", "single-send", "multiport"};

struct Links {
  const char* name;
  bool is_hop_by_hop;
  PortModel ports;  // of the lowered schedule
  std::span<const std::uint32_t> ranks;
};
constexpr Links kLinks[] = {
    {"routed", false, PortModel::kMultiport, kRanks},
    {"hop-by-hop", true, PortModel::kMultiport, kHopByHopRanks},
    {"hop-by-hop single-send", true, PortModel::kSingleSend, kSingleSendRanks}};

bool has(std::span<const std::uint32_t> ranks, std::uint32_t number) {
  return std::ranges::find(ranks, number) != ranks.end();
}

struct NamedModel {
  const char* name;
  predict::Model model;
  std::uint32_t ranks_on_host = 0;  // 0: as the topology says
};

std::string by(std::uint32_t a, std::uint32_t b) {
  return std::to_string(a) + "x" + std::to_string(b);
}

// Every number of ranks as a line, and as the rectangle next to a square.
std::vector<std::string> topologies_of(std::uint32_t ranks) {
  const std::string number = std::to_string(ranks);
  std::vector<std::string> all = {"complete:" + number, "ring:" + number};
  std::uint32_t rows = 1;
  for (std::uint32_t r = 2; r * r <= ranks; ++r) {
    if (ranks % r == 0) rows = r;
  }
  if (rows == 1) return all;
  for (const char* family : {"mesh:", "torus:", "hosts:", "crossbar:"}) {
    all.push_back(family + by(rows, ranks / rows));
  }
  if (rows * rows == ranks) {
    all.push_back("hyperx:" + by(rows, rows));
  } else {
    all.push_back("mesh:" + by(ranks / rows, rows));
    all.push_back("hosts:" + by(ranks / rows, rows));
  }
  return all;
}

// Topologies of families that not every number of ranks has.
std::vector<std::string> other_topologies(const std::string& examples) {
  std::vector<std::string> all;
  for (const char* cube : {"2x2x2", "2x2x3", "2x3x3", "3x3x3", "3x4x4", "4x4x4", "4x5x5"}) {
    for (const char* family : {"mesh:", "torus:", "hyperx:", "crossbar:"}) {
      all.push_back(std::string(family) + cube);
    }
  }
  for (std::uint32_t d = 1; d <= 6; ++d) all.push_back("hypercube:" + std::to_string(d));
  for (const char* one : {"2x1x2", "3x2x2", "4x3x2", "5x2x4", "9x4x2", "6x4x4"}) {
    all.push_back(std::string("dragonfly:") + one);
  }
  for (const char* tree : {"k=2,h=1", "k=2,h=2", "k=2,h=3", "k=2,h=4", "k=2,h=5", "k=2,h=6",
                           "k=3,h=1", "k=3,h=2", "k=3,h=3", "k=3,h=4", "k=4,h=1", "k=4,h=2",
                           "k=4,h=3", "k=5,h=2", "k=8,h=1", "k=8,h=2", "k=10,h=2"}) {
    for (const char* lanes : {",c=1", ",c=k"})
      all.push_back(std::string("fattree:") + tree + lanes);
  }
  all.emplace_back("fattree:k=4x3x2,c=1,2,7");
  for (const char* name : {"broken-mesh", "uneven-tree"}) {
    all.push_back("file:" + examples + "/" + name + ".textproto");
  }
  return all;
}

// The algorithms of one collective on one topology.
class Cells {
 public:
  Cells(std::string model, const Links& links, Choice choice)
      : model_(std::move(model)), links_(&links), choice_(std::move(choice)) {}

  void print() {
    const Collective collective = choice_.request().plan.collective;
    for (std::size_t ports = 0; ports < std::size(kPorts); ++ports) {
      print(ports, true);
      if (reference::combines(collective)) print(ports, false);
    }
  }

 private:
  // Whether nodes with these ports, and an operator that does (not) commute, have the schedule.
  [[nodiscard]] bool serves(const Candidate& candidate, std::size_t ports, bool commutes) const {
    if (!candidate.dropped.empty()) return false;
    const PortModel needed = candidate.programs.front().port_model;
    if (static_cast<std::size_t>(std::ranges::find(kPorts, needed) - kPorts) > ports) return false;
    return commutes || std::ranges::none_of(candidate.programs, [](const Program& program) {
             return program.needs_commutative;
           });
  }

  void print(std::size_t ports, bool commutes) {
    const planner::PlanRequest& plan = choice_.request().plan;
    std::string taken;
    for (const std::uint64_t size : kSizes) {
      const bool has_bytes = plan.collective != Collective::kBarrier;
      const std::string best = fastest(has_bytes ? size : 0, ports, commutes);
      if (best.empty()) return;
      taken += (taken.empty() ? "" : " ") + best;
      if (!has_bytes) break;
    }
    std::printf("%s,\"%s\",%s,%s,%s,%u,%s,%s\n", model_.c_str(), plan.topology->title().c_str(),
                links_->name, kPortNames[ports], commutes ? "commutes" : "in order", plan.root,
                collective_name(plan.collective), taken.c_str());
  }

  // As Choice::rank(), among the candidates that serve; empty if none does.
  std::string fastest(std::uint64_t bytes, std::size_t ports, bool commutes) {
    auto known = rankings_.find(bytes);
    if (known == rankings_.end()) {
      known = rankings_.emplace(bytes, or_throw(choice_.rank(bytes)).estimates).first;
    }
    const Estimate* best = nullptr;
    for (Estimate& one : known->second) {
      if (!serves(choice_.candidates()[one.candidate], ports, commutes)) continue;
      if (one.is_by_steps && (best == nullptr || one.time / 2 <= best->time)) {
        one = or_throw(choice_.predict(one.candidate, bytes));
      }
      if (best == nullptr || one.time < best->time) best = &one;
    }
    return best == nullptr ? "" : choice_.candidates()[best->candidate].plan.algorithm->name;
  }

  std::string model_;
  const Links* links_;
  Choice choice_;
  std::map<std::uint64_t, std::vector<Estimate>> rankings_;
};

void print_all(const std::shared_ptr<const topology::Topology>& topology, const Links& links,
               const NamedModel& model) {
  for (std::uint32_t each = Collective::kBroadcast; each <= _espalier_Collective_MAX; ++each) {
    planner::ChoiceRequest request;
    request.plan.topology = topology;
    request.plan.collective = static_cast<Collective>(each);
    request.plan.is_hop_by_hop = links.is_hop_by_hop;
    request.plan.ports = links.ports;
    request.op = reference::default_operator(request.plan.collective);
    request.model = model.model;
    request.conditions.ranks_on_host = model.ranks_on_host;
    const bool is_reduce = request.plan.collective == Collective::kReduce;
    for (const std::uint32_t root : {0u, topology->ranks() / 2}) {
      if (root > 0 && (!is_reduce || links.is_hop_by_hop)) break;
      request.plan.root = root;
      auto choice = Choice::make(request);
      if (choice) Cells(model.name, links, *std::move(choice)).print();
    }
  }
  std::fflush(stdout);
}

// The models of the communicator are for the topologies that it has.
std::vector<NamedModel> models_of(const std::string& spec, std::uint32_t ranks) {
  std::vector<NamedModel> all = {{"default", predict::default_model()}};
  const bool is_complete = spec.starts_with("complete");
  if (!has(kModelRanks, ranks) || !(is_complete || spec.starts_with("hosts"))) return all;
  predict::Model postal = predict::default_model();
  for (predict::LinkCost& link : postal.links) link.lambda_permille = 3000;
  all.push_back({"lambda = 3", postal});
  if (is_complete) {
    all.push_back({"memory", predict::memory_model(ranks, ranks), ranks});
    all.push_back({"memory of 2 cores", predict::memory_model(2, ranks), ranks});
  }
  predict::NetworkCost network{.message_ps = 50'000'000, .byte_fs = 1'000'000};
  all.push_back({"network", predict::network_model(network)});
  return all;
}

void print_grid(std::uint32_t most, const std::string& examples) {
  std::vector<std::string> specs = other_topologies(examples);
  for (std::uint32_t ranks = 2; ranks <= most; ++ranks) {
    for (std::string& spec : topologies_of(ranks)) specs.push_back(std::move(spec));
  }
  std::vector<std::shared_ptr<const topology::Topology>> all;
  for (const std::string& spec : specs) all.push_back(or_throw(topology::read(spec)));
  // Fewer ranks are a beginning of more.
  std::ranges::stable_sort(all, {}, [](const auto& topology) { return topology->ranks(); });
  for (const auto& topology : all) {
    const std::uint32_t ranks = topology->ranks();
    if (ranks > most) return;
    const bool is_complete = topology->spec().starts_with("complete");
    for (const Links& links : kLinks) {
      if (!has(links.ranks, ranks) && (!is_complete || links.is_hop_by_hop)) continue;
      for (const NamedModel& model : models_of(topology->spec(), ranks)) {
        print_all(topology, links, model);
        if (links.is_hop_by_hop) break;
      }
    }
  }
}

}  // namespace
}  // namespace espalier

int main(int argc, char** argv) {
  if (argc != 3) return std::fputs("usage: auto_grid MOST EXAMPLES\n", stderr), 2;
  espalier::print_grid(static_cast<std::uint32_t>(std::atoi(argv[1])), argv[2]);
  return 0;
}
