#include "tests/mutation/contract.h"

#include <algorithm>

namespace espalier::mutation {

Contract contract_of(const espalier_Program& program) {
  Contract contract;
  contract.segments = program.segments;
  contract.ranks = program.ranks;
  contract.root = program.root;
  contract.collective = program.collective;
  contract.port_model = program.port_model;
  contract.ordered = !program.needs_commutative;
  contract.send_ticks = std::max<std::int64_t>(1, program.send_ticks);
  contract.latency_ticks = std::max<std::int64_t>(1, program.latency_ticks);
  return contract;
}

bool Contract::is_barrier() const { return collective == Collective::kBarrier; }

std::pair<std::int64_t, std::int64_t> Contract::given(std::int64_t node,
                                                      std::uint8_t buffer) const {
  using Given = std::pair<std::int64_t, std::int64_t>;
  const Given all{0, segments}, own{node, node + 1}, none{0, 0};
  if (node >= ranks) return none;
  const bool input = buffer == Buffer::kInput, is_root = node == root;
  switch (collective) {
    case Collective::kBroadcast: return input == is_root ? all : none;
    case Collective::kReduce: return input || is_root ? all : none;
    case Collective::kExscan: return input || node > 0 ? all : none;
    case Collective::kScatter: return !input ? own : is_root ? all : none;
    case Collective::kGather: return input ? own : is_root ? all : none;
    case Collective::kAllgather: return input ? own : all;
    case Collective::kReduceScatter: return input ? all : own;
    // The segments have no bytes: an input only says that its rank has arrived.
    case Collective::kBarrier: return input ? all : none;
    default: return all;
  }
}

Data Contract::own(std::int64_t node, std::int64_t segment, std::int64_t block) const {
  const auto rank = static_cast<std::uint64_t>(node);
  return {is_barrier() ? arrival(node)
          : ordered    ? rank + 1
                       : std::uint64_t{1} << (4 * (rank % 16)),
          1, static_cast<std::int32_t>(segment), static_cast<std::int32_t>(block)};
}

Data Contract::combined(const Data& left, const Data& right) const {
  if (left.length == 0 || right.length == 0) return {};
  if (is_barrier()) return {left.ranks | right.ranks, 1, 0, 0};
  const bool usable = left.segment == right.segment && left.block == right.block &&
                      left.length + right.length <= 15;
  if (!usable) return {};
  const std::uint64_t both =
      ordered ? left.ranks << (4 * right.length) | right.ranks : left.ranks + right.ranks;
  return {both, left.length + right.length, left.segment, left.block};
}

Data Contract::wanted(std::int64_t node, std::int64_t segment, std::int64_t block) const {
  std::int64_t first = 0, last = ranks - 1, carried = segment;
  switch (collective) {
    case Collective::kBroadcast:
    case Collective::kScatter: first = last = root; break;
    case Collective::kScan: last = node; break;
    case Collective::kExscan: last = node - 1; break;
    case Collective::kAllToAll: carried = node; [[fallthrough]];
    case Collective::kGather:
    case Collective::kAllgather: first = last = segment; break;
    default: break;
  }
  Data data{0, static_cast<std::uint32_t>(last - first + 1), static_cast<std::int32_t>(carried),
            static_cast<std::int32_t>(block)};
  for (std::int64_t rank = first; rank <= last; ++rank) {
    const std::uint64_t one = own(rank, 0, 0).ranks;
    data.ranks = ordered ? data.ranks << 4 | one : data.ranks + one;
  }
  return data;
}

}  // namespace espalier::mutation
