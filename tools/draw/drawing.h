#pragma once
// The positions at which a topology's nodes, links and the transfers between them are drawn: shared
// by the page and the pictures of `espalier draw`. Host only. Lengths are px.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/collectives/schedule/programs.h"
#include "espalier/topology/topology.h"
#include "planner/files/loaded_schedule.h"

namespace espalier::tools {

// One message of the expanded schedule, as its sender has it.
struct Transfer {
  std::uint32_t from = 0, to = 0;
  std::int64_t step = 0;
  std::int64_t segment = 0, block = 0;
  std::uint32_t segment_count = 1, phase = 0;
};
// Checks that the schedule has few enough instances for N = `blocks` to be drawn, and its form for
// this N (check_form). Call before transfers(). Throws Failure (bad input).
void check_drawable(const planner::LoadedSchedule& loaded, std::int64_t blocks);
// All of them for N = blocks, by (step, from).
[[nodiscard]] std::vector<Transfer> transfers(const Programs& programs, std::int64_t blocks);

class Drawing {
 public:
  static constexpr double kUnit = 92;    // between neighbours
  static constexpr double kRadius = 25;  // of a node
  static constexpr double kMargin = 54;

  explicit Drawing(const topology::Topology& topology);

  [[nodiscard]] double width() const { return width_; }
  [[nodiscard]] double height() const { return height_; }
  [[nodiscard]] topology::Topology::Position place(std::uint32_t node) const;
  // A link's line, on its right side, so that both ways are seen.
  [[nodiscard]] std::string link(std::uint32_t from, std::uint32_t to) const;
  // A transfer along its route; its name is drawn at (x, y).
  struct Arrow {
    std::string line, head;
    double x = 0, y = 0;
  };
  [[nodiscard]] Arrow arrow(const std::vector<std::uint32_t>& route) const;

 private:
  struct Way {  // from one node to the next
    double x = 0, y = 0, length = 0;
  };
  [[nodiscard]] Way way(std::uint32_t from, std::uint32_t to) const;
  // How far aside a straight hop has to bend, so that it does not pass below another node.
  [[nodiscard]] double bend(std::uint32_t from, std::uint32_t to, const Way& direction) const;
  [[nodiscard]] Arrow bent(std::uint32_t from, std::uint32_t to, const Way& direction,
                           double aside) const;

  const topology::Topology& topology_;
  double flat_ = 1;  // times the height
  double width_ = 0, height_ = 0;
};

}  // namespace espalier::tools
