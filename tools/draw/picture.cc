#include "tools/draw/picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "espalier/collectives/algorithms/algorithms.h"
#include "planner/make/blocks.h"
#include "planner/make/plan.h"
#include "tools/common/output.h"
#include "tools/draw/drawing.h"
#include "topology/svg.h"

namespace espalier::tools {
namespace {

using svg::escaped;
using svg::print;
using Pair = std::pair<std::uint32_t, std::uint32_t>;

// The page's inks (tools/draw/page/page.css), light; and what tells two apart without colour.
constexpr std::array<const char*, 8> kInks = {"#0072b2", "#d55e00", "#009e73", "#b8528f",
                                              "#8a6d00", "#3aa0d8", "#5d6660", "#7a3fb0"};
constexpr std::array<const char*, 8> kDashes = {"",    "11 6", "3 4",  "14 4 3 4",
                                                "7 3", "2 2",  "18 6", "9 3 3 3"};
struct Colour {
  double r, g, b;
};
constexpr std::array<Colour, 4> kHeat = {
    {{0xe3, 0xe0, 0xcf}, {0xf0, 0xb9, 0x5a}, {0xd8, 0x57, 0x2f}, {0x6b, 0x1d, 0x5c}}};
constexpr double kCaption = 46;
constexpr std::int64_t kMoreBlocks = 12;  // whose steps are the steady state's

constexpr const char* kStyle =
    "<style>text{font-family:'DejaVu Sans',Helvetica,Arial,sans-serif;fill:#1f2a23}"
    ".link{stroke:#b9c6bd;stroke-width:2;fill:none}.rank{fill:#dcefdf;stroke:#2f6b3a;"
    "stroke-width:1.5}.router{fill:#f6e7c6;stroke:#8a6420;stroke-width:1.5}.root{stroke-width:4}"
    ".name{text-anchor:middle;font-weight:600;font-size:17px}.shaft{fill:none;stroke-width:4.5}"
    ".block{font-size:13px;font-weight:700;text-anchor:middle;paint-order:stroke;stroke:#fff;"
    "stroke-width:4px}.note{fill:#5b6b60;font-size:15px}</style>\n";

// Blocks that each link carries, over all steps.
std::map<Pair, std::int64_t> load(const planner::LoadedSchedule& loaded, std::int64_t blocks) {
  std::map<Pair, std::int64_t> carried;
  for (const Transfer& transfer : transfers(loaded.programs, blocks)) {
    const std::vector<std::uint32_t> route = loaded.topology->route(transfer.from, transfer.to);
    for (std::size_t hop = 0; hop + 1 < route.size(); ++hop)
      ++carried[{route[hop], route[hop + 1]}];
  }
  return carried;
}

std::string heat(double share) {
  const double part = 3 * std::clamp(share, 0.0, 1.0);
  const auto low = std::min<std::size_t>(2, static_cast<std::size_t>(part));
  const double by = part - static_cast<double>(low);
  const Colour &a = kHeat[low], &b = kHeat[low + 1];
  const auto mixed = [by](double x, double y) { return static_cast<int>(x + by * (y - x) + 0.5); };
  std::string text;
  print(text, "#%02x%02x%02x", mixed(a.r, b.r), mixed(a.g, b.g), mixed(a.b, b.b));
  return text;
}

class Picture {
 public:
  Picture(const planner::LoadedSchedule& loaded, std::int64_t blocks)
      : loaded_(loaded),
        topology_(*loaded.topology),
        program_(loaded.programs.front()),
        drawing_(topology_),
        blocks_(blocks) {}

  std::string draw(View view, std::int64_t step) {
    std::map<Pair, double> shares;
    std::string note;
    if (view == View::kLoad) note = measure(shares);
    draw_links(shares);
    if (view == View::kStep) note = draw_step(step);
    if (view == View::kTrees) note = draw_trees();
    draw_nodes();
    return whole(note);
  }

 private:
  void draw_links(const std::map<Pair, double>& shares) {
    for (const topology::Link& link : topology_.links()) {
      const auto found = shares.find({link.from, link.to});
      const std::string line = drawing_.link(link.from, link.to);
      if (found == shares.end()) {
        print(svg_, "<path class=\"link\" d=\"%s\"/>\n", line.c_str());
        continue;
      }
      print(svg_, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"%.1f\" d=\"%s\"><title>%.0f %%",
            heat(found->second).c_str(), 3 + 7 * std::min(1.0, found->second), line.c_str(),
            100 * found->second);
      svg_ += "</title></path>\n";
    }
  }

  // Shares of a link's lanes' time; of all steps where N adds none.
  std::string measure(std::map<Pair, double>& shares) const {
    const std::int64_t more = planner::allowed_blocks(
        program_, blocks_ + kMoreBlocks * std::max(1u, program_.residue_mod));
    const std::int64_t steps = phase_steps(program_, blocks_);
    const std::int64_t added = phase_steps(program_, more) - steps;
    const std::map<Pair, std::int64_t> now = load(loaded_, blocks_);
    std::map<Pair, std::int64_t> then;
    if (added > 0) check_drawable(loaded_, more);
    if (added > 0) then = load(loaded_, more);
    double most = 0;
    for (const auto& [link, blocks] : now) {
      const std::int64_t carried = added > 0 ? then[link] - blocks : blocks;
      const double time = static_cast<double>(added > 0 ? added : std::max<std::int64_t>(1, steps));
      const std::uint32_t lanes = std::max(1u, topology_.capacity(link.first, link.second));
      shares[link] = static_cast<double>(carried) / time / lanes;
      most = std::max(most, shares[link]);
    }
    return "Load a period: the busiest link carries a block in " +
           std::to_string(std::lround(100 * most)) + " % of " +
           (added > 0 ? "a period's steps" : "the steps") + "; darker and wider is busier";
  }

  // `number` chooses ink and dashes.
  void arrow(const Transfer& transfer, std::int64_t number, double width, bool dashed,
             const std::string& text) {
    const Drawing::Arrow shape = drawing_.arrow(topology_.route(transfer.from, transfer.to));
    const auto style = static_cast<std::size_t>(number) % kInks.size();
    svg_ += "<path class=\"shaft\" stroke=\"" + std::string(kInks[style]) + "\"";
    if (width > 0) print(svg_, " style=\"stroke-width:%.1f\"", width);
    if (dashed && kDashes[style][0] != 0)
      svg_ += std::string(" stroke-dasharray=\"") + kDashes[style] + "\"";
    svg_ += " d=\"" + shape.line + "\"/>\n<path fill=\"" + kInks[style] + "\" d=\"" + shape.head +
            "\"/>\n";
    if (text.empty()) return;
    print(names_, "<text class=\"block\" dy=\".35em\" x=\"%.1f\" y=\"%.1f\" style=\"fill:%s\">",
          shape.x, shape.y, kInks[style]);
    names_ += text + "</text>\n";
  }

  std::string draw_step(std::int64_t step) {
    std::uint64_t drawn = 0;
    for (const Transfer& transfer : transfers(loaded_.programs, blocks_)) {
      if (transfer.step != step) continue;
      std::string name = std::to_string(transfer.block);
      if (program_.segments > 1) name = std::to_string(transfer.segment) + "." + name;
      if (transfer.segment_count > 1) name += "+" + std::to_string(transfer.segment_count - 1);
      arrow(transfer, program_.segments > 1 ? transfer.segment : transfer.block, 0, false, name);
      ++drawn;
    }
    return "Step " + std::to_string(step) + " of " +
           std::to_string(phase_steps(program_, blocks_)) + ", N = " + std::to_string(blocks_) +
           ": " + counted(drawn, "transfer") +
           (program_.segments > 1 ? "; 1.0 is block 0 of segment 1" : "; numbers are blocks");
  }

  std::string draw_trees() {
    std::set<std::tuple<std::int64_t, std::uint32_t, std::uint32_t, std::uint32_t>> drawn;
    const bool many = program_.segments > kInks.size();
    for (const Transfer& transfer : transfers(loaded_.programs, blocks_)) {
      if (!drawn.insert({transfer.segment, transfer.phase, transfer.from, transfer.to}).second)
        continue;
      const double width = many ? 1.5 : 5 - static_cast<double>(transfer.segment % 3);
      arrow(transfer, program_.segments > 1 ? transfer.segment : transfer.phase, width, true, "");
    }
    return counted(drawn.size(), "edge") + " that blocks pass, of " +
           counted(program_.segments, "segment") +
           (program_.segments > 1 ? ": each in its own colour and dashes" : "");
  }

  void draw_nodes() {
    svg_ += names_;
    for (std::uint32_t node = 0; node < topology_.nodes(); ++node) {
      const topology::Topology::Position position = drawing_.place(node);
      const double r = Drawing::kRadius;
      svg_ += "<g><title>" + escaped(topology_.node_name(node)) + "</title>";
      if (node < topology_.ranks()) {
        const bool root = has_root(program_.collective) && node == program_.root;
        print(svg_, "<circle class=\"rank%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>",
              root ? " root" : "", position.x, position.y, r);
      } else {
        print(svg_,
              "<rect class=\"router\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
              "rx=\"5\"/>",
              position.x - r, position.y - r, 2 * r, 2 * r);
      }
      print(svg_, "<text class=\"name\" dy=\".35em\" x=\"%.1f\" y=\"%.1f\">%u</text></g>\n",
            position.x, position.y, node);
    }
  }

  std::string whole(const std::string& note) {
    const std::string title = std::string(collective_name(program_.collective)) + " by " +
                              program_.algorithm + " on " + topology_.title();
    const double letters = static_cast<double>(std::max(note.size() * 8, title.size() * 11));
    const double width = std::max(drawing_.width(), letters + 2 * Drawing::kMargin);
    const double height = drawing_.height() + kCaption;
    std::string svg;
    print(svg,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
          "height=\"%.0f\">\n",
          width, height, width, height);
    svg += kStyle;
    svg += "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
    print(svg, "<g transform=\"translate(%.1f 0)\">\n", (width - drawing_.width()) / 2);
    svg += svg_ + "</g>\n";
    print(svg, "<text font-size=\"17\" font-weight=\"bold\" x=\"24\" y=\"%.0f\">", height - 40);
    svg += escaped(title) + "</text>\n";
    print(svg, "<text class=\"note\" x=\"24\" y=\"%.0f\">", height - 16);
    return svg + escaped(note) + "</text>\n</svg>\n";
  }

  const planner::LoadedSchedule& loaded_;
  const topology::Topology& topology_;
  const Program& program_;
  const Drawing drawing_;
  const std::int64_t blocks_;
  std::string svg_, names_;
};

}  // namespace

std::string draw_picture(const planner::LoadedSchedule& loaded, View view, std::int64_t blocks,
                         std::int64_t step) {
  return Picture(loaded, blocks).draw(view, step);
}

}  // namespace espalier::tools
