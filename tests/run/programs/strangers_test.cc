// Processes that do not belong to a job attack its nodes: nothing happens, and it is reported.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "base/testing/results.h"
#include "hal/fabric/address.h"
#include "planner/workload/reference.h"
#include "tests/run/programs/scheduled_nodes.h"

namespace espalier::cluster {
namespace {

constexpr std::uint32_t kRanks = 4;
constexpr std::uint64_t kAttackMs = 1500;

class StrangersTest : public testing::Test, protected ScheduledNodes {
 protected:
  void SetUp() override {
    const char* stranger = std::getenv("ESPALIER_STRANGER");
    ASSERT_NE(stranger, nullptr) << "set ESPALIER_STRANGER to the path of stranger";
    stranger_ = stranger;
    prepare(kRanks, "tcp");
  }

  // Starts four nodes that run `algorithm`; what they print on stderr goes to a file.
  void start(const reference::ReferenceInput& what, const char* algorithm) {
    what_ = what;
    add_schedule(what.collective, algorithm, 0);
    ASSERT_FALSE(HasFatalFailure());
    const int before = dup(STDERR_FILENO);
    const int log = open(log_path().c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ASSERT_TRUE(before >= 0 && log >= 0);
    dup2(log, STDERR_FILENO);
    const auto started = cluster_.start(options_);
    dup2(before, STDERR_FILENO);
    close(before);
    close(log);
    or_throw(started);
    input_bytes_ = what.bytes;
    output_bytes_ = what.bytes * (counts_per_rank(what.collective) ? kRanks : 1);
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      or_throw(cluster_.give_memory(rank, input_bytes_, output_bytes_));
    }
    or_throw(cluster_.await_memory());
  }

  // Runs the collective `repetitions` times, node 3 late, while `attack` runs in its own thread.
  template <typename Attack>
  void run_under(Attack attack, std::uint64_t repetitions) {
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      const SharedMemory& memory = cluster_.members()[rank].memory;
      reference::fill_input(what_, rank, 0, memory.input());
      std::memset(memory.output(), 0x5a, output_bytes_);
    }
    std::thread thread(attack);
    control::RunRequest order{.op = what_.op.op,
                              .type = what_.op.type,
                              .count = reference::count(what_),
                              .repetitions = repetitions};
    const bool good = or_throw(cluster_.run(order, {3, kAttackMs * 1'000'000}));
    thread.join();
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(cluster_.members()[rank].report.status, Status::kOk) << cluster_.describe(rank);
    }
    if (!good) return;
    reference::Results results(what_, 0);
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      const std::uint8_t* output = cluster_.members()[rank].memory.output();
      EXPECT_EQ(std::memcmp(output, results.of(rank).data(), output_bytes_), 0) << "rank " << rank;
    }
  }

  // The address of node 0 as anyone can find it, and what only its peers know.
  [[nodiscard]] std::string address_of_node_0(ofi::AddressHead& head) const {
    const control::Address& address = cluster_.members()[0].hello.addresses[0];
    std::memcpy(&head, address.bytes, sizeof(head));
    std::string text = ofi::address_text(std::string(address.bytes, address.size));
    text[text.rfind(':')] = ' ';
    return text;
  }

  // Runs the stranger; returns the number of its operations that completed.
  [[nodiscard]] std::uint64_t attack(const std::string& words) const {
    const std::string command = stranger_ + " " + words + " 2>/dev/null";
    FILE* const pipe = popen(command.c_str(), "r");
    char text[64] = "";
    if (pipe == nullptr || std::fgets(text, sizeof text, pipe) == nullptr) {
      ADD_FAILURE() << "the stranger did not run: " << command;
    }
    if (pipe != nullptr) pclose(pipe);
    return std::strtoull(text, nullptr, 10);
  }

  [[nodiscard]] std::string log() const {
    std::stringstream text;
    text << std::ifstream(log_path()).rdbuf();
    return text.str();
  }
  [[nodiscard]] std::string log_path() const { return directory_ / "stderr"; }

  std::string stranger_;
  reference::ReferenceInput what_;
  std::uint64_t input_bytes_ = 0;
  std::uint64_t output_bytes_ = 0;
};

// Node 0 waits for node 3; the stranger writes over its output meanwhile.
TEST_F(StrangersTest, WritesUnderGuessedKeysChangeNothing) {
  reference::ReferenceInput what;
  what.collective = Collective::kAllgather;
  what.ranks = kRanks;
  what.bytes = 8 << 20;
  start(what, "ring");
  if (HasFatalFailure()) return;
  ofi::AddressHead head;
  const std::string address = address_of_node_0(head);
  std::uint64_t completed = 0;
  run_under(
      [&] {
        completed = attack("write " + address + " 8 " + std::to_string(4u << 20) + " " +
                           std::to_string(kAttackMs - 300));
      },
      1);
  EXPECT_EQ(completed, 0u) << "libfabric completed writes of the stranger";
}

reference::ReferenceInput allreduce() {
  return reference::ReferenceInput{.collective = Collective::kAllreduce,
                                   .ranks = kRanks,
                                   .op = {.op = Op::kSum, .type = Type::kF32},
                                   .bytes = 100'000};
}

TEST_F(StrangersTest, WordsForgedWithoutTheMemoryKeyAreNotBelieved) {
  start(allreduce(), "two-tree");
  if (HasFatalFailure()) return;
  ofi::AddressHead head;
  const std::string address = address_of_node_0(head);
  run_under(
      [&] {
        (void)attack("forge " + address + " " + std::to_string(head.window) + " " +
                     std::to_string(head.eager_bytes) + " 1 0 " + std::to_string(kAttackMs));
      },
      2000);
}

// The stranger has even read the node's address with the key of its memory.
TEST_F(StrangersTest, WordsForgedWithTheMemoryKeyAreNotBelieved) {
  start(allreduce(), "two-tree");
  if (HasFatalFailure()) return;
  ofi::AddressHead head;
  const std::string address = address_of_node_0(head);
  std::uint64_t completed = 0;
  run_under(
      [&] {
        completed = attack("forge " + address + " " + std::to_string(head.window) + " " +
                           std::to_string(head.eager_bytes) + " " + std::to_string(head.key) + " " +
                           std::to_string(head.base) + " " + std::to_string(kAttackMs));
      },
      2000);
  EXPECT_GT(completed, 1000u) << "the attack itself failed";
  EXPECT_NE(log().find("node 0 dropped a "), std::string::npos) << log();
  std::printf("forged words that reached the node: %llu\n",
              static_cast<unsigned long long>(completed));
}

}  // namespace
}  // namespace espalier::cluster
