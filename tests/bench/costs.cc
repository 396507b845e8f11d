// What a collective costs: costs.py runs this under callgrind and strace, and beside a raw socket.
//
//   costs alone PROVIDER RANKS COLLECTIVE BYTES COUNT [MODEL]   all ranks in one thread, in turn
//   costs traced ...                                the same; waits for a line before it starts
//   costs job PROVIDER COLLECTIVE BYTES COUNT       a rank of `espalier launch`
//   costs socket COLLECTIVE BYTES COUNT             also a rank, takes turns with raw sockets
//   costs notes none|record|cancel COUNT            what a call does for records and early ends
//
// `alone` is for callgrind and strace: the clocks stand still, so which calls are made hardly
// depends on time. COUNT calls are between two calls of getppid(), and inside measured(). Each
// prints one line of JSON.

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "communicator/failure/early_end.h"
#include "communicator/record/writer.h"
#include "communicator/testing/local_job.h"
#include "espalier/communicator.h"

namespace espalier::costs {

using communicator::testing::LocalJob;

constexpr std::uint32_t kWarmUp = 20;
constexpr std::uint32_t kWarmUpAlone = 4;
constexpr std::size_t kChunk = 262144;  // per system call of the raw sockets

// From when on each reading of a clock is 1 ns after the one before. 0: the clocks go.
std::uint64_t stopped_ns = 0;

// The counters of costs_counters.c, which need not be loaded.
constexpr const char* kCounters[] = {"copied_libfabric",  "copied",  "polls_libfabric",  "polls",
                                     "yields_libfabric",  "yields",  "sleeps_libfabric", "sleeps",
                                     "futexes_libfabric", "futexes", "empty_polls"};
using Counters = std::array<std::uint64_t, std::size(kCounters)>;

Counters counters() {
  Counters now = {};
  const auto* const kept = static_cast<const std::uint64_t*>(dlsym(RTLD_DEFAULT, "costs_counters"));
  if (kept != nullptr) std::copy_n(kept, now.size(), now.begin());
  return now;
}

[[noreturn]] void complain(const std::string& what) {
  std::fprintf(stderr, "costs: %s\n", what.c_str());
  std::exit(2);
}

template <typename T>
T or_complain(Result<T> result) {
  if (!result) complain(result.error().message);
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

// A rank's memory and plan.
class Rank {
 public:
  Rank(Communicator& world, const std::string& collective, std::uint64_t bytes,
       std::uint32_t root = 0)
      : root_(root),
        send_(bytes / sizeof(float), 1),
        receive_(send_.size() * (collective == "allgather" ? world.size() : 1)),
        plan_(or_complain(world.plan(call_of(collective, world.rank())))) {}

  void start() { or_complain(plan_.start()); }
  bool test() { return or_complain(plan_.test()); }
  void run() {
    start();
    or_complain(plan_.wait());
  }

 private:
  Call call_of(const std::string& collective, std::uint32_t rank) {
    const std::span<const float> send(send_);
    const std::span<float> receive(receive_);
    if (collective == "broadcast") return call::broadcast(receive, root_);
    if (collective == "allreduce") return call::allreduce(send, receive, Op::kSum);
    // In place: this rank's part is where it belongs.
    if (collective == "allgather") {
      const std::span<const float> part = std::span<const float>(receive_);
      return call::allgather(part.subspan(rank * send.size(), send.size()), receive);
    }
    complain("unknown collective " + collective);
  }

  std::uint32_t root_;
  std::vector<float> send_, receive_;
  Plan plan_;
};

// Prints this process's number and reads a line: strace can be attached in between.
void wait_for_tracer() {
  (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  std::printf("%d\n", static_cast<int>(getpid()));
  std::fflush(stdout);
  while (std::getchar() != '\n' && std::feof(stdin) == 0) {
  }
}

// The toggle of callgrind.
[[gnu::noinline]] void measured(std::vector<Rank*>& ranks, std::uint32_t count) {
  (void)syscall(SYS_getppid);
  for (std::uint32_t i = 0; i < count; ++i) {
    for (Rank* const rank : ranks) rank->start();
    for (bool done = false; !done;) {
      done = true;
      for (Rank* const rank : ranks) done = rank->test() && done;
    }
  }
  (void)syscall(SYS_getppid);
}

void run_alone(const std::string& provider, std::uint32_t ranks, const std::string& collective,
               std::uint64_t bytes, std::uint32_t count, bool waits, const std::string& model) {
  LocalJob job(ranks);
  std::vector<std::unique_ptr<Communicator>> worlds(ranks);
  std::vector<std::unique_ptr<Rank>> members(ranks);
  const auto on_each = [&](const std::function<void(std::uint32_t)>& body) {
    std::vector<std::thread> threads;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) threads.emplace_back(body, rank);
    for (std::thread& thread : threads) thread.join();
  };
  on_each([&](std::uint32_t rank) {
    JoinOptions options{.membership = job.member(rank), .provider = provider, .model = model};
    worlds[rank] = std::make_unique<Communicator>(or_complain(join(options)));
    members[rank] = std::make_unique<Rank>(*worlds[rank], collective, bytes);
    for (std::uint32_t i = 0; i < kWarmUpAlone; ++i) members[rank]->run();
    or_complain(worlds[rank]->barrier());
  });
  std::vector<Rank*> turns;
  for (const auto& member : members) turns.push_back(member.get());
  stopped_ns = monotonic_ns();
  measured(turns, 1);
  if (waits) wait_for_tracer();
  const Counters before = counters();
  measured(turns, count);
  const Counters after = counters();
  std::printf("{\"count\": %u", count);
  for (std::size_t i = 0; i < after.size(); ++i) {
    std::printf(", \"%s\": %llu", kCounters[i],
                static_cast<unsigned long long>(after[i] - before[i]));
  }
  std::printf("}\n");
  stopped_ns = 0;
  on_each([&](std::uint32_t rank) {
    members[rank].reset();
    worlds[rank].reset();
  });
}

// Nobody knows what is there.
template <typename T>
void hide(T& value) {
  asm volatile("" : : "r"(&value) : "memory");
}

// `record`: a call in the record, as Channel makes it. `cancel`: a look for an early end. `none`:
// the loop.
[[gnu::noinline]] void measured_notes(const std::string& what, std::uint32_t count) {
  record::Recorder recorder;
  record::Traffic traffic;
  communicator::EarlyEnd end;
  bool has_ended = false;
  const auto repeat = [count](auto note) {
    for (std::uint32_t i = 0; i < count; ++i) note(i);
  };
  if (what == "record") {
    repeat([&](std::uint32_t i) {
      recorder.begin(i, 1);
      hide(recorder);
      ++traffic.runs;
      hide(traffic);
      recorder.end();
    });
  } else if (what == "cancel") {
    repeat([&](std::uint32_t i) {
      hide(i);
      hide(end);
      if (end.is_pending()) has_ended = true;
    });
  } else {
    repeat([](std::uint32_t i) { hide(i); });
  }
  if (has_ended) complain("an early end that nobody asked for");
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

// What a rank spent.
struct Spent {
  double wall = 0;
  double processor = 0;
};

Spent now() {
  rusage used = {};
  getrusage(RUSAGE_SELF, &used);
  return {
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(),
      seconds(used.ru_utime) + seconds(used.ru_stime)};
}

Communicator join_launched(const std::string& provider) {
  JoinOptions options{.provider = provider};
  return or_complain(join(options));
}

// The greatest wall-clock time, and each rank's processor time, as JSON.
std::string text_of(Communicator& world, const Spent& before, const Spent& after) {
  std::vector<double> wall = {after.wall - before.wall};
  or_complain(world.allreduce(wall, Op::kMax));
  std::vector<double> own = {after.processor - before.processor}, all(world.size());
  or_complain(world.allgather(own, all));
  std::string text = "{\"wall\": " + std::to_string(wall[0]) + ", \"processor\": [";
  for (std::size_t i = 0; i < all.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(all[i]);
  }
  return text + "]}";
}

void run_job(const std::string& provider, const std::string& collective, std::uint64_t bytes,
             std::uint32_t count) {
  Communicator world = join_launched(provider);
  // The roots of broadcasts take turns: none is ahead of the others by more than a call.
  Rank first(world, collective, bytes, 0);
  Rank second(world, collective, bytes, world.size() - 1);
  for (std::uint32_t i = 0; i < kWarmUp; ++i) (i % 2 == 0 ? first : second).run();
  or_complain(world.barrier());
  const Counters before = counters();
  const Spent start = now();
  for (std::uint32_t i = 0; i < count; ++i) (i % 2 == 0 ? first : second).run();
  const Spent end = now();
  Counters spent = counters();
  for (std::size_t i = 0; i < spent.size(); ++i) spent[i] -= before[i];
  std::vector<std::uint64_t> all(spent.begin(), spent.end());
  or_complain(world.allreduce(all, Op::kSum));
  const std::string used = text_of(world, start, end);
  if (world.rank() != 0) return;
  std::printf("{\"count\": %u, \"used\": %s", count, used.c_str());
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::printf(", \"%s\": %llu", kCounters[i], static_cast<unsigned long long>(all[i]));
  }
  std::printf("}\n");
}

// TCP sockets to the next rank and from the previous one, over the loopback interface.
class Ring {
 public:
  explicit Ring(Communicator& world) : rank_(world.rank()), size_(world.size()) {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener, any, length) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, any, &length) != 0) {
      complain("cannot listen");
    }
    std::vector<std::uint16_t> own = {address.sin_port}, ports(size_);
    or_complain(world.allgather(own, ports));
    address.sin_port = ports[(rank_ + 1) % size_];
    right_ = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(right_, any, length) != 0) complain("cannot connect");
    left_ = accept(listener, nullptr, nullptr);
    close(listener);
    const int on = 1;
    setsockopt(right_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  ~Ring() {
    close(right_);
    close(left_);
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // Rank 0's data goes from rank to rank.
  void broadcast(std::vector<char>& data) {
    const bool sends = rank_ + 1 < size_;
    if (rank_ == 0) return exchange(data.data(), data.size(), nullptr, 0);
    std::size_t received = 0;
    while (received < data.size()) {
      const std::size_t part = std::min(kChunk, data.size() - received);
      exchange(nullptr, 0, data.data() + received, part);
      if (sends) exchange(data.data() + received, part, nullptr, 0);
      received += part;
    }
  }
  // Parts of data.size() / size_ bytes go round.
  void allgather(std::vector<char>& data) {
    const std::size_t part = data.size() / size_;
    for (std::uint32_t i = 0; i + 1 < size_; ++i) {
      exchange(data.data() + (rank_ + size_ - i) % size_ * part, part,
               data.data() + (rank_ + size_ - i - 1) % size_ * part, part);
    }
  }

 private:
  void exchange(const char* out, std::size_t to_send, char* in, std::size_t to_receive) {
    if (to_receive == 0) return send_all(out, to_send);
    while (to_send > 0 || to_receive > 0) {
      pollfd on[2] = {{right_, static_cast<short>(to_send > 0 ? POLLOUT : 0), 0},
                      {left_, static_cast<short>(to_receive > 0 ? POLLIN : 0), 0}};
      if (to_send > 0 && ::poll(on, 2, -1) < 0) complain("cannot poll");
      if (to_send > 0 && (on[0].revents & POLLOUT) != 0) {
        const ssize_t sent = send(right_, out, std::min(to_send, kChunk), MSG_DONTWAIT);
        if (sent > 0) out += sent, to_send -= static_cast<std::size_t>(sent);
      }
      if (to_receive > 0 && (to_send == 0 || (on[1].revents & POLLIN) != 0)) {
        const ssize_t got =
            recv(left_, in, std::min(to_receive, kChunk), to_send == 0 ? MSG_WAITALL : 0);
        if (got <= 0) complain("a socket broke");
        in += got, to_receive -= static_cast<std::size_t>(got);
      }
    }
  }
  void send_all(const char* out, std::size_t size) {
    while (size > 0) {
      const ssize_t sent = send(right_, out, std::min(size, kChunk), 0);
      if (sent <= 0) complain("a socket broke");
      out += sent, size -= static_cast<std::size_t>(sent);
    }
  }

  std::uint32_t rank_, size_;
  int right_ = -1, left_ = -1;
};

void run_socket(const std::string& collective, std::uint64_t bytes, std::uint32_t count) {
  Communicator world = join_launched("tcp");
  const bool parts = collective == "allgather";
  Rank rank(world, collective, parts ? bytes / world.size() : bytes);
  Ring ring(world);
  std::vector<char> data(bytes, 1);
  for (std::uint32_t i = 0; i <= count; ++i) {
    std::string line = "{";
    for (const bool ours : {true, false}) {
      or_complain(world.barrier());
      const Spent start = now();
      if (ours) {
        rank.run();
      } else if (parts) {
        ring.allgather(data);
      } else {
        ring.broadcast(data);
      }
      const Spent end = now();
      or_complain(world.barrier());
      line += std::string(ours ? "\"espalier\": " : ", \"socket\": ") + text_of(world, start, end);
    }
    if (i != 0 && world.rank() == 0) std::printf("%s}\n", line.c_str());
  }
}

int run(const std::vector<std::string>& words) {
  const std::string mode = words.empty() ? "" : words[0];
  const auto number = [&words](std::size_t i) {
    return std::strtoull(words[i].c_str(), nullptr, 10);
  };
  const auto count = [&] {
    return std::max(1U, static_cast<std::uint32_t>(number(words.size() - 1)));
  };
  if ((mode == "alone" || mode == "traced") && (words.size() == 6 || words.size() == 7)) {
    run_alone(words[1], static_cast<std::uint32_t>(number(2)), words[3], number(4),
              std::max(1U, static_cast<std::uint32_t>(number(5))), mode == "traced",
              words.size() == 7 ? words[6] : "");
  } else if (mode == "notes" && words.size() == 3) {
    measured_notes(words[1], count());
  } else if (mode == "job" && words.size() == 5) {
    run_job(words[1], words[2], number(3), count());
  } else if (mode == "socket" && words.size() == 4) {
    run_socket(words[1], number(2), count());
  } else {
    complain(
        "expected one of: alone or traced PROVIDER RANKS COLLECTIVE BYTES COUNT [MODEL]; job "
        "PROVIDER "
        "COLLECTIVE BYTES COUNT; "
        "socket COLLECTIVE BYTES COUNT; notes none|record|cancel COUNT");
  }
  return 0;
}

}  // namespace espalier::costs

// Under callgrind and strace, time would pass faster than calls are made.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  static const auto real =
      reinterpret_cast<int (*)(clockid_t, timespec*)>(dlsym(RTLD_NEXT, "clock_gettime"));
  std::uint64_t& stopped_ns = espalier::costs::stopped_ns;
  if (stopped_ns == 0) return real(clock, time);
  ++stopped_ns;
  *time = {static_cast<time_t>(stopped_ns / 1'000'000'000),
           static_cast<long>(stopped_ns % 1'000'000'000)};
  return 0;
}

int main(int argc, char** argv) { return espalier::costs::run({argv + 1, argv + argc}); }
