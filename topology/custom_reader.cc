// Text format to CustomContent. Detects missing, unknown, duplicate and out-of-range entries.

#include <google/protobuf/text_format.h>

#include <cctype>
#include <map>
#include <set>
#include <tuple>

#include "base/counted.h"
#include "topology.pb.h"
#include "topology/cables.h"
#include "topology/custom_content.h"
#include "topology/text_file.h"

namespace espalier::topology {
namespace {

using google::protobuf::TextFormat;
using Tree = TextFormat::ParseInfoTree;

constexpr std::size_t kMaxLetters = 64;
constexpr std::uint32_t kMaxLanes = 1u << 20;
constexpr double kFarthest = 1e6;

// Keeps the first error; values read after it are meaningless.
class TopologyReader {
 public:
  [[nodiscard]] Result<CustomContent, ParseError> read(std::string_view text);

 private:
  void head();
  void node(const TopologyFile::Node& entry, SourcePosition source);
  void positions();
  void link(const TopologyFile::Link& entry, SourcePosition source);
  void add_link(Link link, SourcePosition source);
  void cables();
  void hop(const TopologyFile::NextHop& entry, SourcePosition source);
  void route(const TopologyFile::Route& entry, SourcePosition source);
  void sort();

  [[nodiscard]] bool ok() const { return !parse_error_.has_value(); }
  void fail(SourcePosition source, const std::string& what) {
    if (ok()) parse_error_ = ParseError{source, what};
  }
  // Reads a required node number, which must be a node of the topology. `what`: "link: 'from'".
  std::uint32_t number(bool given, std::uint32_t node, const std::string& what,
                       SourcePosition source);
  [[nodiscard]] std::string numbers() const;
  [[nodiscard]] SourcePosition source_of(const char* field, int index = -1) const;

  CustomContent content_;
  std::optional<ParseError> parse_error_;  // the first
  TopologyFile file_;
  Tree tree_;
  std::set<std::uint32_t> described_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, SourcePosition> link_sources_, hop_sources_,
      route_sources_;
};

// Returns "; the first is in line 3" if the text has several lines.
std::string first_at(SourcePosition source, SourcePosition again) {
  return source.line == again.line
             ? ""
             : " (the first is in line " + std::to_string(source.line + 1) + ")";
}

SourcePosition TopologyReader::source_of(const char* field, int index) const {
  const auto* descriptor = TopologyFile::descriptor()->FindFieldByName(field);
  const TextFormat::ParseLocation location = tree_.GetLocation(descriptor, index);
  return {std::max(location.line, 0), std::max(location.column, 0)};
}

std::string TopologyReader::numbers() const {
  const auto nodes = content_.nodes.size();
  return "expected 0 to " + std::to_string(nodes - 1) + " (" + counted(content_.ranks, "rank") +
         ", " + counted(nodes - content_.ranks, "router") + ")";
}

std::uint32_t TopologyReader::number(bool given, std::uint32_t node, const std::string& what,
                                     SourcePosition source) {
  if (!given) {
    fail(source, what + " is missing; " + numbers());
  } else if (node >= content_.nodes.size()) {
    fail(source, what + " is " + std::to_string(node) + ", which is not a node; " + numbers());
  }
  return ok() ? node : 0;
}

void TopologyReader::head() {
  const auto allowed = [](unsigned char c) {
    return c < 0x80 && (std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-');
  };
  const std::string& name = file_.name();
  if (name.empty() || name.size() > kMaxLetters ||
      !std::all_of(name.begin(), name.end(), allowed)) {
    fail(source_of("name"),
         std::string(name.empty() ? "the name is missing" : "the name is not valid") +
             "; expected name: \"...\" of 1 to " + std::to_string(kMaxLetters) +
             " letters, digits, '.', '_' and '-'");
  }
  if (file_.ranks() == 0) {
    fail(source_of("ranks"), "the number of ranks is missing or 0; expected ranks: 1 to " +
                                 std::to_string(kMaxCustomNodes));
  }
  const std::uint64_t nodes = std::uint64_t{file_.ranks()} + file_.routers();
  if (nodes > kMaxCustomNodes) {
    fail(source_of(file_.ranks() > kMaxCustomNodes ? "ranks" : "routers"),
         std::to_string(nodes) + " nodes are too many; expected at most " +
             std::to_string(kMaxCustomNodes) + " ranks and routers");
  }
  if (!ok()) return;
  content_.name = name;
  content_.ranks = file_.ranks();
  content_.xy = file_.routing() == TopologyFile::XY;
  content_.nodes.resize(nodes);
  content_.ranks_source = source_of("ranks");
  content_.routing_source = source_of("routing");
}

void TopologyReader::node(const TopologyFile::Node& entry, SourcePosition source) {
  const std::uint32_t node = number(entry.has_node(), entry.node(), "node: 'node'", source);
  if (!ok()) return;
  const std::string who = "node " + std::to_string(node);
  if (!described_.insert(node).second)
    fail(source, who + " is listed twice; expected one entry per node");
  const auto allowed = [](char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; };
  if (entry.name().size() > kMaxLetters ||
      !std::all_of(entry.name().begin(), entry.name().end(), allowed)) {
    fail(source, who + "'s name is not valid; expected at most " + std::to_string(kMaxLetters) +
                     " printable ASCII characters without '\"' and '\\'");
  }
  if (entry.has_x() != entry.has_y()) {
    fail(source, who + " has only one of x and y; expected both or neither");
  }
  const auto inside = [](double coordinate) { return coordinate >= 0 && coordinate <= kFarthest; };
  if (!inside(entry.x()) || !inside(entry.y())) {
    fail(source, who + "'s position is out of range; expected x and y from 0 to 1000000");
  }
  // Adding 0.0 turns minus zero into zero; minus zero would give another canonical text.
  const std::string& host = entry.host().empty() ? entry.name() : entry.host();
  content_.nodes[node] = {entry.name(), host, entry.has_x(), {entry.x() + 0.0, entry.y() + 0.0}};
}

void TopologyReader::positions() {
  const auto& nodes = content_.nodes;
  const auto placed = [](const CustomContent::NodeEntry& node) { return node.placed; };
  const auto without = std::find_if_not(nodes.begin(), nodes.end(), placed);
  const bool all = without == nodes.end();
  const std::string who = all ? "" : std::to_string(without - nodes.begin());
  if (content_.xy && !all) {
    fail(content_.routing_source, "XY routes need positions, and node " + who +
                                      " has none; expected node { node: " + who +
                                      " x: ... y: ... } for every node");
  }
  if (!all && std::any_of(nodes.begin(), nodes.end(), placed)) {
    fail(content_.ranks_source,
         "node " + who + " has no position, but others have; expected x and y for all or for none");
  }
  if (!all) return;
  std::map<std::pair<double, double>, std::size_t> taken;
  for (int index = 0; index < file_.node_size(); ++index) {
    const std::uint32_t node = file_.node(index).node();
    const auto [first, fresh] =
        taken.insert({{nodes[node].position.x, nodes[node].position.y}, node});
    if (fresh) continue;
    fail(source_of("node", index),
         "node " + std::to_string(node) + " has the same position as node " +
             std::to_string(first->second) + "; expected different positions");
  }
}

void TopologyReader::add_link(Link link, SourcePosition source) {
  const auto [first, fresh] = link_sources_.insert({{link.from, link.to}, source});
  if (!fresh) {
    fail(source, "the link from " + std::to_string(link.from) + " to " + std::to_string(link.to) +
                     " exists already" + first_at(first->second, source) +
                     "; expected it once, as a link { ... } without one_way is one each way");
  }
  content_.links.push_back(link);
}

void TopologyReader::link(const TopologyFile::Link& entry, SourcePosition source) {
  const std::uint32_t from = number(entry.has_from(), entry.from(), "link: 'from'", source);
  const std::uint32_t to = number(entry.has_to(), entry.to(), "link: 'to'", source);
  const std::uint32_t capacity = entry.has_capacity() ? entry.capacity() : 1;
  if (ok() && from == to) {
    fail(source, "link: node " + std::to_string(from) + " is linked to itself; expected two nodes");
  }
  if (capacity == 0 || capacity > kMaxLanes) {
    fail(source, "link: capacity is " + std::to_string(capacity) + "; expected 1 to " +
                     std::to_string(kMaxLanes) + " lanes");
  }
  if (!ok()) return;
  add_link({from, to, capacity}, source);
  if (!entry.one_way()) add_link({to, from, capacity}, source);
}

// Takes the cables, and adds the links of neighbours without a link entry.
void TopologyReader::cables() {
  auto cables = read_cables(file_, tree_, content_.nodes);
  if (!cables) return fail(cables.error().source, cables.error().what);
  content_.cables = *std::move(cables);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> lanes;
  for (const Cable& cable : content_.cables) {
    ++lanes[std::minmax(cable.ends[0].node, cable.ends[1].node)];
  }
  for (const auto& [ends, count] : lanes) {
    const std::pair back(ends.second, ends.first);
    if (link_sources_.contains(ends) || link_sources_.contains(back)) continue;
    add_link({ends.first, ends.second, count}, {});
    add_link({ends.second, ends.first, count}, {});
  }
}

void TopologyReader::hop(const TopologyFile::NextHop& entry, SourcePosition source) {
  const std::uint32_t at = number(entry.has_at(), entry.at(), "next_hop: 'at'", source);
  const std::uint32_t next = number(entry.has_next(), entry.next(), "next_hop: 'next'", source);
  if (ok() && content_.capacity(at, next) == 0) {
    fail(source, "next_hop: there is no link from " + std::to_string(at) + " to " +
                     std::to_string(next) + "; expected the other end of one of node " +
                     std::to_string(at) + "'s links");
  }
  if (ok() && entry.to_size() == 0) number(false, 0, "next_hop: 'to'", source);
  for (const std::uint32_t to : entry.to()) {
    number(true, to, "next_hop: 'to'", source);
    if (!ok()) return;
    if (to == at) {
      fail(source, "next_hop: node " + std::to_string(at) +
                       " cannot be its own destination; expected other nodes in 'to'");
    }
    const auto [first, fresh] = hop_sources_.insert({{at, to}, source});
    if (!fresh) {
      fail(source, "next_hop: node " + std::to_string(at) + " has a next_hop for node " +
                       std::to_string(to) + " already" + first_at(first->second, source) +
                       "; expected one next_hop per destination");
    }
    content_.hops.push_back({at, to, next, source});
  }
}

void TopologyReader::route(const TopologyFile::Route& entry, SourcePosition source) {
  if (entry.node_size() < 2) {
    fail(source, "route: it has " + counted(entry.node_size(), "node") +
                     "; expected two at least, its ends included");
  }
  std::set<std::uint32_t> passed;
  for (int index = 0; index < entry.node_size() && ok(); ++index) {
    const std::uint32_t node = number(true, entry.node(index), "route: 'node'", source);
    if (!passed.insert(node).second && ok()) {
      fail(source, "route: it visits node " + std::to_string(node) +
                       " twice; expected a route without loops");
    }
    if (index == 0 || !ok() || content_.capacity(entry.node(index - 1), node) > 0) continue;
    fail(source, "route: there is no link from " + std::to_string(entry.node(index - 1)) + " to " +
                     std::to_string(node) + "; expected a link from each node to the next");
  }
  if (!ok()) return;
  const std::vector<std::uint32_t> nodes(entry.node().begin(), entry.node().end());
  const auto [first, fresh] = route_sources_.insert({{nodes.front(), nodes.back()}, source});
  if (!fresh) {
    fail(source, "route: a route from " + std::to_string(nodes.front()) + " to " +
                     std::to_string(nodes.back()) + " exists already" +
                     first_at(first->second, source) + "; expected one route per pair of ends");
  }
  content_.routes.push_back({nodes, source});
}

// Sorts into the order that canonical_text() writes and that searches rely on.
void TopologyReader::sort() {
  std::sort(content_.hops.begin(), content_.hops.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.at, a.next, a.to) < std::tuple(b.at, b.next, b.to);
  });
  std::sort(content_.routes.begin(), content_.routes.end(), [](const auto& a, const auto& b) {
    return std::pair(a.nodes.front(), a.nodes.back()) < std::pair(b.nodes.front(), b.nodes.back());
  });
}

Result<CustomContent, ParseError> TopologyReader::read(std::string_view text) {
  FirstError errors("; expected text as docs/topologies.md describes it");
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.WriteLocationsTo(&tree_);
  if (!parser.ParseFromString(std::string(text), &file_)) {
    errors.AddError(0, 0, "the text cannot be parsed");  // ignored if there is an error already
    return espalier::fail(*errors.error);
  }
  head();
  for (int i = 0; ok() && i < file_.node_size(); ++i) node(file_.node(i), source_of("node", i));
  if (ok()) positions();
  for (int i = 0; ok() && i < file_.link_size(); ++i) link(file_.link(i), source_of("link", i));
  if (ok()) cables();
  std::sort(content_.links.begin(), content_.links.end(), [](const Link& a, const Link& b) {
    return std::pair(a.from, a.to) < std::pair(b.from, b.to);
  });
  for (int i = 0; ok() && i < file_.next_hop_size(); ++i) {
    hop(file_.next_hop(i), source_of("next_hop", i));
  }
  for (int i = 0; ok() && i < file_.route_size(); ++i) route(file_.route(i), source_of("route", i));
  sort();
  if (!ok()) return espalier::fail(*parse_error_);
  return std::move(content_);
}

}  // namespace

Result<CustomContent, ParseError> read_custom(std::string_view text) {
  return TopologyReader().read(text);
}

}  // namespace espalier::topology
