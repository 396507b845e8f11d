#pragma once
// The cost of a step: a line (alpha + beta * bytes), or the table that `espalier measure` wrote;
// and the predicted time of a schedule. Host only.

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "espalier/collectives/schedule/programs.h"

namespace espalier::tools {

class CostModel {
 public:
  // alpha in s, beta in s/B.
  CostModel(double alpha, double beta) : alpha_(alpha), beta_(beta) {}
  // Measured time of a block of `bytes`, s. A model has at least two, ascending in bytes.
  struct Sample {
    double bytes = 0, seconds = 0;
  };
  explicit CostModel(std::vector<Sample> samples)
      : alpha_(0), beta_(0), samples_(std::move(samples)) {}
  // Reads the JSON of `espalier measure`. Throws Failure (bad input): unreadable, or no such file.
  [[nodiscard]] static CostModel read(const std::string& path);

  // The line that gives the time of a block of `bytes`: between two measured sizes the line through
  // both, outside them the line of the two nearest sizes. If its start-up time would be negative,
  // the line through 0 that gives the same time.
  struct Line {
    double alpha = 0;  // s
    double beta = 0;   // s/B
  };
  [[nodiscard]] Line line(double bytes) const;
  // s, from the post of a send to the end of its receive.
  [[nodiscard]] double step(double bytes) const {
    const Line cost = line(bytes);
    return cost.alpha + cost.beta * bytes;
  }

 private:
  double alpha_, beta_;
  std::vector<Sample> samples_;  // ascending, at least two; empty: the line above
};

// Seconds: the steps of all nodes' `programs` one after the other, each as long as its largest
// segment count of blocks takes; in the postal model a step is one of the send_ticks of a send.
[[nodiscard]] double predict(const Programs& programs, const Layout& layout,
                             const CostModel& model);
// The same of the programs of `nodes` nodes, read one after the other: program(node) is valid until
// the next call.
[[nodiscard]] double predict(std::uint32_t nodes,
                             const std::function<const Program&(std::uint32_t)>& program,
                             const Layout& layout, const CostModel& model);

}  // namespace espalier::tools
