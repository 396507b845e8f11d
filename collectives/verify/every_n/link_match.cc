#include "collectives/verify/every_n/link_match.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace espalier::verify {
namespace {

// The ends of one link arrive as a few sorted sequences, usually one or two per stage.
void sort_runs(std::vector<LinkEnd>::iterator begin, std::vector<LinkEnd>::iterator end) {
  std::vector<std::vector<LinkEnd>::iterator> runs;
  for (auto one = begin; one != end; ++one) {
    if (one == begin || *one < *(one - 1)) runs.push_back(one);
  }
  while (runs.size() > 1) {
    for (std::size_t k = 0; k + 1 < runs.size(); k += 2) {
      std::inplace_merge(runs[k], runs[k + 1], k + 2 < runs.size() ? runs[k + 2] : end);
      runs[k / 2] = runs[k];
    }
    if (runs.size() % 2 != 0) runs[runs.size() / 2] = runs.back();
    runs.resize((runs.size() + 1) / 2);
  }
}

std::tuple<std::int64_t, std::int64_t, std::int32_t, std::int32_t> when(const LinkEnd& end) {
  return {end.slot, end.first, end.segment, end.block};
}

}  // namespace

void LinkMatch::begin_node(const std::vector<Room>& rooms) {
  std::vector<std::size_t> links(rooms.size());
  std::iota(links.begin(), links.end(), 0);
  std::sort(links.begin(), links.end(),
            [&rooms](std::size_t a, std::size_t b) { return rooms[a].peer < rooms[b].peer; });
  NodeEnds& node = *nodes_.emplace_back(std::make_unique<NodeEnds>());
  next_.resize(2 * rooms.size());
  std::uint32_t begin = 0;
  for (const std::size_t link : links) {
    const Room& room = rooms[link];
    for (const bool is_send : {false, true}) {
      const std::uint32_t size = is_send ? room.sends : room.receives;
      next_[2 * link + (is_send ? 1 : 0)] = begin;
      if (size > 0) node.parts.push_back({room.peer, is_send, begin, size});
      begin += size;
    }
  }
  node.ends.resize(begin);
  node.left = begin;
}

std::optional<LinkMatch::Mismatch> LinkMatch::end_node(const Pair& pair) {
  const auto number = static_cast<std::uint32_t>(nodes_.size() - 1);
  NodeEnds& node = *nodes_.back();
  const auto begin = node.ends.begin();
  for (const Part& part : node.parts) sort_runs(begin + part.begin, begin + part.begin + part.size);
  for (Part& part : node.parts) {
    if (part.peer >= number) break;
    if (auto mismatch = compare(number, part, pair)) return mismatch;
    node.left -= std::exchange(part.size, 0);
  }
  shrink(nodes_.back());
  return std::nullopt;
}

std::optional<LinkMatch::Mismatch> LinkMatch::finish() const {
  for (std::uint32_t number = 0; number < nodes_.size(); ++number) {
    if (!nodes_[number]) continue;
    for (const Part& part : nodes_[number]->parts) {
      if (part.size == 0) continue;
      const LinkEnd& end = nodes_[number]->ends[part.begin];
      return part.is_send ? Mismatch{end, number, part.peer, true}
                          : Mismatch{end, part.peer, number, false};
    }
  }
  return std::nullopt;
}

LinkMatch::Part* LinkMatch::find(NodeEnds& node, std::uint32_t peer, bool is_send) {
  const auto before = [](const Part& part, const std::pair<std::uint32_t, bool>& wanted) {
    return std::pair(part.peer, part.is_send) < wanted;
  };
  const std::pair wanted(peer, is_send);
  const auto found = std::lower_bound(node.parts.begin(), node.parts.end(), wanted, before);
  const bool there = found != node.parts.end() && std::pair(found->peer, found->is_send) == wanted;
  return there ? &*found : nullptr;
}

// Compares the ends of `part` with those of the other end of the link, at an earlier node.
std::optional<LinkMatch::Mismatch> LinkMatch::compare(std::uint32_t node, const Part& part,
                                                      const Pair& pair) {
  std::unique_ptr<NodeEnds>& peer = nodes_[part.peer];
  Part* const other = peer ? find(*peer, node, !part.is_send) : nullptr;
  const LinkEnd* mine = nodes_[node]->ends.data() + part.begin;
  const LinkEnd* const mine_end = mine + part.size;
  const LinkEnd* theirs = other == nullptr ? nullptr : peer->ends.data() + other->begin;
  const LinkEnd* const theirs_end = other == nullptr ? nullptr : theirs + other->size;
  for (; mine != mine_end && theirs != theirs_end && mine->meets(*theirs); ++mine, ++theirs) {
    part.is_send ? pair(mine->cell, theirs->cell) : pair(theirs->cell, mine->cell);
  }
  if (mine == mine_end && theirs == theirs_end) {
    if (other != nullptr) {
      peer->left -= std::exchange(other->size, 0);
      shrink(peer);
    }
    return std::nullopt;
  }
  // The earlier of the two unequal ends.
  const bool of_mine = theirs == theirs_end || (mine != mine_end && when(*mine) < when(*theirs));
  const std::uint32_t from = part.is_send ? node : part.peer;
  const std::uint32_t to = part.is_send ? part.peer : node;
  return Mismatch{of_mine ? *mine : *theirs, from, to, of_mine == part.is_send};
}

// Keeps the memory of a node below twice that of its unmatched ends.
void LinkMatch::shrink(std::unique_ptr<NodeEnds>& node) {
  if (node->left == 0) return node.reset();
  if (node->left > node->ends.size() / 2) return;
  NodeEnds kept;
  kept.left = node->left;
  kept.ends.reserve(node->left);
  for (Part left : node->parts) {
    if (left.size == 0) continue;
    const auto begin = node->ends.begin() + left.begin;
    left.begin = static_cast<std::uint32_t>(kept.ends.size());
    kept.ends.insert(kept.ends.end(), begin, begin + left.size);
    kept.parts.push_back(left);
  }
  *node = std::move(kept);
}

}  // namespace espalier::verify
