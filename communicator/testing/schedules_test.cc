// A schedule that is kept on the host is the one that was chosen and proven.

#include "communicator/schedules.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/testing/results.h"
#include "communicator/job.h"
#include "tests/directory_test.h"

namespace espalier::communicator {
namespace {

namespace fs = std::filesystem;

class SchedulesTest : public DirectoryTest {
 protected:
  void SetUp() override {
    DirectoryTest::SetUp();
    setenv("XDG_CACHE_HOME", directory_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("XDG_CACHE_HOME");
    DirectoryTest::TearDown();
  }

  [[nodiscard]] std::vector<fs::path> kept(const std::string& prefix) const {
    std::vector<fs::path> found;
    if (!fs::exists(directory_ / "espalier")) return found;
    for (const auto& entry : fs::directory_iterator(directory_ / "espalier")) {
      if (entry.path().filename().string().starts_with(prefix)) found.push_back(entry.path());
    }
    return found;
  }
};

std::string bytes_of(const Program& program) {
  std::vector<std::uint8_t> bytes(1 << 20);
  std::size_t written = 0;
  EXPECT_EQ(encode_program(program, bytes.data(), bytes.size(), written), Status::kOk);
  return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(written)};
}

// What the schedules of a new process are for each collective, size and operator.
std::vector<std::string> all_programs(std::uint32_t ranks) {
  const auto schedules = or_throw(Schedules::make(ranks / 2, ranks, {}, {}));
  std::vector<std::string> all;
  for (const Collective collective : kAllCollectives) {
    for (const std::uint64_t bytes : {8u, 20'000u, 4u << 20}) {
      for (const bool commutes : {true, false}) {
        const ScheduleRequest request = {collective, has_root(collective) ? ranks - 1 : 0, bytes,
                                         commutes, false};
        EXPECT_FALSE(schedules->find(request) != nullptr && bytes == 8 && commutes);
        const PlannedProgram& planned = *or_throw(schedules->obtain(request));
        EXPECT_NE(schedules->find(request), nullptr);
        all.push_back(planned.algorithm + (planned.in_place ? " in place " : " ") +
                      bytes_of(planned.program));
      }
    }
  }
  return all;
}

TEST_F(SchedulesTest, KeptOnesAreTheSame) {
  for (const std::uint32_t ranks : {2u, 5u, 8u}) {
    const std::vector<std::string> first = all_programs(ranks);
    const std::size_t files = kept("chosen-").size();
    EXPECT_EQ(all_programs(ranks), first) << ranks;
    EXPECT_EQ(kept("chosen-").size(), files);
    EXPECT_GE(std::set<std::string>(first.begin(), first.end()).size(), 11u);
  }
  // A barrier has no choice. A reduce to the last rank has two: one for operators that commute.
  EXPECT_EQ(kept("chosen-").size(), 3 * std::size(kAllCollectives));
  EXPECT_EQ(kept("chosen-reduce-in-order-").size(), 3u);
  EXPECT_EQ(kept("proven-").size(), 1u);
}

TEST_F(SchedulesTest, AreFixedUntilTheNetworkIsMeasured) {
  const auto chosen = [](Schedules& schedules, Collective collective, std::uint64_t bytes) {
    return or_throw(schedules.obtain({.collective = collective, .bytes = bytes}))->algorithm;
  };
  constexpr std::uint64_t kMany = 1 << 20;
  const auto slow = or_throw(Schedules::make(1, 8, {}, {.is_measuring = true}));
  EXPECT_EQ(chosen(*slow, Collective::kAllgather, kMany), "circulant");
  EXPECT_EQ(chosen(*slow, Collective::kBarrier, 0), "recursive-doubling");
  EXPECT_TRUE(kept("chosen-").empty());
  slow->measured(NetworkCost{.message_ps = 64'000'000, .byte_fs = 80'000'000});
  EXPECT_EQ(chosen(*slow, Collective::kAllgather, kMany), "ring");
  EXPECT_EQ(chosen(*slow, Collective::kBroadcast, kMany), "chain");
  const auto fast = or_throw(Schedules::make(
      1, 8, {}, {.network = NetworkCost{.message_ps = 64'000'000, .byte_fs = 100}}));
  EXPECT_NE(chosen(*fast, Collective::kBroadcast, kMany), "chain");
}

// With ESPALIER_VERBOSE rank 0 prints each algorithm once per collective and power of two of bytes.
TEST_F(SchedulesTest, ArePrintedIfTheUserAsks) {
  const auto printed = [](std::uint32_t rank, bool is_measuring) {
    const auto schedules = or_throw(Schedules::make(rank, 8, {}, {.is_measuring = is_measuring}));
    ::testing::internal::CaptureStderr();
    for (const std::uint64_t bytes : {1u << 20, 1u << 20, (1u << 20) + 1, 1u << 21}) {
      or_throw(schedules->obtain({.collective = Collective::kAllgather, .bytes = bytes}));
    }
    or_throw(schedules->obtain({.collective = Collective::kBarrier}));
    EXPECT_NE(schedules->find({.collective = Collective::kBarrier}), nullptr);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(printed(0, false), "");
  setenv("ESPALIER_VERBOSE", "1", 1);
  const std::string all = printed(0, false), others = printed(1, false) + printed(0, true);
  unsetenv("ESPALIER_VERBOSE");
  EXPECT_EQ(others, "");
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 3) << all;
  EXPECT_EQ(all.find("espalier: allgather of 1048576 bytes among 8 ranks: "), 0) << all;
  EXPECT_NE(all.find("\nespalier: barrier among 8 ranks: recursive-doubling\n"), std::string::npos)
      << all;
}

TEST_F(SchedulesTest, AreStarsWhereShortMessagesShareProcessors) {
  const auto algorithm = [](std::uint32_t cores, const ScheduleRequest& request) {
    const NetworkCost cost = {.message_ps = 64'000'000,
                              .byte_fs = 80'000'000,
                              .burst_bytes = 8192,
                              .shared_cores = cores,
                              .ranks = 8};
    return or_throw(or_throw(Schedules::make(1, 8, {}, {.network = cost}))->obtain(request))
        ->algorithm;
  };
  constexpr std::uint64_t kLongest = (8192 / 2 + 800) / 7;  // half a burst, and a message's time
  constexpr Collective::Value kOne = Collective::kBroadcast;
  EXPECT_EQ(algorithm(2, {.collective = kOne, .bytes = kLongest}), "breadth-first");
  EXPECT_NE(algorithm(2, {.collective = kOne, .bytes = kLongest + 1}), "breadth-first");
  EXPECT_NE(algorithm(4, {.collective = kOne, .bytes = 8}), "breadth-first")
      << "log2(8) steps for 8 messages";
  EXPECT_NE(algorithm(0, {.collective = kOne, .bytes = 8}), "breadth-first");
  EXPECT_EQ(algorithm(3, {.collective = Collective::kGather, .root = 5, .bytes = 8}), "linear");
  EXPECT_EQ(algorithm(3, {.collective = Collective::kScatter, .bytes = 8}), "linear");
  EXPECT_EQ(algorithm(3, {.collective = Collective::kBarrier}), "breadth-first");
  EXPECT_EQ(algorithm(4, {.collective = Collective::kBarrier}), "recursive-doubling");
}

TEST_F(SchedulesTest, AFileThatIsKeptIsRead) {
  const std::vector<std::string> first = all_programs(3);
  for (const fs::path& path : kept("chosen-")) {
    if (path.string().find("allreduce") == std::string::npos) continue;
    std::ofstream(path) << "1\n0\nring\n0\n0\n0\n0\n0\n0\n0\n0\n";
  }
  const std::vector<std::string> second = all_programs(3);
  EXPECT_NE(second, first);
  EXPECT_TRUE(second[2 * 6].starts_with("ring ")) << second[2 * 6].substr(0, 20);
}

// Ranks that read the file and ranks that choose by themselves must have the same window.
TEST_F(SchedulesTest, AKeptChoiceHasItsWindow) {
  const NetworkCost cost = {.message_ps = 64'000'000, .byte_fs = 80'000'000, .burst_bytes = 10'240};
  for (const char* how : {"chosen", "read"}) {
    const auto schedules = or_throw(Schedules::make(1, 8, {}, {.network = cost}));
    const PlannedProgram* planned =
        or_throw(schedules->obtain({.collective = Collective::kAllToAll, .bytes = 8192}));
    EXPECT_EQ(planned->algorithm, "pairwise, window 2") << how;
    EXPECT_EQ(planned->program.window, 2u) << how;
    EXPECT_EQ(kept("chosen-").size(), 1u) << how;
  }
}

// A process that was killed while it wrote, or another version's file.
TEST_F(SchedulesTest, AFileThatIsNoChoiceIsWrittenAnew) {
  const std::vector<std::string> first = all_programs(3);
  std::vector<std::string> texts;
  for (const fs::path& path : kept("chosen-")) {
    std::string text(fs::file_size(path), '\0');
    std::ifstream(path).read(text.data(), static_cast<std::streamsize>(text.size()));
    texts.push_back(text);
  }
  const std::string zeros = "0\n0\n0\n0\n0\n0\n0\n", scan = "1\n0\nchain\n" + zeros;
  for (const std::string& broken :
       {std::string(), std::string("{"), std::string("0\n0\n"), std::string("1\n1\n0\n"),
        std::string("1\n0\nno such\n") + zeros + "0\n", scan + "1\n0\n0\n0\n", scan + "0\nmore\n",
        scan + "-1\n", std::string("1\n0\nchain\n0\n0\n1\n0\n0\n0\n0\n0\n"),
        std::string("99999999999999999999\n"), texts[0].substr(0, texts[0].size() / 2)}) {
    for (const fs::path& path : kept("chosen-")) std::ofstream(path) << broken;
    EXPECT_EQ(all_programs(3), first) << broken;
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(fs::file_size(kept("chosen-")[i]), texts[i].size());
  }
}

// Neither a missing HOME nor what is above XDG_CACHE_HOME.
TEST_F(SchedulesTest, OnlyTheFolderOfTheCacheIsMade) {
  const std::vector<std::string> first = all_programs(3);
  setenv("XDG_CACHE_HOME", (directory_ / "some" / "cache").c_str(), 1);
  EXPECT_EQ(all_programs(3), first);
  EXPECT_FALSE(fs::exists(directory_ / "some"));
  setenv("XDG_CACHE_HOME", (directory_ / "cache").c_str(), 1);
  EXPECT_EQ(all_programs(3), first);
  EXPECT_TRUE(fs::exists(directory_ / "cache" / "espalier"));
  unsetenv("XDG_CACHE_HOME");
  const char* const before = std::getenv("HOME");
  const std::string home = before == nullptr ? "" : before;
  setenv("HOME", (directory_ / "home").c_str(), 1);
  EXPECT_EQ(all_programs(3), first);
  EXPECT_FALSE(fs::exists(directory_ / "home"));
  fs::create_directory(directory_ / "home");
  EXPECT_EQ(all_programs(3), first);
  EXPECT_TRUE(fs::exists(directory_ / "home" / ".cache" / "espalier"));
  before == nullptr ? unsetenv("HOME") : setenv("HOME", home.c_str(), 1);
}

TEST_F(SchedulesTest, FilesOfOthersAreNotRead) {
  const std::vector<std::string> first = all_programs(3);
  for (const fs::path& path : kept("chosen-")) {
    std::ofstream(path) << "{}";
    chmod(path.c_str(), 0644);
  }
  EXPECT_EQ(all_programs(3), first);
  for (const fs::path& path : kept("chosen-")) EXPECT_EQ(fs::file_size(path), 2u);
  fs::permissions(directory_ / "espalier", fs::perms::others_write, fs::perm_options::add);
  fs::remove(kept("proven-")[0]);
  EXPECT_EQ(all_programs(3), first);
  EXPECT_TRUE(kept("proven-").empty());
}

// Calls keep the pointer that they got.
TEST_F(SchedulesTest, ARefusalLeavesSchedulesWhereTheyAre) {
  const auto schedules = or_throw(Schedules::make(1, 70, {}, {}));
  ScheduleRequest request = {
      .collective = Collective::kReduceScatter, .bytes = 48'000, .commutes = false};
  const PlannedProgram* const first = or_throw(schedules->obtain(request));
  request.unequal_counts = true;
  EXPECT_FALSE(schedules->obtain(request));
  request.unequal_counts = false;
  EXPECT_EQ(or_throw(schedules->obtain(request)), first);
}

// Ranks share schedules with other communicators, each with others: so what was asked before must
// not matter.
TEST_F(SchedulesTest, TheOrderOfRequestsDoesNotMatter) {
  std::vector<ScheduleRequest> requests;
  for (const Collective collective : kAllCollectives) {
    for (const std::uint64_t bytes : {64u, 100'000u}) {
      for (const bool commutes : {true, false}) {
        for (const bool unequal : {false, true}) {
          requests.push_back({.collective = collective,
                              .root = has_root(collective) ? 1u : 0u,
                              .bytes = bytes,
                              .commutes = commutes,
                              .unequal_counts = unequal && counts_per_rank(collective)});
        }
      }
    }
  }
  const auto all = [](const std::vector<ScheduleRequest>& in_order) {
    const auto schedules = or_throw(Schedules::make(1, 4, {}, {}));
    std::vector<std::string> programs;
    for (const ScheduleRequest& request : in_order) {
      const auto planned = schedules->obtain(request);
      programs.push_back(planned ? (*planned)->algorithm + bytes_of((*planned)->program) : "none");
    }
    return programs;
  };
  const std::vector<std::string> forwards = all(requests);
  std::reverse(requests.begin(), requests.end());
  std::vector<std::string> backwards = all(requests);
  std::reverse(backwards.begin(), backwards.end());
  EXPECT_EQ(forwards, backwards);
}

// Communicators that differ in nothing choose and prove once.
TEST_F(SchedulesTest, CommunicatorsShareThem) {
  Job job({}, nullptr);
  const Job::Ranks ranks = {.rank = 1, .size = 4};
  const auto first = or_throw(job.find_schedules(ranks, {}, nullptr));
  EXPECT_EQ(or_throw(job.find_schedules(ranks, {}, nullptr)), first);
  EXPECT_NE(or_throw(job.find_schedules({.rank = 2, .size = 4}, {}, nullptr)), first);
  EXPECT_NE(or_throw(job.find_schedules({.rank = 1, .size = 4, .is_whole = true}, {}, nullptr)),
            first);
  EXPECT_NE(or_throw(job.find_schedules(ranks, {.ranks_per_host = 2}, nullptr)), first);
  EXPECT_NE(or_throw(job.find_schedules(ranks, {.memory_cores = 2}, nullptr)), first);
  EXPECT_NE(or_throw(job.find_schedules(ranks, {.is_measuring = true}, nullptr)), first);
  job.set_network(NetworkCost{.message_ps = 10'000'000, .byte_fs = 1'000});
  EXPECT_NE(or_throw(job.find_schedules(ranks, {.network = job.network()}, nullptr)), first);
}

TEST_F(SchedulesTest, SeveralThreadsGetTheSameOnes) {
  const auto schedules = or_throw(Schedules::make(1, 4, {}, {}));
  std::vector<std::vector<const PlannedProgram*>> found(4);
  std::vector<std::thread> threads;
  for (auto& own : found) {
    threads.emplace_back([&] {
      for (const Collective collective : kAllCollectives) {
        const ScheduleRequest request = {.collective = collective, .bytes = 8};
        const PlannedProgram* const early = schedules->find(request);
        own.push_back(or_throw(schedules->obtain(request)));
        EXPECT_TRUE(early == nullptr || early == own.back());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& own : found) EXPECT_EQ(own, found.front());
}

}  // namespace
}  // namespace espalier::communicator
