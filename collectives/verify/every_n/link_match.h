#pragma once
// Whether the two ends of every link name the same messages, for every N: by comparing the
// progressions of both ends. Internal to collectives/verify.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace espalier::verify {

// One end's progression on a link. Steps are those of the receive, numbered from stage to stage so
// that equal numbers mean equal stages.
struct LinkEnd {
  std::int64_t first = 0;               // step of the first block
  std::int64_t slot = 0;                // that step in the period
  std::int32_t segment = 0, block = 0;  // in an all-to-all segments are each end's own: 0
  std::uint32_t cell = 0;  // of the progression; ascending in the order of messages of one step
  std::uint16_t part = 0, run = 1;

  // Progressions that share a step for some N have the same slot; they meet in the order of cells.
  friend bool operator<(const LinkEnd& a, const LinkEnd& b) {
    return a.slot != b.slot ? a.slot < b.slot : a.cell < b.cell;
  }
  [[nodiscard]] bool meets(const LinkEnd& other) const {
    return first == other.first && segment == other.segment && block == other.block &&
           part == other.part && run == other.run;
  }
};

// Takes the nodes one after the other, from 0 on. A node's ends are compared when the later node of
// their link has been added, and kept until then.
class LinkMatch {
 public:
  // An end that the other node of its link does not have.
  struct Mismatch {
    LinkEnd end;
    std::uint32_t from = 0, to = 0;  // the link
    bool is_send = false;            // the end is the sender's
  };
  // Ends of one link of a node's program.
  struct Room {
    std::uint32_t peer = 0;
    std::uint32_t sends = 0, receives = 0;
  };
  // Takes the cells of a send and of the receive that it meets.
  using Pair = std::function<void(std::uint32_t send, std::uint32_t receive)>;

  // The node's ends follow: of each link, by its position in the program, as many as its room says.
  void begin_node(const std::vector<Room>& rooms);
  void add(std::size_t link, const LinkEnd& end, bool is_send) {
    std::uint32_t& next = next_[2 * link + (is_send ? 1 : 0)];
    nodes_.back()->ends[next++] = end;
  }
  [[nodiscard]] std::optional<Mismatch> end_node(const Pair& pair);
  // All nodes have been added: an end that is left has met none.
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
    std::vector<Part> parts;  // by peer, receives first; those that have met are of size 0
    std::size_t left = 0;     // ends that have not met
  };
  [[nodiscard]] static Part* find(NodeEnds& node, std::uint32_t peer, bool is_send);
  [[nodiscard]] std::optional<Mismatch> compare(std::uint32_t node, const Part& part,
                                                const Pair& pair);
  static void shrink(std::unique_ptr<NodeEnds>& node);

  std::vector<std::unique_ptr<NodeEnds>> nodes_;  // none: all of its ends have met
  std::vector<std::uint32_t> next_;  // where the next end goes: link by link, receives first
};

}  // namespace espalier::verify
