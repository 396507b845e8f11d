// All-to-all on clusters of hosts (hosts:HxR) by pairs of ranks; the terms are those of
// hosts_trees.cc.
//
// Inside each host every rank exchanges with each other in turn: (R-1)N memory steps. Across the
// hosts the ranks of a host take turns on its link: R^2 (H-1)N network steps, in each of which
// every host sends and receives one block. Every host must send R^2 (H-1)N blocks over its link, so
// no schedule has fewer network steps. Any N; parts are sent from where they are in INPUT and
// arrive where they belong in OUTPUT, which must differ.
//
// Across, exchange k of a block is with the host d = 1 + floor(k/R) places after (before) this one.
// Number u of a host sends in step R*k + u to number (k + u) mod R; number j receives from number
// (j - k) mod R. Every rank has a link to every other. kTooLarge if R^2 (H-1) is above 2^20.

#include "collectives/algorithms/hosts/host_groups.h"
#include "collectives/algorithms/rows.h"
#include "collectives/build/rounds.h"

namespace espalier {
namespace {

class HostPairs {
 public:
  HostPairs(Builder& builder, const HostRank& rank)
      : builder_(builder),
        hosts_(static_cast<std::int32_t>(rank.hosts)),
        ranks_(static_cast<std::int32_t>(rank.ranks)),
        me_(static_cast<std::int32_t>(rank.me)),
        host_(static_cast<std::int32_t>(rank.host)),
        number_(static_cast<std::int32_t>(rank.number)) {}

  // In the first of `steps` steps per block.
  void add_own(std::int32_t steps) {
    const auto me = static_cast<std::uint32_t>(me_);
    const Operand into = builder_.output(me), from = builder_.input(me);
    const std::uint8_t all = builder_.count(0, steps);
    const std::uint8_t block = Rounds(builder_, static_cast<std::uint32_t>(steps)).block(1);
    repeat(builder_.copy(0, into, from), all, block);
  }

  // Step j of a round: with the number j + 1 places after (before) this one.
  void add_inside() {
    const std::int32_t hops = ranks_ - 1;
    add_own(hops);
    const std::uint8_t all = builder_.count(0, hops), block = block_of(hops);
    const std::uint8_t to = places_after(1), from = places_after(-1);
    Action& send = builder_.send_by(0, to, segments(Buffer::kInput, 1), 0);
    repeat(send, all, block);
    repeat(builder_.receive_by(0, from, segments(Buffer::kOutput, -1)), all, block);
    builder_.phase(1, 0, hops);
  }

  void add_across() {
    const std::int32_t exchanges = ranks_ * (hosts_ - 1);
    if (ranks_ == 1) add_own(exchanges);
    const std::uint8_t all = builder_.count(0, exchanges), block = block_of(exchanges);
    const auto r = static_cast<std::uint32_t>(ranks_),
               others = static_cast<std::uint32_t>(hosts_ - 1);
    const Term later = floor_term(ranks_, 0, r, others);
    const Term earlier = floor_term(-ranks_, 0, r, others);
    const Term to_number = floor_term(1, number_, 0, r);
    const Term from_number = floor_term(1, number_, 0, r, -1);
    Index row{};
    row.base = ranks_ - number_ - 1;
    const std::uint8_t to_link = builder_.index(row, {later, to_number});
    row = {};
    row.off = (host_ + 1) * ranks_;
    row.mod = static_cast<std::uint32_t>(hosts_ * ranks_);
    const std::uint8_t to = builder_.index(row, {later, to_number});
    row.off = (host_ - 1) * ranks_;
    const std::uint8_t from = builder_.index(row, {earlier, from_number});
    row = {};
    row.base = (hosts_ - 1) * ranks_ - number_ - 1;
    const std::uint8_t from_link = builder_.index(row, {earlier, from_number});
    row = {};
    row.base = number_;
    row.coef = ranks_;
    const std::uint8_t send_pace = builder_.index(row);
    row.base = 0;
    const std::uint8_t receive_pace = builder_.index(row, {from_number});
    Action& send = builder_.send_by(0, to_link, Builder::operand(Buffer::kInput, to), 0);
    repeat(send, all, block);
    send.pace_ref = send_pace;
    Action& receive = builder_.receive_by(0, from_link, Builder::operand(Buffer::kOutput, from));
    repeat(receive, all, block);
    receive.pace_ref = receive_pace;
    builder_.phase(1, 0, ranks_ * exchanges);
  }

 private:
  static void repeat(Action& action, std::uint8_t instances_ref, std::uint8_t block_ref) {
    action.instances_ref = instances_ref;
    action.into.block_ref = action.a.block_ref = block_ref;
  }

  // floor(k / steps): the block, in rounds of this many steps.
  [[nodiscard]] std::uint8_t block_of(std::int32_t steps) {
    Index row{};
    row.coef = 1;
    row.div = static_cast<std::uint32_t>(steps);
    return builder_.index(row);
  }

  // The segment of the number sign * (1 + the step of the round) after this one, or its link.
  [[nodiscard]] std::uint8_t inside(std::int32_t sign, std::int32_t off, std::uint32_t mod) {
    const auto hops = static_cast<std::uint32_t>(ranks_ - 1);
    // The first step in which the number wraps around is R-1-u (sign 1) or u (sign -1).
    const std::int32_t ahead = sign > 0 ? number_ : ranks_ - 1 - number_;
    Index row{};
    row.off = off;
    row.mod = mod;
    return builder_.index(row,
                          {floor_term(sign, 0, 0, hops), floor_term(-sign * ranks_, ahead, hops),
                           floor_term(sign * ranks_, 0, hops)});
  }
  [[nodiscard]] std::uint8_t places_after(std::int32_t sign) {
    // Link l leads to the rank l + 1 after this one.
    const auto p = static_cast<std::uint32_t>(hosts_ * ranks_);
    return inside(sign, sign - 1, p);
  }
  [[nodiscard]] Operand segments(Buffer buffer, std::int32_t sign) {
    return Builder::operand(buffer, inside(sign, me_ + sign, 0));
  }

  Builder& builder_;
  std::int32_t hosts_, ranks_, me_, host_, number_;
};

Status hosts_pairwise_all_to_all(const CollectiveParameters& parameters, std::uint32_t me,
                                 Collective, Program& out) {
  Builder builder(out);
  const Status status = begin_on_hosts(builder, parameters, me,
                                       {.collective = Collective::kAllToAll,
                                        .algorithm = "hosts-pairwise",
                                        .contention = ContentionGuarantee::kSlot});
  if (status != Status::kOk) return status;
  const std::uint32_t p = parameters.ranks;
  if (p == 1) return builder.finish_alone();
  const std::uint64_t r = parameters.host_ranks;
  if (r * r * (parameters.hosts - 1) > kMaxSlope) return builder.refuse(Status::kTooLarge);
  const HostRank rank(parameters, me);
  HostPairs pairs(builder, rank);
  builder.ring_links(p - 1);
  if (rank.ranks > 1) pairs.add_inside();
  if (rank.hosts > 1) pairs.add_across();
  return builder.finish(0, static_cast<std::int32_t>(p) - 1);
}

}  // namespace

const Algorithm kHostsAllToAllRows[] = {
    row("hosts-pairwise", Collective::kAllToAll, hosts_pairwise_all_to_all,
        "with every rank of the host, then of the others in turn: (R-1)N + R^2(H-1)N network steps",
        {.where = Where::kHosts}),
};

}  // namespace espalier
