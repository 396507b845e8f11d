#include "tests/soak/member.h"

#include <malloc.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "communicator/testing/random_call.h"
#include "espalier/communicator.h"

namespace espalier::soak {
namespace {

using communicator::testing::RandomCall;

struct Order {
  std::uint64_t seed = 0;
  std::int64_t rank = 0, size = 0;
  std::string method, place, secret, provider;
  std::int64_t ranks_per_host = 0;
  bool has_thread = false;
};

[[noreturn]] void end_by_error(const std::string& message) {
  std::printf("error %s\n", message.c_str());
  std::fflush(stdout);
  _exit(1);
}

// The orders, which arrive at any time.
class Orders {
 public:
  // Waits for the next line. Nothing: the end.
  [[nodiscard]] std::optional<std::string> next() {
    std::size_t end = 0;
    while ((end = text_.find('\n')) == std::string::npos) {
      if (!read_more()) return {};
    }
    std::string line = text_.substr(0, end);
    text_.erase(0, end + 1);
    return line;
  }
  // Whether a line is there, without waiting.
  [[nodiscard]] bool has_line() {
    pollfd waiting{STDIN_FILENO, POLLIN, 0};
    if (text_.find('\n') == std::string::npos && poll(&waiting, 1, 0) == 1) (void)read_more();
    return text_.find('\n') != std::string::npos;
  }

 private:
  bool read_more() {
    char bytes[512];
    const ssize_t size = read(STDIN_FILENO, bytes, sizeof bytes);
    if (size > 0) text_.append(bytes, static_cast<std::size_t>(size));
    return size > 0;
  }
  std::string text_;
};

// A batch of random collectives on a communicator; all its ranks draw the same ones.
class Batch {
 public:
  Batch(Communicator& world, std::uint64_t seed) : world_(world), seed_(seed), random_(seed) {}

  // Errors: the first failure.
  [[nodiscard]] Result<void> run() {
    switch (random_() % 8) {
      case 0:
      case 1:
      case 2: run_blocking(); break;
      case 3:
      case 4: run_started(); break;
      case 5: run_planned(); break;
      default: run_in_parts();
    }
    return result_;
  }
  // Collectives that completed with the right result.
  [[nodiscard]] std::uint64_t completed() const { return completed_; }

 private:
  // A call in flight.
  struct Started {
    Started(std::uint64_t seed, std::uint64_t number, const Communicator& on)
        : call(seed, number, on.size(), on.rank()) {}
    RandomCall call;
    Request request;  // ends before the call's memory
  };
  using InFlight = std::vector<std::unique_ptr<Started>>;

  void note(const Result<void>& result) {
    if (result_ && !result) result_ = result;
  }
  void check(const RandomCall& call, const Result<void>& done) {
    note(done);
    if (!done) return;
    if (const std::string wrong = call.check(); !wrong.empty()) end_by_error("wrong: " + wrong);
    ++completed_;
  }
  void start(Communicator& on, std::uint64_t seed, std::uint64_t number, InFlight& in_flight) {
    auto started = std::make_unique<Started>(seed, number, on);
    auto request = on.start(started->call.call());
    if (!request) return note(fail(request.error()));
    started->request = *std::move(request);
    in_flight.push_back(std::move(started));
  }
  // Tests and waits in an order of this rank's own.
  void finish(InFlight& in_flight) {
    std::mt19937_64 own(seed_ + 1 + world_.rank());
    while (!in_flight.empty()) {
      const std::size_t i = own() % in_flight.size();
      Started& one = *in_flight[i];
      if (own() % 2 == 0) {
        const auto is_complete = one.request.test();
        if (is_complete && !*is_complete) continue;
      }
      check(one.call, one.request.wait());
      in_flight.erase(in_flight.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  void run_blocking() {
    for (std::uint64_t number = 0; number < 10 && result_; ++number) {
      RandomCall call(seed_, number, world_.size(), world_.rank());
      check(call, world_.run(call.call()));
    }
  }
  void run_started() {
    InFlight in_flight;
    for (std::uint64_t number = 0; number < 8; ++number) {
      start(world_, seed_, number, in_flight);
    }
    finish(in_flight);
  }
  void run_planned() {
    for (std::uint64_t number = 0; number < 3 && result_; ++number) {
      RandomCall call(seed_, number, world_.size(), world_.rank());
      auto plan = world_.plan(call.call());
      if (!plan) return note(fail(plan.error()));
      for (std::uint64_t times = random_() % 5; times > 0 && result_; --times) {
        call.restore();
        if (auto started = plan->start(); !started) {
          note(started);
        } else {
          check(call, plan->wait());
        }
      }
    }
  }
  // Some on parts of the ranks, and some on all ranks meanwhile. If a part fails, its ranks still
  // start the same collectives of all ranks as the others, whose failure has the cause.
  void run_in_parts() {
    const std::int64_t parts = 1 + static_cast<std::int64_t>(random_() % 3);
    const bool leaves_one_out = random_() % 4 == 0;
    const bool descends = random_() % 2 == 0;
    const std::int64_t rank = world_.rank();
    const std::int64_t color = leaves_one_out && rank == 0 ? -1 : rank % parts;
    auto part = world_.split(color, descends ? -rank : rank);
    if (!part) note(fail(part.error()));
    {
      InFlight in_flight;
      for (std::uint64_t number = 0; number < 5; ++number) {
        if (part && *part) {
          start(**part, seed_ + 17 + static_cast<std::uint64_t>(color), number, in_flight);
        }
        start(world_, seed_, number, in_flight);
      }
      finish(in_flight);
    }
    if (part) part->reset();
    note(world_.barrier());
  }

  Communicator& world_;
  std::uint64_t seed_;
  std::mt19937_64 random_;
  Result<void> result_;
  std::uint64_t completed_ = 0;
};

class Member {
 public:
  int run() {
    while (const auto line = orders_.next()) {
      std::istringstream words(*line);
      Order order;
      std::string kind;
      words >> kind >> order.seed >> order.rank >> order.size >> order.method >> order.place >>
          order.secret >> order.provider >> order.ranks_per_host >> order.has_thread;
      if (kind != "job" || !words) end_by_error("not an order: " + *line);
      run_job(order);
    }
    return 0;
  }

 private:
  void say(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }

  [[nodiscard]] static JoinOptions options_of(const Order& order) {
    JoinOptions options{.provider = order.provider};
    if (order.ranks_per_host != 0) {
      options.host = "host" + std::to_string(order.rank / order.ranks_per_host);
    }
    options.deadline = kDeadline;
    options.progress_thread = order.has_thread;
    bootstrap::Options& found = options.bootstrap;
    found.rank = order.rank;
    found.size = order.size;
    if (order.method == "folder") {
      found.method = bootstrap::Method::kFile;
      found.folder = order.place;
      found.job = std::to_string(order.seed);
      return options;
    }
    // Rank 0 listens at the first address, unless a server does already.
    found.method = bootstrap::Method::kTable;
    found.table.assign(static_cast<std::size_t>(order.size), order.place);
    if (order.secret != "-") found.secret_file = order.secret;
    return options;
  }

  void run_job(const Order& order) {
    completed_ = 0;
    {
      auto world = join(options_of(order));
      if (!world) end_by_error("join: " + world.error().message);
      say("joined");
      std::uint64_t generation = 0;
      while (true) {
        const Result<void> done = run_batches(*world, order.seed + 1'000'000 * generation);
        if (done) break;
        const Cause cause = world->cause();
        if (cause.status == Status::kOk) end_by_error("no cause: " + done.error().message);
        say("failed " + std::to_string(static_cast<unsigned>(cause.status)) + ' ' +
            std::to_string(cause.detector) + ' ' + std::to_string(cause.peer) + ' ' +
            done.error().message);
        auto again = world->rejoin();
        if (!again) end_by_error("rejoin: " + again.error().message);
        *world = *std::move(again);
        ++generation;
        say("rejoined " + std::to_string(world->size()));
      }
    }
    if (orders_.next() != "end") end_by_error("no order to end");
    const struct mallinfo2 heap = mallinfo2();
    say("left " + std::to_string(completed_) + ' ' + std::to_string(heap.uordblks + heap.hblkhd));
  }

  // Runs batches until every member has the order to end. Errors: the failure.
  [[nodiscard]] Result<void> run_batches(Communicator& world, std::uint64_t seed) {
    while (true) {
      Batch batch(world, ++seed);
      const Result<void> done = batch.run();
      completed_ += batch.completed();
      if (!done) return done;
      std::int32_t ends[] = {orders_.has_line() ? 1 : 0};
      if (auto agreed = world.allreduce(ends, Op::kMin); !agreed) return agreed;
      if (ends[0] != 0) return {};
    }
  }

  Orders orders_;
  std::uint64_t completed_ = 0;
};

}  // namespace

int run_member() {
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);  // A member ends with the run.
  return Member().run();
}

}  // namespace espalier::soak
