// The picture of a topology: ranks as circles, routers as squares, a line for each pair of opposite
// links, with an arrow if only one direction exists.

#include <algorithm>
#include <cmath>

#include "base/counted.h"
#include "espalier/topology/topology.h"
#include "topology/svg.h"

namespace espalier::topology {
namespace {

using svg::escaped;
using svg::print;

constexpr double kWidest = 1100;  // maximum width and height of the drawn area in px
constexpr double kMargin = 36;    // px around the area
constexpr double kCaption = 44;   // px below the area
constexpr double kLetter = 6.6;   // maximum px per character of the note
constexpr std::uint32_t kMaxNodes = 20000;
// The links are drawn if there are at most kMaxLinks, or at most kMaxLinksPerNode per node.
constexpr std::uint64_t kMaxLinks = 2500;
constexpr std::uint64_t kMaxLinksPerNode = 8;

constexpr const char* kStyle =
    "<style>text{font-family:'DejaVu Sans',Helvetica,Arial,sans-serif;fill:#26332a}"
    ".link{stroke:#7d8f83;stroke-linecap:round}"
    ".rank{fill:#d9eddc;stroke:#2f6b3a}.router{fill:#f6e7c6;stroke:#8a6420}"
    ".name{text-anchor:middle}"
    ".lanes{text-anchor:middle;font-weight:bold;fill:#8a3b1f;paint-order:stroke;"
    "stroke:#fff;stroke-width:5px}"
    ".note{fill:#5b6b60}</style>\n";

struct Canvas {
  const Topology& topology;
  double unit = 72;    // px between neighbours
  double radius = 17;  // px
  double width = 0, height = 0;
  bool lanes = false;  // some link shows its number of lanes
  bool ways = false;   // some link has no reverse
  std::string svg;
};

Topology::Position place(const Canvas& canvas, std::uint32_t node) {
  const Topology::Position position = canvas.topology.position(node);
  return {kMargin + position.x * canvas.unit, kMargin + position.y * canvas.unit};
}

// Draws an arrow head beyond the middle of a link that exists only from a to b, clear of the number
// of lanes.
void draw_way(Canvas& canvas, Topology::Position a, Topology::Position b) {
  canvas.ways = true;
  const double length = std::hypot(b.x - a.x, b.y - a.y);
  const double size = std::min(0.6 * canvas.radius, 0.2 * length) / length;
  const double x = (b.x - a.x) * size, y = (b.y - a.y) * size;
  const Topology::Position tip = {a.x + 0.74 * (b.x - a.x), a.y + 0.74 * (b.y - a.y)};
  print(canvas.svg,
        "<path class=\"way\" fill=\"#7d8f83\" d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1fZ\"/>\n", tip.x,
        tip.y, tip.x - x - 0.6 * y, tip.y - y + 0.6 * x, tip.x - x + 0.6 * y, tip.y - y - 0.6 * x);
}

// Draws a link with one lane each way as a curve whose control points are `aside` px left of its
// ends.
void draw_bent(Canvas& canvas, Topology::Position a, Topology::Position b, double aside,
               double stroke) {
  const double length = std::hypot(b.x - a.x, b.y - a.y);
  const double x = (b.y - a.y) / length * aside, y = (a.x - b.x) / length * aside;
  print(canvas.svg,
        "<path class=\"link\" fill=\"none\" d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\" "
        "stroke-width=\"%.2f\"/>\n",
        a.x, a.y, a.x + x, a.y + y, b.x + x, b.y + y, b.x, b.y, stroke);
}

void draw_links(Canvas& canvas) {
  const bool dense = canvas.topology.link_count() > 8ull * canvas.topology.nodes();
  const double thin = dense ? 0.5 : std::clamp(canvas.radius / 9, 0.4, 1.6);
  std::string labels;
  for (const Link& link : canvas.topology.links()) {
    const std::uint32_t back = canvas.topology.capacity(link.to, link.from);
    if (link.from > link.to && back > 0) continue;  // drawn with its reverse
    const Topology::Position a = place(canvas, link.from);
    const Topology::Position b = place(canvas, link.to);
    const double stroke = thin * (1 + 0.9 * std::log2(std::max(link.capacity, back)));
    const double bend = canvas.topology.bend(link.from, link.to);
    if (bend != 0) {
      draw_bent(canvas, a, b, bend * canvas.unit, stroke);
      continue;
    }
    const bool memory = canvas.topology.link_class(link.from, link.to) == LinkClass::kMemory;
    print(canvas.svg,
          "<line class=\"link\"%s x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
          "stroke-width=\"%.2f\"/>\n",
          memory ? " style=\"stroke:#bccabf\"" : "", a.x, a.y, b.x, b.y, stroke);
    if (back == 0) draw_way(canvas, a, b);
    if (std::max(link.capacity, back) > 1 && canvas.radius >= 7) {
      canvas.lanes = true;
      // Lanes towards the node of the larger number, then towards the other if they differ.
      std::string lanes = std::to_string(link.capacity);
      if (back != 0 && back != link.capacity) lanes += "/" + std::to_string(back);
      print(labels,
            "<text class=\"lanes\" dy=\".35em\" font-size=\"12\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
            (a.x + b.x) / 2, (a.y + b.y) / 2, lanes.c_str());
    }
  }
  canvas.svg += labels;
}

void draw_nodes(Canvas& canvas) {
  const Topology& topology = canvas.topology;
  const double radius = canvas.radius;
  for (std::uint32_t node = 0; node < topology.nodes(); ++node) {
    const Topology::Position position = place(canvas, node);
    canvas.svg += "<g><title>" + escaped(topology.node_name(node)) + "</title>";
    if (node < topology.ranks()) {
      print(canvas.svg, "<circle class=\"rank\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>", position.x,
            position.y, radius);
    } else {
      print(canvas.svg,
            "<rect class=\"router\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
            "rx=\"3\"/>",
            position.x - radius, position.y - radius, 2 * radius, 2 * radius);
    }
    if (radius >= 7) {
      print(canvas.svg,
            "<text class=\"name\" dy=\".35em\" font-size=\"%.1f\" x=\"%.1f\" y=\"%.1f\">%u</text>",
            std::min(13.0, radius * 0.9), position.x, position.y, node);
    }
    canvas.svg += "</g>\n";
  }
}

// Chooses the scale so that the picture is at most kWidest wide and high.
void measure(Canvas& canvas) {
  double right = 0, bottom = 0;
  for (std::uint32_t node = 0; node < canvas.topology.nodes(); ++node) {
    const Topology::Position position = canvas.topology.position(node);
    right = std::max(right, position.x);
    bottom = std::max(bottom, position.y);
  }
  canvas.unit = std::min(canvas.unit, kWidest / std::max({right, bottom, 1.0}));
  canvas.radius = std::min(canvas.radius, 0.3 * canvas.unit);
  canvas.width = right * canvas.unit;
  canvas.height = bottom * canvas.unit;
}

}  // namespace

std::string draw_svg(const Topology& topology) {
  Canvas canvas{.topology = topology, .svg = ""};
  const bool draw = topology.nodes() <= kMaxNodes;
  const std::uint64_t links = topology.link_count();
  const bool sparse = links <= kMaxLinks || links <= kMaxLinksPerNode * topology.nodes();
  if (draw) {
    measure(canvas);
    if (sparse) draw_links(canvas);
    draw_nodes(canvas);
  }
  std::string note = counted(topology.ranks(), "rank");
  if (topology.nodes() > topology.ranks()) {
    note += ", " + counted(topology.nodes() - topology.ranks(), "router");
  }
  note += ", " + counted(links, "link");
  note += draw && sparse ? "; a line is a link each way" : " (too many to draw)";
  if (canvas.ways) note += " (with an arrow: only that way)";
  if (canvas.lanes) note += ", its number their lanes where not 1";
  const double text_width = kLetter * static_cast<double>(note.size());
  const double width = std::max({canvas.width, text_width, 548.0}) + 2 * kMargin;
  const double height = canvas.height + 2 * kMargin + kCaption;
  std::string svg;
  print(svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
        "height=\"%.0f\">\n",
        width, height, width, height);
  svg += kStyle;
  svg += "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
  print(svg, "<g transform=\"translate(%.1f 0)\">\n", (width - canvas.width) / 2 - kMargin);
  svg += canvas.svg + "</g>\n";
  print(svg, "<text font-size=\"15\" font-weight=\"bold\" x=\"%.0f\" y=\"%.0f\">", kMargin,
        height - 36);
  svg += escaped(topology.title()) + "</text>\n";
  print(svg, "<text class=\"note\" font-size=\"12\" x=\"%.0f\" y=\"%.0f\">", kMargin, height - 16);
  return svg + escaped(note) + "</text>\n</svg>\n";
}

}  // namespace espalier::topology
