#include "collectives/search/packing/exchange_flow.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <utility>

#ifdef ESPALIER_WITH_CLP
#include <Clp_C_Interface.h>
#include <dlfcn.h>

#include "espalier/internal/base/assert.h"
#endif

namespace espalier::searched {

#ifdef ESPALIER_WITH_CLP
namespace {

// The functions of Clp. The library is loaded when a flow is searched for, so that programs without
// need none of it.
class Clp {
 public:
  Clp() {
    library_ = dlopen("libClp.so.1", RTLD_NOW | RTLD_LOCAL);
    is_complete_ =
        library_ != nullptr && find("Clp_newModel", new_model) &&
        find("Clp_deleteModel", delete_model) && find("Clp_setLogLevel", set_log_level) &&
        find("Clp_loadProblem", load_problem) && find("Clp_initialDualSolve", initial_dual_solve) &&
        find("Clp_status", status) && find("Clp_primalColumnSolution", primal_column_solution) &&
        find("Clp_dualRowSolution", dual_row_solution);
  }
  [[nodiscard]] bool is_complete() const { return is_complete_; }

  decltype(&Clp_newModel) new_model = nullptr;
  decltype(&Clp_deleteModel) delete_model = nullptr;
  decltype(&Clp_setLogLevel) set_log_level = nullptr;
  decltype(&Clp_loadProblem) load_problem = nullptr;
  decltype(&Clp_initialDualSolve) initial_dual_solve = nullptr;
  decltype(&Clp_status) status = nullptr;
  decltype(&Clp_primalColumnSolution) primal_column_solution = nullptr;
  decltype(&Clp_dualRowSolution) dual_row_solution = nullptr;

 private:
  template <typename Function>
  [[nodiscard]] bool find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    return function != nullptr;
  }

  void* library_ = nullptr;  // stays loaded
  bool is_complete_ = false;
};

const Clp& clp() {
  static const Clp functions;
  return functions;
}

// The time of the busiest link costs this much more than a unit on a link.
constexpr double kTimeCost = 1 << 20;

// Variables: the time of the busiest link, then the flow of each origin on each link. Rows: for
// each origin and other node, what stays there; then for each link, its flow - lanes * time <= 0.
class FlowProgram {
 public:
  explicit FlowProgram(const PackingGraph& graph)
      : graph_(graph), model_(clp().new_model(), clp().delete_model) {
    const std::size_t links = graph.links.size();
    columns_ = 1 + static_cast<int>(graph.ranks * links);
    capacity_row_ = static_cast<int>(graph.ranks * graph.nodes);
    const int rows = capacity_row_ + static_cast<int>(links);
    std::vector<int> starts = {0}, numbers;
    std::vector<double> values, cost = {kTimeCost};
    for (std::size_t link = 0; link < links; ++link) {
      numbers.push_back(capacity_row_ + static_cast<int>(link));
      values.push_back(-static_cast<double>(graph.links[link].lanes));
    }
    starts.push_back(static_cast<int>(numbers.size()));
    std::mt19937_64 random(1);
    for (std::uint32_t origin = 0; origin < graph.ranks; ++origin) {
      for (std::size_t link = 0; link < links; ++link) {
        const PackingLink& one = graph.links[link];
        for (const auto& [node, value] : {std::pair(one.from, -1.0), std::pair(one.to, 1.0)}) {
          if (node == origin) continue;  // its row follows from the others
          numbers.push_back(row(origin, node));
          values.push_back(value);
        }
        numbers.push_back(capacity_row_ + static_cast<int>(link));
        values.push_back(1.0);
        starts.push_back(static_cast<int>(numbers.size()));
        // 1 to 2, by 53 bits: exact in a double.
        cost.push_back(1.0 + static_cast<double>(random() >> 11) / 9007199254740992.0);
      }
    }
    std::vector<double> least(static_cast<std::size_t>(rows), 0.0), most = least;
    for (std::uint32_t origin = 0; origin < graph.ranks; ++origin) {
      for (std::uint32_t rank = 0; rank < graph.ranks; ++rank) {
        const auto stays = static_cast<std::size_t>(row(origin, rank));
        least[stays] = most[stays] = rank == origin ? 0.0 : 1.0;
      }
    }
    for (std::size_t link = 0; link < links; ++link) {
      least[static_cast<std::size_t>(capacity_row_) + link] = -std::numeric_limits<double>::max();
    }
    clp().set_log_level(model_.get(), 0);
    clp().load_problem(model_.get(), columns_, rows, starts.data(), numbers.data(), values.data(),
                       nullptr, nullptr, cost.data(), least.data(), most.data());
  }

  Result<void> solve() {
    clp().initial_dual_solve(model_.get());
    const int status = clp().status(model_.get());
    if (status == 0) return {};
    return fail(status == 1 ? "a rank cannot reach another"
                            : "Clp ended with status " + std::to_string(status));
  }

  [[nodiscard]] double flow(std::uint32_t origin, std::size_t link) const {
    return clp().primal_column_solution(model_.get())[1 + origin * graph_.links.size() + link];
  }
  // What a lane of the link is worth, in parts of the whole.
  [[nodiscard]] double worth(std::size_t link) const {
    return -clp().dual_row_solution(model_.get())[static_cast<std::size_t>(capacity_row_) + link] /
           kTimeCost;
  }

 private:
  [[nodiscard]] int row(std::uint32_t origin, std::uint32_t node) const {
    return static_cast<int>(origin * graph_.nodes + node);
  }

  const PackingGraph& graph_;
  std::unique_ptr<Clp_Simplex, void (*)(Clp_Simplex*)> model_;
  int columns_ = 0, capacity_row_ = 0;
};

LinkLengths lengths_of(const PackingGraph& graph, const FlowProgram& program) {
  double longest = 0;
  for (std::size_t link = 0; link < graph.links.size(); ++link) {
    longest = std::max(longest, program.worth(link));
  }
  // The best of all lengths up to this: those of most graphs are small numbers.
  constexpr int kMaxLength = 240;
  LinkLengths best;
  for (int most = 1; most <= kMaxLength; ++most) {
    LinkLengths lengths;
    for (std::size_t link = 0; link < graph.links.size(); ++link) {
      lengths.by_link.push_back(std::llround(program.worth(link) / longest * most));
    }
    measure(graph, lengths);
    if (lengths.distances * best.lanes > best.distances * lengths.lanes) best = std::move(lengths);
  }
  return best;
}

}  // namespace

const char* missing_flow_solver() {
  return clp().is_complete() ? nullptr
                             : "libClp.so.1 cannot be loaded; expected Debian's package "
                               "coinor-libclp1";
}

Result<ExchangeFlow> find_exchange_flow(const PackingGraph& graph) {
  ESPALIER_ASSERT(graph.ranks >= 2 && graph.nodes >= graph.ranks);
  if (missing_flow_solver() != nullptr) return fail(missing_flow_solver());
  FlowProgram program(graph);
  if (auto solved = program.solve(); !solved) return fail(solved.error());
  ExchangeFlow flow;
  std::vector<std::int64_t> loads(graph.links.size(), 0);
  for (std::uint32_t origin = 0; origin < graph.ranks; ++origin) {
    std::vector<std::int64_t>& of_origin = flow.by_origin.emplace_back();
    for (std::size_t link = 0; link < graph.links.size(); ++link) {
      of_origin.push_back(std::llround(program.flow(origin, link) * kFlowUnit));
      loads[link] += of_origin.back();
    }
  }
  for (std::size_t link = 0; link < graph.links.size(); ++link) {
    const std::int64_t lanes = graph.links[link].lanes;
    flow.time = std::max(flow.time, (loads[link] + lanes - 1) / lanes);
  }
  flow.lengths = lengths_of(graph, program);
  return flow;
}

#else

const char* missing_flow_solver() {
  return "this build has no linear programming; expected one with Debian's package "
         "coinor-libclp-dev (-Dclp=enabled)";
}

Result<ExchangeFlow> find_exchange_flow(const PackingGraph&) { return fail(missing_flow_solver()); }

#endif

void measure(const PackingGraph& graph, LinkLengths& lengths) {
  constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max() / 2;
  std::vector<std::vector<std::size_t>> out(graph.nodes);
  lengths.distances = lengths.lanes = 0;
  for (std::size_t link = 0; link < graph.links.size(); ++link) {
    out[graph.links[link].from].push_back(link);
    lengths.lanes += graph.links[link].lanes * lengths.by_link[link];
  }
  for (std::uint32_t origin = 0; origin < graph.ranks; ++origin) {
    std::vector<std::int64_t> away(graph.nodes, kFar);
    using Reached = std::pair<std::int64_t, std::uint32_t>;
    std::priority_queue<Reached, std::vector<Reached>, std::greater<>> queue;
    queue.push({away[origin] = 0, origin});
    while (!queue.empty()) {
      const auto [distance, node] = queue.top();
      queue.pop();
      if (distance > away[node]) continue;
      for (const std::size_t link : out[node]) {
        const std::int64_t on = distance + lengths.by_link[link];
        const std::uint32_t to = graph.links[link].to;
        if (on < away[to]) queue.push({away[to] = on, to});
      }
    }
    for (std::uint32_t rank = 0; rank < graph.ranks; ++rank) lengths.distances += away[rank];
  }
}

}  // namespace espalier::searched
