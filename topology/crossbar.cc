#include "topology/crossbar.h"

#include <cmath>

#include "topology/spec_reader.h"

namespace espalier::topology {
namespace {

constexpr std::string_view kCrossbarForm =
    "crossbar:AxB or crossbar:AxB,in=I,out=O with A modules of B ranks and I channels into, O out "
    "of a module (2 where not given), e.g. crossbar:4x8";
constexpr std::uint32_t kChannels = 2;

}  // namespace

std::string Crossbar::spec() const {
  std::string text = "crossbar:" + std::to_string(modules_) + "x" + std::to_string(size_);
  if (in_ == kChannels && out_ == kChannels) return text;
  return text + ",in=" + std::to_string(in_) + ",out=" + std::to_string(out_);
}

std::vector<Link> Crossbar::links() const {
  std::vector<Link> links;
  links.reserve(link_count());
  for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
    const std::uint32_t first = rank - rank % size_;
    for (std::uint32_t other = first; other < first + size_; ++other) {
      if (other != rank) links.push_back({rank, other, 1});
    }
    links.push_back({rank, port(rank), 1});
    links.push_back({port(rank), rank, 1});
  }
  for (std::uint32_t port = ranks(); port < hub(); ++port) {
    links.push_back({port, hub(), out_});
    links.push_back({hub(), port, in_});
  }
  return links;
}

std::uint32_t Crossbar::capacity(std::uint32_t from, std::uint32_t to) const {
  if (from >= nodes() || to >= nodes() || from == to) return 0;
  if (from == hub()) return to >= ranks() ? in_ : 0;
  if (to == hub()) return from >= ranks() ? out_ : 0;
  if (from >= ranks() && to >= ranks()) return 0;
  return port(from) == port(to) ? 1 : 0;
}

std::vector<std::uint32_t> Crossbar::route(std::uint32_t from, std::uint32_t to) const {
  std::vector<std::uint32_t> nodes = {from};
  if (from == to) return nodes;
  if (from == hub() || to == hub() || port(from) != port(to)) {
    for (const std::uint32_t node : {port(from), hub(), port(to)}) {
      if (node != nodes.back()) nodes.push_back(node);
    }
  }
  if (to != nodes.back()) nodes.push_back(to);
  return nodes;
}

Topology::Position Crossbar::position(std::uint32_t node) const {
  const double side = std::ceil(std::sqrt(size_));
  const double width = side + 1;
  const double middle = (side - 1) / 2;
  if (node == hub()) return {(modules_ - 1) * width / 2 + middle, 0};
  const double left = (port(node) - ranks()) * width;
  if (node >= ranks()) return {left + middle, 1.5};
  const std::uint32_t index = node % size_;
  const auto columns = static_cast<std::uint32_t>(side);
  const std::uint32_t row = index / columns;
  return {left + index % columns, 3.0 + row};
}

Shape Crossbar::shape() const {
  Shape shape;
  shape.modules = modules_;
  shape.module_ranks = size_;
  shape.channels_in = in_;
  shape.channels_out = out_;
  return shape;
}

std::string Crossbar::node_name(std::uint32_t node) const {
  if (node == hub()) return "router " + std::to_string(node) + " (switch)";
  const std::string module =
      std::string(module_word()) + " " + std::to_string(port(node) - ranks());
  if (node >= ranks()) return "router " + std::to_string(node) + " (port of " + module + ")";
  return "rank " + std::to_string(node) + " (" + module + ")";
}

Result<std::unique_ptr<Topology>> parse_crossbar(std::string_view text) {
  SpecReader reader("crossbar:", text, kCrossbarForm);
  const std::uint32_t modules = reader.number("the number of modules");
  reader.literal("x");
  const std::uint32_t size = reader.number("the number of ranks a module");
  std::uint32_t in = kChannels, out = kChannels;
  if (reader.take(",")) {
    reader.literal("in=");
    in = reader.number("in");
    reader.literal(",out=");
    out = reader.number("out");
  }
  reader.end();
  reader.limit_nodes(std::uint64_t{modules} * size + modules + 1);
  if (auto sound = reader.result(); !sound) return fail(sound.error());
  return std::make_unique<Crossbar>(modules, size, in, out);
}

}  // namespace espalier::topology
