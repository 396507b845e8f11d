// Memory endpoints that run at once: each in a thread of its own, which sleeps in wait(); and
// processes that end.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <memory>
#include <random>
#include <sstream>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/testing/child.h"
#include "base/testing/results.h"
#include "espalier/internal/hal/mem/allocate.h"
#include "hal/mem/host/host_endpoint.h"
#include "hal/mem/host/shared_memory.h"
#include "hal/mem/inbox.h"

namespace espalier::mem {
namespace {

constexpr std::uint64_t kHangNs = 60'000'000'000;

// Two endpoints with a link between them.
struct Pair {
  explicit Pair(const Shape& shape, bool reads_in_place = true) {
    for (std::uint32_t node = 0; node < 2; ++node) {
      const HostConfig config = {{node, 8, shape}, 1, {}, reads_in_place};
      ends[node] = std::make_unique<HostEndpoint>(config);
      or_throw(ends[node]->open());
    }
    for (std::uint32_t node = 0; node < 2; ++node) {
      or_throw(ends[node]->connect(1 - node, 0, ends[1 - node]->place(), 0));
    }
  }
  std::unique_ptr<HostEndpoint> ends[2];
};

// The byte at `at` of message `number` from `node`.
std::uint8_t byte_of(std::uint32_t node, std::uint32_t number, std::size_t at) {
  return static_cast<std::uint8_t>(node * 101 + number * 7 + at * 13 + at / 251);
}

// Sizes that both ends draw alike: empty, inline, in a slot, in one piece and in many.
std::size_t size_of(std::uint32_t node, std::uint32_t number) {
  constexpr std::size_t kSizes[] = {0, 8, 32, 33, 256, 257, 1000, 5000, 40'000};
  return kSizes[(number * 2'654'435'761U + node) % 1009 % std::size(kSizes)];
}

using PrivateBytes = std::vector<std::uint8_t>;
using SharedBytes = std::vector<std::uint8_t, SharedAllocator<std::uint8_t>>;

// Sends and receives `messages` at one end, waiting whenever there is nothing to do. Returns
// whether every byte was right.
template <typename Bytes = PrivateBytes>
bool exchange(MemEndpoint& end, std::uint32_t messages) {
  const std::uint32_t node = end.node();
  const std::uint32_t window = end.window();
  std::vector<Bytes> out(window), in(window);
  std::uint32_t sent = 0, posted = 0, sends_done = 0, receives_done = 0;
  bool right = true;
  const std::uint64_t late = monotonic_ns() + kHangNs;
  while (sends_done < messages || receives_done < messages) {
    while (posted < messages && posted - receives_done < window) {
      in[posted % window].assign(size_of(1 - node, posted), 0);
      const Status status = end.post_receive(
          0, {in[posted % window].data(), in[posted % window].size(), posted, posted});
      right = right && status == Status::kOk;
      ++posted;
    }
    while (sent < messages && sent - sends_done < window) {
      Bytes& bytes = out[sent % window];
      bytes.resize(size_of(node, sent));
      for (std::size_t at = 0; at < bytes.size(); ++at) bytes[at] = byte_of(node, sent, at);
      const Status status = end.post_send(0, {bytes.data(), bytes.size(), sent, sent ^ 5, sent});
      right = right && status == Status::kOk;
      ++sent;
    }
    Completion completion;
    bool found = false;
    while (end.poll(completion)) {
      found = true;
      right = right && completion.status == Status::kOk;
      if (completion.kind == Completion::Kind::kSent) {
        right = right && completion.context == sends_done++;
      } else if (completion.kind == Completion::Kind::kReceived) {
        const Bytes& bytes = in[receives_done % window];
        right =
            right && completion.context == receives_done && completion.check == (receives_done ^ 5);
        for (std::size_t at = 0; at < bytes.size(); ++at) {
          right = right && bytes[at] == byte_of(1 - node, receives_done, at);
        }
        ++receives_done;
      }
    }
    if (monotonic_ns() > late) return false;
    if (!found) end.wait(late);
  }
  return right;
}

TEST(MemThreads, EveryByteArrivesBothWays) {
  for (const Shape& shape :
       {Shape{8, 256, 4, 1024}, Shape{16, 256, 1, 1024}, Shape{8, 4096, 2, 4096}}) {
    for (const bool reads_in_place : {false, true}) {
      Pair pair(shape, reads_in_place);
      std::atomic<int> right = 0;
      std::vector<std::thread> threads;
      for (const auto& end : pair.ends) {
        threads.emplace_back([&right, &end] { right += exchange(*end, 400) ? 1 : 0; });
      }
      for (std::thread& thread : threads) thread.join();
      EXPECT_EQ(right, 2) << shape.piece_bytes << reads_in_place;
    }
  }
}

// As cores of one SoC have it: memory at the same addresses, and no sleep. ThreadSanitizer sees
// what two mappings of a segment hide from it.
class CoreEndpoint : public MemEndpoint {
 public:
  CoreEndpoint(MemLink* link, std::uint32_t node, const Shape& shape, bool reads)
      : MemEndpoint(link, 1, {node, 8, shape}) {
    if (reads) read_in_place(0);
  }
  [[nodiscard]] std::uint64_t now() override { return monotonic_ns(); }
  void wait(std::uint64_t /*until*/) override { std::this_thread::yield(); }

 protected:
  void notify(std::uint32_t /*link*/) override {}
  [[nodiscard]] bool find_place(std::uint32_t /*link*/, const std::uint8_t* bytes,
                                std::uint64_t /*size*/, std::uint64_t& place) override {
    place = reinterpret_cast<std::uintptr_t>(bytes);
    return true;
  }
  [[nodiscard]] const std::uint8_t* at_place(std::uint32_t /*link*/, std::uint64_t place,
                                             std::uint64_t /*size*/) override {
    return reinterpret_cast<const std::uint8_t*>(static_cast<std::uintptr_t>(place));
  }
};

struct alignas(64) Line {
  std::uint8_t bytes[64];
};

// A link between two cores, in `memory`.
void connect(const Shape& shape, std::vector<Line> (&memory)[2], MemLink (&links)[2]) {
  for (std::vector<Line>& each : memory) each.resize(inbox_bytes(shape) / sizeof(Line) + 1);
  for (std::uint32_t node = 0; node < 2; ++node) {
    links[node] = MemLink(1 - node, memory[node].data()->bytes, memory[1 - node].data()->bytes);
  }
}

class MemCores : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(InPlace, MemCores, testing::Bool());

TEST_P(MemCores, EveryByteArrives) {
  const Shape shape = {8, 256, 2, 4096};
  std::vector<Line> memory[2];
  MemLink links[2];
  connect(shape, memory, links);
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (std::uint32_t node = 0; node < 2; ++node) {
    threads.emplace_back([&, node] {
      CoreEndpoint end(&links[node], node, shape, GetParam());
      right += exchange(end, 400) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 2);
}

// One end waits for every message of the other, which pauses in between: no wake-up is lost.
TEST(MemThreads, ASleeperIsWoken) {
  Pair pair(Shape{});
  constexpr std::uint32_t kMessages = 50;
  std::thread sender([&pair] {
    HostEndpoint& end = *pair.ends[0];
    std::mt19937 random(1);
    Completion completion;
    for (std::uint64_t number = 0; number < kMessages; ++number) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 2'000));
      while (end.post_send(0, {&number, sizeof number, number, 0, 0}) != Status::kOk) {
        (void)end.poll(completion);
      }
      while (!end.poll(completion)) {
      }
    }
  });
  HostEndpoint& end = *pair.ends[1];
  const std::uint64_t late = monotonic_ns() + kHangNs;
  std::uint64_t got = 0;
  for (std::uint64_t number = 0; number < kMessages; ++number) {
    EXPECT_EQ(end.post_receive(0, {&got, sizeof got, number, 0}), Status::kOk);
    Completion completion;
    // Until the end of time: only the sender can end a wait before its longest sleep, 1 s.
    while (!end.poll(completion)) end.wait(late);
    EXPECT_EQ(got, number);
  }
  sender.join();
  EXPECT_LT(monotonic_ns(), late);
}

// A message that is read while its sender takes its memory back is never complete: the sender may
// have changed what was read.
TEST(MemThreads, WhatIsReadAfterItsReleaseIsVoid) {
  Pair pair(Shape{});
  SharedBytes from(1 << 20, 1);
  std::vector<std::uint8_t> to(1 << 20);
  ASSERT_EQ(pair.ends[0]->post_send(0, {from.data(), from.size(), 7, 0, 0}), Status::kOk);
  ASSERT_EQ(pair.ends[1]->post_receive(0, {to.data(), to.size(), 7, 0}), Status::kOk);
  Completion completion;
  ASSERT_FALSE(pair.ends[1]->poll(completion));
  ASSERT_EQ(to.front(), 1);  // A part of it was read.
  pair.ends[0]->release();
  from.assign(from.size(), 2);
  for (int i = 0; i < 100; ++i) ASSERT_FALSE(pair.ends[1]->poll(completion));
  EXPECT_EQ(to.back(), 0);  // Nothing was read since.
}

// Takes the sender's memory back when this end has begun to read it.
class LateReader final : public CoreEndpoint {
 public:
  LateReader(MemLink* link, const Shape& shape, MemEndpoint& sender)
      : CoreEndpoint(link, 1, shape, true), sender_(sender) {}
  [[nodiscard]] const std::uint8_t* at_place(std::uint32_t link, std::uint64_t place,
                                             std::uint64_t size) override {
    sender_.release();
    return CoreEndpoint::at_place(link, place, size);
  }

 private:
  MemEndpoint& sender_;
};

TEST(MemCoresRelease, WhatIsReadDuringItIsVoid) {
  const Shape shape = {8, 256, 2, 4096};
  std::vector<Line> memory[2];
  MemLink links[2];
  connect(shape, memory, links);
  CoreEndpoint sender(&links[0], 0, shape, true);
  LateReader reader(&links[1], shape, sender);
  std::vector<std::uint8_t> from(1'000, 1), to(1'000);
  ASSERT_EQ(sender.post_send(0, {from.data(), from.size(), 7, 0, 0}), Status::kOk);
  ASSERT_EQ(reader.post_receive(0, {to.data(), to.size(), 7, 0}), Status::kOk);
  Completion completion;
  for (int i = 0; i < 100; ++i) ASSERT_FALSE(reader.poll(completion));
  EXPECT_EQ(to.front(), 1);
}

// Two pipes; in each, end 1 is written and end 0 is read.
struct Pipes {
  Pipes() { EXPECT_EQ(pipe(ends[0]) + pipe(ends[1]), 0); }
  ~Pipes() {
    for (const int end : {ends[0][0], ends[0][1], ends[1][0], ends[1][1]}) close(end);
  }
  const int* operator[](std::uint32_t number) const { return ends[number]; }
  int ends[2][2];
};

// A process that ends in the middle of anything holds nothing: the other end posts, polls and waits
// as before, and nothing of it is left.
TEST(MemThreads, AProcessThatIsKilledBlocksNobody) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 20; ++trial) {
    HostEndpoint end(HostConfig{{0, 8, Shape{8, 256, 2, 4096}}, 1, {}});
    or_throw(end.open());
    const Pipes pipes;
    const SegmentPlace here = end.place();
    const pid_t child = start_child([&] {
      HostEndpoint other(HostConfig{{1, 8, Shape{8, 256, 2, 4096}}, 1, {}});
      if (!other.open() || !other.connect(0, 0, here, 0)) return false;
      const SegmentPlace place = other.place();
      char go = 0;
      if (write(pipes[0][1], &place, sizeof place) != sizeof place) return false;
      return read(pipes[1][0], &go, 1) == 1 && exchange(other, 1'000'000'000);
    });
    SegmentPlace place;
    ASSERT_EQ(read(pipes[0][0], &place, sizeof place), static_cast<ssize_t>(sizeof place));
    or_throw(end.connect(1, 0, place, 0));
    ASSERT_EQ(write(pipes[1][1], "x", 1), 1);
    std::thread killer([child, delay = random() % 3'000] {
      std::this_thread::sleep_for(std::chrono::microseconds(delay));
      kill(child, SIGKILL);
      (void)waitpid(child, nullptr, 0);
    });
    std::vector<std::uint8_t> bytes(40'000), room(40'000);
    const std::uint64_t until = monotonic_ns() + 5'000'000;
    Completion completion;
    std::uint32_t sent = 0, done = 0;
    while (monotonic_ns() < until) {
      if (sent - done < 8 &&
          end.post_send(0, {bytes.data(), size_of(0, sent), sent, 0, sent}) == Status::kOk)
        ++sent;
      while (end.poll(completion)) done += completion.kind == Completion::Kind::kSent ? 1 : 0;
      end.wait(monotonic_ns() + 100'000);
    }
    killer.join();
    EXPECT_EQ(end.post_control(0, {ControlKind::kProbe, 1, {}}), Status::kOk);
    end.release();
    EXPECT_FALSE(RemoteBlock::map(place, 0, inbox_bytes(Shape{8, 256, 2, 4096})));
  }
}

// Between processes, from memory of allocate() and from other memory.
TEST(MemProcesses, EveryByteArrives) {
  const Shape shape = {8, 256, 2, 4096};
  for (const bool shared : {true, false}) {
    const Pipes pipes;
    const auto work = [&](std::uint32_t node) {
      HostEndpoint end(HostConfig{{node, 8, shape}, 1});
      or_throw(end.open());
      SegmentPlace place = end.place();
      bool right = write(pipes[node][1], &place, sizeof place) == sizeof place &&
                   read(pipes[1 - node][0], &place, sizeof place) == sizeof place;
      or_throw(end.connect(1 - node, 0, place, 0));
      right = right && (shared ? exchange<SharedBytes>(end, 400) : exchange(end, 400));
      // The other end may still read this one's segment to find out that it was all.
      char done = 0;
      return right && write(pipes[node][1], "x", 1) == 1 && read(pipes[1 - node][0], &done, 1) == 1;
    };
    const pid_t child = start_child([&] { return work(1); });
    EXPECT_TRUE(work(0)) << shared;
    EXPECT_EQ(wait_for_child(child), 0) << shared;
  }
}

TEST(MemAllocate, GivesZerosInWholePagesAndTakesThemBack) {
  EXPECT_EQ(allocate(SIZE_MAX), nullptr);
  deallocate(nullptr);
  std::vector<std::uint8_t*> all;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{300'000}}) {
    all.push_back(static_cast<std::uint8_t*>(allocate(size)));
    ASSERT_NE(all.back(), nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(all.back()) % 4096, 0u);
    for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(all.back()[i], 0) << i;
    if (size != 0) std::memset(all.back(), 0xab, size);
  }
  EXPECT_EQ(all[1] - all[0], static_cast<std::ptrdiff_t>(kPageBytes));
  // What was given back is one range again, whatever the order.
  for (const std::size_t number : {0, 2, 1}) deallocate(all[number]);
  auto* const again = static_cast<std::uint8_t*>(allocate(400'000));
  EXPECT_EQ(again, all[0]);
  for (std::size_t i = 0; i < 400'000; ++i) ASSERT_EQ(again[i], 0) << i;
  deallocate(again);
}

// What cannot be given back stays as it is, and the process lives on.
TEST(MemAllocate, NamesMemoryThatCannotBeGivenBack) {
  auto* const bytes = static_cast<std::uint8_t*>(allocate(kPageBytes + 1));
  ASSERT_NE(bytes, nullptr);
  bytes[64] = 7;
  std::uint8_t foreign = 5;
  for (std::uint8_t* const wrong : {&foreign, bytes + 64, bytes + kPageBytes}) {
    const auto given = give_back(wrong);
    ASSERT_FALSE(given);
    std::ostringstream address;
    address << "deallocate: memory at 0x" << std::hex << reinterpret_cast<std::uintptr_t>(wrong)
            << " is not of allocate(), or was given back before; nothing is freed";
    EXPECT_EQ(given.error().message, address.str());
    testing::internal::CaptureStderr();
    deallocate(wrong);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "espalier: " + address.str() + "\n");
  }
  EXPECT_EQ(bytes[64], 7);
  EXPECT_TRUE(give_back(bytes));
  EXPECT_FALSE(give_back(bytes));
}

// A child has memory of its own, and does not take back the parent's.
TEST(MemAllocate, AChildLeavesTheParentsMemoryAlone) {
  auto* const bytes = static_cast<std::uint8_t*>(allocate(1'000));
  bytes[0] = 7;
  EXPECT_EQ(status_of_child([&] {
              auto* const own = static_cast<std::uint8_t*>(allocate(1'000));
              deallocate(bytes);
              return own != nullptr && own[0] == 0 && bytes[0] == 7;
            }),
            0);
  EXPECT_EQ(bytes[0], 7);
  deallocate(bytes);
}

// A peer that was killed keeps no memory: the next segment has the place of the ended one.
TEST(MemSegment, MemoryThatAKilledPeerHadMappedIsGivenBack) {
  const std::size_t bytes = inbox_bytes(Shape{});
  auto segment = std::make_unique<Segment>(or_throw(Segment::create(3, bytes)));
  const SegmentPlace place = segment->place();
  std::vector<pid_t> peers;
  for (std::uint32_t number = 0; number < 2; ++number) {
    int ends[2] = {-1, -1};
    ASSERT_EQ(pipe(ends), 0);
    peers.push_back(start_child([&] {
      const auto mapped = RemoteBlock::map(place, number, bytes);
      while (mapped && write(ends[1], "m", 1) == 1) pause();
    }));
    close(ends[1]);
    char byte = 0;
    ASSERT_EQ(read(ends[0], &byte, 1), 1);
    close(ends[0]);
  }
  const auto end_peer = [&] {
    EXPECT_EQ(kill(peers.back(), SIGKILL), 0);
    EXPECT_EQ(waitpid(peers.back(), nullptr, 0), peers.back());
    peers.pop_back();
  };
  end_peer();
  segment.reset();
  // The other peer still has a block.
  EXPECT_NE(or_throw(Segment::create(3, bytes)).place().offset, place.offset);
  end_peer();
  EXPECT_EQ(or_throw(Segment::create(3, bytes)).place().offset, place.offset);
}

// What another process or file has under the same numbers is not mapped.
TEST(MemSegment, OtherMemoryIsNotMapped) {
  const Shape shape;
  const Segment segment = or_throw(Segment::create(2, inbox_bytes(shape)));
  EXPECT_TRUE(RemoteBlock::map(segment.place(), 1, inbox_bytes(shape)));
  const std::string ours = "process " + std::to_string(getpid());
  SegmentPlace place = segment.place();
  place.nonce[3] ^= 1;
  EXPECT_EQ(message_of(RemoteBlock::map(place, 1, inbox_bytes(shape))),
            ours + " has other memory than its address says");
  EXPECT_EQ(message_of(RemoteBlock::map(segment.place(), 2, inbox_bytes(shape))),
            ours + " has other memory than its address says");
  place = segment.place();
  place.file = STDERR_FILENO;
  EXPECT_FALSE(RemoteBlock::map(place, 0, inbox_bytes(shape)));
  // The same from another process.
  const pid_t parent = getpid();
  const int status = status_of_child([&] {
    const std::size_t bytes = inbox_bytes(shape);
    const std::string theirs = "process " + std::to_string(parent);
    place = segment.place();
    bool right = RemoteBlock::map(place, 1, bytes).has_value();
    place.nonce[3] ^= 1;
    right = right && message_of(RemoteBlock::map(place, 1, bytes)) ==
                         theirs + " has other memory than its address says";
    place.file = STDERR_FILENO;
    right = right && !RemoteBlock::map(place, 0, bytes);
    place.file = 1'000'000;
    right = right && message_of(RemoteBlock::map(place, 0, bytes)) ==
                         theirs + " has ended, or is not on this host";
    return right;
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace espalier::mem
