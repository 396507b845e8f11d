// One thread, one loop, one or several nodes.

#include <poll.h>
#include <sched.h>
#include <time.h>

#include <algorithm>

#include "firmware/node/node.h"

namespace espalier::node {
namespace {

// Several endpoints cannot be waited for at once: after the last thing that happened the loop
// spins, giving the core away after each round, then naps for a sixteenth of the time waited so
// far, which adds at most that to it (as hal/ofi does where a provider cannot block).
constexpr std::uint64_t kSpin = 150'000;        // ns
constexpr std::uint64_t kLongestNap = 200'000;  // ns

std::uint64_t monotonic() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

timespec duration(std::uint64_t ns) {
  return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

// Until `wake`, or a packet has come on a channel.
void wait_for_packets(const std::vector<std::unique_ptr<Node>>& nodes, std::vector<pollfd>& entries,
                      std::uint64_t wake) {
  const std::uint64_t now = monotonic();
  if (wake <= now) {
    sched_yield();
    return;
  }
  entries.clear();
  for (const std::unique_ptr<Node>& node : nodes) {
    if (!node->ended()) entries.push_back({node->channel(), POLLIN, 0});
  }
  const timespec most = duration(wake - now);
  (void)ppoll(entries.data(), entries.size(), &most, nullptr);
}

}  // namespace

int serve(const std::vector<std::unique_ptr<Node>>& nodes) {
  bool here = true;
  for (const std::unique_ptr<Node>& node : nodes) here = node->ready() && here;
  if (!here) return 1;
  std::vector<pollfd> entries(nodes.size());
  std::uint64_t moved = monotonic();  // when anything happened last
  bool running = false;
  while (true) {
    bool all_ended = true;
    const bool look = !running;
    running = false;
    std::uint64_t wake = UINT64_MAX;
    for (const std::unique_ptr<Node>& node : nodes) {
      if (node->ended()) continue;
      node->step(look);
      if (node->ended()) continue;
      all_ended = false;
      running = running || node->running();
      wake = std::min(wake, node->wake());
    }
    if (all_ended) break;
    if (!running) {
      wait_for_packets(nodes, entries, wake);
    } else if (nodes.size() == 1) {
      nodes.front()->endpoint().wait(wake);
    } else if (const std::uint64_t now = monotonic(); wake == 0) {
      moved = now;
    } else if (now - moved < kSpin) {
      sched_yield();
    } else if (now < wake) {
      const timespec nap = duration(std::min({(now - moved) / 16, kLongestNap, wake - now}));
      nanosleep(&nap, nullptr);
    }
  }
  int worst = 0;
  for (const std::unique_ptr<Node>& node : nodes) worst = std::max(worst, node->exit_status());
  return worst;
}

}  // namespace espalier::node
