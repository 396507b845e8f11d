// Ranks that call different collectives: every rank says what differs, with both values. The ranks
// are threads of one process.

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/digest.h"
#include "base/testing/contains.h"
#include "base/testing/results.h"
#include "communicator/testing/local_job.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/communicator.h"
#include "tests/directory_test.h"

namespace espalier {
namespace {

using namespace communicator::testing;

// The fields of a call that may differ.
enum Field : std::uint8_t { kCollective, kRoot, kCount, kType, kOperator, kFields };

// A reduce of 100 i64 to rank 0, sum, in which these fields are others.
Call call_with(const std::set<Field>& others, Vector& data) {
  Call made = {.collective = Collective::kReduce,
               .send = data.data(),
               .receive = data.data(),
               .count = 100,
               .op = {.op = Op::kSum, .type = Type::kI64},
               .root = 0};
  if (others.contains(kCollective)) made.collective = Collective::kAllreduce;
  if (others.contains(kCount)) made.count = 50;
  if (others.contains(kType)) made.op.type = Type::kU64;
  if (others.contains(kOperator)) made.op.op = Op::kMax;
  if (others.contains(kRoot)) {
    made.root = 1;
    // An allreduce has no root, and a broadcast no operator.
    if (others.contains(kCollective)) {
      made.collective = Collective::kBroadcast;
      made.op.op = Op::kNone;
    }
  }
  return made;
}

// Returns how the line of each rank must say what differs between the usual call and the one of
// rank `other`.
std::string expected_differences(const std::set<Field>& others, const Cause& cause,
                                 std::uint32_t other) {
  const std::uint32_t usual = cause.detector == other ? cause.peer : cause.detector;
  std::string text;
  const auto add = [&](const std::string& field, const std::string& unusual,
                       const std::string& normal) {
    const std::string first = unusual + " on rank " + std::to_string(other);
    const std::string second = normal + " on rank " + std::to_string(usual);
    text += "; " + field + ": " +
            (cause.detector == other ? first + ", " + second : second + ", " + first);
  };
  const bool is_broadcast = others.contains(kCollective) && others.contains(kRoot);
  if (others.contains(kCollective)) {
    add("collective", is_broadcast ? "broadcast" : "allreduce", "reduce");
  }
  if (others.contains(kRoot)) add("root", "1", "0");
  if (others.contains(kCount)) add("count", "50", "100");
  if (others.contains(kType)) add("type", "u64", "i64");
  if (others.contains(kOperator)) add("operator", "max", "sum");
  return text;
}

// How a call runs.
enum class Way : std::uint8_t { kBlocking, kStarted, kPlanned, kInAPart };

std::string run(Way way, Communicator& world, const Call& call) {
  if (way == Way::kStarted) {
    auto request = world.start(call);
    return request ? message_of(request->wait()) : request.error().message;
  }
  if (way == Way::kPlanned) {
    auto plan = world.plan(call);
    const std::string line = plan ? message_of(plan->start()) : plan.error().message;
    return line.empty() ? message_of(plan->wait()) : line;
  }
  return message_of(world.run(call));
}

// Expects on every rank that its line ends with the differences, after which only the algorithms
// may follow.
void check_differences(const std::set<Field>& others, Way way, const char* provider) {
  constexpr std::uint32_t kOther = 2;
  on_all(
      4,
      [&](Communicator& world) {
        std::optional<Communicator> part;
        // In the part, the order of ranks is another one.
        if (way == Way::kInAPart) part = or_throw(world.split(0, (world.rank() + 1) % 4));
        Communicator& used = part ? *part : world;
        Vector data(1000, 1);
        const Call call = call_with(used.rank() == kOther ? others : std::set<Field>(), data);
        std::string line = run(way, used, call);
        const std::string next = message_of(used.barrier());
        if (line.empty()) line = next;
        const Cause cause = used.cause();
        ASSERT_EQ(cause.status, Status::kMismatch);
        const std::string expected = expected_differences(others, cause, kOther);
        const std::size_t found = line.find(expected);
        ASSERT_NE(found, std::string::npos) << line << "\nexpected " << expected;
        const std::string rest = line.substr(found + expected.size());
        EXPECT_TRUE(rest.empty() || rest.starts_with("; algorithm: ")) << line;
        if (const auto count = line.find("; algorithm: "); count != std::string::npos) {
          EXPECT_PRED2(contains, rest, " on rank " + std::to_string(cause.detector) + ", ");
          EXPECT_TRUE(rest.ends_with(" on rank " + std::to_string(cause.peer))) << line;
        }
      },
      [&](JoinOptions& options, std::uint32_t) {
        options.deadline = std::chrono::seconds(12);
        options.provider = provider;
      });
}

TEST(Differences, SaysWhatDiffersOnAllRanks) {
  for (const Way way : {Way::kBlocking, Way::kStarted, Way::kPlanned, Way::kInAPart}) {
    // All at once: hundreds of threads, of which some wait long for a processor.
    std::vector<std::thread> jobs;
    for (std::uint8_t a = 0; a < kFields; ++a) {
      for (std::uint8_t b = a; b < kFields; ++b) {
        const std::set<Field> others = {Field(a), Field(b)};
        for (const char* provider : {"tcp", "mem"}) {
          jobs.emplace_back([=] { check_differences(others, way, provider); });
        }
      }
    }
    for (std::thread& job : jobs) job.join();
  }
}

// Returns the lines of 4 ranks, of which rank 1 calls `unusual`.
std::vector<std::string> lines_of(const Call& usual, const Call& unusual, const Change& change) {
  std::vector<std::string> lines(4);
  on_all(
      4,
      [&](Communicator& world) {
        Vector data(4000, 1);
        Call call = world.rank() == 1 ? unusual : usual;
        call.send = data.data();
        call.receive = call.collective == Collective::kAllreduce ? data.data() : data.data() + 2000;
        std::string& line = lines[world.rank()];
        line = message_of(world.run(call));
        const std::string next = message_of(world.barrier());
        if (line.empty()) line = next;
      },
      change);
  return lines;
}

// Expects this difference, in either order of the two ranks, the same on all ranks.
void expect_difference(const std::vector<std::string>& lines, const std::string& field,
                       const std::string& unusual, const std::string& usual) {
  const auto from = [&](const std::string& line) {
    const std::size_t begin = line.find("; " + field + ": ");
    return begin == std::string::npos ? "" : line.substr(begin);
  };
  for (const std::string& line : lines) {
    const std::string found = from(line);
    const bool is_first = contains(found, ": " + unusual + " on rank 1, " + usual + " on rank ");
    const bool is_second = contains(found, ": " + usual + " on rank ") &&
                           contains(found, ", " + unusual + " on rank 1");
    EXPECT_TRUE(is_first || is_second) << line << "\nexpected " << field;
    EXPECT_EQ(found, from(lines[0]));
  }
}

TEST(Differences, NamesTheFirstDifferentCount) {
  const auto check = [](Collective collective, std::size_t index, const std::string& field) {
    std::vector<std::uint64_t> counts(collective == Collective::kAllToAll ? 16 : 4, 3);
    std::vector<std::uint64_t> others = counts;
    others[index] = 7;
    if (index + 1 < others.size()) others.back() = 8;
    const Call usual = {.collective = collective, .counts = counts, .op = {.type = Type::kI64}};
    Call unusual = usual;
    unusual.counts = others;
    expect_difference(lines_of(usual, unusual, with_short_deadline), field, "7", "3");
  };
  std::vector<std::thread> jobs;
  jobs.emplace_back(check, Collective::kAllgather, 0, "count of rank 0");
  jobs.emplace_back(check, Collective::kAllgather, 3, "count of rank 3");
  jobs.emplace_back(check, Collective::kAllToAll, 9, "count from rank 2 to rank 1");
  for (std::thread& job : jobs) job.join();
}

// Both of them sum 8 bytes.
void add(void* into, const void* a, const void* b, std::uint64_t count, void* /*context*/) {
  for (std::uint64_t i = 0; i < count; ++i) {
    static_cast<std::int64_t*>(into)[i] =
        static_cast<const std::int64_t*>(a)[i] + static_cast<const std::int64_t*>(b)[i];
  }
}

TEST(Differences, SaysWhatDiffersInCustomOperators) {
  const auto custom = [](std::uint32_t number, std::uint32_t bytes) {
    return Call{.collective = Collective::kAllreduce,
                .count = 10,
                .op = {.op = Op::kCustom,
                       .type = Type::kCustom,
                       .element_bytes = bytes,
                       .custom_id = number,
                       .custom = add}};
  };
  std::vector<std::thread> jobs;
  jobs.emplace_back([&] {
    expect_difference(lines_of(custom(1, 8), custom(2, 8), with_short_deadline),
                      "number of the operator", "2", "1");
  });
  jobs.emplace_back([&] {
    expect_difference(lines_of(custom(1, 8), custom(1, 16), with_short_deadline),
                      "bytes of an element", "16", "8");
  });
  for (std::thread& job : jobs) job.join();
}

class MismatchedFiles : public DirectoryTest {
 protected:
  // Writes the schedule of an allreduce of 4 ranks. Returns its path.
  [[nodiscard]] std::string write(const std::string& name, const char* algorithm) const {
    const std::string topology = "complete:4";
    const std::uint64_t digest = digest_bytes(kDigestSeed, topology.data(), topology.size());
    ScheduleFileWriter writer(topology, digest, 4, 4);
    const auto program = std::make_unique<Program>();
    const Algorithm& table = *find_algorithm(Collective::kAllreduce, algorithm);
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(table.generate({.ranks = 4, .topology_digest = digest}, rank, *program),
                Status::kOk);
      EXPECT_EQ(writer.add(*program), Status::kOk);
    }
    std::vector<std::uint8_t> file;
    EXPECT_EQ(writer.finish(file), Status::kOk);
    std::ofstream(directory_ / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(file.data()),
               static_cast<std::streamsize>(file.size()));
    return directory_ / name;
  }
};

TEST_F(MismatchedFiles, NamesTheAlgorithms) {
  const Call sum = {.collective = Collective::kAllreduce,
                    .count = 100,
                    .op = {.op = Op::kSum, .type = Type::kI64}};
  const auto with_files = [&](const std::string& of_one, const std::string& of_others) {
    return [=](JoinOptions& options, std::uint32_t rank) {
      with_short_deadline(options, rank);
      const std::string& file = rank == 1 ? of_one : of_others;
      if (!file.empty()) options.schedules = {file};
    };
  };
  // The end of a long path says which file it is.
  const std::string ring = write("ring.esp", "ring"), tree = write("tree.esp", "two-tree");
  const std::string long_name = write(std::string(60, 'a') + ".esp", "two-tree");
  std::vector<std::thread> jobs;
  const auto shown = [](const std::string& path) {
    return path.size() <= 47 ? path : "..." + path.substr(path.size() - 44);
  };
  jobs.emplace_back([&] {
    expect_difference(lines_of(sum, sum, with_files(long_name, ring)), "algorithm",
                      shown(long_name), shown(ring));
  });
  jobs.emplace_back([&] {
    expect_difference(lines_of(sum, sum, with_files(tree, ring)), "algorithm", shown(tree),
                      shown(ring));
  });
  for (std::thread& job : jobs) job.join();
}

}  // namespace
}  // namespace espalier
