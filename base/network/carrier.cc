#include "base/network/carrier.h"

#include <linux/if.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace espalier::network {
namespace {

constexpr std::size_t kMaxAnswerBytes = 16384;  // of one interface, with all its attributes

struct Question {
  nlmsghdr head = {};
  ifinfomsg link = {};
};

}  // namespace

std::unique_ptr<CarrierWatch> CarrierWatch::open(std::vector<std::uint32_t> indexes) {
  const int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
  if (descriptor < 0) return nullptr;
  sockaddr_nl own = {};
  own.nl_family = AF_NETLINK;
  own.nl_groups = RTMGRP_LINK;
  if (bind(descriptor, reinterpret_cast<sockaddr*>(&own), sizeof own) != 0) {
    close(descriptor);
    return nullptr;
  }
  return std::unique_ptr<CarrierWatch>(new CarrierWatch(descriptor, indexes));
}

CarrierWatch::CarrierWatch(int socket, const std::vector<std::uint32_t>& indexes)
    : socket_(socket) {
  for (const std::uint32_t index : indexes) watched_.push_back({.index = index});
}

CarrierWatch::~CarrierWatch() { close(socket_); }

bool CarrierWatch::check(std::uint64_t time_ns) {
  read_all(time_ns);  // what is old
  for (const Watched& each : watched_) {
    if (!each.is_lost) ask(each.index);
  }
  read_all(time_ns);  // the kernel answers before sendto() returns
  due_ns_ = time_ns + kPeriodNs;
  bool is_new = false;
  for (Watched& each : watched_) {
    if (each.is_lost || each.down_ns == 0) continue;
    each.is_lost = time_ns - each.down_ns >= kForgivenNs;
    is_new = is_new || each.is_lost;
    due_ns_ = std::min(due_ns_, each.down_ns + kForgivenNs);
  }
  if (due_ns_ <= time_ns) due_ns_ = time_ns + kPeriodNs;
  return is_new;
}

void CarrierWatch::ask(std::uint32_t index) {
  Question question;
  question.head.nlmsg_len = sizeof question;
  question.head.nlmsg_type = RTM_GETLINK;
  question.head.nlmsg_flags = NLM_F_REQUEST;
  question.head.nlmsg_seq = index;
  question.link.ifi_family = AF_UNSPEC;
  question.link.ifi_index = static_cast<int>(index);
  (void)send(socket_, &question, sizeof question, 0);
}

void CarrierWatch::read_all(std::uint64_t time_ns) {
  alignas(nlmsghdr) char buffer[kMaxAnswerBytes];
  while (true) {
    const ssize_t size = recv(socket_, buffer, sizeof buffer, 0);
    if (size < 0 && (errno == EINTR || errno == ENOBUFS))
      continue;  // what was dropped is asked for
    if (size <= 0) return;
    auto left = static_cast<int>(size);
    for (auto* one = reinterpret_cast<nlmsghdr*>(buffer);
         NLMSG_OK(one, static_cast<unsigned>(left)); one = NLMSG_NEXT(one, left)) {
      take(one, time_ns);
    }
  }
}

void CarrierWatch::take(const void* message, std::uint64_t time_ns) {
  const auto* const head = static_cast<const nlmsghdr*>(message);
  if (head->nlmsg_type == NLMSG_ERROR) {
    nlmsgerr error;
    if (head->nlmsg_len < NLMSG_LENGTH(sizeof error)) return;
    std::memcpy(&error, NLMSG_DATA(head), sizeof error);
    if (error.error == -ENODEV) note(head->nlmsg_seq, false, 0, time_ns);
    return;
  }
  if (head->nlmsg_type != RTM_NEWLINK && head->nlmsg_type != RTM_DELLINK) return;
  if (head->nlmsg_len < NLMSG_LENGTH(sizeof(ifinfomsg))) return;
  const auto* const link = static_cast<const ifinfomsg*>(NLMSG_DATA(head));
  std::uint32_t changes = 0;
  auto left = static_cast<int>(IFLA_PAYLOAD(head));
  for (const rtattr* one = IFLA_RTA(link); RTA_OK(one, left); one = RTA_NEXT(one, left)) {
    if (one->rta_type != IFLA_CARRIER_CHANGES || RTA_PAYLOAD(one) < sizeof changes) continue;
    std::memcpy(&changes, RTA_DATA(one), sizeof changes);
  }
  constexpr unsigned kNeeded = IFF_UP | IFF_LOWER_UP;
  const bool has_carrier =
      head->nlmsg_type == RTM_NEWLINK && (link->ifi_flags & kNeeded) == kNeeded;
  note(static_cast<std::uint32_t>(link->ifi_index), has_carrier, changes, time_ns);
}

void CarrierWatch::note(std::uint32_t index, bool has_carrier, std::uint32_t changes,
                        std::uint64_t time_ns) {
  for (Watched& each : watched_) {
    if (each.index != index) continue;
    // It was back meanwhile if the kernel counts more changes.
    const bool is_again = each.down_ns != 0 && !has_carrier && changes != each.changes;
    if (has_carrier) {
      each.down_ns = 0;
    } else if (each.down_ns == 0 || is_again) {
      each.down_ns = time_ns;
    }
    each.changes = changes;
  }
}

}  // namespace espalier::network
