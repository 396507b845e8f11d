// Fuzz target: any text is refused with one reason, or is a topology whose specification parses as
// itself, whose routes follow its links, and whose picture is well-formed. A text without a known
// family's prefix is the content of a topology file.

#include "espalier/topology/topology.h"

#include <cmath>
#include <set>
#include <string>

#include "tests/fuzz/expect.h"

namespace espalier::fuzz {
namespace {

constexpr std::uint32_t kMaxNodes = 300;  // of a topology that is examined whole
constexpr std::uint32_t kRoutes = 64;     // routes that are examined

Result<std::unique_ptr<topology::Topology>> parse(const std::string& text) {
  for (const char* family : {"complete:", "mesh:", "torus:", "ring:", "hypercube:", "hyperx:",
                             "dragonfly:", "crossbar:", "hosts:", "fattree:", "custom:"}) {
    if (text.starts_with(family)) return topology::parse(text);
  }
  return topology::parse("custom:" + text);
}

void follow_routes(const topology::Topology& topology) {
  const std::uint32_t nodes = topology.nodes();
  for (std::uint32_t i = 0; i < kRoutes; ++i) {
    const std::uint32_t from = i * 7 % nodes, to = (i * i + 1) % nodes;
    const auto route = topology.route(from, to);
    expect(!route.empty() && route.front() == from && route.back() == to, "a route has its ends");
    expect(std::set(route.begin(), route.end()).size() == route.size(), "a route has no loop");
    for (std::size_t hop = 1; hop < route.size(); ++hop) {
      expect(topology.capacity(route[hop - 1], route[hop]) > 0, "a route follows links");
    }
  }
}

void draw(const topology::Topology& topology) {
  for (std::uint32_t node = 0; node < topology.nodes(); ++node) {
    const auto position = topology.position(node);
    expect(std::isfinite(position.x) && std::isfinite(position.y), "a node has a position");
  }
  std::string tags;  // the picture without the text between its tags
  bool inside = false;
  for (const char c : topology::draw_svg(topology)) {
    expect(c != (inside ? '<' : '>'), "names are escaped in the picture");
    if (c == '<' || c == '>') inside = c == '<';
    if (inside) tags += c;
  }
  expect(!inside && tags.find("nan") == std::string::npos, "the picture has numbers");
  expect(tags.find("inf") == std::string::npos, "the picture has finite numbers");
}

void examine(const topology::Topology& topology) {
  expect(topology.ranks() >= 1 && topology.ranks() <= topology.nodes(), "there are ranks");
  const auto again = topology::parse(topology.spec());
  expect(again && (*again)->spec() == topology.spec() && (*again)->digest() == topology.digest(),
         "a specification parses as itself");
  expect(topology.digest() != 0, "a topology has a digest");
  if (topology.nodes() > kMaxNodes) return;
  const auto links = topology.links();
  expect(links.size() == topology.link_count(), "links are counted");
  for (const topology::Link& link : links) {
    expect(link.from < topology.nodes() && link.to < topology.nodes() && link.from != link.to &&
               link.capacity > 0 && topology.capacity(link.from, link.to) == link.capacity,
           "a link connects two nodes");
  }
  for (std::uint32_t node = 0; node < topology.nodes(); ++node) {
    for (const char c : topology.node_name(node)) {
      expect(c >= ' ' && c < 0x7f, "a node's name is fit for a terminal");
    }
  }
  follow_routes(topology);
  draw(topology);
}

}  // namespace

void run(Input& input) {
  const auto topology = parse(input.text());
  if (topology) {
    examine(**topology);
  } else {
    expect(topology.error().message.find("expected ") != std::string::npos,
           "an error says what is expected");
  }
}

}  // namespace espalier::fuzz
