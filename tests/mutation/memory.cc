#include "tests/mutation/memory.h"

#include <algorithm>
#include <array>

namespace espalier::mutation {
namespace {

Data combined(const Data& left, const Data& right) {
  const bool usable = left.length > 0 && right.length > 0 && left.segment == right.segment &&
                      left.block == right.block && left.length + right.length <= 15;
  if (!usable) return {};
  return {left.ranks << (4 * right.length) | right.ranks, left.length + right.length, left.segment,
          left.block};
}

// The nibbles in ascending order.
std::uint64_t sorted(const Data& data) {
  std::array<std::uint64_t, 16> nibbles{};
  for (std::uint32_t k = 0; k < data.length; ++k) nibbles[k] = (data.ranks >> (4 * k)) & 15;
  std::sort(nibbles.begin(), nibbles.end());  // the unused ones, 0, come first
  std::uint64_t result = 0;
  for (const std::uint64_t nibble : nibbles) result = result << 4 | nibble;
  return result;
}

std::uint64_t mine_only(std::size_t me) { return std::uint64_t{1} << (me % 64); }

Data heard_of(const Data& left, const Data& right) {
  if (left.length == 0 || right.length == 0) return {};
  return {left.ranks | right.ranks, 1, 0, 0};
}

}  // namespace

Memory::Memory(const Play& play) : play_(play), nodes_(play.parts.size()) {
  for (std::size_t me = 0; me < nodes_.size(); ++me) {
    nodes_[me].output.resize(static_cast<std::size_t>(play.segments * play.blocks));
    nodes_[me].scratch.resize(static_cast<std::size_t>(play.parts[me].scratch));
    nodes_[me].heard = mine_only(me);
  }
}

Data& Memory::place(std::size_t me, const Spot& spot, std::int64_t part) {
  NodeMemory& node = nodes_[me];
  if (spot.buffer == Buffer::kScratch) {
    return node.scratch[static_cast<std::size_t>(spot.slot + part)];
  }
  const std::int64_t segment = spot.segment + part;
  return node.output[static_cast<std::size_t>(segment * play_.blocks + spot.block)];
}

std::vector<Data> Memory::load(std::size_t me, const Spot& spot) {
  const bool input = spot.buffer == Buffer::kInput;
  const std::uint64_t mine = is_barrier() ? mine_only(me) : me + 1;
  std::vector<Data> all;
  for (std::int64_t part = 0; part < spot.segment_count; ++part) {
    all.push_back(input ? Data{mine, 1, spot.segment + part, spot.block} : place(me, spot, part));
  }
  return all;
}

void Memory::store(std::size_t me, const Spot& spot, const std::vector<Data>& all) {
  for (std::int64_t part = 0; part < spot.segment_count; ++part) {
    Data& into = place(me, spot, part);
    into = all[static_cast<std::size_t>(part)];
    // Data of length 0 were never written: they announce no arrival.
    if (is_barrier() && into.length > 0) nodes_[me].heard |= into.ranks;
  }
}

bool Memory::operate(std::size_t me, const Move& move) {
  const bool combine = move.kind == ActionKind::kCombine;
  if (move.a.segment_count != move.into.segment_count ||
      (combine && move.b.segment_count != move.into.segment_count))
    return false;
  std::vector<Data> result = load(me, move.a);
  if (combine) {
    const std::vector<Data> right = load(me, move.b);
    for (std::size_t k = 0; k < result.size(); ++k) {
      result[k] = is_barrier() ? heard_of(result[k], right[k]) : combined(result[k], right[k]);
    }
  }
  store(me, move.into, result);
  return true;
}

// The data that the collective must leave in a segment of a rank's output.
Data Memory::wanted(std::int64_t me, std::int64_t segment) const {
  std::int64_t first = 0, last = play_.ranks - 1, carried = segment;
  switch (play_.collective) {
    case Collective::kBroadcast:
    case Collective::kScatter: first = last = play_.root; break;
    case Collective::kScan: last = me; break;
    case Collective::kExscan: last = me - 1; break;
    case Collective::kGather:
    case Collective::kAllgather: first = last = segment; break;
    case Collective::kAllToAll:
      first = last = segment;
      carried = me;
      break;
    default: break;
  }
  Data data;
  for (std::int64_t rank = first; rank <= last; ++rank) {
    data.ranks = data.ranks << 4 | static_cast<std::uint64_t>(rank + 1);
  }
  data.length = static_cast<std::uint32_t>(last - first + 1);
  data.segment = carried;
  return data;
}

std::string Memory::wrong_result() const {
  for (std::int64_t me = 0; me < play_.ranks; ++me) {
    const NodeMemory& node = nodes_[static_cast<std::size_t>(me)];
    if (is_barrier()) {
      if (node.heard == (std::uint64_t{1} << play_.ranks) - 1) continue;
      return "rank " + std::to_string(me) + " ends before it has heard of all";
    }
    const auto [first, end] = segments_given(play_, me, Buffer::kOutput);
    for (std::int64_t place = first * play_.blocks; place < end * play_.blocks; ++place) {
      const Data right = wanted(me, place / play_.blocks);
      const Data& data = node.output[static_cast<std::size_t>(place)];
      const std::uint64_t ranks = play_.ordered ? data.ranks : sorted(data);
      if (ranks != right.ranks || data.length != right.length || data.segment != right.segment ||
          data.block != place % play_.blocks) {
        return "rank " + std::to_string(me) + " ends with a wrong result in block " +
               std::to_string(place % play_.blocks) + " of segment " +
               std::to_string(place / play_.blocks);
      }
    }
  }
  return {};
}

}  // namespace espalier::mutation
