#include "tools/measure/postal.h"

#include <algorithm>
#include <memory>

#include "collectives/build/builder.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/topology/topology.h"
#include "tools/common/failure.h"
#include "tools/common/output.h"

namespace espalier::tools {
namespace {

// Rank 0 of either: message i leaves in step i - 1. The replies are stored in slots, beginning with
// `back`.
void send_to_all(Builder& builder, std::uint32_t receivers) {
  for (std::uint32_t to = 1; to <= receivers; ++to) {
    (void)builder.send(to - 1, to, builder.input(0), 0);
  }
}

// The reply is never used, so it gets a slot of its own.
void receive_back(Builder& builder, std::uint32_t step, std::uint32_t from, std::uint32_t slot) {
  (void)builder.receive(step, from, builder.slot(0, Ring{slot, 1}));
}

void echo(Builder& builder, std::uint32_t receivers, std::uint32_t rank) {
  if (rank == 0) {
    const std::uint32_t first = builder.scratch(receivers);
    send_to_all(builder, receivers);
    for (std::uint32_t from = 1; from <= receivers; ++from) {
      receive_back(builder, from, from, first + from - 1);
    }
  } else {
    (void)builder.receive(rank - 1, 0, builder.output(0));
    (void)builder.send(rank, 0, builder.output(0), 1);
  }
  builder.phase(1, static_cast<std::int32_t>(receivers + 1), 0);
}

void send_and_return(Builder& builder, std::uint32_t receivers, std::uint32_t rank) {
  const std::uint32_t k = receivers;
  if (rank == 0) {
    send_to_all(builder, k);
  } else {
    (void)builder.receive(rank - 1, 0, builder.output(0));
  }
  if (rank == k) {
    for (std::uint32_t to = k; to-- > 0;) {
      const std::uint32_t step = 2 * k - 1 - to;
      (void)builder.send(step, to, builder.output(0), step - (k - 1));
    }
  } else {
    receive_back(builder, 2 * k - 1 - rank, k, builder.scratch(1));
  }
  builder.phase(1, static_cast<std::int32_t>(2 * k), 0);
}

// The mean of both experiments' times with one receiver.
double first_of(const std::vector<Timing>& timings) {
  double sum = 0, count = 0;
  for (const Timing& timing : timings) {
    if (timing.receivers != 1) continue;
    sum += timing.seconds;
    count += 1;
  }
  return count > 0 ? sum / count : 0;
}

// seconds = first + slope * (receivers - 1), by least squares.
double slope_of(const std::vector<Timing>& timings, Experiment experiment, double first) {
  double xx = 0, xy = 0;
  for (const Timing& timing : timings) {
    if (timing.experiment != experiment) continue;
    const double x = timing.receivers - 1.0;
    xx += x * x;
    xy += x * (timing.seconds - first);
  }
  return xx > 0 ? xy / xx : 0;
}

// The schedule file of all ranks' programs, on a complete graph.
template <typename Generate>
std::vector<std::uint8_t> file_of(std::uint32_t ranks, const Generate& generate) {
  const auto topology = or_bad_input(topology::parse("complete:" + std::to_string(ranks)));
  ScheduleFileWriter writer(topology->spec(), topology->digest(), ranks, ranks);
  const auto program = std::make_unique<Program>();
  std::vector<std::uint8_t> file;
  Status status = Status::kOk;
  for (std::uint32_t rank = 0; rank < ranks && status == Status::kOk; ++rank) {
    program->clear();
    status = generate(rank, topology->digest(), *program);
    if (status == Status::kOk) status = writer.add(*program);
  }
  if (status == Status::kOk) status = writer.finish(file);
  if (status != Status::kOk) {
    bad_input("cannot write an experiment of " + counted(ranks, "rank") + ": " +
              status_name(status));
  }
  return file;
}

}  // namespace

const char* experiment_name(Experiment experiment) {
  return experiment == Experiment::kEcho ? "echo" : "return";
}

Status experiment_program(Experiment experiment, std::uint32_t receivers, std::uint32_t rank,
                          std::uint64_t topology_digest, Program& out) {
  if (receivers == 0 || receivers > kMaxReceivers) return Status::kBadArgument;
  CollectiveParameters parameters{
      .ranks = receivers + 1, .topology_digest = topology_digest, .window = 2 * receivers};
  Outline outline{.collective = Collective::kBroadcast, .algorithm = experiment_name(experiment)};
  outline.one_block = true;
  Builder builder(out);
  const Status status = builder.begin(parameters, rank, outline);
  if (status != Status::kOk) return status;
  if (experiment == Experiment::kEcho) {
    echo(builder, receivers, rank);
  } else {
    send_and_return(builder, receivers, rank);
  }
  return builder.finish(static_cast<std::int32_t>(log2_ceil(receivers + 1)), 0);
}

std::vector<std::uint8_t> experiment_file(Experiment experiment, std::uint32_t receivers) {
  return file_of(receivers + 1, [&](std::uint32_t rank, std::uint64_t digest, Program& out) {
    return experiment_program(experiment, receivers, rank, digest, out);
  });
}

std::vector<std::uint8_t> stream_file(std::uint32_t ranks, std::uint32_t block_bytes) {
  return file_of(ranks, [&](std::uint32_t rank, std::uint64_t digest, Program& out) {
    const BlockRule rule{0, block_bytes};
    CollectiveParameters parameters{
        .ranks = ranks, .topology_digest = digest, .blocks = &rule, .blocks_count = 1};
    return find_algorithm(Collective::kBroadcast, "chain")->generate(parameters, rank, out);
  });
}

double shared_overhead(const std::vector<Timing>& timings, std::uint32_t processors) {
  const double first = first_of(timings);
  double slopes = 0;
  for (const Experiment experiment : kExperiments) slopes += slope_of(timings, experiment, first);
  // A further receiver is two more messages: two o of rank 0, and four of all processors.
  return slopes / 2 / std::max(2.0, 4.0 / std::max(1u, processors));
}

double shared_overhead(double chain_gap, double gap, std::uint32_t ranks,
                       std::uint32_t processors) {
  constexpr double kClearly = 1.3;
  if (chain_gap < kClearly * gap) return 0;
  // Every block is sent and received by all but one.
  return chain_gap * processors / (2.0 * (ranks - 1));
}

Postal fit_postal(const std::vector<Timing>& timings) {
  const double first = first_of(timings);
  // T = t_s (k-1) + 2 lambda t_s, and T = 2 t_s (k-1) + 2 lambda t_s.
  const double echo = slope_of(timings, Experiment::kEcho, first);
  const double back = slope_of(timings, Experiment::kReturn, first) / 2;
  Postal postal{.one_way_s = first / 2};
  if (echo > 0) postal.echo_lambda = postal.one_way_s / echo;
  if (back > 0) postal.return_lambda = postal.one_way_s / back;
  if (echo + back <= 0) return postal;
  postal.send_s = (echo + back) / 2;
  postal.lambda = postal.one_way_s / postal.send_s;
  return postal;
}

Line fit_line(const std::vector<double>& bytes, const std::vector<double>& seconds) {
  double w = 0, x = 0, xx = 0, y = 0, xy = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (seconds[i] <= 0) continue;
    const double weight = 1 / (seconds[i] * seconds[i]);
    w += weight;
    x += weight * bytes[i];
    xx += weight * bytes[i] * bytes[i];
    y += weight * seconds[i];
    xy += weight * bytes[i] * seconds[i];
  }
  const double spread = w * xx - x * x;
  if (w <= 0) return {};
  Line line;
  if (spread > 0) line.beta = (w * xy - x * y) / spread;
  line.alpha = (y - line.beta * x) / w;
  if (line.beta < 0) return {y / w, 0};
  if (line.alpha < 0) return {0, xx > 0 ? xy / xx : 0};
  return line;
}

}  // namespace espalier::tools
