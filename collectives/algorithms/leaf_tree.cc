#include "collectives/algorithms/leaf_tree.h"

namespace espalier {
namespace {

// Above any number of blocks that a message can have; 1 more is still a coefficient.
constexpr std::int32_t kBeyondBlocks = kMaxField - 1;

}  // namespace

std::uint32_t LeafNode::meeting_level(std::uint32_t rank) const {
  std::uint32_t at = level;
  std::uint32_t mine = index, other = rank / leaves;
  for (; mine != other; ++at) {
    mine /= arity;
    other /= arity;
  }
  return at;
}

std::uint32_t leaves_below(const LeafNode& node, std::uint32_t level) {
  std::uint32_t leaves = 1;
  for (std::uint32_t at = 0; at < level; ++at) leaves *= node.arity;
  return leaves;
}

Status find_leaf_node(const Group& group, std::uint32_t me, LeafNode& node) {
  if (group.arity < 2 || group.height < 1) return Status::kUnsupported;
  std::uint64_t ranks = 1;
  for (std::uint32_t at = 0; at < group.height && ranks <= kMaxRanks; ++at) ranks *= group.arity;
  if (ranks != group.ranks || ranks > kMaxRanks) return Status::kUnsupported;
  node = {group.arity, group.height, group.ranks, 0, 0, 0, 1};
  while (me - node.first >= node.ranks / node.leaves) {
    if (node.level == node.height) return Status::kBadArgument;
    node.first += node.ranks / node.leaves;
    node.leaves *= node.arity;
    ++node.level;
  }
  node.index = me - node.first;
  return Status::kOk;
}

std::uint32_t leaf_tree_nodes(const LeafNode& node) {
  return (node.ranks - 1) / (node.arity - 1) + node.ranks;
}

Term LeafRounds::round(std::int32_t coef) const {
  return {.coef = coef,
          .mul = 1,
          .add = 0,
          .div = period,
          .mod = 0,
          .base = 0,
          .digits = 0,
          .table = 0};
}

std::uint8_t LeafRounds::block(Builder& builder, std::uint32_t length) {
  Index row{};
  if (length == period) {
    row.coef = 1;
    row.div = period;
    return builder.index(row);
  }
  // (floor(i / period) - floor((i - length) / period)) is 1 in those steps, else 0.
  Term end = round(-kBeyondBlocks);
  end.add = -static_cast<std::int32_t>(length);
  row.base = -kBeyondBlocks;
  const Term begin = round(1 + kBeyondBlocks);
  round_last = !round_last;
  return round_last ? builder.index(row, {end, begin}) : builder.index(row, {begin, end});
}

std::uint8_t LeafRounds::instances(Builder& builder, std::uint32_t length) const {
  return builder.count({.a = static_cast<std::int32_t>(length) - static_cast<std::int32_t>(period),
                        .b = static_cast<std::int32_t>(period),
                        .c = 0,
                        .d = 0,
                        .e = 0});
}

void add_leaf_links(Builder& builder, const LeafNode& node) {
  if (node.level > 0) {
    for (std::uint32_t branch = 0; branch < node.arity; ++branch) {
      (void)builder.link(node.child(branch));
    }
  }
  if (node.level < node.height) (void)builder.link(node.parent());
}

}  // namespace espalier
