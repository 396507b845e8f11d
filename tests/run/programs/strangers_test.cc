// Processes that do not belong to a job attack its nodes: nothing happens, and it is reported.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>

#include "base/digest.h"
#include "base/testing/results.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/schedule/programs.h"
#include "hal/fabric/address.h"
#include "planner/workload/reference.h"
#include "tools/cluster/launcher.h"

namespace espalier::cluster {
namespace {

constexpr std::uint32_t kRanks = 4;
constexpr std::uint64_t kAttackMs = 1500;

class StrangersTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* node = std::getenv("ESPALIER_NODE");
    const char* stranger = std::getenv("ESPALIER_STRANGER");
    ASSERT_TRUE(node != nullptr && stranger != nullptr)
        << "set ESPALIER_NODE and ESPALIER_STRANGER to the paths of espalier-node and stranger";
    stranger_ = stranger;
    std::string path = (std::filesystem::temp_directory_path() / "espalier-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    directory_ = path;
    options_.node_binary = node;
    options_.nodes = kRanks;
    options_.topology = "complete:" + std::to_string(kRanks);
    options_.provider = "tcp";
    options_.deadline_ms = 20'000;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // Starts four nodes that run `algorithm`; what they print on stderr goes to a file.
  void start(const reference::ReferenceInput& what, const char* algorithm) {
    what_ = what;
    const std::string& spec = options_.topology;
    const std::uint64_t digest = digest_bytes(kDigestSeed, spec.data(), spec.size());
    ScheduleFileWriter writer(spec, digest, kRanks, kRanks);
    const Algorithm* chosen = find_algorithm(what.collective, algorithm);
    ASSERT_NE(chosen, nullptr);
    const auto program = std::make_unique<Program>();
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      program->clear();
      ASSERT_EQ(chosen->generate({.ranks = kRanks, .topology_digest = digest}, rank, *program),
                Status::kOk);
      ASSERT_EQ(writer.add(*program), Status::kOk);
    }
    std::vector<std::uint8_t> file;
    ASSERT_EQ(writer.finish(file), Status::kOk);
    options_.schedules = {directory_ / "schedule"};
    std::ofstream(options_.schedules.back(), std::ios::binary)
        .write(reinterpret_cast<const char*>(file.data()),
               static_cast<std::streamsize>(file.size()));
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
    control::RunRequest order;
    order.op = what_.op.op;
    order.type = what_.op.type;
    order.count = reference::count(what_);
    order.repetitions = repetitions;
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

  std::filesystem::path directory_;
  std::string stranger_;
  LaunchOptions options_;
  reference::ReferenceInput what_;
  std::uint64_t input_bytes_ = 0;
  std::uint64_t output_bytes_ = 0;
  NodeProcesses cluster_;
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
  reference::ReferenceInput what;
  what.collective = Collective::kAllreduce;
  what.ranks = kRanks;
  what.op.op = Op::kSum;
  what.op.type = Type::kF32;
  what.bytes = 100'000;
  return what;
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
