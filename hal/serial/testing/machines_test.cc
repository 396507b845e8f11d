// Machines over serial endpoints: every algorithm for any topology, its results compared with the
// plain reference, over carriers that lose, duplicate, delay and damage; and a node that falls
// silent.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>

#include "collectives/algorithms/testing/generate_all.h"
#include "collectives/simulation/testing/reference.h"
#include "espalier/collectives/machine/machine.h"
#include "hal/serial/testing/hub.h"
#include "tests/whole.h"

namespace espalier::testing {
namespace {

using Links = std::vector<std::vector<std::uint32_t>>;

Links complete(std::uint32_t ranks) {
  Links peers(ranks);
  for (std::uint32_t v = 0; v < ranks; ++v) {
    for (std::uint32_t w = 0; w < ranks; ++w) {
      if (w != v) peers[v].push_back(w);
    }
  }
  return peers;
}

class Machines {
 public:
  Machines(std::uint32_t ranks, const serial::CarrierFaults& faults, std::uint32_t window,
           const std::uint8_t* key)
      : hub_(complete(ranks), faults), ranks_(ranks) {
    for (std::uint32_t v = 0; v < ranks; ++v) {
      SerialConfig config{.session = 3 + v, .window = window, .key = key};
      nodes_.emplace_back(hub_, v, complete(ranks)[v], config);
      machines_.push_back(std::make_unique<Machine>());
      EXPECT_EQ(machines_[v]->init(nodes_[v].endpoint(), {.window = window, .check_blocks = true}),
                Status::kOk);
    }
    state_.resize(ranks, Status::kOk);
  }

  // Runs one collective. The results are checked if it succeeded.
  void run(const Job& job, std::uint32_t dead = UINT32_MAX) {
    std::vector<Bytes> in(ranks_), out(ranks_);
    std::vector<std::vector<std::uint64_t>> scratch(ranks_);
    const BlockRule blocks = {0, job.block_bytes};
    CollectiveParameters parameters{.ranks = ranks_,
                                    .root = job.root,
                                    .window = job.window,
                                    .blocks = &blocks,
                                    .blocks_count = 1,
                                    .run_length = job.run_length};
    const Programs programs = must_generate(job.collective, job.algorithm, parameters);
    std::vector<std::vector<std::uint64_t>> offsets(ranks_);
    for (std::uint32_t v = 0; v < ranks_; ++v) {
      ElementCounts counts = job.count;
      SlotGroups groups;
      if (!job.counts.empty() && !takes_unequal_counts(programs[v], groups)) {
        EXPECT_TRUE(job.algorithm == std::string("bruck") ||
                    job.algorithm == std::string("recursive-halving"))
            << job.algorithm;
        return;
      }
      if (!job.counts.empty()) {
        offsets[v].resize(unequal_offsets(job.collective, ranks_));
        counts = {job.counts.data(), job.counts.size(), offsets[v].data()};
      }
      Layout layout;
      ASSERT_EQ(make_layout(programs[v], counts, element_bytes(job.op), layout), Status::kOk);
      in[v] = input_of(job, ranks_, v);
      out[v].resize(output_of(job, ranks_, v).size());
      scratch[v].resize((scratch_needed(programs[v], layout) + 15) / 8);
      auto at = reinterpret_cast<std::uintptr_t>(scratch[v].data());
      ASSERT_EQ(machines_[v]->start(programs[v],
                                    {.input = in[v].empty() ? nullptr : in[v].data(),
                                     .output = out[v].empty() ? nullptr : out[v].data(),
                                     .scratch = reinterpret_cast<void*>((at + 15) / 16 * 16),
                                     .scratch_bytes = scratch_needed(programs[v], layout)},
                                    job.op, counts),
                Status::kOk)
          << describe(job, ranks_);
    }
    drive(dead);
    for (std::uint32_t v = 0; v < ranks_; ++v) {
      if (dead != UINT32_MAX) continue;
      ASSERT_EQ(state_[v], Status::kOk) << describe(job, ranks_) << " rank " << v;
      ASSERT_EQ(out[v], output_of(job, ranks_, v)) << describe(job, ranks_) << " rank " << v;
    }
  }

  [[nodiscard]] Status state(std::uint32_t v) const { return state_[v]; }
  [[nodiscard]] const Cause& cause(std::uint32_t v) const { return machines_[v]->cause(); }
  [[nodiscard]] serial::Hub& hub() { return hub_; }

 private:
  void drive(std::uint32_t dead) {
    for (;;) {
      bool busy = false, more = false;
      std::uint64_t next = UINT64_MAX;
      for (std::uint32_t v = 0; v < ranks_; ++v) {
        if (v == dead) continue;
        state_[v] = machines_[v]->poll();
        busy = busy || state_[v] == Status::kBusy;
        more = more || machines_[v]->next_deadline() <= hub_.now();
        next = std::min(next, machines_[v]->next_deadline());
      }
      if (!busy) return;
      if (!more) static_cast<void>(hub_.advance(next));
    }
  }

  serial::Hub hub_;
  std::uint32_t ranks_;
  std::deque<serial::SerialNode> nodes_;
  std::vector<std::unique_ptr<Machine>> machines_;
  std::vector<Status> state_;
};

// All algorithms for any topology, with sums of 32-bit integers.
std::vector<Job> all_jobs(std::uint32_t ranks) {
  std::vector<Job> jobs;
  for (const Algorithm& one : algorithms()) {
    if (one.where != Where::kAnywhere) continue;
    Job job{.collective = one.collective,
            .algorithm = one.name,
            .op = {.op = Op::kSum, .type = Type::kI32}};
    if (std::strstr(job.algorithm, "fractional") != nullptr) job.run_length = 2;
    Program program;
    if (one.generate({.ranks = ranks, .run_length = job.run_length}, 0, program) ==
        Status::kUnsupported)
      continue;
    jobs.push_back(job);
  }
  return jobs;
}

constexpr std::uint8_t kKey[16] = {1, 2, 3, 4, 5, 6, 7, 8};

struct Wires {
  const char* name;
  serial::CarrierFaults faults;
  const std::uint8_t* key = nullptr;
};

serial::CarrierFaults faults_of(double all, bool bytes, std::uint32_t mtu) {
  serial::CarrierFaults faults;
  faults.lose = faults.repeat = faults.damage = all;
  faults.delay = bytes ? 0 : all;
  faults.bytes = bytes;
  faults.mtu = mtu;
  return faults;
}

class SerialMachines : public ::testing::TestWithParam<Wires> {};

TEST_P(SerialMachines, RunEveryCollective) {
  // In the small sample each number of ranks with one window, and each window with one number.
  std::uint64_t row = 0;
  int run = 0;
  for (const std::uint32_t ranks : {2u, 5u, 8u}) {
    std::uint64_t turn = row++;
    for (const std::uint32_t window : {1u, 2u, 8u}) {
      if (small_sample() && !sampled(turn++, 3)) continue;
      ++run;
      serial::CarrierFaults faults = GetParam().faults;
      faults.seed = ranks * 100 + window;
      Machines machines(ranks, faults, window, GetParam().key);
      std::uint32_t collectives = 0;
      for (Job job : all_jobs(ranks)) {
        job.root = ranks / 2;
        job.seed = ++collectives;
        for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{701}}) {
          job.count = job.collective == Collective::kBarrier ? 0 : count;
          machines.run(job);
          if (HasFatalFailure()) return;
        }
        if (!counts_per_rank(job.collective)) continue;
        job.counts.resize(unequal_entries(job.collective, ranks));
        for (std::size_t k = 0; k < job.counts.size(); ++k)
          job.counts[k] = (k * 257 + window) % 600;
        job.counts.back() = 0;
        machines.run(job);
        if (HasFatalFailure()) return;
      }
      EXPECT_GE(collectives, 11u);
    }
  }
  std::printf("  %d of 9 clusters\n", run);
}

// The node sends nothing any more. All others end with its number as the cause, within the
// deadlines.
TEST_P(SerialMachines, NameANodeThatFallsSilent) {
  constexpr std::uint32_t kRanks = 5, kDead = 3;
  Machines machines(kRanks, GetParam().faults, 2, GetParam().key);
  Job job{.collective = Collective::kAllreduce,
          .algorithm = "two-tree",
          .count = 1000,
          .op = {.op = Op::kSum, .type = Type::kI32}};
  machines.run(job);
  ASSERT_FALSE(HasFatalFailure());
  machines.hub().cut(kDead);
  const std::uint64_t began = machines.hub().now();
  machines.run(job, kDead);
  for (std::uint32_t v = 0; v < kRanks; ++v) {
    if (v == kDead) continue;
    EXPECT_EQ(machines.state(v), Status::kDeadLink) << "rank " << v;
    EXPECT_EQ(machines.cause(v).peer, kDead) << "rank " << v;
    EXPECT_EQ(machines.cause(v).detector, machines.cause(0).detector) << "rank " << v;
  }
  EXPECT_LE(machines.hub().now() - began, 2 * MachineConfig().deadline_ns);
}

INSTANTIATE_TEST_SUITE_P(
    Over, SerialMachines,
    ::testing::Values(Wires{"frames", {}}, Wires{"faults", faults_of(0.05, false, 1498)},
                      Wires{"small_frames", faults_of(0.02, false, 96)},
                      Wires{"bytes", faults_of(0.0001, true, 256)}, Wires{"keyed_frames", {}, kKey},
                      Wires{"keyed_faults", faults_of(0.05, false, 1498), kKey},
                      Wires{"keyed_small_frames", faults_of(0.02, false, 112), kKey},
                      Wires{"keyed_bytes", faults_of(0.0001, true, 256), kKey}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace espalier::testing
