#include "tools/draw/drawing.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "collectives/schedule/expand.h"
#include "tools/common/failure.h"
#include "tools/common/output.h"

namespace espalier::tools {
namespace {

using Position = topology::Topology::Position;

constexpr double kAside = 6.5;        // of a link's line from the nodes' own
constexpr double kHead = 13;          // an arrow's
constexpr double kHighestTree = 6.5;  // units

std::string at(const char* letter, const Position& point) {
  char text[64];
  std::snprintf(text, sizeof text, "%s%.1f %.1f", letter, point.x, point.y);
  return text;
}

// A drawing expands the schedule several times. Its limit grows with the schedule, so that a small
// file takes little time.
constexpr std::int64_t kMaxDrawn = 1 << 20;
constexpr std::int64_t kMaxDrawnPerNode = 1 << 14;

}  // namespace

void check_drawable(const planner::LoadedSchedule& loaded, std::int64_t blocks) {
  const std::int64_t most =
      kMaxDrawn + kMaxDrawnPerNode * static_cast<std::int64_t>(loaded.programs.size());
  std::int64_t instances = 0;
  for (const Program& program : loaded.programs) {
    for (std::uint32_t k = 0; k < program.actions_count; ++k) {
      const Count& count = program.counts[program.actions[k].instances_ref];
      instances += std::clamp<std::int64_t>(count_value(count, blocks), 0, most);
      if (instances <= most) continue;
      bad_input("'" + one_line(loaded.name) +
                "' cannot be drawn: for N = " + std::to_string(blocks) + ", " +
                loaded.topology->node_name(program.node) + ", action " + std::to_string(k) +
                ": its instances and those before it are " + std::to_string(instances) +
                "; expected at most " + std::to_string(most) + " of all nodes");
    }
  }
  or_bad_input(planner::check_form(loaded, blocks));
}

std::vector<Transfer> transfers(const Programs& programs, std::int64_t blocks) {
  std::vector<Transfer> all;
  for (const Program& program : programs) {
    for (const Instance& instance : expand(program, blocks)) {
      if (instance.kind != ActionKind::kSend || instance.peer < 0) continue;
      all.push_back({program.node, static_cast<std::uint32_t>(instance.peer), instance.step,
                     instance.a.segment, instance.a.block, instance.a.segment_count,
                     instance.phase});
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Transfer& a, const Transfer& b) { return a.step < b.step; });
  return all;
}

Drawing::Drawing(const topology::Topology& topology) : topology_(topology) {
  // A tree grows in height with its leaves, which need the room.
  if (topology.shape().height > 0) {
    flat_ = std::min(1.0, kHighestTree / std::max(1.0, topology.position(0).y));
  }
  for (std::uint32_t node = 0; node < topology.nodes(); ++node) {
    const Position point = place(node);
    width_ = std::max(width_, point.x + kMargin);
    height_ = std::max(height_, point.y + kMargin);
  }
}

Position Drawing::place(std::uint32_t node) const {
  const Position point = topology_.position(node);
  return {kMargin + kUnit * point.x, kMargin + kUnit * flat_ * point.y};
}

Drawing::Way Drawing::way(std::uint32_t from, std::uint32_t to) const {
  const Position a = place(from), b = place(to);
  const double length = std::max(1e-6, std::hypot(b.x - a.x, b.y - a.y));
  return {(b.x - a.x) / length, (b.y - a.y) / length, length};
}

double Drawing::bend(std::uint32_t from, std::uint32_t to, const Way& direction) const {
  const Position a = place(from);
  for (std::uint32_t node = 0; node < topology_.nodes(); ++node) {
    if (node == from || node == to) continue;
    const Position position = place(node);
    const double along = (position.x - a.x) * direction.x + (position.y - a.y) * direction.y;
    const double aside =
        (position.y - a.y) * direction.x - (position.x - a.x) * direction.y;  // to the right
    if (along <= 0 || along >= direction.length || std::abs(aside) > 1.3 * kRadius) continue;
    return aside > 0 ? aside - 2.8 * kRadius : aside + 2.8 * kRadius;
  }
  return 0;
}

std::string Drawing::link(std::uint32_t from, std::uint32_t to) const {
  const Way direction = way(from, to);
  const Position a = place(from);
  const auto point = [&](double along) {
    return Position{a.x + along * direction.x - kAside * direction.y,
                    a.y + along * direction.y + kAside * direction.x};
  };
  return at("M", point(kRadius)) + at("L", point(direction.length - kRadius));
}

Drawing::Arrow Drawing::bent(std::uint32_t from, std::uint32_t to, const Way& direction,
                             double aside) const {
  const Position a = place(from), b = place(to);
  const Position control = {(a.x + b.x) / 2 - 2 * aside * direction.y,
                            (a.y + b.y) / 2 + 2 * aside * direction.x};
  // Towards the control point at both ends.
  const auto leave = [&](const Position& node, double by) {
    const double length = std::hypot(control.x - node.x, control.y - node.y);
    return Position{node.x + by * (control.x - node.x) / length,
                    node.y + by * (control.y - node.y) / length};
  };
  const Position tip = leave(b, kRadius + 2), neck = leave(b, kRadius + 2 + kHead);
  const double x = (tip.x - neck.x) / 2, y = (tip.y - neck.y) / 2;
  return {
      at("M", leave(a, kRadius)) + at("Q", control) + at(" ", neck),
      at("M", tip) + at("L", {neck.x - y, neck.y + x}) + at("L", {neck.x + y, neck.y - x}) + "Z",
      (a.x + b.x) / 2 - (aside + 2 * kAside) * direction.y,
      (a.y + b.y) / 2 + (aside + 2 * kAside) * direction.x};
}

Drawing::Arrow Drawing::arrow(const std::vector<std::uint32_t>& route) const {
  Arrow arrow;
  if (route.size() == 2) {
    const Way direction = way(route[0], route[1]);
    const double aside = bend(route[0], route[1], direction);
    if (aside != 0) return bent(route[0], route[1], direction, aside);
  }
  Way before;
  for (std::size_t hop = 0; hop + 1 < route.size(); ++hop) {
    const Way direction = way(route[hop], route[hop + 1]);
    const Position node = place(route[hop]);
    if (hop == 0) {
      arrow.line = at("M", {node.x + kRadius * direction.x - kAside * direction.y,
                            node.y + kRadius * direction.y + kAside * direction.x});
      const double middle = 0.5 * direction.length;
      // Beside an upright arrow a name needs half its width more.
      const double aside = 2.6 * kAside + 9 * std::abs(direction.y);
      arrow.x = node.x + middle * direction.x - aside * direction.y;
      arrow.y = node.y + middle * direction.y + aside * direction.x;
    } else {
      // Where the lines of both hops meet; where the route turns back, beside the node.
      const double turn = 1 + before.x * direction.x + before.y * direction.y;
      const double by = turn < 0.1 ? 0 : kAside / turn;
      arrow.line +=
          at("L", {node.x - by * (before.y + direction.y), node.y + by * (before.x + direction.x)});
    }
    before = direction;
  }
  const Position end = place(route.back());
  const double back = kRadius + 2;
  const Position tip = {end.x - back * before.x - kAside * before.y,
                        end.y - back * before.y + kAside * before.x};
  const Position neck = {tip.x - kHead * before.x, tip.y - kHead * before.y};
  arrow.line += at("L", neck);
  const double half = 0.5 * kHead;
  arrow.head = at("M", tip) + at("L", {neck.x - half * before.y, neck.y + half * before.x}) +
               at("L", {neck.x + half * before.y, neck.y - half * before.x}) + "Z";
  return arrow;
}

}  // namespace espalier::tools
