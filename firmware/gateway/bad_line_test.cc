// Collectives of boards behind bridges whose serial lines lose bytes, in virtual time.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collectives/simulation/testing/reference.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/machine/machine.h"
#include "firmware/gateway/testing/bridged_endpoints.h"

namespace espalier::gateway {
namespace {

constexpr std::uint32_t kRanks = 4;
constexpr std::uint64_t kSecondNs = 1'000'000'000;
constexpr std::uint64_t kDeadlineNs = 12 * kSecondNs;  // that of tests/hil/serial.textproto

conformance::EndpointsSpec complete() {
  conformance::EndpointsSpec spec;
  spec.peers.resize(kRanks);
  for (std::uint32_t v = 0; v < kRanks; ++v) {
    for (std::uint32_t w = 0; w < kRanks; ++w) {
      if (w != v) spec.peers[v].push_back(w);
    }
  }
  return spec;
}

// Boards with the intervals of boards/microbit behind gateways, and machines on the boards. The
// serial lines lose one byte in `lose`.
class Boards {
 public:
  Boards(std::uint32_t lose, unsigned seed) : ends_(complete(), faults(lose, seed), ports()) {
    for (std::uint32_t v = 0; v < kRanks; ++v) {
      machines_.push_back(std::make_unique<Machine>());
      MachineConfig config{.window = 2, .deadline_ns = kDeadlineNs};
      EXPECT_EQ(machines_[v]->init(ends_.endpoint(v), config), Status::kOk);
    }
  }

  // Runs an allreduce of 4000 bytes, without the rank `dead`.
  void run(unsigned seed, std::uint32_t dead = kRanks) {
    espalier::testing::Job job{.collective = Collective::kAllreduce, .algorithm = "two-tree"};
    job.op.op = Op::kSum;
    job.op.type = Type::kI32;
    job.window = 2;
    job.count = 1000;
    job.seed = seed;
    const BlockRule blocks = {0, 256};
    CollectiveParameters parameters{
        .ranks = kRanks, .window = job.window, .blocks = &blocks, .blocks_count = 1};
    const Algorithm* algorithm = find_algorithm(job.collective, job.algorithm);
    Programs programs(kRanks);
    std::vector<espalier::testing::Bytes> in(kRanks), out(kRanks);
    std::vector<std::vector<std::max_align_t>> scratch(kRanks);
    for (std::uint32_t v = 0; v < kRanks; ++v) {
      ASSERT_EQ(algorithm->generate(parameters, v, programs[v]), Status::kOk);
      Layout layout;
      ASSERT_EQ(make_layout(programs[v], job.count, element_bytes(job.op), layout), Status::kOk);
      in[v] = espalier::testing::input_of(job, kRanks, v);
      out[v].resize(espalier::testing::output_of(job, kRanks, v).size());
      scratch[v].resize(scratch_needed(programs[v], layout) / sizeof(std::max_align_t) + 1);
      Buffers buffers{.input = in[v].data(),
                      .output = out[v].data(),
                      .scratch = scratch[v].data(),
                      .scratch_bytes = scratch_needed(programs[v], layout)};
      ASSERT_EQ(machines_[v]->start(programs[v], buffers, job.op, job.count), Status::kOk);
    }
    const std::uint64_t began = ends_.now();
    drive(dead);
    time_ns = ends_.now() - began;
    for (std::uint32_t v = 0; v < kRanks && dead == kRanks; ++v) {
      EXPECT_EQ(states[v], Status::kOk) << "rank " << v << ", seed " << seed;
      EXPECT_EQ(out[v], espalier::testing::output_of(job, kRanks, v)) << "rank " << v;
    }
  }
  void cut(std::uint32_t board) { ends_.cut(board); }
  [[nodiscard]] const Cause& cause(std::uint32_t v) const { return machines_[v]->cause(); }

  std::vector<Status> states = std::vector<Status>(kRanks, Status::kBusy);
  std::uint64_t time_ns = 0;  // virtual time of the last run()

 private:
  static serial::CarrierFaults faults(std::uint32_t lose, unsigned seed) {
    serial::CarrierFaults faults;
    faults.lose = 0.5 / lose;  // on the way to the hub, and on the way from it
    faults.bytes = true;
    faults.mtu = kByteMtu;
    faults.seed = seed;
    return faults;
  }
  static BridgedEndpoints::Ports ports() {
    return {.board = {kSecondNs, 1}, .gateway = {kSecondNs / 5, 4}};
  }

  void drive(std::uint32_t dead) {
    for (bool busy = true; busy;) {
      busy = false;
      std::uint64_t next = UINT64_MAX;
      for (std::uint32_t v = 0; v < kRanks; ++v) {
        if (v == dead) continue;
        states[v] = machines_[v]->poll();
        busy = busy || states[v] == Status::kBusy;
        next = std::min(next, machines_[v]->next_deadline());
      }
      if (busy && next > ends_.now()) static_cast<void>(ends_.progress(next));
    }
  }

  BridgedEndpoints ends_;
  std::vector<std::unique_ptr<Machine>> machines_;
};

struct Line {
  std::uint32_t lose;
  // Limit of the mean time of a collective, s. If the interval of hal/serial doubled without an
  // upper limit, the mean times would be 16 and 66 s.
  std::uint32_t max_mean_s;
};

class BadLine : public ::testing::TestWithParam<Line> {};

TEST_P(BadLine, CollectivesOfAFewKibSucceedInTime) {
  constexpr unsigned kSeeds = 20;
  std::uint64_t total_ns = 0;
  for (unsigned seed = 1; seed <= kSeeds; ++seed) {
    Boards boards(GetParam().lose, seed);
    boards.run(seed);
    total_ns += boards.time_ns;
  }
  EXPECT_LE(total_ns, kSeeds * kSecondNs * GetParam().max_mean_s);
}

// The others find the dead board as soon as on a perfect line, and no other node is the cause.
TEST_P(BadLine, ADeadBoardIsNamedInTime) {
  constexpr std::uint32_t kDead = 2;
  for (unsigned seed = 1; seed <= 10; ++seed) {
    Boards boards(GetParam().lose, seed);
    boards.run(seed);
    ASSERT_FALSE(HasFatalFailure());
    boards.cut(kDead);
    boards.run(seed, kDead);
    EXPECT_LE(boards.time_ns, 2 * kDeadlineNs) << "seed " << seed;
    for (std::uint32_t v = 0; v < kRanks; ++v) {
      if (v == kDead) continue;
      EXPECT_EQ(boards.states[v], Status::kDeadLink) << "rank " << v << ", seed " << seed;
      EXPECT_EQ(boards.cause(v).peer, kDead) << "rank " << v << ", seed " << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(LosesOneByteIn, BadLine, ::testing::Values(Line{2000, 15}, Line{500, 58}),
                         [](const auto& info) { return std::to_string(info.param.lose); });

}  // namespace
}  // namespace espalier::gateway
