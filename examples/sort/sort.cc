// sort [N]: sorts N random numbers per process by sample sort. Afterwards each process has a range
// of the numbers, sorted, and all numbers of a rank are at most those of the next rank.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "espalier/communicator.h"

namespace {

using Numbers = std::vector<std::uint64_t>;
using In = std::span<const std::uint64_t>;
using Out = std::span<std::uint64_t>;

void require(const espalier::Result<void>& done) {
  if (done) return;
  std::fprintf(stderr, "sort: %s\n", done.error().message.c_str());
  std::exit(1);
}

// splitmix64 (public domain, by S. Vigna)
std::uint64_t random(std::uint64_t& state) {
  std::uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// The number of elements, and their sum: what sorting must not change.
Numbers checksum(espalier::Communicator& world, const Numbers& numbers) {
  Numbers both = {numbers.size(), std::accumulate(numbers.begin(), numbers.end(), std::uint64_t{})};
  require(world.allreduce(Out(both), espalier::Op::kSum));
  return both;
}

// The upper limits of all ranges except the last: from a sample of each rank's numbers.
Numbers find_limits(espalier::Communicator& world, const Numbers& sorted) {
  constexpr std::size_t kSample = 64;
  const std::size_t ranks = world.size();
  Numbers sample(kSample), all(kSample * ranks), limits;
  for (std::size_t i = 0; i < kSample; ++i) sample[i] = sorted[i * sorted.size() / kSample];
  require(world.allgather(In(sample), Out(all)));
  std::sort(all.begin(), all.end());
  for (std::size_t rank = 1; rank < ranks; ++rank) limits.push_back(all[rank * kSample]);
  return limits;
}

Numbers exchange(espalier::Communicator& world, const Numbers& sorted, const Numbers& limits) {
  const std::size_t ranks = world.size(), me = world.rank();
  Numbers own(ranks), counts(ranks * ranks);  // to each rank; from each rank to each rank
  auto begin = sorted.begin();
  for (std::size_t to = 0; to < ranks; ++to) {
    const auto end =
        to + 1 < ranks ? std::upper_bound(begin, sorted.end(), limits[to]) : sorted.end();
    own[to] = static_cast<std::uint64_t>(end - begin);
    begin = end;
  }
  require(world.allgather(In(own), Out(counts)));
  std::size_t total = 0;
  for (std::size_t from = 0; from < ranks; ++from) total += counts[from * ranks + me];
  Numbers received(total);
  espalier::Call call = espalier::call::all_to_all(sorted, received, 0);
  call.counts = counts;
  require(world.run(call));
  return received;
}

// Whether this rank's numbers are sorted, and those of lower ranks are not larger.
bool is_sorted(espalier::Communicator& world, const Numbers& numbers) {
  Numbers largest = {numbers.empty() ? 0 : numbers.back()}, before = {0};
  require(world.exscan(In(largest), Out(before), espalier::Op::kMax));
  return std::is_sorted(numbers.begin(), numbers.end()) &&
         (numbers.empty() || before[0] <= numbers.front());
}

}  // namespace

int main(int argument_count, char** arguments) {
  auto world = espalier::join();
  if (!world) return std::fprintf(stderr, "sort: %s\n", world.error().message.c_str()), 2;
  const long count = argument_count > 1 ? std::atol(arguments[1]) : 100'000;
  if (count < 1) return std::fprintf(stderr, "sort: N is %ld; expected at least 1\n", count), 2;

  Numbers numbers(static_cast<std::size_t>(count));
  std::uint64_t state = world->rank();
  for (std::uint64_t& number : numbers) number = random(state);
  const Numbers before = checksum(*world, numbers);
  std::sort(numbers.begin(), numbers.end());
  numbers = exchange(*world, numbers, find_limits(*world, numbers));
  std::sort(numbers.begin(), numbers.end());

  Numbers wrong = {is_sorted(*world, numbers) ? 0U : 1U}, most = {numbers.size()};
  require(world->allreduce(Out(wrong), espalier::Op::kSum));
  require(world->allreduce(Out(most), espalier::Op::kMax));
  const bool good = wrong[0] == 0 && checksum(*world, numbers) == before;
  if (world->rank() == 0) {
    std::printf("%llu numbers on %u ranks, at most %llu on one: %s\n",
                static_cast<unsigned long long>(before[0]), world->size(),
                static_cast<unsigned long long>(most[0]), good ? "sorted" : "not sorted");
  }
  return good ? 0 : 1;
}
