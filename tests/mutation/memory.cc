#include "tests/mutation/memory.h"

namespace espalier::mutation {

Memory::Memory(const Play& play) : play_(play), nodes_(play.parts.size()) {
  for (std::size_t me = 0; me < nodes_.size(); ++me) {
    nodes_[me].output.resize(static_cast<std::size_t>(play.segments * play.blocks));
    nodes_[me].scratch.resize(static_cast<std::size_t>(play.parts[me].scratch));
    nodes_[me].heard = Contract::arrival(static_cast<std::int64_t>(me));
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
  const auto mine = static_cast<std::int64_t>(me);
  std::vector<Data> all;
  for (std::int64_t part = 0; part < spot.segment_count; ++part) {
    all.push_back(input ? play_.own(mine, spot.segment + part, spot.block) : place(me, spot, part));
  }
  return all;
}

void Memory::store(std::size_t me, const Spot& spot, const std::vector<Data>& all) {
  for (std::int64_t part = 0; part < spot.segment_count; ++part) {
    Data& into = place(me, spot, part);
    into = all[static_cast<std::size_t>(part)];
    // Data of length 0 were never written: they announce no arrival.
    if (play_.is_barrier() && into.length > 0) nodes_[me].heard |= into.ranks;
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
    for (std::size_t k = 0; k < result.size(); ++k) result[k] = play_.combined(result[k], right[k]);
  }
  store(me, move.into, result);
  return true;
}

std::string Memory::wrong_result() const {
  for (std::int64_t me = 0; me < play_.ranks; ++me) {
    const NodeMemory& node = nodes_[static_cast<std::size_t>(me)];
    if (play_.is_barrier()) {
      if (node.heard == play_.all_arrivals()) continue;
      return "rank " + std::to_string(me) + " ends before it has heard of all";
    }
    const auto [first, end] = play_.given(me, Buffer::kOutput);
    for (std::int64_t place = first * play_.blocks; place < end * play_.blocks; ++place) {
      if (node.output[static_cast<std::size_t>(place)] !=
          play_.wanted(me, place / play_.blocks, place % play_.blocks)) {
        return "rank " + std::to_string(me) + " ends with a wrong result in block " +
               std::to_string(place % play_.blocks) + " of segment " +
               std::to_string(place / play_.blocks);
      }
    }
  }
  return {};
}

}  // namespace espalier::mutation
