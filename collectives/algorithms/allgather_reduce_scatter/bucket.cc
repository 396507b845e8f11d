// Allgather, reduce-scatter and allreduce on meshes, tori and rings, by rings along each dimension:
// the bucket algorithm, and the bidirectional bucket algorithm. One block per rank.
//
// Allgather: rings along the last dimension, after which every rank has the parts of its row; then
// rings along the dimension before it, in which the parts of whole rows travel as one message; and
// so on. The reduce-scatter is the allgather reversed in time. The allreduce cuts the message into
// one segment per rank: a reduce-scatter of the segments, then an allgather.
//
// `bucket` has one ring per line of ranks, and uses one port. `bidirectional-bucket` has two, one
// in each direction: a part travels floor(n/2) ranks up and floor((n-1)/2) ranks down in a ring of
// n ranks. On ring:P it is the bidirectional ring.
//
// Let n_1, n_2, .. be the numbers of ranks in each dimension, p their product, m the bytes of one
// rank's part. Steps: the sum of n_i - 1 (bidirectional: of floor(n_i / 2)); the allreduce twice
// that. Cost: steps * alpha + (p-1) * beta*m, the least that one port allows; bidirectional:
// steps * alpha + beta*m * (the sum of floor(n_i / 2) times the product of the later n_j), half of
// that if all n_i are odd. Both for an allreduce with m the bytes of the message: 2 / p times that
// for beta. Source: [BLPG93].
//
// Links: on a torus every message goes to a neighbour, so every link carries at most one message in
// a step, under any timing skew. On a mesh a ring goes along its line in order and returns from the
// last node to the first, against all others: every link of the line carries one message per step,
// in both directions. An order that visits every second node and returns by the others loads the
// links just as much. A second ring would load them twice, so `bidirectional-bucket` is for tori.
//
// The sums that travel are in scratch, each segment in a slot of its own. Rings add in cyclic
// order: operators must commute. kTooLarge above 65535 ranks in all dimensions but the first, the
// maximum number of parts per message; for a reduce-scatter or allreduce, if the slots are more
// than a program has.

#include "collectives/algorithms/rows.h"
#include "collectives/build/builder.h"
#include "collectives/build/one_block.h"

namespace espalier {
namespace {

constexpr std::uint32_t kMaxParts = 65535;  // of a message
constexpr std::uint32_t kMaxGridDimensions = 3;

// Where the segments of some ranks are: in a buffer, or in scratch, segment s in slot offset + s.
struct PartPlace {
  Buffer::Value buffer;
  std::int32_t offset = 0;
};

// The ring of the ranks along one dimension, seen from one of them. Rank x of the ring has the
// `stride` segments from first_segment + stride * x onward.
struct LineRing {
  std::uint32_t ranks, stride, me, first_segment;
};

// The ranks that a part travels up, and those that it travels down.
struct Travel {
  std::uint32_t up, down;
};

class Bucket {
 public:
  Bucket(Builder& builder, std::uint32_t me, bool both) : builder_(builder), me_(me), both_(both) {}

  // Adds a dimension; the last one first.
  void add_dimension(std::uint32_t ranks) {
    if (ranks == 1) return;
    rings_[count_++] = {ranks, stride_, me_ / stride_ % ranks, me_ - me_ % (stride_ * ranks)};
    stride_ *= ranks;
  }

  void add_allgather(Buffer::Value own) {
    for (std::uint32_t d = 0; d < count_; ++d, own = Buffer::kOutput) gather(rings_[d], own);
  }

  // `sums`: where the sums of several ranks' parts are between the rings: OUTPUT if it has all
  // segments, otherwise SCRATCH.
  void add_reduce_scatter(Buffer::Value sums) {
    PartPlace own = {Buffer::kInput};
    std::uint32_t step = 0;
    for (std::uint32_t d = count_; d-- > 0; step += steps(rings_[d])) {
      if (d == 0) sums = Buffer::kOutput;
      own = reduce(rings_[d], own, sums, step);
    }
    if (step > 0) builder_.phase(1, static_cast<std::int32_t>(step), 0);
  }

 private:
  [[nodiscard]] Travel travel(const LineRing& ring) const {
    if (!both_) return {ring.ranks - 1, 0};
    return {ring.ranks / 2, (ring.ranks - 1) / 2};
  }
  [[nodiscard]] std::uint32_t steps(const LineRing& ring) const { return travel(ring).up; }

  // The rank `places` after this one in the ring.
  [[nodiscard]] static std::uint32_t rank(const LineRing& ring, std::int32_t places) {
    return (ring.me + ring.ranks + static_cast<std::uint32_t>(places)) % ring.ranks;
  }

  // The part of the rank `places + sign * i` after this one, in instance i.
  [[nodiscard]] Operand part(const LineRing& ring, const PartPlace& where, std::int32_t places,
                             std::int32_t sign) {
    Operand operand = Builder::operand(where.buffer, moving(ring, 0, places, sign));
    operand.segment_count = static_cast<std::uint16_t>(ring.stride == 1 ? 0 : ring.stride);
    if (where.buffer == Buffer::kScratch) {
      operand.slot_ref = moving(ring, where.offset, places, sign);
    }
    return operand;
  }
  [[nodiscard]] std::uint8_t moving(const LineRing& ring, std::int32_t offset, std::int32_t places,
                                    std::int32_t sign) {
    const auto stride = static_cast<std::int32_t>(ring.stride);
    const std::uint32_t first = rank(ring, places);
    Index row{};
    row.base = static_cast<std::int32_t>(ring.first_segment) + offset;
    if (sign == 0) {
      row.base += stride * static_cast<std::int32_t>(first);
      return builder_.index(row);
    }
    row.off = stride * static_cast<std::int32_t>(first);
    row.coef = stride * sign;
    row.mod = ring.stride * ring.ranks;
    return builder_.index(row);
  }

  void among(const LineRing& ring) { builder_.among({me_ - ring.me * ring.stride, ring.stride}); }

  // One phase. A part goes up from the rank it belongs to, and down.
  void gather(const LineRing& ring, Buffer::Value own_buffer) {
    among(ring);
    const Operand own = part(ring, {own_buffer}, 0, 0);
    if (own_buffer != Buffer::kOutput) {
      repeat_block(builder_, builder_.copy(0, part(ring, {Buffer::kOutput}, 0, 0), own), 1);
    }
    const Travel parts = travel(ring);
    for (const std::int32_t direction : {1, -1}) {
      const std::uint32_t messages = direction == 1 ? parts.up : parts.down;
      if (messages == 0) continue;
      const Operand passed = part(ring, {Buffer::kOutput}, -direction, -direction);
      repeat_block(builder_, builder_.send(0, rank(ring, direction), own, 0), 1);
      if (messages > 1) {
        repeat_block(builder_, builder_.send(1, rank(ring, direction), passed, 1), messages - 1);
      }
      repeat_block(builder_, builder_.receive(0, rank(ring, -direction), passed), messages);
    }
    builder_.phase(1, static_cast<std::int32_t>(parts.up), 0);
  }

  // Steps of the only phase, from `begin` onward. `own`: this rank's addends. With rings in both
  // directions, sums come down from parts.up ranks after their owner, and up from parts.down ranks
  // before it. Returns where the sum of this rank's part is.
  PartPlace reduce(const LineRing& ring, const PartPlace& own, Buffer::Value target,
                   std::uint32_t begin) {
    among(ring);
    const Travel parts = travel(ring);
    const auto slots = [&](std::uint32_t ranks, std::uint32_t first) {
      const std::uint32_t slot = builder_.scratch(ranks * ring.stride);
      return PartPlace{Buffer::kScratch,
                       static_cast<std::int32_t>(slot) -
                           static_cast<std::int32_t>(ring.first_segment + first * ring.stride)};
    };
    const PartPlace sums = slots(ring.ranks, 0);
    PartPlace mine = own;  // the part of this rank, with the sums that came up
    if (parts.down > 0) {
      mine = slots(1, ring.me);
      pass_sums(ring, own, sums, -1, parts.down, begin);
      const std::uint32_t last = begin + parts.down - 1;
      const Operand sum = part(ring, mine, 0, 0);
      repeat_block(builder_, builder_.receive(last, rank(ring, -1), sum), 1);
      repeat_block(builder_, builder_.combine(last, sum, sum, part(ring, own, 0, 0)), 1);
    }
    // One ring goes upward, as in the allgather, so that both have the same pairs of ranks.
    const std::int32_t side = both_ ? 1 : -1;
    pass_sums(ring, own, sums, side, parts.up, begin);
    const std::uint32_t last = begin + parts.up - 1;
    const PartPlace total = target == Buffer::kScratch ? sums : PartPlace{target};
    const Operand sum = part(ring, sums, 0, 0);
    repeat_block(builder_, builder_.receive(last, rank(ring, side), sum), 1);
    repeat_block(builder_,
                 builder_.combine(last, part(ring, total, 0, 0), sum, part(ring, mine, 0, 0)), 1);
    return total;
  }

  // The sums that come from one side, `side` = 1: from the ranks after this one. The owner of the
  // sum that is sent in step i is `messages - i` ranks on, on the other side. The caller receives
  // the sum of this rank's own part, which comes last.
  void pass_sums(const LineRing& ring, const PartPlace& own, const PartPlace& sums,
                 std::int32_t side, std::uint32_t messages, std::uint32_t begin) {
    const std::int32_t far = -side * static_cast<std::int32_t>(messages);
    const std::uint32_t to = rank(ring, -side);
    const std::uint32_t after = begin == 0 ? 0 : 1;
    repeat_block(builder_, builder_.send(begin, to, part(ring, own, far, 0), after), 1);
    if (messages == 1) return;
    const Operand sum = part(ring, sums, far + side, side);
    repeat_block(builder_, builder_.send(begin + 1, to, sum, 1), messages - 1);
    repeat_block(builder_, builder_.receive(begin, rank(ring, side), sum), messages - 1);
    const Operand addend = part(ring, own, far + side, side);
    repeat_block(builder_, builder_.combine(begin, sum, sum, addend), messages - 1);
  }

  Builder& builder_;
  std::uint32_t me_;
  bool both_;
  LineRing rings_[kMaxGridDimensions] = {};
  std::uint32_t count_ = 0, stride_ = 1;
};

// kBoth: directions.
template <bool kBoth>
Status generate_bucket(const CollectiveParameters& parameters, std::uint32_t me,
                       Collective collective, Program& out) {
  Builder builder(out);
  const bool reduces = collective != Collective::kAllgather;
  const std::uint32_t p = parameters.ranks;
  const Status status =
      builder.begin(parameters, me,
                    {.collective = collective,
                     .algorithm = kBoth ? "bidirectional-bucket" : "bucket",
                     .segments = p,
                     .one_block = true,
                     .needs_commutative = reduces && p > 1,
                     .port_model = kBoth ? PortModel::kMultiport : PortModel::kOnePortDuplex,
                     .contention = ContentionGuarantee::kSlot});
  if (status != Status::kOk) return status;
  const std::uint32_t plane[] = {parameters.rows, parameters.columns};
  const std::uint32_t* sizes = parameters.rows > 0 ? plane : parameters.grid;
  const std::uint32_t dimensions = parameters.rows > 0 ? 2 : parameters.dimensions;
  std::uint64_t ranks = dimensions == 0 || dimensions > kMaxGridDimensions ? 0 : 1, parts = 1;
  for (std::uint32_t d = 0; ranks > 0 && d < dimensions; ++d) ranks *= sizes[d];
  for (std::uint32_t d = 1; d < dimensions; ++d) parts *= sizes[d];
  if (ranks != p || (kBoth && !parameters.wraps) || parts > kMaxParts)
    return builder.refuse(ranks == p && parts > kMaxParts ? Status::kTooLarge
                                                          : Status::kUnsupported);
  if (p == 1) return builder.finish_alone();
  Bucket bucket(builder, me, kBoth);
  for (std::uint32_t d = dimensions; d-- > 0;) bucket.add_dimension(sizes[d]);
  const bool is_allreduce = collective == Collective::kAllreduce;
  if (reduces) bucket.add_reduce_scatter(is_allreduce ? Buffer::kOutput : Buffer::kScratch);
  if (!reduces) bucket.add_allgather(Buffer::kInput);
  if (is_allreduce) bucket.add_allgather(Buffer::kOutput);
  return builder.finish(kBoth ? 1 : static_cast<std::int32_t>(log2_ceil(p)), 0);
}

}  // namespace

const Algorithm kBucketRows[] = {
    row("bucket", Collective::kAllgather, generate_bucket<false>,
        "one block per rank, rings along each dimension, the last first: sum of (n_i - 1) steps",
        {.where = Where::kGrid}),
    row("bucket", Collective::kReduceScatter, generate_bucket<false>,
        "one block per rank, rings along each dimension, the first first: sum of (n_i - 1) steps",
        {.needs_commutative = true, .where = Where::kGrid}),
    row("bucket", Collective::kAllreduce, generate_bucket<false>,
        "one block per rank, reduce-scatter, then allgather by bucket: 2 * sum of (n_i - 1) steps",
        {.needs_commutative = true, .where = Where::kGrid}),
    row("bidirectional-bucket", Collective::kAllgather, generate_bucket<true>,
        "one block per rank, rings in both directions of each dimension: sum of floor(n_i/2) steps",
        {.where = Where::kTorus}),
    row("bidirectional-bucket", Collective::kReduceScatter, generate_bucket<true>,
        "one block per rank, rings in both directions of each dimension: sum of floor(n_i/2) steps",
        {.needs_commutative = true, .where = Where::kTorus}),
    row("bidirectional-bucket", Collective::kAllreduce, generate_bucket<true>,
        "one block per rank, reduce-scatter, then allgather: 2 * sum of floor(n_i/2) steps",
        {.needs_commutative = true, .where = Where::kTorus}),
};

}  // namespace espalier
