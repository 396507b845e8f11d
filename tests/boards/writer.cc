// writer BOARD: prints programs of all algorithms, one per line: the number of the program's status
// on a node of that board by planner/board/board_limits.h (0: it loads), its name, and its
// descriptor in hexadecimal.

#include <cstdio>
#include <initializer_list>
#include <vector>

#include "espalier/collectives/algorithms/algorithms.h"
#include "planner/board/board.h"
#include "planner/board/board_limits.h"

namespace {

using namespace espalier;

void write(const board::BoardFile::Limits& limits, const Algorithm& algorithm,
           const CollectiveParameters& parameters, std::uint32_t node) {
  static Program program;
  static std::vector<std::uint8_t> bytes(kMaxDescriptorBytes);
  std::size_t size = 0;
  if (algorithm.generate(parameters, node, program) != Status::kOk) return;
  if (encode_program(program, bytes.data(), bytes.size(), size) != Status::kOk) return;
  // A loader finds programs that are too large before it looks at the features.
  board::BoardFile::Limits with_features = limits;
  with_features.set_rotated_scratch(true);
  Status status = planner::check_limits(with_features, program) ? Status::kOk : Status::kTooLarge;
  if (status == Status::kOk && !planner::check_limits(limits, program)) {
    status = Status::kUnknownFeature;
  }
  std::printf("%u %s-%s-%u-%u ", static_cast<unsigned>(status),
              collective_name(algorithm.collective), algorithm.name, parameters.ranks, node);
  for (std::size_t i = 0; i < size; ++i) std::printf("%02x", bytes[i]);
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto read = planner::read_board(argv[1]);
  if (!read) return 2;
  const board::BoardFile& board = *read;
  for (const Algorithm& algorithm : algorithms()) {
    const bool fat_tree = algorithm.where == Where::kFatTree;
    for (const std::uint32_t ranks :
         {2u, 3u, 4u, 8u, 16u, 32u, 64u, 128u, 256u, 512u, 1000u, 4096u, 40000u, 70000u}) {
      CollectiveParameters parameters{.ranks = ranks, .window = 2};
      if (fat_tree) {
        parameters.arity = 2;
        while (1u << parameters.height < ranks) ++parameters.height;
        if (1u << parameters.height != ranks) continue;
      }
      if (algorithm.where == Where::kHosts) {
        parameters.host_ranks = ranks % 4 == 0 ? 4 : 1;
        parameters.hosts = ranks / parameters.host_ranks;
      }
      const std::uint32_t columns = ranks % 4 == 0 ? 4 : 1, sizes[] = {ranks / columns, columns};
      if (algorithm.where == Where::kGrid || algorithm.where == Where::kTorus) {
        parameters.grid = sizes;
        parameters.dimensions = 2;
        parameters.wraps = true;
      }
      for (const std::uint32_t node : {0u, 1u, 3u, ranks / 2, ranks - 1}) {
        if (node < ranks) write(board.limits(), algorithm, parameters, node);
      }
    }
  }
}
