#pragma once
// An Endpoint (include/espalier/hal/endpoint.h) over memory that nodes share: processes of one
// host, or cores of one SoC. Freestanding; uses only the caller's memory.
//
// Each link has an inbox at either end: shared memory, zeros at first, that the peer writes
// (hal/mem/inbox.h). No lock is ever held, so a node that stops or ends at any instruction does not
// block another. A message of at most eager_bytes() is copied into its slot and out of it. A longer
// one is copied once, by the receiver, if its sender's memory is shared; otherwise through a few
// pieces, which both ends copy at the same time.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "espalier/hal/endpoint.h"
#include "espalier/internal/base/assert.h"
#include "espalier/internal/base/limits.h"

namespace espalier::mem {

// The sizes of an inbox, the same at both ends of a link.
struct Shape {
  std::uint32_t ring = 16;            // messages; a power of two, at least the window
  std::uint32_t slot_bytes = 4096;    // a multiple of 64
  std::uint32_t pieces = 4;           // at least 1
  std::uint32_t piece_bytes = 32768;  // a multiple of 64
};

class Inbox;

// Returns the bytes of an inbox, which begins at a multiple of 64.
[[nodiscard]] std::size_t inbox_bytes(const Shape& shape);

// The configuration of an endpoint.
struct MemConfig {
  std::uint32_t node = 0;
  std::uint32_t window = kMaxWindow;  // 1 .. shape.ring, at most kMaxWindow
  Shape shape;
};

inline namespace ESPALIER_WINDOW_BUILD {
// One link's state; the caller provides one for each link. Messages are counted over the lifetime
// of the link, in 32 bits that wrap.
class MemLink {
 public:
  MemLink() = default;
  // `in`: the inbox that the peer writes. `out`: the peer's inbox, which this end writes.
  MemLink(std::uint32_t peer, std::uint8_t* in, std::uint8_t* out)
      : peer_(peer), in_(in), out_(out) {}

 private:
  friend class MemEndpoint;
  struct Receive {
    std::uint8_t* bytes = nullptr;
    std::uint64_t size = 0;
    std::uint64_t tag = 0;
    std::uint32_t context = 0;
    std::uint32_t check = 0;
    bool mismatched = false;
  };
  struct Send {
    const std::uint8_t* bytes = nullptr;
    std::uint64_t size = 0;
    std::uint64_t tag = 0;
    std::uint32_t context = 0;
    std::uint32_t check = 0;
    bool lent = false;  // the peer reads it in place
    bool done = false;
    bool mismatched = false;
  };
  // The latest posts of one direction, by their number.
  template <typename Post>
  struct Posts {
    Post& operator[](std::uint32_t number) { return posts[number & (kPosts - 1)]; }
    static constexpr std::uint32_t kPosts = std::bit_ceil(kMaxWindow);
    std::array<Post, kPosts> posts;
  };
  // reported <= consumed <= granted <= posted, and granted <= arrived. Counters wrap, so they are
  // compared by their distances.
  struct Receiving {
    Posts<Receive> posts;
    std::uint32_t posted = 0, granted = 0, consumed = 0, reported = 0;
    std::uint32_t arrived = 0;  // announced by the peer
    std::uint32_t early = 0;    // all below are posted, or were reported as unexpected
    std::uint32_t drained = 0;  // pieces
    std::uint64_t taken = 0;    // bytes of message `consumed`
    std::array<std::uint32_t, kControlKinds> controls = {};  // sequences that were read
    std::uint32_t looked_at_controls = 0;                    // when so many had been written

    // Asserts the order of the counters.
    void check_invariants([[maybe_unused]] std::uint32_t window,
                          [[maybe_unused]] std::uint32_t ring) const {
      ESPALIER_ASSERT(consumed - reported <= granted - reported);
      ESPALIER_ASSERT(granted - reported <= posted - reported);
      ESPALIER_ASSERT(posted - reported <= window);
      ESPALIER_ASSERT(granted - consumed <= arrived - consumed);
      ESPALIER_ASSERT(arrived - consumed <= ring);
      ESPALIER_ASSERT(static_cast<std::int32_t>(arrived - early) >= 0);
      ESPALIER_ASSERT(taken == 0 || consumed != granted);
    }
  };
  // reported <= streamed <= announced <= posted, and judged <= announced.
  struct Sending {
    Posts<Send> posts;
    std::uint32_t posted = 0, announced = 0, streamed = 0, reported = 0;
    std::uint32_t judged = 0;  // consumed by the peer, as far as this end has seen
    std::uint32_t looks = 0;
    std::uint32_t filled = 0;  // pieces
    std::uint64_t given = 0;   // bytes of message `streamed`
    // By place in the ring, of sends that are not judged: the context; the slot, or kNoSlot.
    std::array<std::uint32_t, 2 * kMaxWindow> contexts = {};
    std::array<std::uint16_t, 2 * kMaxWindow> slots = {};
    // Slots that were used and are free. The last is taken first: it is in the caches. If there is
    // none, slot `used` is next.
    std::array<std::uint16_t, 2 * kMaxWindow> free_slots = {};
    std::uint16_t free_count = 0, used = 0;
    static constexpr std::uint16_t kNoSlot = 0xffff;
    bool has_late = false;  // a send that completed with kOk did not match
    std::uint32_t late_context = 0;

    [[nodiscard]] std::uint16_t take_slot() {
      ESPALIER_ASSERT(free_count != 0 || used < slots.size());
      return free_count != 0 ? free_slots[--free_count] : used++;
    }
    // Asserts the order of the counters, and that each used slot is free or of an unjudged send.
    void check_invariants([[maybe_unused]] std::uint32_t window,
                          [[maybe_unused]] std::uint32_t ring) const {
      ESPALIER_ASSERT(streamed - reported <= announced - reported);
      ESPALIER_ASSERT(announced - reported <= posted - reported);
      ESPALIER_ASSERT(posted - reported <= window);
      ESPALIER_ASSERT(announced - judged <= ring);
      ESPALIER_ASSERT(free_count <= used && used <= ring);
      ESPALIER_ASSERT(static_cast<std::uint32_t>(used - free_count) <= announced - judged);
      ESPALIER_ASSERT(given == 0 || streamed != announced);
    }
  };

  std::uint32_t peer_ = 0;
  std::uint8_t* in_ = nullptr;
  std::uint8_t* out_ = nullptr;
  Receiving receiving_;
  Sending sending_;
};

// The endpoint of a node. A host or board derives from it, and adds a clock (now()), waits (wait())
// and notify().
class MemEndpoint : public Endpoint {
 public:
  // links: an array that outlives the endpoint; the first `count` are set. More may be added.
  MemEndpoint(MemLink* links, std::uint32_t count, const MemConfig& config);
  // Takes the link after the last one, which the caller has set, into use.
  void add_link() { ++count_; }

  [[nodiscard]] std::uint32_t node() const override { return config_.node; }
  [[nodiscard]] std::uint32_t links() const override { return count_; }
  [[nodiscard]] std::uint32_t peer(std::uint32_t link) const override {
    ESPALIER_ASSERT(link < count_);
    return links_[link].peer_;
  }
  [[nodiscard]] std::uint32_t window() const override { return config_.window; }
  [[nodiscard]] std::uint64_t eager_bytes() const override { return config_.shape.slot_bytes; }
  // Keeps no reference to the regions: any memory may be used.
  [[nodiscard]] Status prepare(const Region* regions, std::uint32_t count) override;
  [[nodiscard]] Status post_receive(std::uint32_t link, const ReceivePost& post) override;
  [[nodiscard]] Status post_send(std::uint32_t link, const SendPost& post) override;
  [[nodiscard]] Status post_control(std::uint32_t link, const Control& control) override;
  [[nodiscard]] bool poll(Completion& completion) override;
  void release() override;

 protected:
  ~MemEndpoint() = default;
  // Gives the array of links, if the constructor got none.
  void set_links(MemLink* links) { links_ = links; }
  // Whether a message of several pieces begins at the piece after the last one. Otherwise, as one
  // of one piece, it begins at the first if none is in use: that one is in the caches of a core
  // that both ends share.
  void let_pieces_take_turns(bool turns) { pieces_take_turns_ = turns; }
  // The link's peer has something to read: wakes it if it sleeps.
  virtual void notify(std::uint32_t link) = 0;
  // Finds where the link's peer can read these bytes: on an SoC, their address. False: nowhere.
  // Both ends of a link have functions that fit.
  [[nodiscard]] virtual bool find_place(std::uint32_t /*link*/, const std::uint8_t* /*bytes*/,
                                        std::uint64_t /*size*/, std::uint64_t& /*place*/) {
    return false;
  }
  // Returns the bytes at a place that the link's peer found; null: it shares none there.
  [[nodiscard]] virtual const std::uint8_t* at_place(std::uint32_t /*link*/,
                                                     std::uint64_t /*place*/,
                                                     std::uint64_t /*size*/) {
    return nullptr;
  }
  // Tells the link's peer that this end has at_place(). Call when the link is added.
  void read_in_place(std::uint32_t link);
  // Moves what can be moved on all links. Returns whether anything was.
  bool progress();
  // Whether a control arrived that poll() has not returned.
  [[nodiscard]] bool has_control() const;

 private:
  using Receiving = MemLink::Receiving;
  using Sending = MemLink::Sending;
  [[nodiscard]] Inbox inbox(const MemLink& link) const;
  [[nodiscard]] Inbox outbox(const MemLink& link) const;
  [[nodiscard]] bool has_control(const MemLink& link) const;
  [[nodiscard]] bool has_arrivals(const MemLink& link) const;
  [[nodiscard]] bool has_departures(const MemLink& link, bool judges) const;
  bool progress(std::uint32_t number);
  bool look(MemLink& link);
  bool grant(MemLink& link);
  bool take(std::uint32_t number);
  [[nodiscard]] bool drain(std::uint32_t number, std::uint64_t& budget);
  [[nodiscard]] bool read(std::uint32_t number, std::uint64_t& budget);
  void judge(MemLink& link);
  bool announce(std::uint32_t number);
  bool stream(MemLink& link);
  [[nodiscard]] bool next(std::uint32_t number, Completion& completion);
  [[nodiscard]] bool next_control(MemLink& link, Completion& completion) const;
  [[nodiscard]] bool next_message(MemLink& link, Completion& completion) const;

  void check_link([[maybe_unused]] std::uint32_t number) const {
    ESPALIER_ASSERT(number < count_ && links_ != nullptr);
    links_[number].receiving_.check_invariants(config_.window, config_.shape.ring);
    links_[number].sending_.check_invariants(config_.window, config_.shape.ring);
  }
  MemLink* links_;
  std::uint32_t count_;
  MemConfig config_;
  std::uint32_t turn_ = 0;  // the link that poll() looks at first
  bool has_moved_ = false;  // the last progress() of all links did, and poll() has not said what
  bool released_ = false;
  bool pieces_take_turns_ = false;
};
}  // namespace ESPALIER_WINDOW_BUILD

}  // namespace espalier::mem
