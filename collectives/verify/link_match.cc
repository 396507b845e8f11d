#include "collectives/verify/link_match.h"

#include <algorithm>
#include <tuple>

namespace espalier::verify {

void LinkMatch::sort() {
  const auto sort_rest = [](std::vector<LinkEnd>& ends, std::size_t sorted) {
    const auto middle = ends.begin() + static_cast<std::ptrdiff_t>(sorted);
    std::sort(middle, ends.end());
    std::inplace_merge(ends.begin(), middle, ends.end());
  };
  sort_rest(sends_, sorted_sends_);
  sort_rest(receives_, sorted_receives_);
}

std::pair<std::size_t, std::size_t> LinkMatch::same_link(std::size_t send,
                                                         std::size_t receive) const {
  std::uint64_t least = UINT64_MAX;
  if (send < sends_.size()) least = std::min(least, sends_[send].link);
  if (receive < receives_.size()) least = std::min(least, receives_[receive].link);
  while (send < sends_.size() && sends_[send].link == least) ++send;
  while (receive < receives_.size() && receives_[receive].link == least) ++receive;
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
