#include "collectives/verify/properties/hazard_rules.h"

namespace espalier::verify {

void HazardRules::begin_step(std::int64_t step, std::int64_t retired) {
  ESPALIER_ASSERT(step >= step_ && retired < step);
  step_ = step;
  before_issue_ = Known{};
  before_issue_.retire(retired);
  operated_ = false;
}

// Rule 4: posted when its step is issued, step - after is ready, and the link's earlier sends are
// posted.
const Known& HazardRules::post_send(std::size_t link, std::int64_t after) {
  ESPALIER_ASSERT(link < last_send_.size());
  LastSend& last = last_send_[link];
  (void)post_send_alone(after);
  if (last.sent) {
    posted_.merge(last.known);
    all_posted_.merge(posted_);
  }
  last = {true, posted_};
  return posted_;
}

const Known& HazardRules::post_send_alone(std::int64_t after) {
  posted_ = before_issue_;
  const std::int64_t awaited = step_ - after;
  if (after > 0 && awaited > before_issue_.retired) {
    // A ring holds the steps less than a window back. A step without instances adds nothing.
    const Ready& ready = ready_[static_cast<std::size_t>(awaited % kMaxVerifiedWindow)];
    if (ready.step == awaited) posted_.merge(ready.known);
  }
  all_posted_.merge(posted_);
  return posted_;
}

// Rule 5. (c) posts the sends of its step and of earlier steps first, (d) waits for their end.
const Known& HazardRules::run_operation(std::int64_t after) {
  Known before = before_issue_;
  before.merge(run_);
  before.merge(all_posted_);
  before.add_received(step_ - after);
  before.operations = operations_++;
  operated_ = true;
  return run_ = before;
}

void HazardRules::end_step() {
  Known ready = before_issue_;
  ready.add_received(step_);
  if (operated_) {
    run_.operations = operations_;
    ready.merge(run_);
  }
  ready_[static_cast<std::size_t>(step_ % kMaxVerifiedWindow)] = {step_, ready};
}

}  // namespace espalier::verify
