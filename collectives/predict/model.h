#pragma once
// The model by which schedules are predicted: the cost of links, by class, and of nodes. All values
// are integers, and so is the arithmetic on them, so that every processor predicts and decides
// alike. Host only.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/collectives/machine/operators.h"
#include "espalier/topology/topology.h"

namespace espalier::predict {

using Picoseconds = std::uint64_t;
using topology::kLinkClasses;

// Maximum of every time in a model, ps, of every time per byte, fs, and of lambda.
inline constexpr std::uint64_t kMaxTimePs = 1'000'000'000'000'000'000;
inline constexpr std::uint64_t kMaxFsPerByte = 1'000'000'000'000'000;
inline constexpr std::uint32_t kMaxLambdaPermille = 64'000;
inline constexpr std::uint64_t kMaxBurstBytes = 1'000'000'000'000'000;
inline constexpr std::uint32_t kMaxTuningPermille = 1'000'000;
// Every time that is computed from a model is at most this: longer times become this one.
inline constexpr Picoseconds kMaxPrediction = Picoseconds{1} << 62;

// An interval that holds a measured value with 95 % confidence; 0, 0: not measured.
struct Interval {
  std::uint64_t low = 0, high = 0;
};

// A message of at least from_bytes bytes keeps a link for alpha + beta * bytes.
struct CostLine {
  std::uint64_t from_bytes = 0;
  std::uint64_t alpha_ps = 0;
  std::uint64_t beta_fs = 0;       // per byte
  Interval alpha = {}, beta = {};  // of the two; outside the digest
};

// time * factor, at most kMaxPrediction.
[[nodiscard]] Picoseconds times(Picoseconds time, std::uint64_t factor);
// fs per byte times bytes, in ps, rounded down.
[[nodiscard]] Picoseconds per_byte(std::uint64_t fs_per_byte, std::uint64_t bytes);

// The cost of a link of one class.
struct LinkCost {
  std::vector<CostLine> lines = {{}};    // ascending from_bytes, the first 0
  std::uint32_t lambda_permille = 1000;  // latency in sends, in thousandths
  // The size of a token bucket at each end, bytes: the bytes of a node's messages that pass without
  // beta after a pause. The bucket takes up one byte in the time beta.
  std::uint64_t burst_bytes = 0;

  // The line for a message of `bytes`.
  [[nodiscard]] const CostLine& line(std::uint64_t bytes) const;
  // Time for which a message of `bytes` keeps its port and link, ps.
  [[nodiscard]] Picoseconds send_time(std::uint64_t bytes) const;
  // The least time for which `messages` or more messages, of at least `block` bytes each and of
  // `bytes` together, keep a port, ps.
  [[nodiscard]] Picoseconds least_time(std::uint64_t bytes, std::uint64_t block,
                                       std::uint64_t messages) const;
  // Time from the end of the send to the arrival of the message, ps: (lambda - 1) sends.
  [[nodiscard]] Picoseconds latency(std::uint64_t bytes) const;
};

// gamma of one operator and element type.
struct CombineCost {
  Op op = Op::kSum;
  Type type = Type::kF32;
  std::uint64_t gamma_fs = 0;  // per byte
  Interval gamma;              // outside the digest
};

// What the candidates of a collective took on one topology, next to what is predicted without it.
struct Tuning {
  struct Factor {
    std::string candidate;       // "fractional, run length 4"
    std::uint32_t permille = 0;  // measured by predicted, in thousandths: 1 .. kMaxTuningPermille
  };
  struct Size {
    std::uint64_t bytes = 0;
    std::vector<Factor> factors;  // at least one

    // The candidate's; null: it was not run.
    [[nodiscard]] const Factor* factor(const std::string& candidate) const;
  };
  std::string topology, collective;  // "complete:8", "allreduce"
  std::vector<Size> sizes;           // ascending bytes, at least one

  // `predicted` times the candidate's factor for a message of `bytes`: interpolated between two
  // sizes, by bytes; below the first and above the last, that of the nearest.
  [[nodiscard]] Picoseconds tuned(const std::string& candidate, std::uint64_t bytes,
                                  Picoseconds predicted) const;
  // The candidate's factor at sizes[at]. If the candidate was not run there: the greater of two
  // factors, the greatest of the candidates that were run, and its own at the nearest size.
  [[nodiscard]] std::uint32_t permille(const std::string& candidate, std::size_t at) const;
};

// How messages of several peers delay each other in a network whose links are not known, as
// network_model() fits it. All 0: not known.
struct Crowding {
  // Thousandths of a schedule's time that are added, times the square root of the greatest number
  // of peers that send to one node.
  std::uint32_t fan_in_permille = 0;
  // Thousandths that are added of the time for which a node's messages keep its port, on average
  // over the nodes: forwarded bytes delay other messages.
  std::uint32_t carried_permille = 0;
  // The longest block of a schedule in which more than two peers send to a node, bytes.
  std::uint32_t max_block_bytes = 0;

  [[nodiscard]] bool known() const { return fan_in_permille + carried_permille > 0; }
};

// The costs of a fabric and its nodes.
struct Model {
  // By class. A class without measured values has default constants: is_given[class] is false.
  std::array<LinkCost, kLinkClasses> links;
  std::array<bool, kLinkClasses> is_given = {};
  std::vector<CombineCost> combines;
  std::uint64_t gamma_fs = 0;  // per byte, of all other combines
  // o: a node's time for each block sent, and for each received; a part of it for each byte
  std::uint64_t overhead_ps = 0, overhead_fs = 0;
  Interval overhead;          // of o; outside the digest
  std::uint64_t copy_fs = 0;  // per byte that a node copies within its memory
  std::uint32_t cores = 0;    // processors of a host; 0: one for each rank
  // Where ranks share processors: the time until a rank that waits for a message notices it, and
  // what else has come by then.
  std::uint64_t wake_ps = 0;
  Crowding crowding;
  std::vector<Tuning> tunings;  // at most one per topology and collective
  std::string found_by;         // how the values were found; outside the digest

  // Null: there is none.
  [[nodiscard]] const Tuning* tuning(const std::string& topology,
                                     const std::string& collective) const;
  [[nodiscard]] const LinkCost& cost(topology::LinkClass link_class) const {
    return links[static_cast<std::size_t>(link_class)];
  }
  // Time of a combine of `bytes`, ps.
  [[nodiscard]] Picoseconds combine_time(const Operator& op, std::uint64_t bytes) const;
  // o of a block of `bytes`, ps.
  [[nodiscard]] Picoseconds overhead_time(std::uint64_t bytes) const;
  // The number of ranks that share a processor if `ranks` of them run on one host; 1: none do.
  [[nodiscard]] std::uint32_t ranks_per_core(std::uint32_t ranks) const;
  // The digest of everything that decides; never 0.
  [[nodiscard]] std::uint64_t digest() const;
};

// The default constants of every class: for fabrics of which nothing is known.
[[nodiscard]] Model default_model();
// Constants for `ranks` ranks that are all on one host of `cores` processors and share its memory
// (hal/mem).
[[nodiscard]] Model memory_model(std::uint32_t cores, std::uint32_t ranks);

// What is known of a network after a few collectives.
struct NetworkCost {
  Picoseconds message_ps = 0;     // a short message, from call to call; 0: nothing is known
  std::uint64_t byte_fs = 0;      // each byte of a long message
  std::uint64_t burst_bytes = 0;  // as in LinkCost
  // If all `ranks` ranks are on one machine, though they do not share its memory (containers), and
  // it has fewer processors: their number. Otherwise 0. message_ps is then the time in which each
  // rank sends and receives a message.
  std::uint32_t shared_cores = 0;
  std::uint32_t ranks = 0;  // of the job; without effect if shared_cores is 0
};
// Constants for ranks on hosts of which no more than that is known.
[[nodiscard]] Model network_model(const NetworkCost& cost);

// A model of one line for the links of every class; alpha in s, beta in s/B, at most the maxima
// above. Rounds to whole ps and fs.
[[nodiscard]] Model line_model(double alpha, double beta);

// The class of the topology's links that takes longest, or least, for a message of `bytes`.
[[nodiscard]] const LinkCost& slowest(const Model& model, const topology::Topology& topology,
                                      std::uint64_t bytes);
[[nodiscard]] const LinkCost& fastest(const Model& model, const topology::Topology& topology,
                                      std::uint64_t bytes);

// The least time between successive blocks of a pipeline: a block keeps the slowest class of links
// for that long, and each of the ranks that share a processor spends o on its receive and its send.
// The longer of the two counts.
[[nodiscard]] LinkCost pipeline_cost(const Model& model, const topology::Topology& topology,
                                     std::uint64_t bytes, std::uint32_t ranks_on_host = 1);

// The cost of a step in which every rank sends and receives one message of `bytes`: that of the
// slowest class of links, and o of the sender and of the receiver, whose processors `ranks_on_host`
// ranks share.
[[nodiscard]] LinkCost step_cost(const Model& model, const topology::Topology& topology,
                                 std::uint64_t bytes, std::uint32_t ranks_on_host = 1);

// Reads the text of proto/model.proto. Errors name `name`, the line, the field and what is
// expected.
[[nodiscard]] Result<Model> parse_model(const std::string& text, const std::string& name);
// Reads the file at `path`. Errors as above, or it cannot be read.
[[nodiscard]] Result<Model> read_model(const std::string& path);
// The text of the model: parse_model() gives the same model.
[[nodiscard]] std::string model_text(const Model& model);

}  // namespace espalier::predict
