// Allgather, reduce-scatter and allreduce on a mesh of R rows and C columns by rings along the rows
// and along the columns: the two-dimensional bucket algorithm. One block per rank.
//
// Allgather: rings along the rows, after which every rank has the parts of its row, and then rings
// along the columns, in which whole rows travel as one message. The reduce-scatter is the allgather
// reversed in time. The allreduce cuts the message into one segment per rank: a reduce-scatter of
// the segments, then an allgather.
//
// Steps: R+C-2; the allreduce 2(R+C-2). Cost: (R+C-2) * alpha + (p-1) * beta*m, where m is the
// bytes of one rank's part; the allreduce, with m the bytes of the message, 2(R+C-2) * alpha +
// 2(p-1)/p * beta*m. Both beta terms are the least possible with one port. Source: [BLPG93].
//
// Links: a ring goes along its row (column) in order and returns from the last node to the first,
// against all others. So every link of the line carries one message per step, in both directions.
// An order that visits every second node and returns by the others loads the links just as much. A
// longest way of two hops instead of C-1 saves nothing: a part passes all ranks of the ring in
// either order, and travels over 2(C-1) links.
//
// The sums of whole rows arrive in scratch, each part in its own slot: p slots. Rings add in cyclic
// order: operators must commute. kTooLarge above 65535 columns, the maximum number of parts per
// message, and for a reduce-scatter or allreduce above 2^20 - 9 ranks, the slots of a program. A
// reduce-scatter of more than 4 rows takes no unequal counts (SlotGroups::kMax).

#include "collectives/algorithms/build/phases.h"
#include "espalier/collectives/algorithms/generators.h"

namespace espalier {
namespace {

constexpr std::uint32_t kMaxColumns = 65535;

class Bucket {
 public:
  Bucket(Builder& builder, const CollectiveParameters& parameters, std::uint32_t me)
      : builder_(builder),
        rows_(parameters.rows),
        columns_(parameters.columns),
        row_(me / parameters.columns),
        column_(me % parameters.columns) {}

  void add_allgather(Buffer own) {
    if (columns_ > 1) {
      add_ring_allgather(builder_, along_row(), own);
      own = Buffer::kOutput;
    }
    if (rows_ > 1) add_ring_allgather(builder_, along_column(), own);
  }

  // `row_sums`: where the sums of the row's parts are between the rings, which may be OUTPUT if it
  // holds the whole message.
  void add_reduce_scatter(Buffer row_sums) {
    OwnSums sums{Buffer::kInput};
    if (rows_ > 1) {
      SumTarget target;
      if (columns_ > 1) {
        target = {row_sums, builder_.scratch(rows_ * columns_)};
        sums = {row_sums, target.first_slot + row_ * columns_};
      }
      add_ring_reduce_scatter(builder_, along_column(), {Buffer::kInput}, {}, target);
    }
    if (columns_ > 1) add_ring_reduce_scatter(builder_, along_row(), sums);
  }

 private:
  [[nodiscard]] RankRounds along_row() {
    const Group row{row_ * columns_, 1};
    builder_.among(row);
    return {builder_, columns_, column_, row};
  }
  [[nodiscard]] RankRounds along_column() {
    builder_.among({column_, columns_});
    return {builder_, rows_, row_, {0, columns_}, columns_};
  }

  Builder& builder_;
  std::uint32_t rows_, columns_, row_, column_;
};

Status generate_bucket(const CollectiveParameters& parameters, std::uint32_t me,
                       Collective collective, Program& out) {
  Builder builder(out);
  const bool reduces = collective != Collective::kAllgather;
  const std::uint32_t p = parameters.ranks;
  const Status status = builder.begin(parameters, me,
                                      {.collective = collective,
                                       .algorithm = "bucket",
                                       .segments = p,
                                       .one_block = true,
                                       .needs_commutative = reduces && p > 1,
                                       .contention = ContentionGuarantee::kSlot});
  if (status != Status::kOk) return status;
  const bool fits = parameters.columns <= kMaxColumns;
  if (std::uint64_t{parameters.rows} * parameters.columns != p || !fits) {
    builder.clear();
    return fits ? Status::kUnsupported : Status::kTooLarge;
  }
  if (p == 1) return builder.finish_alone();
  Bucket bucket(builder, parameters, me);
  const bool is_allreduce = collective == Collective::kAllreduce;
  if (reduces) bucket.add_reduce_scatter(is_allreduce ? Buffer::kOutput : Buffer::kScratch);
  if (!reduces) bucket.add_allgather(Buffer::kInput);
  if (is_allreduce) bucket.add_allgather(Buffer::kOutput);
  return builder.finish(static_cast<std::int32_t>(log2_ceil(p)), 0);
}

}  // namespace

Status bucket_allgather(const CollectiveParameters& parameters, std::uint32_t me, Program& out) {
  return generate_bucket(parameters, me, Collective::kAllgather, out);
}

Status bucket_reduce_scatter(const CollectiveParameters& parameters, std::uint32_t me,
                             Program& out) {
  return generate_bucket(parameters, me, Collective::kReduceScatter, out);
}

Status bucket_allreduce(const CollectiveParameters& parameters, std::uint32_t me, Program& out) {
  return generate_bucket(parameters, me, Collective::kAllreduce, out);
}

}  // namespace espalier
