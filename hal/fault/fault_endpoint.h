#pragma once
// An endpoint that injects faults, wrapped around any other. Host only; it allocates.
//
// Faults apply to this end's sends. Posts match by order, so the peer receives the message after a
// dropped one instead, and detects by the tag that it is a different message.

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "hal/fault/faults.h"
#include "hal/forwarding_endpoint.h"

namespace espalier::fault {

// Injects the faults of a script into the sends of another endpoint. After a `kill`, posts are
// accepted and never complete, and nothing is sent or received.
class FaultEndpoint final : public ForwardingEndpoint {
 public:
  // Both hooks may be empty.
  struct Hooks {
    // A message is held back until now() reaches `at`: poll then. For virtual time.
    std::function<void(std::uint64_t at)> wake;
    std::function<void()> killed;  // the `kill` fault has happened
  };

  // `inner` must outlive this object and must not be used by anything else. If a script names a
  // link that `inner` does not have, that fault never happens.
  FaultEndpoint(Endpoint& inner, const Faults& faults, Hooks hooks);
  FaultEndpoint(Endpoint& inner, const Faults& faults);

  [[nodiscard]] Status prepare(const Region* regions, std::uint32_t count) override;
  [[nodiscard]] Status post_receive(std::uint32_t link, const ReceivePost& post) override;
  [[nodiscard]] Status post_send(std::uint32_t link, const SendPost& post) override;
  [[nodiscard]] Status post_control(std::uint32_t link, const Control& control) override;
  [[nodiscard]] bool poll(Completion& completion) override;
  void release() override;
  void wait(std::uint64_t until) override;

  // How many faults of this kind have happened.
  [[nodiscard]] std::uint64_t struck(Kind kind) const {
    return struck_[static_cast<std::uint32_t>(kind)];
  }

 private:
  // A send of the caller, until its completion was polled.
  struct Outstanding {
    std::uint32_t context = 0;
    bool done = false;
    Status status = Status::kOk;
  };
  // A send for `inner`, until it completed there.
  struct Forward {
    SendPost post;
    std::uint64_t message = 0;  // the caller's message number
    bool duplicate = false;     // the caller does not know of this copy
    bool done = false;
    std::uint64_t not_before = 0;           // ns of now()
    std::vector<std::uint8_t> copied = {};  // the bytes, if they differ from the caller's
  };
  struct Link {
    std::uint64_t posted = 0;             // messages of the caller
    std::uint64_t polled = 0;             // completions returned for them
    std::deque<Outstanding> outstanding;  // messages polled .. posted-1
    std::deque<Forward> held;             // not yet posted to inner, in order
    std::deque<Forward> forwarded;        // posted to inner: numbers first_forwarded ..
    std::uint64_t first_forwarded = 0;
    bool swap_pending = false;  // the last held message waits for the next one
  };

  [[nodiscard]] const Fault* find(std::uint32_t link, std::uint64_t message, Fault& random) const;
  void strike(const Fault& fault, std::uint32_t link, Forward forward);
  void hold(std::uint32_t link, Forward forward);
  void flush(std::uint32_t link);
  bool count_post();
  bool give_sent(std::uint32_t link, Completion& completion);
  bool take_sent(Completion& completion);

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
