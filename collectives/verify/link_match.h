#pragma once
// Whether the two ends of every link name the same messages, for every N: by comparing the
// progressions of both ends. Internal to collectives/verify.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace espalier::verify {

[[nodiscard]] inline std::uint64_t link_key(std::uint32_t from, std::uint32_t to) {
  return static_cast<std::uint64_t>(from) << 32 | to;
}

// One end's progression on a link. Steps are those of the receive, numbered from stage to stage so
// that equal numbers mean equal stages.
struct LinkEnd {
  std::uint64_t link = 0;               // link_key() of its nodes
  std::int64_t first = 0;               // step of the first block
  std::int64_t slot = 0;                // that step in the period
  std::int32_t segment = 0, block = 0;  // in an all-to-all segments are each end's own: 0
  std::uint32_t cell = 0;  // of the progression; ascending in the order of messages of one step
  std::uint16_t part = 0, run = 1;

  // Progressions that share a step for some N have the same slot; they meet in the order of cells.
  friend bool operator<(const LinkEnd& a, const LinkEnd& b) {
    if (a.link != b.link) return a.link < b.link;
    return a.slot != b.slot ? a.slot < b.slot : a.cell < b.cell;
  }
  [[nodiscard]] bool meets(const LinkEnd& other) const {
    return link == other.link && first == other.first && segment == other.segment &&
           block == other.block && part == other.part && run == other.run;
  }
  [[nodiscard]] std::uint32_t from() const { return static_cast<std::uint32_t>(link >> 32); }
  [[nodiscard]] std::uint32_t to() const { return static_cast<std::uint32_t>(link); }
};

// Ends are kept only until both nodes of a link have been added.
class LinkMatch {
 public:
  struct Mismatch {
    LinkEnd end;
    bool is_send = false;
  };

  void add(const LinkEnd& end, bool is_send) { (is_send ? sends_ : receives_).push_back(end); }
  // All ends of the nodes below `nodes` have been added. Calls pair(send's cell, receive's cell)
  // for those that meet; every so often only, unless `all` is set.
  template <typename Pair>
  [[nodiscard]] std::optional<Mismatch> settle(std::uint32_t nodes, bool all, const Pair& pair) {
    if (!all && sends_.size() + receives_.size() < next_) return std::nullopt;
    sort();
    std::optional<Mismatch> mismatch;
    std::size_t send = 0, receive = 0, kept_sends = 0, kept_receives = 0;
    while (send < sends_.size() || receive < receives_.size()) {
      const auto [send_end, receive_end] = same_link(send, receive);
      const LinkEnd& one = send < send_end ? sends_[send] : receives_[receive];
      if (one.from() >= nodes || one.to() >= nodes) {
        while (send < send_end) sends_[kept_sends++] = sends_[send++];
        while (receive < receive_end) receives_[kept_receives++] = receives_[receive++];
        continue;
      }
      for (; send < send_end || receive < receive_end; ++send, ++receive) {
        if (send < send_end && receive < receive_end && sends_[send].meets(receives_[receive])) {
          pair(sends_[send].cell, receives_[receive].cell);
          continue;
        }
        return first_of(send < send_end ? &sends_[send] : nullptr,
                        receive < receive_end ? &receives_[receive] : nullptr);
      }
    }
    sends_.resize(kept_sends);
    receives_.resize(kept_receives);
    sorted_sends_ = kept_sends;
    sorted_receives_ = kept_receives;
    next_ = kLeast + (kept_sends + kept_receives) / 8 * 9;
    return mismatch;
  }

 private:
  static constexpr std::size_t kLeast = 1 << 19;
  void sort();
  // Where the ends of the least link of sends_[send] and receives_[receive] end.
  [[nodiscard]] std::pair<std::size_t, std::size_t> same_link(std::size_t send,
                                                              std::size_t receive) const;
  [[nodiscard]] static Mismatch first_of(const LinkEnd* send, const LinkEnd* receive);

  std::vector<LinkEnd> sends_, receives_;
  std::size_t sorted_sends_ = 0, sorted_receives_ = 0;  // so many from the beginning are sorted
  std::size_t next_ = kLeast;
};

}  // namespace espalier::verify
