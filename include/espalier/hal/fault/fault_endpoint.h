#pragma once
// An endpoint that breaks things on purpose, around any other. Host only; it allocates.
//
// Faults are done to what this end sends. The contract matches posts by order, so the peer takes
// the message after a dropped one in its place, and finds by the tag that it is another.

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "espalier/hal/endpoint.h"
#include "espalier/hal/fault/faults.h"

namespace espalier::fault {

class FaultEndpoint final : public Endpoint {
 public:
  // Both may be empty.
  struct Hooks {
    // Something is held back until `at` by now(): poll then. For virtual time.
    std::function<void(std::uint64_t at)> wake;
    std::function<void()> killed;  // `kill` has struck
  };

  // `inner` outlives it, and is used by nobody else. A script's links that `inner` does not have
  // never carry a message, so their faults never strike.
  FaultEndpoint(Endpoint& inner, const Faults& faults, Hooks hooks);
  FaultEndpoint(Endpoint& inner, const Faults& faults);

  [[nodiscard]] std::uint32_t node() const override { return inner_.node(); }
  [[nodiscard]] std::uint32_t links() const override { return inner_.links(); }
  [[nodiscard]] std::uint32_t peer(std::uint32_t link) const override { return inner_.peer(link); }
  [[nodiscard]] std::uint32_t window() const override { return inner_.window(); }
  [[nodiscard]] std::uint64_t eager_bytes() const override { return inner_.eager_bytes(); }
  [[nodiscard]] Status prepare(const Region* regions, std::uint32_t count) override;
  [[nodiscard]] Status post_receive(std::uint32_t link, const ReceivePost& post) override;
  [[nodiscard]] Status post_send(std::uint32_t link, const SendPost& post) override;
  [[nodiscard]] Status post_control(std::uint32_t link, const Control& control) override;
  [[nodiscard]] bool poll(Completion& completion) override;
  void release() override;
  [[nodiscard]] std::uint64_t now() override { return inner_.now(); }
  void wait(std::uint64_t until) override;

  // How often each kind has struck.
  [[nodiscard]] std::uint64_t struck(Kind kind) const {
    return struck_[static_cast<std::uint32_t>(kind)];
  }

 private:
  // The caller's send, until its completion was polled.
  struct Outstanding {
    std::uint32_t cookie = 0;
    bool done = false;
    Status status = Status::kOk;
  };
  // A send for `inner`, until it has completed there.
  struct Forward {
    SendPost post;
    std::uint64_t message = 0;  // the caller's
    bool duplicate = false;     // the caller does not know of it
    bool done = false;
    std::uint64_t not_before = 0;      // by now()
    std::vector<std::uint8_t> copied;  // bytes of its own
  };
  struct Link {
    std::uint64_t posted = 0;             // messages of the caller
    std::uint64_t polled = 0;             // of those, completions given
    std::deque<Outstanding> outstanding;  // messages polled .. posted-1
    std::deque<Forward> held;             // not yet handed to inner, in order
    std::deque<Forward> forwarded;        // handed: numbers first_forwarded ..
    std::uint64_t first_forwarded = 0;
    bool swap_pending = false;  // the last held one waits for the next message
  };

  [[nodiscard]] const Fault* find(std::uint32_t link, std::uint64_t message, Fault& random) const;
  void strike(const Fault& fault, std::uint32_t link, Forward forward);
  void hold(std::uint32_t link, Forward forward);
  void flush(std::uint32_t link);
  bool count_post();
  bool give_sent(std::uint32_t link, Completion& completion);
  bool take_sent(Completion& completion);

  Endpoint& inner_;
  Faults faults_;
  Hooks hooks_;
  std::vector<Link> links_;
  std::uint64_t posts_ = 0;
  std::uint64_t kill_after_ = UINT64_MAX;
  std::uint64_t struck_[kMessageKinds + 1] = {};
  bool dead_ = false;
  bool released_ = false;
};

}  // namespace espalier::fault
