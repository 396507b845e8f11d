// One thread, one loop, one or several nodes.

#include <poll.h>
#include <sched.h>
#include <time.h>

#include <algorithm>

#include "base/clock.h"
#include "firmware/node/node_server.h"

namespace espalier::node {
namespace {

// The loop cannot block on several endpoints at once. After the last progress it spins and yields
// the core after each round. Then it naps for a sixteenth of the time waited so far, which
// lengthens the wait by at most a sixteenth. hal/fabric does the same if a provider cannot block.
constexpr std::uint64_t kSpin = 150'000;        // ns
constexpr std::uint64_t kLongestNap = 200'000;  // ns

timespec duration(std::uint64_t ns) {
  return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

// Waits until `wake`, or until a packet arrives on a channel.
void wait_for_packets(const std::vector<std::unique_ptr<NodeServer>>& nodes,
                      std::vector<pollfd>& entries, std::uint64_t wake) {
  const std::uint64_t now = monotonic_ns();
  if (wake <= now) {
    sched_yield();
    return;
  }
  entries.clear();
  for (const std::unique_ptr<NodeServer>& node : nodes) {
    if (!node->ended()) entries.push_back({node->channel(), POLLIN, 0});
  }
  const timespec longest = duration(wake - now);
  (void)ppoll(entries.data(), entries.size(), &longest, nullptr);
}

}  // namespace

int serve(const std::vector<std::unique_ptr<NodeServer>>& nodes) {
  bool launcher_present = true;
  for (const std::unique_ptr<NodeServer>& node : nodes) {
    launcher_present = node->ready() && launcher_present;
  }
  if (!launcher_present) return 1;
  std::vector<pollfd> entries(nodes.size());
  std::uint64_t progress_ns = monotonic_ns();  // time of the last progress
  bool running = false;
  while (true) {
    bool all_ended = true;
    const bool look = !running;
    running = false;
    std::uint64_t wake = UINT64_MAX;
    for (const std::unique_ptr<NodeServer>& node : nodes) {
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
    } else if (const std::uint64_t now = monotonic_ns(); wake == 0) {
      progress_ns = now;
    } else if (now - progress_ns < kSpin) {
      sched_yield();
    } else if (now < wake) {
      const timespec nap = duration(std::min({(now - progress_ns) / 16, kLongestNap, wake - now}));
      nanosleep(&nap, nullptr);
    }
  }
  int worst = 0;
  for (const std::unique_ptr<NodeServer>& node : nodes)
    worst = std::max(worst, node->exit_status());
  return worst;
}

}  // namespace espalier::node
