#include "espalier/bootstrap/bootstrap.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "base/testing/child.h"
#include "base/testing/contains.h"
#include "base/testing/free_port.h"
#include "base/testing/results.h"
#include "bootstrap/testing/members.h"

namespace espalier::bootstrap {
namespace {

void in_threads(std::uint32_t count, const std::function<void(std::uint32_t)>& body) {
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < count; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

TEST(Bootstrap, PutFenceGet) {
  const auto server = start(8);
  in_threads(8, [&](std::uint32_t rank) {
    auto job = or_throw(member(*server, rank, 8, milliseconds(20'000)));
    EXPECT_EQ(job->local_address(), "127.0.0.1");
    for (int round = 0; round < 3; ++round) {
      const std::string key = "key" + std::to_string(round);
      const std::string value(round == 1 ? 65536 : 3, static_cast<char>('a' + rank));
      ASSERT_EQ(message_of(job->put(key, value)), "");
      EXPECT_EQ(message_of(job->put(key, value)), "key '" + key + "' is used twice");
      ASSERT_EQ(message_of(job->fence()), "");
      for (std::uint32_t other = 0; other < 8; ++other) {
        const auto got = or_throw(job->get(other, key));
        EXPECT_EQ(got, std::string(value.size(), static_cast<char>('a' + other)));
      }
    }
    EXPECT_EQ(message_of(job->get(3, "none")), "rank 3 has published no 'none'");
    EXPECT_EQ(message_of(job->get(9, "key0")), "rank 9 has published no 'key0'");
    EXPECT_NE(message_of(job->put("long", std::string(65537, 'x'))), "");
  });
}

TEST(Bootstrap, RefusesRanksAndSizes) {
  const auto server = start(2);
  const auto first = or_throw(member(*server, 1, 2, milliseconds(20'000)));
  EXPECT_EQ(message_of(member(*server, 1, 2, milliseconds(20'000))),
            "another process has rank 1 already");
  EXPECT_EQ(message_of(member(*server, 2, 2, milliseconds(20'000))), "rank 2 of 2");
  EXPECT_EQ(message_of(member(*server, 0, 3, milliseconds(20'000))),
            "this process was started for 3 ranks, the job has 2");
  EXPECT_TRUE(member(*server, 0, 2, milliseconds(20'000)));
}

TEST(Bootstrap, NamesTheMissing) {
  const auto server = start(4);
  // Long enough to join on a loaded machine.
  auto job = or_throw(member(*server, 2, 4, milliseconds(2'500)));
  EXPECT_EQ(message_of(job->fence()), "ranks 0, 1, 3 of 4 did not come within 2500 ms");
}

// A set of ranks fits a message, whatever the job's size.
TEST(Bootstrap, NamesTheMissingOfALargeJob) {
  const auto server = start(40'000);
  auto job = or_throw(member(*server, 2, 40'000, milliseconds(2'500)));
  EXPECT_EQ(message_of(job->fence()),
            "ranks 0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 and 39983 more of "
            "40000 did not come within 2500 ms");
  EXPECT_EQ(message_of(Server::start("127.0.0.1:0", (1u << 20) + 1, kSecret)),
            "a job of 1048577 processes; expected 1 to 1048576");
}

TEST(Bootstrap, SetsOfRanks) {
  for (const std::vector<std::uint32_t>& ranks :
       {std::vector<std::uint32_t>{}, {0}, {7}, {8}, {1, 3, 4, 16, 255}, {kMaxRanks - 1}}) {
    EXPECT_EQ(decode_ranks(encode_ranks(ranks)), ranks);
  }
  std::vector<std::uint32_t> all(kMaxRanks);
  for (std::uint32_t rank = 0; rank < kMaxRanks; ++rank) all[rank] = rank;
  EXPECT_EQ(decode_ranks(encode_ranks(all)), all);
  const Message longest{.kind = Kind::kSurvivors, .data = encode_ranks(all)};
  EXPECT_LE(encode(longest).size(), kMaxMessageBytes);
}

TEST(Bootstrap, NoServer) {
  std::string address;
  { address = start(1)->address(); }
  EXPECT_EQ(message_of(connect(Place{.size = 2, .address = address}, milliseconds(200))),
            "no server of the job at " + address +
                " within 200 ms; tried 127.0.0.1 (lo: connection refused); expected rank 0 or the "
                "launcher there");
}

TEST(Bootstrap, ServerMayStartLater) {
  std::string address;
  { address = start(1)->address(); }
  std::thread late([&] {
    std::this_thread::sleep_for(milliseconds(300));
    const auto server = or_throw(Server::start(address, 1, kSecret));
    std::this_thread::sleep_for(milliseconds(1000));
  });
  Place place{.address = address, .secret = kSecret};
  EXPECT_EQ(message_of(connect(std::move(place), milliseconds(20'000))), "");
  late.join();
}

TEST(Bootstrap, AnotherSecretHasNoEffect) {
  const auto server = start(2);
  const auto stranger = member(*server, 0, 2, milliseconds(20'000), JobSecret{2});
  EXPECT_PRED2(contains, message_of(stranger), "has another secret");
  in_threads(2, [&](std::uint32_t rank) {
    auto job = or_throw(member(*server, rank, 2, milliseconds(20'000)));
    EXPECT_EQ(message_of(job->fence()), "");
  });
}

// Bytes of strangers, also recorded ones of a process of the job, change nothing.
TEST(Bootstrap, StrangersHaveNoEffect) {
  const auto server = start(2);
  std::vector<int> descriptors;
  unsigned seed = 1;
  for (int stranger = 0; stranger < 60; ++stranger) {
    const int descriptor = connect_raw(*server);
    std::string bytes = stranger % 2 == 0 ? "ESPJOIN3" : "";
    for (int i = 0; i < 20 * stranger; ++i) bytes += static_cast<char>(rand_r(&seed));
    (void)!send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    descriptors.push_back(descriptor);
  }
  in_threads(2, [&](std::uint32_t rank) {
    auto job = or_throw(member(*server, rank, 2, milliseconds(20'000)));
    ASSERT_EQ(message_of(job->put("key", "value")), "");
    EXPECT_EQ(message_of(job->fence()), "");
    EXPECT_EQ(*job->get(1 - rank, "key"), "value");
  });
  for (const int descriptor : descriptors) close(descriptor);
}

TEST(Bootstrap, MalformedMessages) {
  unsigned seed = 7;
  for (int length = 0; length < 200; ++length) {
    std::string bytes;
    for (int i = 0; i < length; ++i) bytes += static_cast<char>(rand_r(&seed));
    const auto decoded = decode(bytes);
    if (!decoded) continue;
    EXPECT_LE(decoded->text.size() + decoded->data.size() + 13, bytes.size());
  }
  const Message sent{.kind = Kind::kPut, .a = 1, .b = 2, .text = "key", .data = "value"};
  const auto back = *decode(encode(sent));
  EXPECT_EQ(back.text + back.data, "keyvalue");
  EXPECT_FALSE(decode(encode(sent).substr(0, 15)));
}

TEST(Bootstrap, FenceFailsWhenAMemberEnds) {
  const auto server = start(2);
  auto stays = or_throw(member(*server, 0, 2, milliseconds(20'000)));
  or_throw(member(*server, 1, 2, milliseconds(20'000))).reset();
  EXPECT_EQ(message_of(stays->fence()), "rank 1 has ended");
}

// Ranks 0 and 2 end; the others agree on who is left, and go on.
TEST(Bootstrap, RejoinWithoutTheDead) {
  const auto server = start(5);
  std::atomic<int> ready = 0;
  in_threads(5, [&](std::uint32_t rank) {
    auto job = or_throw(member(*server, rank, 5, milliseconds(20'000)));
    ASSERT_EQ(message_of(job->fence()), "");
    ++ready;
    while (ready < 5) std::this_thread::yield();
    if (rank % 2 == 0 && rank != 4) return;
    const auto survivors = or_throw(job->rejoin());
    EXPECT_EQ(survivors.ranks, (std::vector<std::uint32_t>{1, 3, 4}));
    EXPECT_EQ(survivors.generation, 1u);
    ASSERT_EQ(message_of(job->put("again", std::to_string(rank))), "");
    ASSERT_EQ(message_of(job->fence()), "");
    EXPECT_EQ(*job->get(3, "again"), "3");
  });
}

TEST(Bootstrap, RejoinLeavesOutWhoDoesNotCall) {
  const auto server = start(3);
  auto silent = or_throw(member(*server, 1, 3, milliseconds(20'000)));
  in_threads(2, [&](std::uint32_t i) {
    auto job = or_throw(member(*server, 2 * i, 3, milliseconds(500)));
    EXPECT_EQ(or_throw(job->rejoin()).ranks, (std::vector<std::uint32_t>{0, 2}));
  });
  EXPECT_NE(message_of(silent->fence()), "");
}

// Environment variables are of the whole process: each rank is a process.
class Environment : public ::testing::Test {
 protected:
  void TearDown() override { clear(); }
  static void clear() {
    for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "ESPALIER_RANK",
                             "ESPALIER_SIZE", "ESPALIER_ADDRESS", "ESPALIER_SECRET_FILE"}) {
      unsetenv(name);
    }
  }
  static void set(const std::string& rank, const std::string& size, const std::string& port) {
    setenv("RANK", rank.c_str(), 1);
    setenv("WORLD_SIZE", size.c_str(), 1);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("MASTER_PORT", port.c_str(), 1);
  }
  static std::string port_of_test() { return std::to_string(free_port()); }
  static std::string joined(const Options& options = {}) { return message_of(join(options)); }
};

TEST_F(Environment, ProcessesJoin) {
  const std::string port = port_of_test();
  std::vector<pid_t> children;
  for (int rank = 0; rank < 4; ++rank) {
    children.push_back(start_child([&] {
      set(std::to_string(rank), "4", port);
      auto job = join(Options{.deadline = milliseconds(20'000)});
      bool good = job && (*job)->put("key", std::to_string(rank)) && (*job)->fence();
      for (std::uint32_t other = 0; good && other < 4; ++other) {
        const auto value = (*job)->get(other, "key");
        good = value && *value == std::to_string(other);
      }
      return good && (*job)->fence();
    }));
  }
  for (const pid_t child : children) EXPECT_EQ(wait_for_child(child), 0);
}

TEST_F(Environment, SaysWhatIsWrong) {
  clear();
  EXPECT_EQ(joined(), "");  // alone
  setenv("RANK", "0", 1);
  EXPECT_PRED2(contains, joined(), "the environment has no WORLD_SIZE");
  set("4", "4", "1");
  EXPECT_EQ(joined(), "RANK='4'; expected a whole number from 0 to 3");
  set("0", "0", "1");
  EXPECT_EQ(joined(), "WORLD_SIZE='0'; expected a whole number from 1 to 1048576");
  set("1", "4", "70000");
  EXPECT_EQ(joined(), "MASTER_PORT='70000'; expected a whole number from 1 to 65535");
  set("1\n", "4", "1");
  EXPECT_EQ(joined(), "RANK='1\\x0a'; expected a whole number from 0 to 3");
  set("1", "", "1");
  EXPECT_EQ(joined(), "WORLD_SIZE=''; expected a whole number from 1 to 1048576");
  set("1", "4", "1");
  setenv("ESPALIER_SECRET_FILE", "", 1);
  EXPECT_EQ(joined(),
            "ESPALIER_SECRET_FILE=''; expected the path of a file of mode 0600, or no such "
            "variable");
  unsetenv("ESPALIER_SECRET_FILE");
  setenv("PMI_FD", "three", 1);
  setenv("PMI_RANK", "0", 1);
  EXPECT_EQ(joined(), "PMI_FD='three'; expected a whole number from 0 to 2147483647");
  setenv("PMI_FD", "", 1);
  EXPECT_EQ(joined(), "PMI_FD=''; expected a whole number from 0 to 2147483647");
  unsetenv("PMI_FD");
  unsetenv("PMI_RANK");
  set("1", "4", "1");
  setenv("ESPALIER_RANK", "2", 1);
  EXPECT_EQ(joined(), "ESPALIER_RANK=2 contradicts RANK=1");
  clear();
  set("1", "4", "1");
  setenv("ESPALIER_SECRET_FILE", "/no/such/file", 1);
  EXPECT_EQ(joined(), "cannot read the secret '/no/such/file': No such file or directory");
  clear();
  EXPECT_EQ(joined(Options{.job = "x"}), "bootstrap option 'job' is not used by this way to join");
}

TEST_F(Environment, SecretFiles) {
  const std::string folder =
      std::filesystem::temp_directory_path() / ("espalier-bootstrap-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string path = folder + "/secret";
  std::ofstream(path) << std::string(40, 's');
  chmod(path.c_str(), 0644);
  set("0", "1", "1");
  setenv("ESPALIER_SECRET_FILE", path.c_str(), 1);
  EXPECT_PRED2(contains, joined(), "can be read by other users");
  chmod(path.c_str(), 0600);
  set("0", "1", port_of_test());
  EXPECT_TRUE(or_throw(join())->is_secret());
  std::ofstream(path) << "short";
  set("0", "1", port_of_test());
  EXPECT_PRED2(contains, joined(), "5 bytes; expected 32 to 4096");
  std::filesystem::remove_all(folder);
}

TEST_F(Environment, FolderAndTable) {
  clear();
  const std::string folder =
      std::filesystem::temp_directory_path() / ("espalier-folder-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string address = "127.0.0.1:" + port_of_test();
  for (const Method method : {Method::kFile, Method::kTable}) {
    in_threads(3, [&](std::uint32_t rank) {
      Options options{.method = method, .deadline = milliseconds(20'000), .rank = rank, .size = 3};
      if (method == Method::kFile) {
        options.folder = folder;
        options.job = "test";
      } else {
        options.table = {address, "127.0.0.1:1", "127.0.0.1:2"};
      }
      auto job = or_throw(join(options));
      EXPECT_EQ(job->rank(), rank);
      EXPECT_EQ(job->is_secret(), method == Method::kFile);
      EXPECT_EQ(message_of(job->fence()), "");
      // Rank 0, which has the server, ends last.
      EXPECT_EQ(message_of(job->fence()), "");
    });
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace espalier::bootstrap
