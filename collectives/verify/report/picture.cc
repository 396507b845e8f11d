#include "collectives/verify/report/picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/counted.h"
#include "collectives/verify/properties/checks.h"
#include "collectives/verify/properties/expanded_schedule.h"
#include "collectives/verify/properties/operands.h"
#include "collectives/verify/properties/program_facts.h"
#include "espalier/collectives/schedule/programs.h"
#include "topology/svg.h"

namespace espalier::verify {
namespace {

using svg::escaped;
using svg::print;

constexpr double kCell = 64;     // px per step
constexpr double kRow = 48;      // px per rank
constexpr double kTop = 64;      // px above the first rank
constexpr double kLetter = 7.2;  // px per letter, approximately
constexpr std::size_t kMaxDrawnRanks = 24;
constexpr std::int64_t kMaxDrawnSteps = 32;
constexpr std::size_t kLineLetters = 110;

constexpr const char* kStyle =
    "<style>text{font-family:'DejaVu Sans',Helvetica,Arial,sans-serif;font-size:12px;fill:#26332a}"
    ".rank{stroke:#c3d2c7}.step{stroke:#e4ebe6}.name{text-anchor:end}.number{text-anchor:middle}"
    ".note{fill:#5b6b60}.block{font-size:10px;paint-order:stroke;stroke:#fff;stroke-width:3px}"
    ".fault{fill:#c0231c;fill-opacity:.16;stroke:#c0231c;stroke-width:2}"
    ".wrong{fill:#c0231c;font-weight:bold}.phase{stroke:#8a6420;stroke-dasharray:4 3}</style>\n";

// Colours of blocks, in turn.
constexpr std::array<const char*, 8> kColours = {"#2f6b3a", "#1f5fa8", "#b0651a", "#7a4a9c",
                                                 "#0f8a8a", "#8c7a10", "#a8447a", "#55606b"};
constexpr const char* kWrong = "#c0231c";

struct Spot {
  double x = 0, y = 0;
};

class Picture {
 public:
  Picture(const topology::Topology& topology, const Programs& programs, std::int64_t blocks,
          const Counterexample* fault)
      : topology_(topology), programs_(programs), fault_(fault), common_(programs(0)) {
    nodes_ = std::min(program_nodes(common_), topology.nodes());
    if (fault != nullptr && fault->blocks > 0) blocks = fault->blocks;
    const std::int64_t first = common_.residue > 0 ? common_.residue : common_.residue_mod;
    blocks_ = blocks > 0 ? blocks : std::max<std::int64_t>(1, first);
    choose_ranks();
    for (const std::uint32_t node : ranks_) read(node);
    choose_steps();
  }

  std::string draw() {
    left_ = 0;
    for (const std::uint32_t node : ranks_) {
      left_ = std::max(left_, kLetter * static_cast<double>(topology_.node_name(node).size()));
    }
    left_ += 24;
    width_ = left_ + kCell * static_cast<double>(end_ - first_) + 24;
    draw_grid();
    draw_fault();
    draw_transfers();
    draw_operations();
    return whole();
  }

 private:
  // Chooses the nodes of the fault, their peers, then the nearest by number, including routers.
  void choose_ranks() {
    std::set<std::uint32_t> chosen;
    const auto take = [&](std::int64_t node) {
      if (node >= 0 && node < nodes_ && chosen.size() < kMaxDrawnRanks) {
        chosen.insert(static_cast<std::uint32_t>(node));
      }
    };
    std::int64_t middle = common_.root;
    if (fault_ != nullptr && fault_->node >= 0) middle = fault_->node;
    take(middle);
    if (fault_ != nullptr) {
      take(fault_->from);
      take(fault_->to);
    }
    if (middle < nodes_) {
      const Program& program = programs_(static_cast<std::uint32_t>(middle));
      for (std::uint32_t link = 0; link < links_count(program); ++link)
        take(peer_of(program, link));
    }
    for (std::int64_t by = 1; by < nodes_ && chosen.size() < kMaxDrawnRanks; ++by) {
      take(middle - by);
      take(middle + by);
    }
    ranks_.assign(chosen.begin(), chosen.end());
  }

  void read(std::uint32_t node) {
    const Program& program = programs_(node);
    if (check_program(program) != Status::kOk) return;
    ExpandedSchedule schedule{.topology = &topology_, .common = &program};
    set_blocks(schedule, blocks_);
    schedule.held = held_;
    if (check_size(schedule, node, program)) return;
    held_ = schedule.held;
    instances_[node] = expand(program, blocks_);
    if (steps_ < schedule.steps()) {
      steps_ = schedule.steps();
      phases_ = schedule.phase_first;
    }
    for (const Instance& instance : instances_[node]) {
      auto& lanes = instance.kind == ActionKind::kSend ? sends_ : receives_;
      if (instance.kind != ActionKind::kSend && instance.kind != ActionKind::kReceive) continue;
      const auto me = static_cast<std::int64_t>(node);
      const bool send = instance.kind == ActionKind::kSend;
      lanes[send ? std::pair{me, instance.peer} : std::pair{instance.peer, me}].push_back(
          &instance);
    }
  }

  void choose_steps() {
    const std::int64_t middle = fault_ == nullptr || fault_->step < 0 ? 0 : fault_->step;
    end_ = std::min(steps_, std::max<std::int64_t>(middle + kMaxDrawnSteps / 2, kMaxDrawnSteps));
    first_ = std::max<std::int64_t>(0, end_ - kMaxDrawnSteps);
    end_ = std::max(end_, first_ + 1);
  }

  [[nodiscard]] double x(std::int64_t step) const {
    return left_ + kCell * static_cast<double>(step - first_);
  }
  [[nodiscard]] double y(std::size_t row) const { return kTop + kRow * static_cast<double>(row); }
  [[nodiscard]] int row_of(std::int64_t node) const {
    const auto row = std::find(ranks_.begin(), ranks_.end(), node);
    return row == ranks_.end() ? -1 : static_cast<int>(row - ranks_.begin());
  }
  [[nodiscard]] bool drawn(std::int64_t step) const { return step >= first_ && step < end_; }
  [[nodiscard]] const char* colour(const OperandAt& operand) const {
    const std::int64_t number =
        std::max<std::int64_t>(0, operand.segment * blocks_ + operand.block);
    return kColours[static_cast<std::size_t>(number) % kColours.size()];
  }
  [[nodiscard]] std::string label(const OperandAt& operand) const {
    const std::string block = std::to_string(operand.block);
    return common_.segments > 1 ? std::to_string(operand.segment) + "." + block : block;
  }

  void draw_grid() {
    const double bottom = y(ranks_.size()) - kRow / 2;
    for (std::int64_t step = first_; step <= end_; ++step) {
      const bool phase = std::find(phases_.begin() + (phases_.empty() ? 0 : 1), phases_.end(),
                                   step) != phases_.end();
      print(svg_, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
            phase && step < steps_ ? "phase" : "step", x(step), kTop - kRow / 2, x(step), bottom);
      if (step == end_) break;
      print(svg_, "<text class=\"number note\" x=\"%.1f\" y=\"%.1f\">%s%lld</text>\n",
            x(step) + kCell / 2, kTop - kRow / 2 - 8, step == first_ ? "step " : "",
            static_cast<long long>(step));
    }
    for (std::size_t row = 0; row < ranks_.size(); ++row) {
      print(svg_, "<line class=\"rank\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", left_,
            y(row), width_ - 24, y(row));
      print(svg_, "<text class=\"name\" x=\"%.1f\" y=\"%.1f\">", left_ - 10, y(row) + 4);
      svg_ += escaped(topology_.node_name(ranks_[row])) + "</text>\n";
    }
  }

  void draw_fault() {
    if (fault_ == nullptr) return;
    if (fault_->property == Property::kSteps) {
      const std::int64_t claimed = count_value(common_.counts[common_.steps_ref], blocks_);
      if (claimed < first_ || claimed > end_ + 1) return;
      print(svg_,
            "<line stroke=\"%s\" stroke-width=\"3\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" "
            "y2=\"%.1f\"/>\n<text class=\"wrong\" x=\"%.1f\" y=\"%.1f\">claimed end</text>\n",
            kWrong, x(claimed), kTop - kRow / 2 - 24, x(claimed), y(ranks_.size()) - kRow / 2,
            x(claimed) - 70, kTop - kRow / 2 - 28);
    }
    const int row = row_of(fault_->node);
    if (row < 0) return;
    const bool cell = drawn(fault_->step);
    print(svg_, "<rect class=\"fault\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
          cell ? x(fault_->step) : left_ - 4, y(static_cast<std::size_t>(row)) - kRow / 2 + 2,
          cell ? kCell : width_ - 24 - left_ + 8, kRow - 4);
  }

  // Draws an arrow; dashed if the other end is missing or disagrees.
  void arrow(Spot from, Spot to, const char* colour, bool wrong, const std::string& text) {
    const double length = std::hypot(to.x - from.x, to.y - from.y);
    const Spot along = {(to.x - from.x) / length, (to.y - from.y) / length};
    const Spot neck = {to.x - 8 * along.x, to.y - 8 * along.y};
    print(svg_,
          "<line stroke=\"%s\" stroke-width=\"%s\"%s x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" "
          "y2=\"%.1f\"/>\n",
          colour, wrong ? "2.6" : "1.6", wrong ? " stroke-dasharray=\"5 3\"" : "", from.x, from.y,
          neck.x, neck.y);
    print(svg_, "<path fill=\"%s\" d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1fZ\"/>\n", colour, to.x, to.y,
          neck.x - 4 * along.y, neck.y + 4 * along.x, neck.x + 4 * along.y, neck.y - 4 * along.x);
    print(svg_, "<circle fill=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"/>\n", colour, from.x,
          from.y);
    print(svg_, "<text class=\"block\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", from.x - 8,
          from.y + (along.y > 0 ? -5 : 13), escaped(text).c_str());
  }

  [[nodiscard]] bool is_fault(const Instance& instance, std::int64_t from, std::int64_t to) const {
    return fault_ != nullptr && fault_->step == instance.step && fault_->from == from &&
           fault_->to == to;
  }

  [[nodiscard]] Spot begin_of(const Instance& send, int row) const {
    return {x(send.step) + 0.16 * kCell, y(static_cast<std::size_t>(row))};
  }
  [[nodiscard]] Spot end_of(const Instance& receive, int row) const {
    return {x(receive.step) + 0.72 * kCell, y(static_cast<std::size_t>(row))};
  }

  // Joins send k of a link with receive k.
  void draw_transfers() {
    std::set<std::pair<std::int64_t, std::int64_t>> links;
    for (const auto& [link, all] : sends_) links.insert(link);
    for (const auto& [link, all] : receives_) links.insert(link);
    for (const auto& link : links) {
      const auto& sends = sends_[link];
      const auto& receives = receives_[link];
      for (std::size_t k = 0; k < std::max(sends.size(), receives.size()); ++k) {
        draw_transfer(link.first, link.second, k < sends.size() ? sends[k] : nullptr,
                      k < receives.size() ? receives[k] : nullptr);
      }
    }
  }

  void draw_transfer(std::int64_t from, std::int64_t to, const Instance* send,
                     const Instance* receive) {
    const int from_row = row_of(from), to_row = row_of(to);
    if (send != nullptr && receive != nullptr) {
      if (!drawn(send->step) && !drawn(receive->step)) return;
      const OperandAt& sent = moved(*send);
      const OperandAt& awaited = moved(*receive);
      const bool same = same_blocks(common_, sent, awaited);
      const bool disagree = !same || send->step != receive->step;
      const bool red = disagree || is_fault(*send, from, to);
      const std::string text = same ? label(sent) : label(sent) + ", awaited " + label(awaited);
      arrow(begin_of(*send, from_row), end_of(*receive, to_row), red ? kWrong : colour(sent),
            disagree, text);
      return;
    }
    const bool sends = send != nullptr;
    const Instance& there = sends ? *send : *receive;
    const int row = sends ? from_row : to_row;
    if (!drawn(there.step)) return;
    // The other node is not in the picture, or it has no matching message.
    const std::int64_t other = sends ? to : from;
    const bool wrong = row_of(other) >= 0 || other < 0 || other >= nodes_;
    const bool red = wrong || is_fault(there, from, to);
    const double side = other < (sends ? from : to) ? -1 : 1;
    Spot near = sends ? begin_of(there, row) : end_of(there, row);
    Spot far = {near.x + (sends ? 1 : -1) * 0.3 * kCell, near.y + side * 0.4 * kRow};
    const std::string text =
        label(moved(there)) + (sends ? " to " : " from ") + std::to_string(other);
    arrow(sends ? near : far, sends ? far : near, red ? kWrong : colour(moved(there)), wrong, text);
  }

  void draw_operations() {
    for (std::size_t row = 0; row < ranks_.size(); ++row) {
      std::int64_t last = -1;
      double by = 0;
      for (const Instance& instance : instances_[ranks_[row]]) {
        const bool copy = instance.kind == ActionKind::kCopy;
        if ((!copy && instance.kind != ActionKind::kCombine) || !drawn(instance.step)) continue;
        by = instance.step == last ? by + 11 : 0;
        last = instance.step;
        const char* fill = colour(instance.into);
        print(svg_,
              "<rect fill=\"%s\" stroke=\"%s\" stroke-width=\"1.6\" x=\"%.1f\" y=\"%.1f\" "
              "width=\"8\" height=\"8\"/>\n",
              copy ? "#fff" : fill, fill, x(instance.step) + 0.8 * kCell, y(row) - 4 + by);
      }
    }
  }

  std::string whole() {
    const bool part = ranks_.size() < nodes_ || end_ - first_ < steps_;
    std::string note = "N = " + std::to_string(blocks_) + ", " + counted(steps_, "step") +
                       ". An arrow is a block sent in a step, a full square a combine, an "
                       "empty one a copy.";
    if (common_.segments > 1) note += " 1.0 is block 0 of segment 1.";
    std::string drawn;
    if (part) {
      drawn = "Drawn: " + std::to_string(ranks_.size()) + " of " + std::to_string(nodes_) +
              (is_hop_by_hop(common_) ? " nodes" : " ranks") + ", steps " + std::to_string(first_) +
              " to " + std::to_string(end_ - 1) + ".";
    }
    std::string text;
    double line_y = y(ranks_.size()) + 4;
    const auto put = [&](const std::string& line, const char* style) {
      for (const std::string& piece : wrapped(line)) {
        print(text, "<text class=\"%s\" x=\"16\" y=\"%.1f\">", style, line_y);
        text += escaped(piece) + "</text>\n";
        line_y += 18;
      }
    };
    put(std::string(common_.algorithm) + (common_.algorithm[0] == 0 ? "" : " on ") +
            topology_.title(),
        "");
    put(note, "note");
    if (part) put(drawn, "note");
    if (fault_ != nullptr) put(fault_->message, "wrong");
    const double width = std::max(width_, kLetter * static_cast<double>(kLineLetters) + 32);
    std::string svg;
    print(svg,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
          "height=\"%.0f\">\n",
          width, line_y, width, line_y);
    return svg + kStyle + "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n" + svg_ + text +
           "</svg>\n";
  }

  static std::vector<std::string> wrapped(const std::string& text) {
    std::vector<std::string> lines;
    std::size_t begin = 0;
    while (text.size() - begin > kLineLetters) {
      std::size_t space = text.rfind(' ', begin + kLineLetters);
      if (space == std::string::npos || space <= begin) space = begin + kLineLetters;
      lines.push_back(text.substr(begin, space - begin));
      begin = text[space] == ' ' ? space + 1 : space;
    }
    lines.push_back(text.substr(begin));
    return lines;
  }

  using Lanes = std::map<std::pair<std::int64_t, std::int64_t>, std::vector<const Instance*>>;

  const topology::Topology& topology_;
  const Programs& programs_;
  const Counterexample* fault_;
  OwnedProgram common_;
  std::uint32_t nodes_ = 0;  // nodes that have programs
  std::int64_t blocks_ = 1, steps_ = 0;
  std::vector<std::uint32_t> ranks_;
  std::map<std::uint32_t, std::vector<Instance>> instances_;
  std::int64_t held_ = 0;   // their size, as check_size() counts
  Lanes sends_, receives_;  // by (from, to), in step order
  std::vector<std::int64_t> phases_;
  std::int64_t first_ = 0, end_ = 0;  // the steps that are drawn
  double left_ = 0, width_ = 0;
  std::string svg_;
};

}  // namespace

std::string draw_svg(const topology::Topology& topology, const Programs& programs,
                     std::int64_t blocks, const Counterexample* fault) {
  return Picture(topology, programs, blocks, fault).draw();
}

}  // namespace espalier::verify
