#pragma once
// Properties matching and deadlock for every N: both ends of every link name the same progressions,
// and so the same messages. Internal to collectives/verify.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "espalier/internal/base/assert.h"

namespace espalier::verify {

// A progression at one end of a link. Steps are those of the receive. They are numbered across
// stages, so equal numbers mean equal stages.
struct LinkEnd {
  std::int64_t first = 0;               // step of the first block
  std::int64_t slot = 0;                // that step modulo the period
  std::int32_t segment = 0, block = 0;  // segment: 0 in an all-to-all, where each end names its own
  std::uint32_t cell = 0;  // of the progression; ascending in the order of the messages of a step
  std::uint16_t part = 0, segment_count = 1;
  bool once = false;  // as Progression::once

  // Progressions that share a step for some N have the same slot. Their messages match in the order
  // of cells.
  friend bool operator<(const LinkEnd& a, const LinkEnd& b) {
    return a.slot != b.slot ? a.slot < b.slot : a.cell < b.cell;
  }
  [[nodiscard]] bool meets(const LinkEnd& other) const {
    return first == other.first && segment == other.segment && block == other.block &&
           part == other.part && segment_count == other.segment_count && once == other.once;
  }
};

// Takes the nodes in order, from node 0. The ends of a link are compared when the later of its
// nodes has been added, and kept until then.
class LinkMatch {
 public:
  // An end without a counterpart at the other node of its link.
  struct Mismatch {
    LinkEnd end;
    std::uint32_t from = 0, to = 0;  // the link
    bool is_send = false;            // whether the end belongs to the sender
  };
  // The number of ends of one link of a node's program.
  struct Room {
    std::uint32_t peer = 0;
    std::uint32_t sends = 0, receives = 0;
  };
  // Called with the cells of a send and of the receive that matches it.
  using Pair = std::function<void(std::uint32_t send, std::uint32_t receive)>;

  // Begins a node. `rooms`: by link of its program, the number of ends that add() will be given.
  void begin_node(const std::vector<Room>& rooms);
  void add(std::size_t link, const LinkEnd& end, bool is_send) {
    ESPALIER_ASSERT(!nodes_.empty() && 2 * link + 1 < next_.size());
    std::uint32_t& next = next_[2 * link + (is_send ? 1 : 0)];
    nodes_.back()->ends[next++] = end;
  }
  // Compares the ends of links to earlier nodes.
  [[nodiscard]] std::optional<Mismatch> end_node(const Pair& pair);
  // Call after all nodes have been added: returns an end that is left without a counterpart.
  [[nodiscard]] std::optional<Mismatch> finish() const;

 private:
  // The ends of one link and direction.
  struct Part {
    std::uint32_t peer = 0;
    bool is_send = false;
    std::uint32_t begin = 0, size = 0;  // in NodeEnds::ends, sorted
  };
  struct NodeEnds {
    std::vector<LinkEnd> ends;
    std::vector<Part> parts;  // by peer, receives first; size 0: matched
    std::size_t left = 0;     // ends not matched yet
  };
  [[nodiscard]] static Part* find(NodeEnds& node, std::uint32_t peer, bool is_send);
  [[nodiscard]] std::optional<Mismatch> compare(std::uint32_t node, const Part& part,
                                                const Pair& pair);
  static void shrink(std::unique_ptr<NodeEnds>& node);

  std::vector<std::unique_ptr<NodeEnds>> nodes_;  // null: all of its ends are matched
  std::vector<std::uint32_t> next_;  // position of the next end: link by link, receives first
};

}  // namespace espalier::verify
