#pragma once
// A topology with other numbers for its ranks: rank r is the node that the given topology calls
// place[r]. Routers keep their numbers. A schedule's programs then need no change: running them
// here is the same as running them on the given topology with their ranks placed there.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "espalier/topology/topology.h"

namespace espalier::contention {

class Placed final : public topology::Topology {
 public:
  Placed(std::unique_ptr<Topology> real, std::vector<std::uint32_t> place)
      : real_(std::move(real)), place_(std::move(place)), rank_at_(place_.size()) {
    for (std::uint32_t rank = 0; rank < place_.size(); ++rank) rank_at_[place_[rank]] = rank;
  }

  [[nodiscard]] std::string spec() const override {
    std::string text = real_->spec() + " placed";
    for (const std::uint32_t node : place_) text += " " + std::to_string(node);
    return text;
  }
  [[nodiscard]] std::uint32_t ranks() const override { return real_->ranks(); }
  [[nodiscard]] std::uint32_t nodes() const override { return real_->nodes(); }
  [[nodiscard]] std::uint64_t link_count() const override { return real_->link_count(); }
  [[nodiscard]] std::vector<topology::Link> links() const override {
    std::vector<topology::Link> links = real_->links();
    for (topology::Link& link : links) link = {here(link.from), here(link.to), link.capacity};
    return links;
  }
  [[nodiscard]] std::uint32_t capacity(std::uint32_t from, std::uint32_t to) const override {
    if (from >= nodes() || to >= nodes()) return 0;
    return real_->capacity(there(from), there(to));
  }
  [[nodiscard]] std::vector<std::uint32_t> route(std::uint32_t from,
                                                 std::uint32_t to) const override {
    std::vector<std::uint32_t> route = real_->route(there(from), there(to));
    for (std::uint32_t& node : route) node = here(node);
    return route;
  }
  [[nodiscard]] Position position(std::uint32_t node) const override {
    return real_->position(there(node));
  }
  [[nodiscard]] std::string node_name(std::uint32_t node) const override {
    return "node " + std::to_string(node) + ", " + real_->node_name(there(node));
  }

 private:
  [[nodiscard]] std::uint32_t there(std::uint32_t node) const {
    return node < place_.size() ? place_[node] : node;
  }
  [[nodiscard]] std::uint32_t here(std::uint32_t node) const {
    return node < rank_at_.size() ? rank_at_[node] : node;
  }

  std::unique_ptr<Topology> real_;
  std::vector<std::uint32_t> place_, rank_at_;
};

}  // namespace espalier::contention
