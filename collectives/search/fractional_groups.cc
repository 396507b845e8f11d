#include "collectives/search/fractional_groups.h"

#include <algorithm>

#include "espalier/internal/base/assert.h"

namespace espalier::searched {
namespace {

// P_0, P_1, ... of the recurrence P_i = r + P_{i-r} + P_{i-r-1}, P_i = i+1 for i <= r, up to the
// first that is at least `ranks`.
std::vector<std::uint64_t> reaches(std::uint64_t run_length, std::uint64_t ranks) {
  std::vector<std::uint64_t> reach{1};
  while (reach.back() < ranks) {
    const std::size_t i = reach.size();
    reach.push_back(
        i <= run_length ? i + 1 : run_length + reach[i - run_length] + reach[i - run_length - 1]);
  }
  return reach;
}

}  // namespace

std::uint32_t FractionalForest::add_group(std::span<const std::uint32_t> ranks,
                                          std::int32_t arrival) {
  groups.push_back({.ranks = {ranks.begin(), ranks.end()}, .arrival = arrival});
  return static_cast<std::uint32_t>(groups.size() - 1);
}

std::uint32_t FractionalForest::add_tree(std::span<const std::uint32_t> ranks,
                                         std::int32_t arrival) {
  ESPALIER_ASSERT(!ranks.empty() && run_length >= 1);
  // Subtrees still to be laid out: their ranks, and their remaining steps.
  struct Task {
    std::span<const std::uint32_t> ranks;
    std::size_t steps;
    std::uint32_t parent;
    bool is_right;
  };
  const std::vector<std::uint64_t> reach = reaches(run_length, ranks.size());
  const auto first = static_cast<std::uint32_t>(groups.size());
  std::vector<Task> tasks{{ranks, reach.size() - 1, kNoGroup, false}};
  while (!tasks.empty()) {
    const Task task = tasks.back();
    tasks.pop_back();
    const std::size_t size = std::min<std::size_t>(run_length, task.ranks.size());
    std::int32_t group_arrival = arrival;
    if (task.parent != kNoGroup) {
      group_arrival = task.is_right ? right_arrival(task.parent) : down_arrival(task.parent);
    }
    const std::uint32_t group = add_group(task.ranks.first(size), group_arrival);
    if (task.parent != kNoGroup) {
      (task.is_right ? groups[task.parent].right : groups[task.parent].down) = group;
    }
    const auto rest = task.ranks.subspan(size);
    if (rest.empty()) continue;
    const std::size_t most = reach[task.steps - run_length];
    const auto below = rest.first(std::min(rest.size(), most));
    const auto beside = rest.subspan(below.size());
    tasks.push_back({below, task.steps - run_length, group, false});
    if (!beside.empty()) tasks.push_back({beside, task.steps - run_length - 1, group, true});
  }
  return first;
}

std::uint32_t FractionalForest::depth() const {
  std::int32_t last = -1;
  for (const FractionalGroup& group : groups) {
    last = std::max(last, group.arrival + static_cast<std::int32_t>(group.ranks.size()) - 1);
  }
  return static_cast<std::uint32_t>(last + 1);
}

Broadcast FractionalForest::broadcast(const Outline& outline) const {
  ESPALIER_ASSERT(!groups.empty() && run_length >= 1);
  Broadcast broadcast{.outline = outline, .period = run_length + 1, .every = run_length};
  broadcast.steps.a = static_cast<std::int32_t>(depth()) - 2;
  broadcast.steps.b = 1;
  broadcast.steps.c = 1;
  broadcast.steps.e = run_length;
  // Block j, forwarded by group.ranks[i].
  const auto stream = [&](const FractionalGroup& group, std::uint32_t i, std::uint32_t to,
                          std::uint32_t j, std::uint32_t step) {
    broadcast.streams.push_back({.from = group.ranks[i], .to = to, .first = j, .step = step});
  };
  for (const FractionalGroup& group : groups) {
    const auto size = static_cast<std::uint32_t>(group.ranks.size());
    const auto next = static_cast<std::uint32_t>(group.arrival + 1);
    for (std::uint32_t i = 0; i < size; ++i) {
      const bool is_last = i + 1 == size;
      if (is_last && group.down == kNoGroup) continue;
      const std::uint32_t to = is_last ? groups[group.down].ranks[0] : group.ranks[i + 1];
      for (std::uint32_t j = 0; j < run_length; ++j) stream(group, i, to, j, next + i + j);
    }
    if (group.right == kNoGroup) continue;
    for (std::uint32_t i = 0; i < size; ++i) {
      stream(group, i, groups[group.right].ranks[0], i, next + run_length + i);
    }
  }
  return broadcast;
}

}  // namespace espalier::searched
