#pragma once
// The results of `espalier measure`, as text, JSON and a picture. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/predict/model.h"
#include "tools/measure/measured_model.h"
#include "tools/measure/postal.h"

namespace espalier::tools {

// One message size.
struct MeasuredSize {
  std::uint64_t bytes = 0;
  std::vector<Timing> timings;      // medians
  std::vector<double> least, most;  // s, of each timing's repetitions
  Postal postal;
  // Quartiles of the lambdas that each repetition alone gives; 0, 0: fewer than half give one.
  double lambda_low = 0, lambda_high = 0;
  MeasuredTime one_way;    // of one receiver, both experiments; its interval over repetitions
  MeasuredTime gap;        // between the blocks of a stream; 0: not measured
  MeasuredTime chain_gap;  // the same along a chain of all processes; 0: not measured
  Line line;  // through this size and the next (the last: the one before): one_way_s by bytes
};

struct Measured {
  std::string provider = {};
  std::uint32_t repetitions = 0;
  std::uint32_t processors = 0;     // of this machine; the others have as many
  std::uint32_t ranks_on_host = 1;  // processes that share them
  std::vector<std::uint32_t> receivers = {};
  std::vector<MeasuredSize> sizes = {};  // ascending
  Line line = {};                        // through all sizes
  MeasuredTime hop = {};  // of a small message along a chain of all processes; 0: not measured
};

// Whether processes share processors. Then a message costs them more, for they take turns.
[[nodiscard]] bool shares_processors(const Measured& measured);

// Fills what follows from the timings.
void evaluate(Measured& measured);

// The model that the measurements give: lines through the sizes, o and gamma of `combines`. For
// links of class `link_class`.
[[nodiscard]] predict::Model measured_model(const Measured& measured,
                                            const std::vector<predict::CombineCost>& combines,
                                            topology::LinkClass link_class);

[[nodiscard]] std::string measured_json(const Measured& measured);
[[nodiscard]] std::string measured_text(const Measured& measured);
// Times above, lambda below, both by message size.
[[nodiscard]] std::string measured_svg(const Measured& measured);

}  // namespace espalier::tools
