#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/clock.h"
#include "base/testing/contains.h"
#include "base/testing/results.h"
#include "communicator/record/call_word.h"
#include "communicator/record/diagnosis.h"
#include "communicator/record/view.h"
#include "communicator/record/writer.h"
#include "communicator/testing/local_job.h"

namespace espalier::record {
namespace {

using communicator::testing::on_all;

// A run-time folder of its own, and no ESPALIER_RECORD.
class RecordTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/espalier-record-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
    setenv("XDG_RUNTIME_DIR", name, 1);
    unsetenv("ESPALIER_RECORD");
  }
  void TearDown() override {
    unsetenv("ESPALIER_RECORD");
    const std::string command = "rm -rf '" + root_ + "'";
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  [[nodiscard]] std::string folder() const { return root_ + "/espalier"; }
  [[nodiscard]] std::vector<std::string> paths() const {
    const auto all = list(folder());
    return all ? *all : std::vector<std::string>();
  }
  [[nodiscard]] static std::shared_ptr<Writer> make(std::uint32_t rank = 0) {
    return or_throw(Writer::make({.rank = rank, .size = 4, .provider = "tcp"}));
  }

  std::string root_;
};

TEST_F(RecordTest, IsOfThisUserAlone) {
  const auto writer = make();
  struct stat status {};
  ASSERT_EQ(stat(folder().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  ASSERT_EQ(paths().size(), 1u);
  ASSERT_EQ(stat(paths().front().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_LE(status.st_size, 65536);
}

TEST_F(RecordTest, AFolderThatOthersCanReadIsNotTaken) {
  ASSERT_EQ(mkdir(folder().c_str(), 0755), 0);
  EXPECT_FALSE(is_own(folder()));
  const auto writer = make();
  EXPECT_TRUE(paths().empty());
  if (writer != nullptr) {
    EXPECT_NE(writer->folder(), folder());
  }
}

TEST_F(RecordTest, SaysWhatTheCallsSay) {
  const auto writer = make(2);
  Recorder recorder;
  recorder.open(writer, 1, {0, 2, 3}, 0);
  writer->beat(monotonic_ns());
  const std::uint8_t ring = recorder.position_of("ring"), tree = recorder.position_of("two-tree");
  EXPECT_EQ(recorder.position_of("ring"), ring);
  for (std::uint64_t word = 1; word <= 100; ++word) {
    recorder.begin(word, word % 2 == 0 ? ring : tree);
    if (word < 100) recorder.end();
  }
  recorder.note_wait({.call_since_ns = 5, .step = 3, .steps = 7, .peer = 2, .is_for_peer = 1});
  const View view = or_throw(read_view(paths().front()));
  EXPECT_EQ(view.process.rank, 2u);
  EXPECT_EQ(view.identity.pid, static_cast<std::uint32_t>(getpid()));
  EXPECT_EQ(life_of(view.identity, view.path), Life::kRuns);
  ASSERT_EQ(view.communicators.size(), 1u);
  const CommunicatorView& world = view.communicators.front();
  EXPECT_EQ(world.begun, 100u);
  EXPECT_EQ(world.done, 99u);
  ASSERT_EQ(world.calls.size(), 63u);  // the oldest may be overwritten at any time
  EXPECT_EQ(world.calls.front().number, 38u);
  EXPECT_EQ(world.calls.back().word, 100u);
  EXPECT_EQ(world.calls.back().algorithm, "ring");
  EXPECT_EQ(world.find(99)->algorithm, "two-tree");
  ASSERT_TRUE(world.wait.has_value());
  EXPECT_EQ(world.wait->peer_in_job, 3u);
  recorder.end();
  EXPECT_FALSE(or_throw(read_view(paths().front())).communicators.front().wait.has_value());
  recorder.close();
}

// Its sequence number stays odd; the other records of the job would be refused with it.
TEST_F(RecordTest, AProcessThatWasKilledDuringAChangeLeavesItsRecord) {
  const auto writer = make();
  const int file = open(paths().front().c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(file, 0);
  const std::uint64_t odd = 7;
  EXPECT_EQ(pwrite(file, &odd, sizeof odd, offsetof(Record, sequence)),
            static_cast<ssize_t>(sizeof odd));
  close(file);
  const View view = or_throw(read_view(paths().front()));
  EXPECT_EQ(view.process.pid, static_cast<std::uint32_t>(getpid()));
  EXPECT_EQ(view.process.state, ProcessState::kJoining);
}

TEST_F(RecordTest, AReaderNeverSeesHalfAChange) {
  const auto writer = make();
  Recorder recorder;
  recorder.open(writer, 0, {0, 1}, 0);
  const std::string path = paths().front();
  std::atomic<bool> ends = false;
  std::thread changes([&] {
    for (std::uint64_t i = 1; !ends; ++i) {
      recorder.begin(i, 0);
      recorder.note_wait({.call_since_ns = i, .since_ns = i, .step = static_cast<std::int64_t>(i)});
      recorder.end();
    }
  });
  std::uint64_t last = 0;
  for (int i = 0; i < 200; ++i) {
    const View view = or_throw(read_view(path));
    for (const CommunicatorView& each : view.communicators) {
      EXPECT_GE(each.begun, last);
      last = each.begun;
      for (const CallView& call : each.calls) EXPECT_EQ(call.word, call.number);
      if (each.wait) {
        EXPECT_EQ(each.wait->since_ns, each.wait->call_since_ns);
        EXPECT_EQ(static_cast<std::uint64_t>(each.wait->step), each.wait->since_ns);
      }
    }
  }
  ends = true;
  changes.join();
  recorder.close();
}

TEST_F(RecordTest, CommunicatorsOfTheSameRanksHaveTheSameNumbers) {
  const auto one = make(0), two = make(1);
  Recorder a, b, c, d;
  a.open(one, 0, {0, 1}, 0);
  b.open(one, 0, {0, 1}, 0);
  c.open(two, 1, {0, 1}, 0);
  d.open(two, 1, {0, 1, 2}, 0);
  EXPECT_NE(a.id(), b.id());
  EXPECT_EQ(a.id(), c.id());
  EXPECT_NE(b.id(), d.id());
  for (Recorder* each : {&a, &b, &c, &d}) each->close();
}

// A newcomer has made no communicator of these ranks before.
TEST_F(RecordTest, EachGenerationCountsItsCommunicatorsAnew) {
  const auto survivor = make(0), newcomer = make(1);
  Recorder old, whole, same;
  old.open(survivor, 0, {0, 1}, 0);
  whole.open(survivor, 0, {0, 1}, 2);
  same.open(newcomer, 1, {0, 1}, 2);
  EXPECT_NE(old.id(), whole.id());
  EXPECT_EQ(whole.id(), same.id());
  for (Recorder* each : {&old, &whole, &same}) each->close();
}

// A process that sees its job shrink and grow again and again needs no more memory each time.
TEST_F(RecordTest, ForgetsGenerationsThatHaveEnded) {
  const auto writer = make();
  Recorder last;
  last.open(writer, 0, {0, 1}, 0);
  for (std::uint32_t generation = 1; generation < 100; ++generation) {
    Recorder next, part;
    next.open(writer, 0, {0, 1, 2}, generation);
    part.open(writer, 0, {0, 2}, generation);
    EXPECT_EQ(writer->generations(), 2u);
    last.close();
    part.close();
    EXPECT_EQ(writer->generations(), 1u);
    last = next;
  }
  last.close();
  EXPECT_EQ(writer->generations(), 0u);
}

TEST_F(RecordTest, ManyCommunicatorsFindRoomInTurn) {
  const auto writer = make();
  for (std::uint32_t i = 0; i < 3 * kCommunicators; ++i) {
    Recorder recorder;
    recorder.open(writer, 0, {0, 1}, 0);
    EXPECT_NE(recorder.id(), 0u);
    recorder.close();
  }
  std::vector<Recorder> kept(kCommunicators + 2);
  for (Recorder& each : kept) each.open(writer, 0, {0, 1}, 0);
  EXPECT_EQ(kept.back().id(), 0u);
  kept.back().begin(1, 0);
  kept.back().end();
  EXPECT_EQ(or_throw(read_view(paths().front())).process.unrecorded, 2u);
  for (Recorder& each : kept) each.close();
}

TEST_F(RecordTest, IsRemovedAtTheEndUnlessARankFailed) {
  make().reset();
  EXPECT_TRUE(paths().empty());
  const std::string records = root_ + "/records";
  setenv("ESPALIER_RECORD", records.c_str(), 1);
  make().reset();
  EXPECT_TRUE(or_throw(list(records)).empty());
  auto writer = make();
  EXPECT_EQ(paths().size(), 1u);  // a link, so that a reader finds it
  Recorder recorder;
  recorder.open(writer, 0, {0, 1}, 0);
  recorder.note_failure({.status = Status::kDeadLink, .detector = 0, .peer = 1}, "a failure");
  EXPECT_EQ(writer->folder(), folder());  // where only ranks of this host are
  recorder.close();                       // a plan may keep it longer
  writer.reset();
  EXPECT_TRUE(paths().empty());
  const auto left = or_throw(list(records));
  ASSERT_EQ(left.size(), 1u);
  const View view = or_throw(read_view(left.front()));
  ASSERT_EQ(view.communicators.size(), 1u);
  EXPECT_STREQ(view.communicators.front().failure->text, "a failure");
}

// A failure between two calls is that of the next call, and of no later call.
TEST_F(RecordTest, NotesTheFirstCallAfterAFailure) {
  const auto writer = make();
  Recorder recorder;
  recorder.open(writer, 0, {0, 1}, 0);
  recorder.begin(1, 0);
  recorder.end();
  recorder.note_failure({.status = Status::kMismatch, .detector = 0, .peer = 1}, "");
  const auto part = [this] { return or_throw(read_view(paths().front())).communicators.front(); };
  EXPECT_EQ(part().failure->call, 0u);
  EXPECT_EQ(part().done, 1u);
  for (const std::uint64_t word : {2, 3}) recorder.note_late_call(word, "why");
  EXPECT_EQ(part().begun, 2u);
  EXPECT_EQ(part().done, 1u);
  ASSERT_NE(part().find(2), nullptr);
  EXPECT_EQ(part().find(2)->word, 2u);
  EXPECT_EQ(part().failure->call, 2u);
  EXPECT_STREQ(part().failure->text, "why");
}

TEST_F(RecordTest, SkipsTheCallsThatABoardMadeMeanwhile) {
  const auto writer = make();
  Recorder recorder;
  recorder.open(writer, 0, {0, 1}, 0);
  const auto calls = [&] { return or_throw(read_view(paths().front())).communicators.front(); };
  recorder.begin(7, 0);
  recorder.skip_to(0, 8, 0);  // it is still in its first call
  EXPECT_EQ(calls().begun, 1u);
  EXPECT_EQ(calls().done, 0u);
  recorder.skip_to(3, 8, 0);
  EXPECT_EQ(calls().done, 3u);
  EXPECT_EQ(calls().find(1)->word, 7u);
  EXPECT_EQ(calls().find(3)->word, 8u);
  recorder.skip_to(1000, 9, 0);
  EXPECT_EQ(calls().begun, 1000u);
  EXPECT_EQ(calls().done, 1000u);
  for (const CallView& call : calls().calls) EXPECT_EQ(call.word, 9u) << call.number;
  recorder.skip_to(2, 5, 0);  // a node that came back
  EXPECT_EQ(calls().done, 2u);
  EXPECT_EQ(calls().calls.size(), 2u);
  recorder.set_bytes(1, 10, 20);
  recorder.set_bytes(1, 11, 21);
  const View view = or_throw(read_view(paths().front()));
  ASSERT_EQ(view.peers.size(), 1u);
  EXPECT_EQ(view.peers.front().sent, 11u);
  EXPECT_EQ(view.peers.front().received, 21u);
  recorder.close();
}

TEST_F(RecordTest, AForkedChildLeavesItAlone) {
  auto writer = make();
  const pid_t child = fork();
  if (child == 0) {
    writer.reset();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(paths().size(), 1u);
}

TEST_F(RecordTest, ReadersRemoveWhatAKilledProcessLeft) {
  const pid_t child = fork();
  if (child == 0) {
    const auto writer = Writer::make({.size = 2});
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(paths().size(), 1u);
  EXPECT_EQ(life_of(or_throw(read_view(paths().front())).identity, paths().front()), Life::kEnded);
  remove_stale(folder());
  EXPECT_TRUE(paths().empty());
}

// A job that loses a rank and gets another one again and again keeps the last record of it.
TEST_F(RecordTest, ReadersRemoveTheRecordsOfReplacedProcesses) {
  const auto lives = make(0);
  lives->joined(std::vector<Card>(4, {"a", "abc", true}), 0);
  std::string last;
  for (int round = 0; round < 3; ++round) {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
      const auto writer = make(2);
      writer->joined(std::vector<Card>(4, {"a", "abc", true}), 2);
      const std::string name = "abc.2." + std::to_string(getpid());
      (void)!write(ready[1], name.data(), name.size());
      _exit(0);
    }
    char name[64] = {};
    ASSERT_GT(read(ready[0], name, sizeof name - 1), 0);
    for (const int end : ready) close(end);
    last = name;
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // starts count in ticks of 10 ms
  }
  EXPECT_EQ(paths().size(), 4u);
  remove_stale(folder());
  ASSERT_EQ(paths().size(), 2u);
  EXPECT_TRUE(paths()[0].ends_with(last) || paths()[1].ends_with(last)) << last;
}

TEST_F(RecordTest, ReadersRemoveWhatAProcessLeftThatWasKilledBeforeItFilledItsRecord) {
  const auto writer = make();  // makes the folder
  const std::string own = paths().front();
  const auto living = static_cast<std::uint32_t>(getpid());
  constexpr std::uint32_t kNone = 999'999'999;
  struct Row {
    FileName name;
    std::string bytes;
    int age_s;
    bool stays;
  };
  const std::vector<Row> rows = {{{"a1", 0, kNone}, "", 60, false},
                                 {{"a2", 0, kNone}, std::string(20'000, '\0'), 60, false},
                                 {{"a3", 0, kNone}, "", 0, true},
                                 {{"a4", 0, living}, "", 60, true},
                                 {{"a5", 0, kNone}, "other bytes", 60, true}};
  std::vector<std::string> expected = {own};
  for (const Row& row : rows) {
    const std::string path = folder() + "/" + text_of(row.name);
    std::ofstream(path, std::ios::binary) << row.bytes;
    const timespec then = {time(nullptr) - row.age_s, 0};
    const timespec times[] = {then, then};
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
    if (row.stays) expected.push_back(path);
  }
  remove_stale(folder());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(paths(), expected);
}

// As if the process were of another namespace of processes.
void set_pid_space(const std::string& path, std::uint64_t space) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(offsetof(Record, process) + offsetof(Process, pid_space));
  file.write(reinterpret_cast<const char*>(&space), sizeof space);
  ASSERT_TRUE(file.good());
}

TEST_F(RecordTest, TheLockSaysWhetherAProcessOfAnotherNamespaceLives) {
  auto writer = make();
  const std::string path = paths().front();
  const auto life = [](const std::string& of) {
    return life_of(or_throw(read_view(of)).identity, of);
  };
  for (const std::uint64_t space : {std::uint64_t{1}, std::uint64_t{0}}) {
    set_pid_space(path, space);
    EXPECT_EQ(life(path), Life::kRuns);
    remove_stale(folder());
    ASSERT_EQ(paths().size(), 1u);
    // The copy has its bytes, and not its lock.
    const std::string copy = folder() + "/espalier-abc.1.2";
    std::ofstream(copy, std::ios::binary) << or_throw(read_bytes(path));
    EXPECT_EQ(life(copy), Life::kEnded);
    remove_stale(folder());
    EXPECT_EQ(paths(), std::vector<std::string>{path});
  }
  // A child that lives longer does not hold the lock.
  set_pid_space(path, 1);
  View view = or_throw(read_view(path));
  view.heartbeat_ns = 0;  // of another clock
  EXPECT_LT(quiet_time(view), 60);
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    (void)!write(ready[1], "", 1);
    while (true) pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  const std::string kept = root_ + "/kept";
  ASSERT_EQ(link(path.c_str(), kept.c_str()), 0);
  writer.reset();
  EXPECT_EQ(life(kept), Life::kEnded);
  ASSERT_EQ(kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
}

TEST_F(RecordTest, ALinkIntoAnotherNamespaceStays) {
  const auto writer = make();  // makes the folder
  FileName name{.job = "abc", .rank = 0, .pid = 999'999'999};
  const std::uint64_t own = own_identity().pid_space;
  ASSERT_NE(own, 0u);
  for (const std::uint64_t space : {own, own + 1}) {
    name.pid_space = space;
    const std::string path = folder() + "/" + text_of(name);
    FileName again;
    ASSERT_TRUE(parse(text_of(name), again));
    EXPECT_EQ(again.pid_space, space);
    ASSERT_EQ(symlink((root_ + "/nowhere").c_str(), path.c_str()), 0);
    remove_stale(folder());
    struct stat status {};
    EXPECT_EQ(lstat(path.c_str(), &status) == 0, space != own);
  }
}

// Under ESPALIER_RECORD, without any other folder for records.
TEST_F(RecordTest, AFailedJoinLeavesTheRecordInTheFolderOfTheRunningJobs) {
  { const auto writer = make(); }  // makes the folder
  setenv("ESPALIER_RECORD", folder().c_str(), 1);
  {
    const auto writer = make();
    writer->join_failed("rank 1 did not come");
  }
  ASSERT_EQ(paths().size(), 1u);
  EXPECT_STREQ(or_throw(read_view(paths().front())).process.text, "rank 1 did not come");
}

TEST_F(RecordTest, SeesThatAnotherProcessStopsAndKeepsThat) {
  const auto writer = make(0);
  const pid_t child = fork();
  if (child == 0) {
    const auto other = Writer::make({.rank = 1, .size = 4, .provider = "tcp"});
    (*other)->joined(std::vector<Card>(4, {"a", "abc", true}), 1);
    while (true) pause();
  }
  writer->joined(std::vector<Card>(4, {"a", "abc", true}), 0);
  const std::string own =
      folder() + "/" + text_of({"abc", 0, static_cast<std::uint32_t>(getpid())});
  const auto sight = [&] { return or_throw(read_view(own)).process.sight; };
  const std::string other = folder() + "/" + text_of({"abc", 1, static_cast<std::uint32_t>(child)});
  while (access(other.c_str(), R_OK) != 0) usleep(1000);
  std::uint64_t now = monotonic_ns();
  writer->look_at(1, now);
  EXPECT_EQ(sight().what, Sighted::kNothing);
  for (const int signal : {SIGSTOP, SIGKILL}) {
    ASSERT_EQ(kill(child, signal), 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
    writer->look_at(1, ++now);
    EXPECT_EQ(sight().what, Sighted::kStopped);
    EXPECT_EQ(sight().rank, 1u);
  }
  writer->joined(std::vector<Card>(4, {"a", "abc", true}), 0);
  EXPECT_EQ(sight().what, Sighted::kNothing);
}

// In containers, processes of two starts of a job may have the same number.
TEST_F(RecordTest, TakesThePlaceOfAnEarlierProcessOfTheSameNumber) {
  const std::string given = root_ + "/given";
  setenv("ESPALIER_RECORD", given.c_str(), 1);
  const Origin origin{.joining = "ab", .rank = 1, .size = 4, .provider = "tcp"};
  auto first = or_throw(Writer::make(origin));
  first->join_failed("no rank 0");
  first.reset();
  const std::string path = or_throw(list(given)).front();
  EXPECT_EQ(or_throw(Writer::make(origin)), nullptr);  // that process runs: it is this one
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(offsetof(Record, process) + offsetof(Process, start_ticks));
  const std::uint64_t earlier = 1;
  file.write(reinterpret_cast<const char*>(&earlier), sizeof earlier);
  file.close();
  const auto second = or_throw(Writer::make(origin));
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(or_throw(read_view(path)).process.state, ProcessState::kJoining);
}

TEST_F(RecordTest, RefusesAFolderThatCannotBeUsed) {
  setenv("ESPALIER_RECORD", "/proc/nowhere", 1);
  EXPECT_EQ(message_of(Writer::make({.size = 2})),
            "ESPALIER_RECORD='/proc/nowhere'; expected a folder that this process can write to");
}

void expect_refused(const std::string& path, const std::string& bytes, const std::string& reason) {
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_EQ(message_of(read_view(path)), "'" + path + "' " + reason);
}

TEST_F(RecordTest, RefusesOtherFiles) {
  const auto writer = make();
  const std::string good = or_throw(read_bytes(paths().front())), path = root_ + "/other";
  expect_refused(path, "", "is not a record of a process of Espalier");
  expect_refused(path, std::string(sizeof(Record), 'x'),
                 "is not a record of a process of Espalier");
  expect_refused(path, good.substr(0, 1000),
                 "has 1000 bytes; expected a record of " + std::to_string(sizeof(Record)));
  std::string changed = good;
  changed[offsetof(Record, version)] = 9;
  expect_refused(path, changed, "is a record of version 9; expected 2, as this espalier writes");
  changed = good;
  changed[offsetof(Record, process) + offsetof(Process, size)] = 0;
  expect_refused(path, changed,
                 "has rank 0 of 0 in state 1; expected a record that a process has finished");
  EXPECT_EQ(message_of(read_view("/dev/null")),
            "'/dev/null' is not a regular file; expected a record");
}

TEST_F(RecordTest, RefusesSizesThatNoJobHas) {
  const auto writer = make();
  Recorder recorder;
  recorder.open(writer, 0, {0, 1}, 0);
  const std::string good = or_throw(read_bytes(paths().front())), path = root_ + "/other";
  const auto with_max = [&](std::size_t at) {
    std::string bytes = good;
    bytes.replace(at, 4, "\xff\xff\xff\xff");
    return bytes;
  };
  expect_refused(path, with_max(offsetof(Record, process) + offsetof(Process, size)),
                 "has rank 0 of 4294967295 in state 1; expected a record that a process has "
                 "finished");
  expect_refused(
      path,
      with_max(offsetof(Record, communicators) + offsetof(Part, details) + offsetof(Details, size)),
      "has rank 0 of a communicator of 4294967295; expected a lower rank, and at most "
      "1048576 of them");
  recorder.close();
}

TEST_F(RecordTest, ReadsTheLastCallThatCouldBeCounted) {
  const auto writer = make();
  Recorder recorder;
  recorder.open(writer, 0, {0, 1}, 0);
  for (std::uint64_t word = 1; word <= kCalls; ++word) recorder.begin(word, 0);
  std::string bytes = or_throw(read_bytes(paths().front()));
  bytes.replace(offsetof(Record, communicators), 8, std::string(8, '\xff'));
  const std::string path = root_ + "/other";
  std::ofstream(path, std::ios::binary) << bytes;
  const View view = or_throw(read_view(path));
  EXPECT_EQ(view.communicators.front().calls.back().number, UINT64_MAX);
  (void)diagnose({.size = 4, .ranks = {{.view = view}}});
  recorder.close();
}

// Any bytes behind the head are refused or read, and end nothing.
TEST_F(RecordTest, ReadsAnyBytes) {
  const auto writer = make();
  const std::string good = or_throw(read_bytes(paths().front()));
  std::uint64_t random = 1;
  for (int i = 0; i < 300; ++i) {
    std::string bytes = good;
    for (std::size_t k = offsetof(Record, heartbeat_ns); k < bytes.size(); ++k) {
      random = random * 6364136223846793005 + 1442695040888963407;
      if (random >> 60 < 3) bytes[k] = static_cast<char>(random >> 33);
    }
    const auto view = decode(bytes, "bytes");
    if (!view) continue;
    JobView job{.size = view->process.size % 100, .ranks = {{.view = *view}}};
    (void)diagnose(job);
  }
}

TEST_F(RecordTest, ACardTravelsBehindAnAddress) {
  for (const std::string& address :
       {std::string("10.0.0.1:7"), std::string("a\0b\n", 4), std::string()}) {
    std::string published = with_card(address, {.host = "host", .job = "abc", .has_joined = true});
    const Card card = take_card(published);
    EXPECT_EQ(published, address);
    EXPECT_EQ(card.host, "host");
    EXPECT_EQ(card.job, "abc");
    EXPECT_TRUE(card.has_joined);
  }
  std::string none = "x";
  EXPECT_EQ(take_card(none).job, "");
}

// They come from another process, and go into names of files and to a remote shell.
TEST_F(RecordTest, ACardWithOtherNamesIsLeftOut) {
  for (const char* const host : {"-oProxyCommand=x", "a b", "a;b", "a\x1b[2J"}) {
    std::string published = with_card("address", {.host = host, .job = "abc", .has_joined = true});
    EXPECT_EQ(take_card(published).host, "") << host;
    EXPECT_EQ(published, "address");
  }
  for (const char* const job : {"../x", "ABC", "0123456789abcdef01234567"}) {
    std::string published = with_card("address", {.host = "a", .job = job, .has_joined = true});
    const Card card = take_card(published);
    EXPECT_EQ(card.host, "a");
    EXPECT_EQ(card.job, "") << job;
    EXPECT_FALSE(card.has_joined);
  }
}

TEST_F(RecordTest, TheFirstRankWithARecordNamesTheJob) {
  const auto one = make(1), two = make(2);
  const std::vector<Card> cards = {{}, one->card(), two->card()};
  one->joined(cards, 1);
  two->joined(cards, 2);
  EXPECT_EQ(one->job(), cards[1].job);
  EXPECT_EQ(two->job(), cards[1].job);
}

TEST_F(RecordTest, KnowsTheHostsOfThoseThatConnectAnew) {
  const auto writer = make();
  const auto read = [&] { return or_throw(read_view(paths().front())); };
  const Card own = writer->card(), other{.host = "other"}, third{.host = "third"};
  writer->joined({own, other, other}, 0);
  EXPECT_EQ(read().process.size, 3u);
  writer->joined({own, third}, 0);
  EXPECT_EQ(read().process.size, 3u);  // those of the start count
  ASSERT_EQ(read().hosts.size(), 2u);
  EXPECT_EQ(read().hosts.back().host, "third");
  writer->joined({own, third, third, other}, 0);
  EXPECT_EQ(read().process.size, 4u);
  EXPECT_EQ(read().hosts.size(), 3u);
}

// What the records of a job of three ranks say once bytes were counted, which the library's thread
// does once a second.
void check_job(const std::string& folder) {
  std::vector<std::string> found;
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start < std::chrono::seconds(100)) {
    found = or_throw(list(folder));
    if (found.size() == 3 && !or_throw(read_view(found[2])).peers.empty()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  std::vector<RankView> ranks;
  for (const std::string& path : found) ranks.push_back({.view = or_throw(read_view(path))});
  ASSERT_EQ(ranks.size(), 3u);
  std::uint64_t received = 0;
  for (const PeerView& peer : ranks[2].view.peers) received += peer.received;
  EXPECT_GE(received, 5u * 2 * 8000);
  const auto jobs = jobs_of(ranks);
  ASSERT_EQ(jobs.size(), 1u);
  for (const RankView& rank : jobs.front().ranks) {
    EXPECT_EQ(rank.view.process.state, ProcessState::kJoined);
    ASSERT_EQ(rank.view.hosts.size(), 1u);
    EXPECT_EQ(rank.view.hosts.front().ranks, 3u);
    ASSERT_EQ(rank.view.communicators.size(), 2u);
    const CommunicatorView& part = rank.view.communicators[1];
    EXPECT_EQ(part.id, jobs.front().ranks.front().view.communicators[1].id);
    EXPECT_EQ(communicator::parts_of(part.calls.back().word).collective, "allreduce");
  }
}

TEST_F(RecordTest, SaysWhyJoinFailed) {
  const std::string records = root_ + "/records";
  setenv("ESPALIER_RECORD", records.c_str(), 1);
  std::vector<std::thread> ranks;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      JoinOptions options{.provider = "tcp"};
      if (rank == 1) options.local_address = "nowhere";
      options.bootstrap.method = bootstrap::Method::kFile;
      options.bootstrap.folder = root_;
      options.bootstrap.job = "job";
      options.bootstrap.rank = rank;
      options.bootstrap.size = 2;
      EXPECT_PRED2(contains, message_of(join(options)), rank == 1 ? "address 'nowhere'" : "rank 1");
    });
  }
  for (std::thread& rank : ranks) rank.join();
  const auto left = or_throw(list(records));
  ASSERT_EQ(left.size(), 2u);
  for (const std::string& path : left) {
    const View view = or_throw(read_view(path));
    EXPECT_EQ(view.process.state, ProcessState::kJoinFailed);
    EXPECT_PRED2(contains, std::string(view.process.text),
                 view.process.rank == 1 ? "address 'nowhere'" : "rank 1");
  }
}

TEST_F(RecordTest, AJobRecordsItsCallsAndLinks) {
  std::atomic<std::uint32_t> at = 0;
  on_all(3, [&](espalier::Communicator& world) {
    std::vector<std::int64_t> data(1000, 1), all(3000);
    for (int i = 0; i < 5; ++i) or_throw(world.allgather(data, all));
    auto part = or_throw(world.split(0, 0));
    or_throw(part->allreduce(data, Op::kSum));
    ++at;
    while (at < 3) std::this_thread::yield();
    if (world.rank() == 0) check_job(folder());
    ++at;
    while (at < 6) std::this_thread::yield();
  });
  EXPECT_TRUE(paths().empty());
}

// Also if the program has made the same call before, whose operation is kept.
TEST_F(RecordTest, SaysWhichFunctionRunsACollective) {
  std::atomic<std::uint32_t> at = 0;
  on_all(2, [&](espalier::Communicator& world) {
    or_throw(world.barrier());
    (void)or_throw(world.split(-1));  // ends with a barrier
    ++at;
    while (at < 2) std::this_thread::yield();
    if (world.rank() == 0) {
      for (const std::string& path : paths()) {
        const View view = or_throw(read_view(path));
        const auto& calls = view.communicators.front().calls;
        ASSERT_GE(calls.size(), 2u);
        EXPECT_EQ(short_text(calls.front().word), "barrier");
        EXPECT_EQ(short_text(calls.back().word), "split");
      }
    }
    ++at;
    while (at < 4) std::this_thread::yield();
  });
}

}  // namespace
}  // namespace espalier::record
