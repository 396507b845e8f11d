#include "topology/crossbar.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/counted.h"
#include "topology/spec_reader.h"

namespace espalier::topology {
namespace {

constexpr std::string_view kCrossbarForm =
    "crossbar:AxB or crossbar:AxB,in=I,out=O with A modules of B ranks and I channels into, O out "
    "of a module (2 where not given), e.g. crossbar:4x8; AxBxC..., up to 8 numbers, for modules of "
    "modules, with I1/I2/... from the outermost on";
constexpr std::uint32_t kChannels = 2;

bool all_equal(const std::vector<std::uint32_t>& values, std::uint32_t value) {
  return std::all_of(values.begin(), values.end(),
                     [&](std::uint32_t each) { return each == value; });
}

// One number if all are equal.
std::string channels_text(const std::vector<std::uint32_t>& channels) {
  std::string text = std::to_string(channels.front());
  if (all_equal(channels, channels.front())) return text;
  for (std::size_t i = 1; i < channels.size(); ++i) text += "/" + std::to_string(channels[i]);
  return text;
}

// Reads the channels of `levels` levels: one number for all, or one for each.
std::vector<std::uint32_t> read_channels(SpecReader& reader, const std::string& name,
                                         std::size_t levels) {
  std::vector<std::uint32_t> channels{reader.number(name)};
  while (reader.take("/")) channels.push_back(reader.number(name));
  if (channels.size() == 1) return {std::vector<std::uint32_t>(levels, channels.front())};
  if (channels.size() != levels) {
    reader.fail(name + " has " + counted(channels.size(), "number") + " for " +
                counted(levels, "level") + " of modules");
    channels.resize(levels);
  }
  return channels;
}

// Ranks and routers, or more than there may be.
std::uint64_t nodes_of(const std::vector<std::uint32_t>& sizes) {
  std::uint64_t nodes = 1, level = 1;
  for (const std::uint32_t size : sizes) {
    level *= size;
    nodes += level;
    if (nodes > kMaxTopologyNodes) break;
  }
  return nodes;
}

}  // namespace

Crossbar::Crossbar(std::vector<std::uint32_t> sizes, std::vector<std::uint32_t> in,
                   std::vector<std::uint32_t> out)
    : sizes_(std::move(sizes)), in_(std::move(in)), out_(std::move(out)) {
  std::uint32_t count = 1;
  for (const std::uint32_t size : sizes_) count *= size;
  first_.push_back(0);
  for (std::size_t level = 0; level <= sizes_.size(); ++level) {
    first_.push_back(first_.back() + count);
    if (level < sizes_.size()) count /= sizes_[sizes_.size() - 1 - level];
  }
}

std::string Crossbar::spec() const {
  std::string text = "crossbar:";
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    text += (i == 0 ? "" : "x") + std::to_string(sizes_[i]);
  }
  if (all_equal(in_, kChannels) && all_equal(out_, kChannels)) return text;
  return text + ",in=" + channels_text(in_) + ",out=" + channels_text(out_);
}

std::size_t Crossbar::level(std::uint32_t node) const {
  std::size_t level = 0;
  while (node >= first_[level + 1]) ++level;
  return level;
}

std::uint32_t Crossbar::around(std::uint32_t node) const {
  const std::size_t own = level(node);
  return first_[own + 1] + (node - first_[own]) / sizes_[sizes_.size() - 1 - own];
}

std::vector<Link> Crossbar::links() const {
  std::vector<Link> links;
  links.reserve(link_count());
  for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
    const std::uint32_t first = rank - rank % size();
    for (std::uint32_t other = first; other < first + size(); ++other) {
      if (other != rank) links.push_back({rank, other, 1});
    }
    links.push_back({rank, around(rank), 1});
    links.push_back({around(rank), rank, 1});
  }
  for (std::uint32_t router = ranks(); router < hub(); ++router) {
    const std::uint32_t outer = around(router);
    links.push_back({router, outer, capacity(router, outer)});
    links.push_back({outer, router, capacity(outer, router)});
  }
  return links;
}

std::uint32_t Crossbar::capacity(std::uint32_t from, std::uint32_t to) const {
  if (from >= nodes() || to >= nodes() || from == to) return 0;
  if (are_linked_ranks(from, to)) return 1;
  const bool outward = from < to;
  const std::uint32_t inner = outward ? from : to, outer = outward ? to : from;
  if (around(inner) != outer) return 0;
  if (inner < ranks()) return 1;
  const std::size_t index = sizes_.size() - 1 - level(inner);
  return outward ? out_[index] : in_[index];
}

std::vector<std::uint32_t> Crossbar::route(std::uint32_t from, std::uint32_t to) const {
  std::vector<std::uint32_t> nodes = {from};
  if (from == to) return nodes;
  std::vector<std::uint32_t> down;
  if (are_linked_ranks(from, to)) {
    down.push_back(to);
  } else {
    // Routers around a node have higher numbers than the node.
    while (from != to) {
      if (from < to) {
        nodes.push_back(from = around(from));
      } else {
        down.push_back(to);
        to = around(to);
      }
    }
  }
  nodes.insert(nodes.end(), down.rbegin(), down.rend());
  return nodes;
}

Topology::Position Crossbar::position(std::uint32_t node) const {
  constexpr double kBetweenLevels = 1.5;
  const double side = std::ceil(std::sqrt(size()));
  const double width = side + 1;
  const double middle = (side - 1) / 2;
  const std::size_t own = level(node);
  if (own == 0) {
    const std::uint32_t index = node % size();
    const auto columns = static_cast<std::uint32_t>(side);
    return {node / size() * width + index % columns,
            kBetweenLevels * static_cast<double>(sizes_.size()) + (index / columns)};
  }
  double span = 1;  // innermost modules in the router's module
  for (std::size_t i = 1; i < own; ++i) span *= sizes_[sizes_.size() - 1 - i];
  const double first = (node - first_[own]) * span;
  return {(first + (span - 1) / 2) * width + middle,
          kBetweenLevels * static_cast<double>(sizes_.size() - own)};
}

Shape Crossbar::shape() const {
  return {.crossbar = sizes_, .channels_in = in_, .channels_out = out_};
}

std::string Crossbar::node_name(std::uint32_t node) const {
  const std::string number = std::to_string(node);
  if (node == hub()) return "router " + number + " (switch)";
  const std::size_t own = level(node);
  // The module's numbers, from the outermost module onward: "2" or "0.2".
  std::uint32_t index = own == 0 ? node / size() : node - first_[own];
  std::string path;
  for (std::size_t i = sizes_.size() - std::max<std::size_t>(own, 1); i-- > 0;) {
    path = std::to_string(index % sizes_[i]) + (path.empty() ? "" : ".") + path;
    index /= sizes_[i];
  }
  const std::string module = std::string(module_word()) + " " + path;
  if (own == 0) return "rank " + number + " (" + module + ")";
  return "router " + number + (own == 1 ? " (port of " : " (switch of ") + module + ")";
}

Result<std::unique_ptr<Topology>> parse_crossbar(std::string_view text) {
  SpecReader reader("crossbar:", text, kCrossbarForm);
  std::vector<std::uint32_t> sizes{reader.number("the number of modules")};
  reader.literal("x");
  do {
    sizes.push_back(reader.number("the number of ranks a module"));
  } while (reader.take("x"));
  if (sizes.size() > Crossbar::kMaxLevels) {
    reader.fail(std::to_string(sizes.size()) + " levels are more than " +
                std::to_string(Crossbar::kMaxLevels));
  }
  std::vector<std::uint32_t> in(sizes.size() - 1, kChannels), out = in;
  if (reader.take(",")) {
    reader.literal("in=");
    in = read_channels(reader, "in", in.size());
    reader.literal(",out=");
    out = read_channels(reader, "out", out.size());
  }
  reader.end();
  reader.limit_nodes(nodes_of(sizes));
  if (auto sound = reader.result(); !sound) return fail(sound.error());
  return std::make_unique<Crossbar>(std::move(sizes), std::move(in), std::move(out));
}

}  // namespace espalier::topology
