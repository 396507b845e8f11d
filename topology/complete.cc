#include <cmath>
#include <numbers>

#include "topology/families.h"
#include "topology/spec_reader.h"

namespace espalier::topology {
namespace {

class Complete final : public Topology {
 public:
  explicit Complete(std::uint32_t ranks) : ranks_(ranks) {}
  [[nodiscard]] std::string spec() const override { return "complete:" + std::to_string(ranks_); }
  [[nodiscard]] std::uint32_t ranks() const override { return ranks_; }
  [[nodiscard]] std::uint32_t nodes() const override { return ranks_; }
  [[nodiscard]] std::uint64_t link_count() const override {
    return std::uint64_t{ranks_} * (ranks_ - 1);
  }

  [[nodiscard]] std::vector<Link> links() const override {
    std::vector<Link> links;
    links.reserve(link_count());
    for (std::uint32_t from = 0; from < ranks_; ++from) {
      for (std::uint32_t to = 0; to < ranks_; ++to) {
        if (from != to) links.push_back({from, to, 1});
      }
    }
    return links;
  }

  [[nodiscard]] std::uint32_t capacity(std::uint32_t from, std::uint32_t to) const override {
    return from != to && from < ranks_ && to < ranks_ ? 1 : 0;
  }

  [[nodiscard]] std::vector<std::uint32_t> route(std::uint32_t from,
                                                 std::uint32_t to) const override {
    if (from == to) return {from};
    return {from, to};
  }

  // Positions on a circle, rank 0 at the top, clockwise; neighbours are one unit apart.
  [[nodiscard]] Position position(std::uint32_t node) const override {
    if (ranks_ == 1) return {0, 0};
    const double radius = 0.5 / std::sin(std::numbers::pi / ranks_);
    const double angle = 2 * std::numbers::pi * node / ranks_;
    return {radius * (1 + std::sin(angle)), radius * (1 - std::cos(angle))};
  }

  [[nodiscard]] std::string node_name(std::uint32_t node) const override {
    return "rank " + std::to_string(node);
  }

 private:
  std::uint32_t ranks_;
};

}  // namespace

Result<std::unique_ptr<Topology>> parse_complete(std::string_view text) {
  SpecReader reader("complete:", text, "complete:N with N at least 1, e.g. complete:16");
  const std::uint32_t ranks = reader.number("the number of ranks");
  reader.end();
  reader.limit_nodes(ranks);
  if (auto sound = reader.result(); !sound) return fail(sound.error());
  return std::make_unique<Complete>(ranks);
}

}  // namespace espalier::topology
