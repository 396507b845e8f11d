#include <algorithm>
#include <numeric>

#include "collectives/verify/every_n/progressions.h"
#include "collectives/verify/properties/operands.h"

namespace espalier::verify {
namespace {

constexpr std::size_t kMaxSpare = std::size_t{1} << 18;  // progressions; few nodes have more

// The time of a progression: step of the period, then sends, receives, operations, then action.
struct TimeKey {
  std::int64_t step;
  std::uint32_t turn_action;
  std::uint32_t position;
};

// Sorts by step, in time linear in keys and steps. Keys of one step keep their order.
void count_sort(TimeKey* begin, TimeKey* end, std::int64_t steps) {
  std::vector<std::uint32_t> next(static_cast<std::size_t>(steps) + 1, 0);
  for (const TimeKey* key = begin; key != end; ++key)
    ++next[static_cast<std::size_t>(key->step) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  const std::vector<TimeKey> keys(begin, end);
  for (const TimeKey& key : keys) begin[next[static_cast<std::size_t>(key.step)]++] = key;
}

class TimeOrder {
 public:
  TimeOrder(RankProgressions& ranks, const std::vector<std::int64_t>& every)
      : ranks_(ranks), every_(every), keys_(ranks.all.size()) {}

  void sort() {
    make_keys();
    for (std::size_t stage = 0; stage < ranks_.stages.size(); ++stage) {
      TimeKey* const begin = keys_.data() + ranks_.stage_begin[stage];
      TimeKey* const end = keys_.data() + ranks_.stage_begin[stage + 1];
      const std::int64_t period = ranks_.stages[stage].period;
      const bool dense = period / 4 <= end - begin;
      if (dense) count_sort(begin, end, period);
      sort_steps(begin, end, dense);
    }
    std::vector<Progression>& sorted = ranks_.spare;
    sorted.clear();
    sorted.reserve(keys_.size());
    for (const TimeKey& key : keys_) sorted.push_back(ranks_.all[key.position]);
    sorted.swap(ranks_.all);
    if (sorted.capacity() > kMaxSpare) std::vector<Progression>().swap(sorted);
  }

 private:
  void make_keys() {
    std::vector<std::size_t> count(ranks_.stages.size() + 1, 0);
    std::vector<std::int64_t> earliest(ranks_.stages.size(), INT64_MAX);
    for (const Progression& one : ranks_.all) {
      ++count[one.stage + std::size_t{1}];
      earliest[one.stage] = std::min(earliest[one.stage], one.first);
    }
    std::partial_sum(count.begin(), count.end(), count.begin());
    ranks_.stage_begin = count;
    for (std::uint32_t position = 0; position < keys_.size(); ++position) {
      Progression& one = ranks_.all[position];
      const std::int64_t period = ranks_.stages[one.stage].period;
      const std::int64_t late = one.first - earliest[one.stage];
      one.turn -= every_[one.action] * (late / period);
      const auto turn = static_cast<std::uint32_t>(turn_of(one.kind));
      keys_[count[one.stage]++] = {late % period, turn << 8 | one.action, position};
    }
  }

  // Sorts all keys. If they are sorted by step already (`by_step`), sorts the keys of each step.
  void sort_steps(TimeKey* begin, TimeKey* end, bool by_step) {
    const auto before = [this](const TimeKey& a, const TimeKey& b) {
      if (a.step != b.step) return a.step < b.step;
      if (a.turn_action != b.turn_action) return a.turn_action < b.turn_action;
      const Progression &one = ranks_.all[a.position], &other = ranks_.all[b.position];
      return one.turn != other.turn ? one.turn < other.turn : a.position < b.position;
    };
    while (begin != end) {
      TimeKey* next = by_step ? begin + 1 : end;
      while (next != end && next->step == begin->step) ++next;
      std::sort(begin, next, before);
      begin = next;
    }
  }

  RankProgressions& ranks_;
  const std::vector<std::int64_t>& every_;
  std::vector<TimeKey> keys_;
};

}  // namespace

void sort_by_time(RankProgressions& ranks, const std::vector<std::int64_t>& every) {
  TimeOrder(ranks, every).sort();
}

}  // namespace espalier::verify
