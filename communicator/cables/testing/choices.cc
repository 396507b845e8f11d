// Prints the algorithms that a communicator chooses over cables, for each shape, collective and
// size, with the seconds of the choice.
// choices [MBITS [RANKS_PER_HOST [SHAPE]]]

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/testing/results.h"
#include "collectives/schedule/selection.h"
#include "communicator/cables/testing/cabled_job.h"
#include "communicator/schedules.h"

namespace espalier::communicator {
namespace {

void print(const testing::CabledShape& shape, std::uint32_t mbits, std::uint32_t of_host) {
  auto job = testing::cabled_graph(shape, of_host);
  for (auto& cable : job->cables) cable.rate_mbits = mbits;
  const auto graph = testing::rank_graph(*job);
  const predict::NetworkCost cost{.message_ps = 40'000'000};
  const auto schedules =
      or_throw(Schedules::make(1, graph->size(), {}, {.network = cost, .graph = graph}));
  for (const Collective collective : kAllCollectives) {
    const auto start = std::chrono::steady_clock::now();
    std::string line;
    for (const std::uint64_t bytes : {8U, 65'536U, 8U << 20}) {
      for (const bool commutes : {true, false}) {
        if (!commutes && !combines_operands(collective)) continue;
        const auto planned =
            schedules->obtain({.collective = collective, .bytes = bytes, .commutes = commutes});
        line += " | " + (planned ? (*planned)->algorithm + ((*planned)->in_place ? " i" : "")
                                 : planned.error().message);
      }
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    std::printf("%s | %s | %.2f%s\n", shape.name, collective_name(collective), took.count(),
                line.c_str());
    for (const bool commutes : {true, false}) {
      if (!counts_per_rank(collective)) continue;
      const auto unequal = schedules->obtain(
          {.collective = collective, .bytes = 1000, .commutes = commutes, .unequal_counts = true});
      std::printf("  unequal: %s\n",
                  unequal ? (*unequal)->algorithm.c_str() : unequal.error().message.c_str());
    }
    if (!has_root(collective)) continue;
    for (const bool commutes : {true, false}) {
      const auto to_last = schedules->obtain({.collective = collective,
                                              .root = graph->size() - 1,
                                              .bytes = 1000,
                                              .commutes = commutes});
      std::printf("  last root: %s\n",
                  to_last ? (*to_last)->algorithm.c_str() : to_last.error().message.c_str());
    }
  }
  std::fflush(stdout);
}

}  // namespace
}  // namespace espalier::communicator

int main(int argc, char** argv) {
  const auto number = [&](int i, unsigned otherwise) {
    return argc > i ? static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, 10)) : otherwise;
  };
  for (const auto& shape : espalier::communicator::testing::cabled_shapes()) {
    if (argc > 3 && shape.name != std::string(argv[3])) continue;
    espalier::communicator::print(shape, number(1, 1000), number(2, 1));
  }
}
