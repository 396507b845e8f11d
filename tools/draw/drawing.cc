#include "tools/draw/drawing.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "espalier/collectives/schedule/expand.h"

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

}  // namespace

std::vector<Transfer> transfers(const Programs& programs, std::int64_t blocks) {
  std::vector<Transfer> all;
  for (const Program& program : programs) {
    for (const Instance& its : expand(program, blocks)) {
      if (its.kind != ActionKind::kSend || its.peer < 0) continue;
      all.push_back({program.node, static_cast<std::uint32_t>(its.peer), its.step, its.a.segment,
                     its.a.block, its.a.segment_count, its.phase});
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Transfer& a, const Transfer& b) { return a.step < b.step; });
  return all;
}

Drawing::Drawing(const topology::Topology& topology) : topology_(topology) {
  // A tree grows in height with its leaves, which need the room.
  if (topology.shape().arity > 0) {
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

double Drawing::bend(std::uint32_t from, std::uint32_t to, const Way& its) const {
  const Position a = place(from);
  for (std::uint32_t node = 0; node < topology_.nodes(); ++node) {
    if (node == from || node == to) continue;
    const Position position = place(node);
    const double along = (position.x - a.x) * its.x + (position.y - a.y) * its.y;
    const double aside = (position.y - a.y) * its.x - (position.x - a.x) * its.y;  // to the right
    if (along <= 0 || along >= its.length || std::abs(aside) > 1.3 * kRadius) continue;
    return aside > 0 ? aside - 2.8 * kRadius : aside + 2.8 * kRadius;
  }
  return 0;
}

std::string Drawing::link(std::uint32_t from, std::uint32_t to) const {
  const Way its = way(from, to);
  const Position a = place(from);
  const auto point = [&](double along) {
    return Position{a.x + along * its.x - kAside * its.y, a.y + along * its.y + kAside * its.x};
  };
  return at("M", point(kRadius)) + at("L", point(its.length - kRadius));
}

Drawing::Arrow Drawing::bent(std::uint32_t from, std::uint32_t to, const Way& its,
                             double aside) const {
  const Position a = place(from), b = place(to);
  const Position control = {(a.x + b.x) / 2 - 2 * aside * its.y,
                            (a.y + b.y) / 2 + 2 * aside * its.x};
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
      (a.x + b.x) / 2 - (aside + 2 * kAside) * its.y,
      (a.y + b.y) / 2 + (aside + 2 * kAside) * its.x};
}

Drawing::Arrow Drawing::arrow(const std::vector<std::uint32_t>& route) const {
  Arrow arrow;
  if (route.size() == 2) {
    const Way its = way(route[0], route[1]);
    const double aside = bend(route[0], route[1], its);
    if (aside != 0) return bent(route[0], route[1], its, aside);
  }
  Way before;
  for (std::size_t hop = 0; hop + 1 < route.size(); ++hop) {
    const Way its = way(route[hop], route[hop + 1]);
    const Position node = place(route[hop]);
    if (hop == 0) {
      arrow.line = at("M", {node.x + kRadius * its.x - kAside * its.y,
                            node.y + kRadius * its.y + kAside * its.x});
      const double middle = 0.5 * its.length;
      // Beside an upright arrow a name needs half its width more.
      const double aside = 2.6 * kAside + 9 * std::abs(its.y);
      arrow.x = node.x + middle * its.x - aside * its.y;
      arrow.y = node.y + middle * its.y + aside * its.x;
    } else {
      // Where the lines of both hops meet; where the route turns back, beside the node.
      const double turn = 1 + before.x * its.x + before.y * its.y;
      const double by = turn < 0.1 ? 0 : kAside / turn;
      arrow.line += at("L", {node.x - by * (before.y + its.y), node.y + by * (before.x + its.x)});
    }
    before = its;
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
