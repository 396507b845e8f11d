#pragma once
// An endpoint between a machine and its fabric: it gives the node its own clock, loses and holds
// back what comes in, counts operations, and reports what a machine must not do.

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "hal/forwarding_endpoint.h"
#include "tests/storm/plan.h"

namespace espalier::storm {

// A node's clock, as a function of the fabric's.
struct NodeClock {
  std::uint64_t ppm = 1'000'000;  // speed in millionths
  std::uint64_t tick_ns = 1;      // it shows multiples of this

  [[nodiscard]] std::uint64_t local(std::uint64_t global_ns) const {
    const std::uint64_t exact = ppm == 1'000'000 ? global_ns : scale(global_ns, ppm, 1'000'000);
    return tick_ns == 1 ? exact : exact / tick_ns * tick_ns;
  }
  // The earliest global time at which the clock shows `local_ns` or more.
  [[nodiscard]] std::uint64_t global(std::uint64_t local_ns) const {
    if (local_ns >= kNever / 4'000'000) return kNever;
    const std::uint64_t shown = (local_ns + tick_ns - 1) / tick_ns * tick_ns;
    if (ppm == 1'000'000) return shown;
    std::uint64_t global_ns = scale(shown, 1'000'000, ppm);
    while (local(global_ns) < local_ns) ++global_ns;
    return global_ns;
  }

 private:
  static std::uint64_t scale(std::uint64_t value, std::uint64_t by, std::uint64_t over) {
    return value / over * by + value % over * by / over;
  }
};

class WatchedEndpoint final : public ForwardingEndpoint {
 public:
  // What a node does not receive, by link.
  struct Incoming {
    std::uint64_t cut_at = kNever;                     // nothing arrives from then on
    std::uint64_t hold_from = kNever, hold_until = 0;  // what arrives then arrives at the end
    std::deque<Completion> held;
  };

  // `now`: the fabric's time. Both must outlive this object.
  WatchedEndpoint(Endpoint& inner, std::function<std::uint64_t()> now);

  NodeClock clock;
  std::vector<Incoming> incoming;
  // Called at the operation with this number: a post, or a completion of one.
  std::uint64_t strike_at_operation = kNever;
  std::function<void()> strike;
  bool running = false;  // whether a collective runs; set by the owner
  bool dead = false;     // posts are accepted and nothing is sent; set by the owner

  [[nodiscard]] std::uint64_t operations() const { return operations_; }
  // Sends posted, by link.
  [[nodiscard]] const std::vector<std::uint64_t>& sent() const { return sent_; }
  [[nodiscard]] std::uint32_t activity() const { return activity_; }
  // Fabric time of the last completion that moved the collective.
  [[nodiscard]] std::uint64_t moved_ns() const { return moved_ns_; }
  // Whether anything was cut, or held back.
  [[nodiscard]] std::uint64_t lost() const { return lost_; }
  [[nodiscard]] std::uint64_t held() const { return held_; }
  // Fabric time at which held completions arrive; kNever: none is held.
  [[nodiscard]] std::uint64_t next_ns() const;
  // The first thing that the machine must not do; empty: none.
  [[nodiscard]] const std::string& violation() const { return violation_; }

  [[nodiscard]] Status prepare(const Region* regions, std::uint32_t count) override;
  [[nodiscard]] Status post_receive(std::uint32_t link, const ReceivePost& post) override;
  [[nodiscard]] Status post_send(std::uint32_t link, const SendPost& post) override;
  [[nodiscard]] Status post_control(std::uint32_t link, const Control& control) override;
  [[nodiscard]] bool poll(Completion& completion) override;
  void release() override;
  [[nodiscard]] std::uint64_t now() override { return clock.local(now_()); }

 private:
  void check_post(const char* what);
  void count_operation();
  [[nodiscard]] bool arrives(const Completion& completion, std::uint64_t now_ns);

  std::function<std::uint64_t()> now_;
  std::uint64_t operations_ = 0, moved_ns_ = 0, lost_ = 0, held_ = 0;
  std::vector<std::uint64_t> sent_;
  std::uint32_t activity_ = 0;
  bool released_ = false;
  std::string violation_;
};

}  // namespace espalier::storm
