#pragma once
// One machine in the middle of a chain, on an endpoint without a fabric.

#include <gtest/gtest.h>

#include "collectives/machine/testing/scripted_endpoint.h"
#include "espalier/collectives/machine/machine.h"
#include "espalier/collectives/schedule/programs.h"

namespace espalier::testing {

inline constexpr std::uint64_t kD = 8000;  // the deadline, ns

// Returns the program of node 1 of a chain 0 -> 1 -> 2 that begins after `gap` empty steps. It
// receives block i into OUTPUT, sends it on one step later, and copies it, or combines it with
// INPUT, into scratch slot i mod 2.
inline OwnedProgram chain_program(std::int32_t gap, bool combine) {
  Program program{};
  program.format_version = kFormatVersion;
  program.schedule_digest = 77;
  // A program that combines needs an input.
  program.collective = combine ? Collective::kAllreduce : Collective::kBroadcast;
  program.port_model = PortModel::kOnePortDuplex;
  program.contention = ContentionGuarantee::kAsync;
  program.ranks = 3;
  program.node = 1;
  program.window = 4;
  program.segments = 1;
  program.scratch_blocks = 2;
  program.blocks_count = 1;
  program.blocks[0].block_bytes = 16;
  program.peers_count = 2;
  program.peers[0] = 0;
  program.peers[1] = 2;
  program.counts_count = 4;
  program.counts[0] = {gap + 1, 1, 0, 0, 0};  // steps
  program.counts[1] = {gap, 0, 0, 0, 0};      // first receive
  program.counts[2] = {gap + 1, 0, 0, 0, 0};  // first send
  program.counts[3] = {0, 1, 0, 0, 0};        // N
  program.indices_count = 4;
  program.indices[1].base = 1;
  program.indices[2].coef = 1;
  program.indices[3].coef = 1;
  program.indices[3].mod = 2;
  program.phases_count = 1;
  program.phases[0] = {1, 0, 3};
  program.actions_count = 3;
  const Operand output = {Buffer::kOutput, 0, 2, 0, 0};
  const Operand scratch = {Buffer::kScratch, 0, 2, 3, 0};
  const Operand input = {Buffer::kInput, 0, 2, 0, 0};
  const Operand none = espalier_Operand_init_zero;
  program.actions[0] = {
      ActionKind::kReceive, 1, 3, 0, 0, false, true, output, false, none, false, none, 0};
  program.actions[1] = {
      ActionKind::kSend, 2, 3, 1, 1, false, false, none, true, output, false, none, 0};
  program.actions[2] = {combine ? ActionKind::kCombine : ActionKind::kCopy,
                        1,
                        3,
                        0,
                        0,
                        false,
                        true,
                        scratch,
                        true,
                        output,
                        combine,
                        combine ? input : none,
                        0};
  return program;
}

class ChainTest : public ::testing::Test {
 protected:
  ChainTest() : endpoint(1, {5, 2, 0}) {}
  void init(bool check_blocks = false) {
    ASSERT_EQ(machine.init(endpoint, {.deadline_ns = kD, .check_blocks = check_blocks}),
              Status::kOk);
  }
  [[nodiscard]] Status start(std::uint64_t count = 64) {
    return machine.start(program, buffers, op, count);
  }
  // Completes all posts until the collective is over.
  Status finish() {
    for (int i = 0; i < 10'000; ++i) {
      const Status status = machine.poll();
      if (status != Status::kBusy) return status;
      if (!endpoint.posts.empty()) {
        endpoint.complete(endpoint.posts[0].send, endpoint.posts[0].link);
      }
    }
    return Status::kBusy;
  }
  // Starts a collective, and polls once.
  void begin(std::uint64_t count = 64) {
    ASSERT_EQ(start(count), Status::kOk);
    (void)machine.poll();
  }
  void expect_cause(Status status, std::uint32_t peer) const {
    EXPECT_EQ(machine.cause().status, status);
    EXPECT_EQ(machine.cause().peer, peer);
  }
  // Runs one collective, which succeeds.
  void run(std::uint64_t count = 64) {
    EXPECT_EQ(start(count), Status::kOk);
    EXPECT_EQ(finish(), Status::kOk);
  }
  // Runs one collective, whose program turns out to be malformed.
  void run_malformed(std::uint64_t count = 64) {
    ASSERT_EQ(start(count), Status::kOk);
    (void)finish();
    EXPECT_EQ(machine.cause().status, Status::kMalformed);
  }
  Status end_after(std::uint64_t ns) {
    (void)machine.poll();
    endpoint.time += ns;
    return machine.poll();
  }

  alignas(16) std::uint8_t input[256] = {};
  alignas(16) std::uint8_t output[256] = {};
  alignas(16) std::uint8_t scratch[256] = {};
  OwnedProgram program = chain_program(0, false);
  Buffers buffers{input, output, scratch, sizeof scratch};
  Operator op;
  ScriptedEndpoint endpoint;  // links: 0 to node 5, 1 to node 2, 2 to node 0
  Machine machine;
};

}  // namespace espalier::testing
