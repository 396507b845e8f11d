#include "tools/report/witness.h"

#include <algorithm>
#include <set>

#include "espalier/collectives/algorithms/algorithms.h"
#include "tools/report/show_text.h"

namespace espalier::tools {
namespace {

using verify::Witness;

constexpr std::uint64_t kMaxListed = std::uint64_t{1} << 18;  // links that are searched for a cut
constexpr std::size_t kMaxShown = 8;                          // nodes or links in one line of text

const char* kind_name(Witness::Kind kind) {
  switch (kind) {
    case Witness::Kind::kArrival: return "arrival";
    case Witness::Kind::kReach: return "reach";
    case Witness::Kind::kPort: return "port";
    case Witness::Kind::kMessages: return "messages";
    case Witness::Kind::kCut: return "cut";
    case Witness::Kind::kTreeLink: return "tree link";
    case Witness::Kind::kBranches: return "branches";
    case Witness::Kind::kHops: return "hops";
    case Witness::Kind::kRoutes: return "routes";
  }
  return "";
}

const char* limit_name(Witness::Limit limit) {
  switch (limit) {
    case Witness::Limit::kLinks: return "links";
    case Witness::Limit::kSenders: return "senders";
    case Witness::Limit::kReceivers: return "receivers";
    case Witness::Limit::kPairs: return "pairs";
  }
  return "";
}

// Returns the links that leave the cut's side.
std::vector<topology::Link> crossing_links(const topology::Topology& topology,
                                           const Witness& witness) {
  std::vector<bool> inside(topology.nodes(), witness.others);
  for (const std::uint32_t node : *witness.nodes) inside[node] = !witness.others;
  std::vector<topology::Link> links;
  for (const topology::Link& link : topology.links()) {
    if (inside[link.from] && !inside[link.to]) links.push_back(link);
  }
  return links;
}

Json cut_json(const topology::Topology& topology, const Witness& witness) {
  Json json = {{"kind", kind_name(witness.kind)},
               {witness.others ? "from_all_except" : "from", *witness.nodes},
               {"limit", limit_name(witness.limit)},
               {"before", witness.before},
               {"after", witness.after}};
  if (witness.limit == Witness::Limit::kPairs || topology.link_count() > kMaxListed) return json;
  auto links = Json::array();
  std::set<std::uint32_t> ends;
  for (const topology::Link& link : crossing_links(topology, witness)) {
    ends.insert(witness.limit == Witness::Limit::kSenders ? link.from : link.to);
    links.push_back({{"from", link.from}, {"to", link.to}, {"capacity", link.capacity}});
  }
  if (witness.limit == Witness::Limit::kLinks) {
    json["links"] = links;
  } else {
    json["nodes"] = std::vector<std::uint32_t>(ends.begin(), ends.end());
  }
  return json;
}

Json routes_json(const topology::Topology& topology, const Witness& witness) {
  auto pairs = Json::array();
  for (std::uint32_t from = 0; from < topology.ranks(); ++from) {
    for (std::uint32_t to = 0; to < topology.ranks(); ++to) {
      const std::vector<std::uint32_t> route = topology.route(from, to);
      for (std::size_t hop = 1; hop < route.size(); ++hop) {
        if (route[hop - 1] != witness.from || route[hop] != witness.to) continue;
        pairs.push_back({{"from", from}, {"to", to}});
      }
    }
  }
  return {{"kind", kind_name(witness.kind)},
          {"from", witness.from},
          {"to", witness.to},
          {"capacity", topology.capacity(witness.from, witness.to)},
          {"pairs", pairs}};
}

Json witness_json(const topology::Topology& topology, const Witness& witness) {
  switch (witness.kind) {
    case Witness::Kind::kCut: return cut_json(topology, witness);
    case Witness::Kind::kRoutes: return routes_json(topology, witness);
    case Witness::Kind::kHops:
      return {{"kind", kind_name(witness.kind)}, {"from", witness.from}, {"to", witness.to}};
    case Witness::Kind::kTreeLink:
      return {{"kind", kind_name(witness.kind)},
              {"from", witness.from},
              {"to", witness.to},
              {"before", witness.before},
              {"after", witness.after}};
    case Witness::Kind::kBranches:
      return {{"kind", kind_name(witness.kind)},
              {"node", witness.from},
              {"receives", witness.inwards},
              {"before", witness.before},
              {"after", witness.after}};
    case Witness::Kind::kPort:
      return {{"kind", kind_name(witness.kind)},
              {"rank", witness.from},
              {"receives", witness.inwards},
              {"limit", limit_name(witness.limit)},
              {"fan", witness.fan},
              {"after", witness.after}};
    case Witness::Kind::kReach:
      return {
          {"kind", kind_name(witness.kind)}, {"receives", witness.inwards}, {"fan", witness.fan}};
    default: return {{"kind", kind_name(witness.kind)}};
  }
}

// Adds ", text" to a list that shows no more than kMaxShown entries.
void add_shown(std::string& list, std::size_t k, const std::string& text) {
  if (k < kMaxShown) list += (k == 0 ? "" : ", ") + text;
  if (k == kMaxShown) list += ", ...";
}

}  // namespace

Json certificate_json(const topology::Topology& topology, const Program& program,
                      const verify::BoundFacts& facts,
                      const std::vector<verify::LowerBound>& bounds, const std::string& limited) {
  Json json = {{"collective", collective_name(program.collective)},
               {"ranks", program.ranks},
               {"root", has_root(program.collective) ? program.root : 0},
               {"segments", program.segments},
               {"segments_per_message", facts.segment_count},
               {"port_model", port_model_name(program.port_model)},
               {"send_ticks", std::max(1u, program.send_ticks)},
               {"latency_ticks", std::max(1u, program.latency_ticks)},
               {"links_suffice", facts.links},
               {"neighbours_only", facts.neighbours},
               {"direct", facts.direct},
               {"routers_run", program_nodes(program) > program.ranks},
               {"bounds", Json::array()}};
  for (const verify::LowerBound& bound : bounds) {
    json["bounds"].push_back({{"a", bound.a},
                              {"b", bound.b},
                              {"d", bound.d},
                              {"reason", bound.reason},
                              {"witness", witness_json(topology, bound.witness)}});
  }
  if (!limited.empty()) json["limited"] = limited;
  return json;
}

std::string cut_text(const topology::Topology& topology, const verify::LowerBound& bound) {
  const Witness& witness = bound.witness;
  if (witness.kind != Witness::Kind::kCut || witness.nodes->size() < 2) return "";
  if (topology.link_count() > kMaxListed) return "";
  std::string nodes, links;
  for (std::size_t k = 0; k < witness.nodes->size(); ++k) {
    add_shown(nodes, k, std::to_string((*witness.nodes)[k]));
  }
  std::size_t k = 0;
  for (const topology::Link& link : crossing_links(topology, witness)) {
    add_shown(links, k++, std::to_string(link.from) + " -> " + std::to_string(link.to));
  }
  return std::string("from ") + (witness.others ? "all except nodes " : "nodes ") + nodes +
         " over the links " + links;
}

}  // namespace espalier::tools
