#include "communicator/cables/rank_graph.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <utility>

#include "base/one_line.h"
#include "base/try.h"
#include "hal/fabric/provider_list.h"

namespace espalier::communicator {
namespace {

constexpr std::uint32_t kFar = UINT32_MAX;

// Memory is a class of links that topology files do not have.
class RankTopology final : public topology::Topology {
 public:
  RankTopology(std::unique_ptr<topology::Topology> graph, std::vector<std::uint32_t> host_of)
      : graph_(std::move(graph)), host_of_(std::move(host_of)) {}

  [[nodiscard]] std::string spec() const override { return graph_->spec(); }
  [[nodiscard]] std::string title() const override { return "the job's cables"; }
  [[nodiscard]] std::uint32_t ranks() const override { return graph_->ranks(); }
  [[nodiscard]] std::uint32_t nodes() const override { return graph_->nodes(); }
  [[nodiscard]] std::vector<topology::Link> links() const override { return graph_->links(); }
  [[nodiscard]] std::uint64_t link_count() const override { return graph_->link_count(); }
  [[nodiscard]] std::uint32_t capacity(std::uint32_t from, std::uint32_t to) const override {
    return graph_->capacity(from, to);
  }
  [[nodiscard]] topology::LinkClass link_class(std::uint32_t from,
                                               std::uint32_t to) const override {
    return host_of_[from] == host_of_[to] ? topology::LinkClass::kMemory
                                          : topology::LinkClass::kFabric;
  }
  [[nodiscard]] std::vector<topology::LinkClass> link_classes() const override {
    const std::set<std::uint32_t> hosts(host_of_.begin(), host_of_.end());
    if (hosts.size() == host_of_.size()) return {topology::LinkClass::kFabric};
    return {topology::LinkClass::kFabric, topology::LinkClass::kMemory};
  }
  [[nodiscard]] std::vector<std::uint32_t> route(std::uint32_t from,
                                                 std::uint32_t to) const override {
    return graph_->route(from, to);
  }
  [[nodiscard]] Position position(std::uint32_t node) const override {
    return graph_->position(node);
  }
  [[nodiscard]] std::string node_name(std::uint32_t node) const override {
    return graph_->node_name(node);
  }

 private:
  std::unique_ptr<topology::Topology> graph_;
  std::vector<std::uint32_t> host_of_;
};

// The IP that an end binds: a link-local one needs its interface.
std::string bound_address(const cables::JobEnd& end) {
  const bool has_scope = end.address.starts_with("fe80:") || end.address.starts_with("FE80:");
  return has_scope ? end.address + "%" + end.interface : end.address;
}

}  // namespace

bool has_link_local(const cables::JobGraph& job) {
  return std::any_of(job.cables.begin(), job.cables.end(), [](const cables::JobCable& cable) {
    return bound_address(cable.a) != cable.a.address;
  });
}

void scale_rates(const cables::JobGraph& measured, cables::JobGraph& graph) {
  constexpr std::uint64_t kWhole = 1'000'000;
  std::vector<std::uint64_t> shares;  // of the driver's rate, in millionths
  for (std::size_t i = 0; i < graph.cables.size(); ++i) {
    const std::uint64_t rate = std::max(1U, graph.cables[i].rate_mbits);
    shares.push_back(measured.cables[i].rate_mbits * kWhole / rate);
  }
  if (shares.empty()) return;
  const auto middle = shares.begin() + static_cast<std::ptrdiff_t>(shares.size() / 2);
  std::nth_element(shares.begin(), middle, shares.end());
  for (cables::JobCable& cable : graph.cables) {
    const std::uint64_t rate = std::max(1U, cable.rate_mbits) * *middle / kWhole;
    cable.rate_mbits = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(rate, 1, UINT32_MAX));
  }
}

void take_rates(const cables::JobGraph& from, cables::JobGraph& to) {
  using End = std::pair<std::string, std::string>;  // host and interface
  const auto end_of = [](const cables::JobGraph& graph, const cables::JobEnd& end) {
    return End(graph.hosts[end.host].name, end.interface);
  };
  std::map<std::pair<End, End>, std::uint32_t> rates;
  for (const cables::JobCable& cable : from.cables) {
    rates[std::minmax(end_of(from, cable.a), end_of(from, cable.b))] = cable.rate_mbits;
  }
  for (cables::JobCable& cable : to.cables) {
    const auto known = rates.find(std::minmax(end_of(to, cable.a), end_of(to, cable.b)));
    if (known != rates.end()) cable.rate_mbits = known->second;
  }
}

std::vector<std::uint32_t> lanes_of(const std::vector<std::uint32_t>& rates) {
  std::uint64_t slowest = 0, fastest = 0;
  for (const std::uint64_t rate : rates) {
    if (rate == 0) continue;
    slowest = slowest == 0 ? rate : std::min(slowest, rate);
    fastest = std::max(fastest, rate);
  }
  if (fastest == 0) return std::vector<std::uint32_t>(rates.size(), 1);
  constexpr std::uint64_t kGoodPermille = 125;
  std::vector<std::uint32_t> best;
  std::uint64_t best_error = UINT64_MAX;
  for (std::uint64_t least = 1; least <= kMaxCableLanes && best_error > kGoodPermille; ++least) {
    // Where the rates differ by more than the lanes can, the fastest cable has all of them.
    const bool is_wide = fastest * least > slowest * kMaxCableLanes;
    if (is_wide && least > 1) break;
    const std::uint64_t above = is_wide ? kMaxCableLanes : least;
    const std::uint64_t below = is_wide ? fastest : slowest;
    std::vector<std::uint32_t> lanes;
    std::uint64_t error = 0;
    for (const std::uint32_t given : rates) {
      const std::uint64_t rate = given == 0 ? slowest : given;
      const std::uint64_t one = std::max<std::uint64_t>(1, (2 * rate * above + below) / below / 2);
      lanes.push_back(static_cast<std::uint32_t>(one));
      const std::uint64_t exact = rate * above, rounded = one * below;
      const std::uint64_t off = exact > rounded ? exact - rounded : rounded - exact;
      error = std::max(error, off * 1000 / std::max<std::uint64_t>(1, exact));
    }
    if (error < best_error) {
      best = std::move(lanes);
      best_error = error;
    }
  }
  return best;
}

void RankGraph::add_cables(const cables::JobGraph& job,
                           const std::vector<std::vector<std::uint32_t>>& members) {
  std::vector<std::size_t> used(members.size());
  std::vector<std::uint32_t> rates;
  for (std::uint32_t number = 0; number < job.cables.size(); ++number) {
    const cables::JobCable& cable = job.cables[number];
    const cables::JobEnd* const ends[] = {&cable.a, &cable.b};
    if (cable.a.host == cable.b.host || members[cable.a.host].empty() ||
        members[cable.b.host].empty()) {
      continue;
    }
    Cable& added = cables_.emplace_back();
    added.number = number;
    added.rate_mbits = cable.rate_mbits;
    for (std::size_t i = 0; i < 2; ++i) {
      const std::vector<std::uint32_t>& owners = members[ends[i]->host];
      added.ranks[i] = owners[used[ends[i]->host]++ % owners.size()];
      added.addresses[i] = bound_address(*ends[i]);
    }
    rates.push_back(cable.rate_mbits);
  }
  const std::vector<std::uint32_t> lanes = lanes_of(rates);
  std::uint32_t slowest = 0;
  for (std::size_t i = 0; i < cables_.size(); ++i) {
    cables_[i].lanes = lanes[i];
    if (rates[i] == 0) continue;
    const std::uint32_t of_lane = std::max(1U, rates[i] / lanes[i]);
    slowest = slowest == 0 ? of_lane : std::min(slowest, of_lane);
  }
  // Up to 1.5 times a power of two is that power.
  lane_mbits_ = slowest == 0 ? 0 : std::bit_floor(slowest + slowest / 3);
}

void RankGraph::add_links(const std::vector<std::vector<std::uint32_t>>& members) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> capacities;
  std::map<std::uint32_t, std::uint32_t> lanes_of_host;
  for (const Cable& cable : cables_) {
    capacities[std::minmax(cable.ranks[0], cable.ranks[1])] += cable.lanes;
    for (const std::uint32_t rank : cable.ranks) lanes_of_host[host_of_[rank]] += cable.lanes;
  }
  for (const std::vector<std::uint32_t>& host : members) {
    for (std::size_t i = 0; i < host.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        capacities[std::minmax(host[i], host[j])] = std::max(1U, lanes_of_host[host_of_[host[i]]]);
      }
    }
  }
  neighbors_.resize(size());
  for (const auto& [ends, capacity] : capacities) {
    links_.push_back({ends.first, ends.second, capacity});
    neighbors_[ends.first].push_back(ends.second);
    neighbors_[ends.second].push_back(ends.first);
  }
  for (std::vector<std::uint32_t>& each : neighbors_) std::sort(each.begin(), each.end());
}

std::vector<std::uint32_t> RankGraph::distances(std::uint32_t root) const {
  std::vector<std::uint32_t> distance(size(), kFar), queue = {root};
  distance[root] = 0;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (const std::uint32_t next : neighbors_[queue[i]]) {
      if (distance[next] != kFar) continue;
      distance[next] = distance[queue[i]] + 1;
      queue.push_back(next);
    }
  }
  return distance;
}

Result<void> RankGraph::find_radius(const std::vector<std::uint32_t>& ranks) {
  radius_ = kFar;
  for (std::uint32_t root = 0; root < size(); ++root) {
    const std::vector<std::uint32_t> distance = distances(root);
    const auto furthest = std::max_element(distance.begin(), distance.end());
    if (*furthest == kFar) {
      const auto other = static_cast<std::size_t>(furthest - distance.begin());
      return fail("no cables connect ranks " + std::to_string(ranks[root]) + " and " +
                  std::to_string(ranks[other]) + " (hosts '" + one_line(host_names_[root]) +
                  "' and '" + one_line(host_names_[other]) + "')");
    }
    radius_ = std::min(radius_, *furthest);
  }
  return {};
}

Result<void> RankGraph::make_topology() {
  // The name has what topology files do not say: which links are memory.
  std::string name = "cables";
  std::map<std::uint32_t, std::uint32_t> places;
  for (const std::uint32_t host : host_of_) {
    const auto place = places.try_emplace(host, static_cast<std::uint32_t>(places.size())).first;
    name += "-" + std::to_string(place->second);
  }
  std::string text = "custom:name: \"" + name + "\" ranks: " + std::to_string(size());
  for (const topology::Link& link : links_) {
    text += " link { from: " + std::to_string(link.from) + " to: " + std::to_string(link.to) +
            " capacity: " + std::to_string(link.capacity) + " }";
  }
  ESPALIER_TRY_TO(auto graph, topology::parse(text));
  topology_ = std::make_shared<RankTopology>(std::move(graph), host_of_);
  return {};
}

Result<std::shared_ptr<const RankGraph>> RankGraph::make(const cables::JobGraph& job,
                                                         const std::vector<std::uint32_t>& ranks) {
  auto graph = std::make_shared<RankGraph>();
  std::map<std::uint32_t, std::uint32_t> host_of;
  for (std::uint32_t host = 0; host < job.hosts.size(); ++host) {
    for (const std::uint32_t rank : job.hosts[host].ranks) host_of[rank] = host;
  }
  for (const std::uint32_t rank : ranks) {
    const auto found = host_of.find(rank);
    if (found == host_of.end()) {
      return fail("rank " + std::to_string(rank) + " is on no host of the job's cables");
    }
    graph->host_of_.push_back(found->second);
    graph->host_names_.push_back(job.hosts[found->second].name);
  }
  // By their numbers in the job, whatever their order in the communicator.
  std::vector<std::vector<std::uint32_t>> members(job.hosts.size());
  for (std::uint32_t host = 0; host < job.hosts.size(); ++host) {
    for (const std::uint32_t rank : job.hosts[host].ranks) {
      const auto place = std::find(ranks.begin(), ranks.end(), rank);
      if (place == ranks.end()) continue;
      members[host].push_back(static_cast<std::uint32_t>(place - ranks.begin()));
    }
  }
  graph->is_one_host_ = std::set(graph->host_of_.begin(), graph->host_of_.end()).size() <= 1;
  if (graph->is_one_host_) return graph;
  graph->add_cables(job, members);
  graph->add_links(members);
  ESPALIER_TRY(graph->find_radius(ranks));
  ESPALIER_TRY(graph->make_topology());
  return graph;
}

bool RankGraph::has_link(std::uint32_t a, std::uint32_t b) const {
  return std::binary_search(neighbors_[a].begin(), neighbors_[a].end(), b);
}

Result<void> RankGraph::configure(std::uint32_t rank, ofi::AddedConfig& config) const {
  config.host = host_names_[rank];
  if (is_one_host_) return {};
  config.local_address.clear();
  const std::string fabric = ofi::fabric_provider(config.provider);
  if (!ofi::binds_address(config.provider)) {
    return fail("provider '" + one_line(config.provider) +
                "' does not run over cables; expected one with IP addresses, e.g. mem+tcp or tcp");
  }
  for (std::uint32_t other = 0; other < size() && fabric == config.provider; ++other) {
    for (const std::uint32_t peer : neighbors_[other]) {
      if (host_of_[other] != host_of_[peer]) continue;
      return fail("provider '" + one_line(fabric) + "': no cable joins ranks of one host, and '" +
                  one_line(host_names_[other]) + "' has several; expected mem+" + one_line(fabric));
    }
  }
  for (const Cable& cable : cables_) {
    for (const std::size_t end : {0, 1}) {
      if (cable.ranks[end] != rank) continue;
      config.cables.push_back({.number = cable.number,
                               .node = cable.ranks[1 - end],
                               .local_address = cable.addresses[end],
                               .lanes = cable.lanes});
    }
  }
  config.is_without_cables = config.cables.empty();
  return {};
}

}  // namespace espalier::communicator
