#include "communicator/cables/testing/cabled_job.h"

#include <algorithm>
#include <numeric>

#include "base/testing/results.h"
#include "espalier/internal/base/assert.h"

namespace espalier::communicator::testing {
namespace {

// A membership with a graph of cables.
class CabledMember final : public bootstrap::Bootstrap, public cables::OverCables {
 public:
  CabledMember(std::shared_ptr<bootstrap::Bootstrap> member,
               std::shared_ptr<const cables::JobGraph> graph)
      : member_(std::move(member)), graph_(std::move(graph)) {}
  [[nodiscard]] std::shared_ptr<const cables::JobGraph> job_graph() const override {
    return graph_;
  }
  [[nodiscard]] std::uint32_t rank() const override { return member_->rank(); }
  [[nodiscard]] std::uint32_t size() const override { return member_->size(); }
  [[nodiscard]] bootstrap::Method method() const override { return member_->method(); }
  [[nodiscard]] bool is_secret() const override { return member_->is_secret(); }
  [[nodiscard]] const bootstrap::JobSecret& secret() const override { return member_->secret(); }
  [[nodiscard]] const std::string& local_address() const override {
    return member_->local_address();
  }
  Result<void> put(const std::string& key, const std::string& value) override {
    return member_->put(key, value);
  }
  Result<void> fence() override { return member_->fence(); }
  Result<std::string> get(std::uint32_t rank, const std::string& key) override {
    return member_->get(rank, key);
  }
  // The graph of the survivors.
  Result<bootstrap::Survivors> rejoin() override {
    auto survivors = member_->rejoin();
    if (!survivors) return survivors;
    auto left = std::make_shared<cables::JobGraph>(*graph_);
    for (cables::JobGraph::Host& host : left->hosts) {
      std::erase_if(host.ranks, [&](std::uint32_t rank) {
        return !std::binary_search(survivors->ranks.begin(), survivors->ranks.end(), rank);
      });
    }
    graph_ = std::move(left);
    return survivors;
  }

 private:
  std::shared_ptr<bootstrap::Bootstrap> member_;
  std::shared_ptr<const cables::JobGraph> graph_;
};

}  // namespace

const std::vector<CabledShape>& cabled_shapes() {
  static const std::vector<CabledShape> shapes = {
      {"pair", 2, {{0, 1}}},
      {"triangle", 3, {{0, 1}, {0, 2}, {1, 2}}},
      {"ring4", 4, {{0, 1}, {1, 2}, {2, 3}, {0, 3}}},
      {"line4", 4, {{0, 1}, {1, 2}, {2, 3}}},
      {"star5", 5, {{0, 1}, {0, 2}, {0, 3}, {0, 4}}},
      {"four-less-one", 4, {{0, 1}, {0, 2}, {1, 2}, {1, 3}, {2, 3}}},
      {"mesh3x3",
       9,
       {{0, 1},
        {1, 2},
        {3, 4},
        {4, 5},
        {6, 7},
        {7, 8},
        {0, 3},
        {1, 4},
        {2, 5},
        {3, 6},
        {4, 7},
        {5, 8}}},
      {"mesh2x4-double", 8, {{0, 1}, {1, 2}, {2, 3}, {4, 5}, {5, 6}, {6, 7}, {0, 4},
                             {1, 5}, {2, 6}, {3, 7}, {0, 1}, {1, 2}, {2, 3}, {4, 5},
                             {5, 6}, {6, 7}, {0, 4}, {1, 5}, {2, 6}, {3, 7}}},
      {"tree-of-rings",
       7,
       {{0, 1}, {1, 2}, {0, 2}, {1, 3}, {3, 4}, {1, 4}, {2, 5}, {5, 6}, {2, 6}}},
      {"mesh4x4", 16, {{0, 1},  {1, 2},  {2, 3},   {4, 5},   {5, 6},   {6, 7},
                       {8, 9},  {9, 10}, {10, 11}, {12, 13}, {13, 14}, {14, 15},
                       {0, 4},  {1, 5},  {2, 6},   {3, 7},   {4, 8},   {5, 9},
                       {6, 10}, {7, 11}, {8, 12},  {9, 13},  {10, 14}, {11, 15}}}};
  return shapes;
}

const CabledShape& cabled_shape(const std::string& name) {
  const auto& shapes = cabled_shapes();
  const auto found = std::find_if(shapes.begin(), shapes.end(),
                                  [&](const CabledShape& shape) { return shape.name == name; });
  ESPALIER_ASSERT(found != shapes.end());
  return *found;
}

std::shared_ptr<cables::JobGraph> cabled_graph(const CabledShape& shape, std::uint32_t of_host,
                                               bool scattered) {
  auto graph = std::make_shared<cables::JobGraph>();
  for (std::uint32_t host = 0; host < shape.hosts; ++host) {
    cables::JobGraph::Host& added = graph->hosts.emplace_back();
    added.name = "box" + std::to_string(host);
    for (std::uint32_t i = 0; i < of_host; ++i) {
      added.ranks.push_back(scattered ? i * shape.hosts + host : host * of_host + i);
    }
  }
  for (const auto& [a, b] : shape.cables) {
    graph->cables.push_back({.a = {a, "to" + std::to_string(b), "127.0.0.1"},
                             .b = {b, "to" + std::to_string(a), "127.0.0.1"},
                             .rate_mbits = 1000,
                             .mtu = 1500});
  }
  std::stable_sort(graph->cables.begin(), graph->cables.end(),
                   [](const cables::JobCable& a, const cables::JobCable& b) {
                     return std::pair(a.a.host, a.b.host) < std::pair(b.a.host, b.b.host);
                   });
  return graph;
}

std::shared_ptr<const RankGraph> rank_graph(const cables::JobGraph& job) {
  std::size_t size = 0;
  for (const cables::JobGraph::Host& host : job.hosts) size += host.ranks.size();
  std::vector<std::uint32_t> ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0);
  return or_throw(RankGraph::make(job, ranks));
}

Change over_cables(std::shared_ptr<const cables::JobGraph> graph) {
  return [graph = std::move(graph)](JoinOptions& options, std::uint32_t) {
    options.membership = std::make_shared<CabledMember>(options.membership, graph);
    options.provider = "mem+tcp";
  };
}

}  // namespace espalier::communicator::testing
