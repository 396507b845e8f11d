#include "collectives/verify/link_match.h"

#include <algorithm>

namespace espalier::verify {

void LinkMatch::sort() {
  for (std::vector<LinkEnd>* ends : {&sends_, &receives_}) {
    if (!std::is_sorted(ends->begin(), ends->end())) std::sort(ends->begin(), ends->end());
  }
}

std::pair<std::size_t, std::size_t> LinkMatch::same_link(std::size_t send,
                                                         std::size_t receive) const {
  const auto link = [](const LinkEnd& end) { return std::pair(end.from, end.to); };
  auto least = std::pair(UINT32_MAX, UINT32_MAX);
  if (send < sends_.size()) least = std::min(least, link(sends_[send]));
  if (receive < receives_.size()) least = std::min(least, link(receives_[receive]));
  while (send < sends_.size() && link(sends_[send]) == least) ++send;
  while (receive < receives_.size() && link(receives_[receive]) == least) ++receive;
  return {send, receive};
}

LinkMatch::Mismatch LinkMatch::first_of(const LinkEnd* send, const LinkEnd* receive) {
  const auto when = [](const LinkEnd& end) {
    return std::tuple(end.slot, end.first, end.segment, end.block);
  };
  const bool of_send = send != nullptr && (receive == nullptr || when(*send) < when(*receive));
  return of_send ? Mismatch{*send, true} : Mismatch{*receive, false};
}

}  // namespace espalier::verify
