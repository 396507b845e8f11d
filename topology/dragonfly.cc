#include <algorithm>
#include <cmath>
#include <numbers>

#include "topology/families.h"
#include "topology/spec_reader.h"

namespace espalier::topology {
namespace {

// Router r of group g is router g*A + r of all, node G*A*P + g*A + r; rank i of router q is rank
// q*P + i. Groups are `offset` apart, 1 <= offset < G, counted upward and cyclically. Router
// floor((offset-1) / ceil((G-1)/A)) of a group has its link to the group `offset` after it (the
// relative arrangement of global links).
class Dragonfly final : public Topology {
 public:
  Dragonfly(std::uint32_t groups, std::uint32_t routers, std::uint32_t ranks)
      : groups_(groups),
        per_group_(routers),
        per_router_(ranks),
        globals_(groups == 1 ? 1 : (groups - 1 + routers - 1) / routers) {}

  [[nodiscard]] std::string spec() const override {
    return "dragonfly:" + std::to_string(groups_) + "x" + std::to_string(per_group_) + "x" +
           std::to_string(per_router_);
  }
  [[nodiscard]] std::uint32_t ranks() const override { return routers() * per_router_; }
  [[nodiscard]] std::uint32_t nodes() const override { return ranks() + routers(); }
  [[nodiscard]] std::uint64_t link_count() const override {
    return 2ull * ranks() + std::uint64_t{routers()} * (per_group_ - 1) +
           std::uint64_t{groups_} * (groups_ - 1);
  }

  [[nodiscard]] std::vector<Link> links() const override {
    std::vector<Link> links;
    links.reserve(link_count());
    for (std::uint32_t rank = 0; rank < ranks(); ++rank) links.push_back({rank, router(rank), 1});
    for (std::uint32_t node = ranks(); node < nodes(); ++node) {
      const std::uint32_t all = node - ranks(), group = all / per_group_;
      for (std::uint32_t i = 0; i < per_router_; ++i) {
        links.push_back({node, all * per_router_ + i, 1});
      }
      const std::size_t begin = links.size();
      for (std::uint32_t other = group * per_group_; other < (group + 1) * per_group_; ++other) {
        if (other != all) links.push_back({node, ranks() + other, 1});
      }
      for (std::uint32_t to = 0; to < groups_; ++to) {
        if (to != group && gateway(group, to) == node) {
          links.push_back({node, gateway(to, group), 1});
        }
      }
      std::sort(links.begin() + static_cast<std::ptrdiff_t>(begin), links.end(),
                [](const Link& a, const Link& b) { return a.to < b.to; });
    }
    return links;
  }

  [[nodiscard]] std::uint32_t capacity(std::uint32_t from, std::uint32_t to) const override {
    if (from >= nodes() || to >= nodes() || from == to) return 0;
    if (from < ranks() || to < ranks()) {
      return (from < ranks() && to == router(from)) || (to < ranks() && from == router(to)) ? 1 : 0;
    }
    const std::uint32_t a = group_of(from), b = group_of(to);
    return a == b || (gateway(a, b) == from && gateway(b, a) == to) ? 1 : 0;
  }

  // Minimal: to the router of the source's group with the link to the destination's group, over
  // that link, and to the destination's router.
  [[nodiscard]] std::vector<std::uint32_t> route(std::uint32_t from,
                                                 std::uint32_t to) const override {
    std::vector<std::uint32_t> nodes = {from};
    const auto go = [&nodes](std::uint32_t node) {
      if (node != nodes.back()) nodes.push_back(node);
    };
    if (from == to) return nodes;
    const std::uint32_t last = to < ranks() ? router(to) : to;
    go(from < ranks() ? router(from) : from);
    const std::uint32_t a = group_of(nodes.back()), b = group_of(last);
    if (a != b) {
      go(gateway(a, b));
      go(gateway(b, a));
    }
    go(last);
    go(to);
    return nodes;
  }

  // The routers are on a circle, in the order of groups, with the ranks of each outside.
  [[nodiscard]] Position position(std::uint32_t node) const override {
    const std::uint32_t all = node < ranks() ? node / per_router_ : node - ranks();
    const double angle = 2 * std::numbers::pi * all / routers();
    const double radius = std::max(1.5, 0.65 * per_router_ * routers() / (2 * std::numbers::pi));
    const double outer = radius + 1.4;
    const double spread = 2 * std::numbers::pi / routers() / per_router_;
    const double turn =
        node < ranks() ? angle + spread * (node % per_router_ - 0.5 * (per_router_ - 1)) : angle;
    const double length = node < ranks() ? outer : radius;
    return {outer + length * std::sin(turn), outer - length * std::cos(turn)};
  }

  [[nodiscard]] std::string node_name(std::uint32_t node) const override {
    const std::uint32_t all = node < ranks() ? node / per_router_ : node - ranks();
    return (node < ranks() ? "rank " : "router ") + std::to_string(node) + " (group " +
           std::to_string(all / per_group_) + ", router " + std::to_string(all % per_group_) + ")";
  }

 private:
  [[nodiscard]] std::uint32_t routers() const { return groups_ * per_group_; }
  [[nodiscard]] std::uint32_t router(std::uint32_t rank) const {
    return ranks() + rank / per_router_;
  }
  [[nodiscard]] std::uint32_t group_of(std::uint32_t router) const {
    return (router - ranks()) / per_group_;
  }
  // The router of `group` with the global link to `other`.
  [[nodiscard]] std::uint32_t gateway(std::uint32_t group, std::uint32_t other) const {
    const std::uint32_t offset = (other + groups_ - group) % groups_;
    return ranks() + group * per_group_ + (offset - 1) / globals_;
  }

  std::uint32_t groups_, per_group_, per_router_;
  std::uint32_t globals_;  // maximum number of global links of a router
};

}  // namespace

Result<std::unique_ptr<Topology>> parse_dragonfly(std::string_view text) {
  SpecReader reader("dragonfly:", text,
                    "dragonfly:GxAxP with G groups of A routers of P ranks, each at least 1, e.g. "
                    "dragonfly:5x2x2");
  const std::uint32_t groups = reader.number("the number of groups");
  reader.literal("x");
  const std::uint32_t routers = reader.number("the number of routers per group");
  reader.literal("x");
  const std::uint32_t ranks = reader.number("the number of ranks per router");
  reader.end();
  const std::uint64_t all_routers = std::uint64_t{groups} * routers;
  reader.limit_nodes(all_routers > kMaxTopologyNodes ? all_routers : all_routers * (ranks + 1ull));
  if (auto sound = reader.result(); !sound) return fail(sound.error());
  return std::make_unique<Dragonfly>(groups, routers, ranks);
}

}  // namespace espalier::topology
