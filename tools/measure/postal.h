#pragma once
// The two experiments by which the postal model's latency is measured (Bruck, De Coster, Dewulf,
// Ho, Lauwereins: On the Design and Implementation of Broadcast and Global Combine Operations Using
// the Postal Model, section 2.2), as schedules of their own, and what their times say. Host only.
//
//   echo    rank 0 sends to ranks 1 .. k, one after the other; each sends the message back at once.
//           At rank 0 that takes t_s (k - 1 + 2 lambda).
//   return  rank 0 sends to ranks 1 .. k; as soon as rank k has the message it sends it to ranks
//           k-1 .. 0. At rank 0 that takes 2 t_s (k - 1 + lambda).
// t_s is the time a send keeps its sender, lambda t_s the time from its start to its arrival.

#include <cstdint>
#include <vector>

#include "espalier/collectives/schedule/program.h"

namespace espalier::tools {

enum class Experiment : std::uint8_t { kEcho, kReturn };
inline constexpr Experiment kExperiments[] = {Experiment::kEcho, Experiment::kReturn};
[[nodiscard]] const char* experiment_name(Experiment experiment);

// Steps of a window of kMaxWindow that the larger experiment needs for k receivers are 2k.
inline constexpr std::uint32_t kMaxReceivers = 8;

// Program of `rank`, one of `receivers` + 1 on a complete graph: a broadcast in one block, after
// which the replies are stored in scratch. All its steps are in flight at once, so that a node
// waits only for the messages themselves. kBadArgument: no receivers, too many, or no such rank.
[[nodiscard]] Status experiment_program(Experiment experiment, std::uint32_t receivers,
                                        std::uint32_t rank, std::uint64_t topology_digest,
                                        Program& out);
// The schedule file of all its ranks. Throws Failure where it cannot be written.
[[nodiscard]] std::vector<std::uint8_t> experiment_file(Experiment experiment,
                                                        std::uint32_t receivers);

// A broadcast along a chain of `ranks`, in blocks of `block_bytes`: the schedule file. Throws
// Failure where it cannot be written.
[[nodiscard]] std::vector<std::uint8_t> stream_file(std::uint32_t ranks, std::uint32_t block_bytes);

// Time of one experiment at rank 0, for one message size and number of receivers.
struct Timing {
  Experiment experiment = Experiment::kEcho;
  std::uint32_t receivers = 1;
  double seconds = 0;  // median
};

// The fit of the timings of one size; 0 if it is undefined (a slope that is not positive).
struct Postal {
  double send_s = 0;       // t_s, of both experiments together
  double one_way_s = 0;    // lambda t_s
  double lambda = 0;       // their quotient
  double echo_lambda = 0;  // of each experiment alone
  double return_lambda = 0;
};
// The time of one way is half the time with one receiver, where both experiments are the same; t_s
// is the slope, by least squares, over the number of receivers from there. Takes timings of one and
// of at least one larger number of receivers, of each experiment.
[[nodiscard]] Postal fit_postal(const std::vector<Timing>& timings);

// o of a message, s, where the ranks share processors: each further receiver of an experiment is
// two more messages to be sent and received. Takes timings of small messages.
[[nodiscard]] double shared_overhead(const std::vector<Timing>& timings, std::uint32_t processors);
// o of a block, s, from the time between blocks along a chain of `ranks` on one host; `gap`:
// between two of them alone. 0: the links take the time, not the processors.
[[nodiscard]] double shared_overhead(double chain_gap, double gap, std::uint32_t ranks,
                                     std::uint32_t processors);

struct Line {
  double alpha = 0;  // s
  double beta = 0;   // s/B
};
// The line through (bytes, seconds) whose relative errors' squares are least; neither part below 0.
[[nodiscard]] Line fit_line(const std::vector<double>& bytes, const std::vector<double>& seconds);

}  // namespace espalier::tools
