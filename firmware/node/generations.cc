#include "firmware/node/generations.h"

#include <sched.h>

#include <algorithm>

#include "base/try.h"
#include "espalier/internal/base/assert.h"
#include "firmware/node/control.h"

namespace espalier::node {
namespace {

constexpr std::uint64_t kLook = 5'000'000;  // ns: between two looks for a node that asks

}  // namespace

Status GenerationLinks::post_control(std::uint32_t link, const Control& control) {
  return (is_lost(link) ? other_ : inner_)->post_control(link, control);
}

bool GenerationLinks::poll(Completion& completion) {
  if (inner_->poll(completion)) return true;
  if (other_ == nullptr || !other_->poll(completion)) return false;
  // False once may leave others for the next poll, as after any poll that found nothing.
  return completion.kind == Completion::Kind::kControl && is_lost(completion.link);
}

void GenerationLinks::wait(std::uint64_t until) {
  inner_->wait(other_ == nullptr ? until : std::min(until, now() + kLook));
}

Result<void> Generations::open(const OpenEndpoint& open_endpoint, std::uint32_t count) {
  ESPALIER_ASSERT(count >= 1);
  newest_.clear();
  while (newest_.size() < count) {
    ESPALIER_TRY_TO(auto opened, open_endpoint());
    newest_.push_back(std::move(opened));
  }
  return {};
}

void Generations::take() {
  used_ = newest_;
  for (const auto& each : used_) links_.emplace_back(each->endpoint());
}

void Generations::take(std::uint32_t present, std::uint32_t lost) {
  ESPALIER_ASSERT(present < count() && newest_.size() >= count());
  links_[present].ask_over(newest_[present]->endpoint(), lost);
  asked_.resize(count());
  asked_[present] = newest_[present];
  for (std::uint32_t next = present + 1; next < count(); ++next) {
    links_[next].replace(newest_[next]->endpoint());
    used_[next] = newest_[next];
  }
}

void Generations::clear() {
  links_.clear();
  asked_.clear();
  used_.clear();
  newest_.clear();
}

Result<void> connect(const Generations& generations, std::uint32_t node, int channel,
                     ControlWireUp& wire_up) {
  auto started = publish_all(generations.newest(), node, wire_up);
  if (started) started = start_connecting_all(generations.newest(), wire_up);
  if (!started) return started;
  while (true) {
    ESPALIER_TRY_TO(const auto connected, go_on_connecting_all(generations.newest()));
    if (connected) return {};
    if (control::is_closed(channel)) return fail("the launcher is gone");
    sched_yield();
  }
}

}  // namespace espalier::node
