// All-to-all on a mesh with XY routing: every part goes straight to its destination, and no link
// carries two blocks in a step.
//
// Definitions. A permutation of the columns is a set of pairs (c, c'), one for each c; its load u
// is the maximum number of its messages on a link of a row. The C^2 pairs of columns are divided
// into C permutations whose loads add up to floor(C^2/4), as evenly as possible
// (balanced_square.h); the R^2 pairs of rows into R permutations likewise, with loads v. The
// messages of one permutation form max(u, 1) groups without a common link.
//
// The steps of a permutation S of columns and a permutation T of rows, in which node (r, c) sends
// to (T(r), S(c)), number k = max(u, v), and none if both are the identity. The message leaves in
// step (group of c in S - group of r in T) mod k. In one step, then, the messages within a row
// belong to one group of S, and those within a column, which they enter in the row of their sender,
// to one group of T: no two share a link. Every node has one message per pair of permutations.
//
// Steps: N times the sum of max(u, v) over all pairs of permutations. A middle link of a row
// carries R*floor(C^2/4) blocks and a middle link of a column C*floor(R^2/4), which is the bound,
// or p-1 by ports. The bound is met if the loads of the longer side are all at least those of the
// shorter, for example if 4 divides R and C, and then with all middle links in use in every step;
// [Scott91] has such schedules for square meshes. mesh:5x7 takes 62 steps (bound 60), mesh:6x6 63
// (bound 54).
// Cost: steps * (alpha + beta*m/N), where m is the bytes of one rank's part for one other: N = 1 is
// cheapest.

#include <algorithm>
#include <string>
#include <vector>

#include "collectives/lower/timed.h"
#include "collectives/search/balanced_square.h"
#include "collectives/search/searches.h"
#include "collectives/search/streams.h"
#include "espalier/internal/base/arithmetic.h"

namespace espalier::searched {
namespace {

class MeshExchange {
 public:
  MeshExchange(std::uint32_t rows, std::uint32_t columns)
      : rows_(rows), columns_(columns), schedule_(rows * columns) {}

  lower::TimedSchedule schedule() && {
    const std::vector<LinePermutation> of_rows = balanced_square(rows_);
    for (const LinePermutation& across : balanced_square(columns_)) {
      for (const LinePermutation& along : of_rows) add(across, along);
    }
    for (std::uint32_t rank = 0; rank < rows_ * columns_; ++rank) {
      schedule_.add_operation(ActionKind::kCopy, rank, 0, 0, part(Buffer::kOutput, rank),
                              part(Buffer::kInput, rank));
    }
    schedule_.period = std::max(1, steps_);
    return std::move(schedule_);
  }

 private:
  static lower::TimedOperand part(Buffer buffer, std::uint32_t segment) {
    return {buffer, as_int(segment), -1};
  }

  // `across`: the permutation of the columns; `along`: that of the rows.
  void add(const LinePermutation& across, const LinePermutation& along) {
    if (across.is_identity && along.is_identity) return;
    const std::uint32_t steps = std::max(across.groups, along.groups);
    for (std::uint32_t row = 0; row < rows_; ++row) {
      for (std::uint32_t column = 0; column < columns_; ++column) {
        const std::uint32_t turn = (across.group[column] + steps - along.group[row]) % steps;
        send(row * columns_ + column, along.to[row] * columns_ + across.to[column],
             steps_ + as_int(turn));
      }
    }
    steps_ += as_int(steps);
  }

  void send(std::uint32_t from, std::uint32_t to, std::int32_t step) {
    if (from == to) return;
    const std::uint32_t ends[] = {from, to};
    schedule_.add_message(0, ends, {&step, 1}, part(Buffer::kInput, to),
                          part(Buffer::kOutput, from));
  }

  std::uint32_t rows_, columns_;
  std::int32_t steps_ = 0;
  lower::TimedSchedule schedule_;
};

Result<Programs> mesh_balanced_all_to_all(Collective, const topology::Topology& topology,
                                          const CollectiveParameters& parameters) {
  if (auto fits = check_parameters(topology, parameters); !fits) return fail(fits.error());
  const topology::Shape shape = topology.shape();
  const std::uint32_t p = topology.ranks();
  if (shape.rows == 0 || p > kMaxLinearRanks) {
    return fail("mesh-balanced on " + topology.title() + ": expected mesh:RxC of at most " +
                std::to_string(kMaxLinearRanks) + " ranks");
  }
  lower::TimedSchedule schedule = MeshExchange(shape.rows, shape.columns).schedule();
  schedule.outline = {.collective = Collective::kAllToAll,
                      .algorithm = "mesh-balanced",
                      .contention = ContentionGuarantee::kSlot};
  schedule.bound = {.a = 0, .b = as_int(p) - 1, .c = 0, .d = 0, .e = 0};
  return lower::write_programs(parameters, schedule);
}

}  // namespace

const SearchedAlgorithm kMeshBalancedRows[] = {
    row("mesh-balanced", Collective::kAllToAll, mesh_balanced_all_to_all,
        "permutations that load every row and column evenly, p <= 129: about N*max(p-1, "
        "R*floor(C^2/4), C*floor(R^2/4)) steps",
        {.topologies = "mesh:RxC", .applies = on_mesh}),
};

}  // namespace espalier::searched
