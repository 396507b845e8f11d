#include "topology/custom_content.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace espalier::topology {
namespace {

// The shortest decimal number that parses as `number`.
std::string text_of(double number) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

// Appends " name:value", without the space at the beginning of a line or of an entry.
void put(std::string& out, const char* name, const std::string& value) {
  if (!out.empty() && out.back() != '{') out += ' ';
  out += name;
  out += ':' + value;
}

void put(std::string& out, const char* name, std::uint32_t value) {
  put(out, name, std::to_string(value));
}

std::string list(const std::vector<std::uint32_t>& numbers) {
  std::string text = "[";
  for (const std::uint32_t number : numbers) {
    text += (text.size() == 1 ? "" : ",") + std::to_string(number);
  }
  return text + "]";
}

void put_nodes(const CustomContent& content, std::string& out) {
  for (std::uint32_t number = 0; number < content.nodes.size(); ++number) {
    const CustomContent::NodeEntry& node = content.nodes[number];
    if (node.name.empty() && !node.placed) continue;
    out += " node{";
    put(out, "node", number);
    if (!node.name.empty()) put(out, "name", '"' + node.name + '"');
    if (node.placed) {
      put(out, "x", text_of(node.position.x));
      put(out, "y", text_of(node.position.y));
    }
    out += '}';
  }
}

// A link and its reverse with the same capacity become one entry, at the lower `from`.
void put_links(const CustomContent& content, std::string& out) {
  for (const Link& link : content.links) {
    const bool both = content.capacity(link.to, link.from) == link.capacity;
    if (both && link.from > link.to) continue;
    out += " link{";
    put(out, "from", link.from);
    put(out, "to", link.to);
    if (link.capacity != 1) put(out, "capacity", link.capacity);
    if (!both) put(out, "one_way", "true");
    out += '}';
  }
}

void put_hops(const CustomContent& content, std::string& out) {
  const auto& hops = content.hops;
  for (std::size_t begin = 0, end = 0; begin < hops.size(); begin = end) {
    std::vector<std::uint32_t> to;
    for (end = begin;
         end < hops.size() && hops[end].at == hops[begin].at && hops[end].next == hops[begin].next;
         ++end) {
      to.push_back(hops[end].to);
    }
    out += " next_hop{";
    put(out, "at", hops[begin].at);
    put(out, "to", list(to));
    put(out, "next", hops[begin].next);
    out += '}';
  }
}

}  // namespace

std::vector<Link>::const_iterator CustomContent::first_link(std::uint32_t node) const {
  return std::lower_bound(links.begin(), links.end(), node,
                          [](const Link& link, std::uint32_t from) { return link.from < from; });
}

std::uint32_t CustomContent::capacity(std::uint32_t from, std::uint32_t to) const {
  const auto at =
      std::lower_bound(links.begin(), links.end(), to, [from](const Link& link, std::uint32_t end) {
        return link.from != from ? link.from < from : link.to < end;
      });
  return at != links.end() && at->from == from && at->to == to ? at->capacity : 0;
}

std::string CustomContent::kind(std::uint32_t node) const {
  return (node < ranks ? "rank " : "router ") + std::to_string(node);
}

std::string canonical_text(const CustomContent& content) {
  std::string out;
  put(out, "name", '"' + content.name + '"');
  put(out, "ranks", content.ranks);
  const auto routers = static_cast<std::uint32_t>(content.nodes.size()) - content.ranks;
  if (routers > 0) put(out, "routers", routers);
  if (content.xy) put(out, "routing", "XY");
  put_nodes(content, out);
  put_links(content, out);
  put_hops(content, out);
  for (const CustomContent::Route& route : content.routes) {
    out += " route{";
    put(out, "node", list(route.nodes));
    out += '}';
  }
  return out;
}

}  // namespace espalier::topology
