#include "firmware/gateway/bridge.h"

namespace espalier::gateway {
namespace {

constexpr std::uint64_t kAlignment = 64;
constexpr int kCompletions = 64;         // of the fabric a step
constexpr std::size_t kEarlyWords = 64;  // as many as a fabric has slots a link

std::string link_name(std::uint32_t link) { return "its link " + std::to_string(link); }

}  // namespace

Bridge::Bridge(SerialPort& port, SerialLink* links, Endpoint& fabric, const Shape& shape,
               const SerialConfig& config)
    : SerialLinks(port, links, static_cast<std::uint32_t>(shape.fabric_links.size()), config),
      fabric_(fabric),
      block_bytes_((shape.block_bytes + kAlignment - 1) / kAlignment * kAlignment),
      links_(shape.fabric_links.size()),
      board_link_(fabric.links(), kNone) {
  const std::uint64_t blocks = std::uint64_t{2} * window() * links_.size();
  arena_bytes_ = blocks * block_bytes_;
  arena_ = std::make_unique<std::uint8_t[]>(arena_bytes_);
  std::uint8_t* next = arena_.get();
  for (std::uint32_t number = 0; number < links_.size(); ++number) {
    Link& link = links_[number];
    link.fabric = shape.fabric_links[number];
    link.tells_early = shape.tells_early[number];
    link.early.tags.reserve(kEarlyWords);
    if (link.fabric != kNone) board_link_[link.fabric] = number;
    for (std::vector<Message>* ring : {&link.to.ring, &link.from.ring}) {
      ring->resize(window());
      for (Message& message : *ring) {
        message.bytes = next;
        next += block_bytes_;
      }
    }
  }
}

Status Bridge::prepare() {
  const Region region{arena_.get(), arena_bytes_};
  return fabric_.prepare(&region, arena_bytes_ == 0 ? 0 : 1);
}

bool Bridge::step() {
  bool moved = false;
  Completion completion;
  for (int i = 0; i < kCompletions && fabric_.poll(completion); ++i) {
    take(completion);
    moved = true;
  }
  for (std::uint32_t link = 0; link < links_.size(); ++link) {
    moved = take_from_board(link) || moved;
    moved = pass_to_board(link) || moved;
    moved = pass_to_fabric(link) || moved;
    tell_early(link);
  }
  return moved;
}

bool Bridge::granted(std::uint32_t number, std::uint64_t tag, std::uint32_t size) {
  Link& link = links_[number];
  ToBoard& to = link.to;
  if (link.fabric == kNone) {
    fail("it receives on " + link_name(number) + ", which no program of this run uses");
    return true;
  }
  if (size > block_bytes_) {
    fail("it receives " + std::to_string(size) + " bytes at once on " + link_name(number) +
         ", more than it has room for");
    return true;
  }
  // What the board has completed may not have been seen yet: its grant came in the same frame.
  if (to.posted - to.done >= window()) return false;
  Message& message = at(to.ring, to.posted);
  message.size = size;
  message.tag = tag;
  const ReceivePost post{message.bytes, size, tag, static_cast<std::uint32_t>(to.posted)};
  const Status status = fabric_.post_receive(link.fabric, post);
  if (status == Status::kTryAgain) return false;
  if (status == Status::kOk) {
    ++to.posted;
  } else {
    fail("the fabric takes no receive of " + std::to_string(size) + " bytes on " +
         link_name(number) + ": " + status_name(status));
  }
  return true;
}

bool Bridge::opened(std::uint32_t number, const SerialOpening& opening) {
  Link& link = links_[number];
  FromBoard& from = link.from;
  if (link.fabric == kNone || opening.size > block_bytes_) {
    fail("it sends " + std::to_string(opening.size) + " bytes on " + link_name(number) +
         (link.fabric == kNone ? ", which no program of this run uses"
                               : ", more than it has room for"));
    return true;
  }
  if (from.opened - from.settled >= window()) return false;
  Message& message = at(from.ring, from.opened++);
  message.size = opening.size;
  message.tag = opening.tag;
  message.check = opening.check;
  message.status = Status::kOk;
  return true;
}

bool Bridge::controlled(std::uint32_t number, const Control& control) {
  const Link& link = links_[number];
  // Causes go out on all links, those that this run does not use too.
  return link.fabric == kNone || fabric_.post_control(link.fabric, control) != Status::kTryAgain;
}

void Bridge::broken(std::uint32_t /*link*/) { fail("it started anew, or its device hung up"); }

void Bridge::take(const Completion& completion) {
  const std::uint32_t number = board_link_[completion.link];
  if (number == kNone) return;
  Link& link = links_[number];
  switch (completion.kind) {
    case Completion::Kind::kSent: {
      // Else it was completed before and found not to agree since. The board has the word of that
      // message already; it will have the cause from whoever found it.
      if (completion.cookie != static_cast<std::uint32_t>(link.from.done)) return;
      at(link.from.ring, link.from.done++).status = completion.status;
      return;
    }
    case Completion::Kind::kReceived: {
      Message& message = at(link.to.ring, link.to.came++);
      message.status = completion.status;
      message.check = completion.check;
      return;
    }
    case Completion::Kind::kEarly: {
      Early& early = link.early;
      // They are told in order, each once, but not those for which a receive was posted meanwhile.
      if (early.first + early.tags.size() < link.to.posted) {
        early.tags.clear();
        early.first = link.to.posted;
      }
      if (link.tells_early && early.tags.size() < kEarlyWords) {
        early.tags.push_back(completion.tag);
      }
      return;
    }
    case Completion::Kind::kControl:
      if (post_control(number, completion.control) != Status::kOk) fail("it takes no controls");
      return;
    case Completion::Kind::kLinkDown:
    case Completion::Kind::kDeaf: return;
  }
}

bool Bridge::take_from_board(std::uint32_t number) {
  Link& link = links_[number];
  bool moved = false;
  Completion completion;
  while (SerialLinks::take(number, completion)) {
    moved = true;
    if (completion.kind == Completion::Kind::kSent) {
      ++link.to.done;
    } else if (completion.status == Status::kOk) {
      ++link.from.here;
    } else {
      fail("it sent another message on " + link_name(number) + " than it had announced");
    }
  }
  FromBoard& from = link.from;
  while (from.granted < from.opened) {
    const Message& message = at(from.ring, from.granted);
    const ReceivePost post{message.bytes, message.size, message.tag, 0};
    if (post_receive(number, post) != Status::kOk) break;
    ++from.granted;
    moved = true;
  }
  return moved;
}

bool Bridge::pass_to_fabric(std::uint32_t number) {
  Link& link = links_[number];
  FromBoard& from = link.from;
  bool moved = false;
  while (from.sent < from.here) {
    const Message& message = at(from.ring, from.sent);
    const SendPost post{message.bytes, message.size, message.tag, message.check,
                        static_cast<std::uint32_t>(from.sent)};
    const Status status = fabric_.post_send(link.fabric, post);
    if (status != Status::kOk && status != Status::kTryAgain) {
      fail(std::string("the fabric takes no send on ") + link_name(number) + ": " +
           status_name(status));
    }
    if (status != Status::kOk) break;
    ++from.sent;
    moved = true;
  }
  while (from.settled < from.done) {
    if (settle(number, at(from.ring, from.settled).status) != Status::kOk) break;
    ++from.settled;
    moved = true;
  }
  return moved;
}

bool Bridge::pass_to_board(std::uint32_t number) {
  ToBoard& to = links_[number].to;
  bool moved = false;
  while (to.passed < to.came) {
    const Message& message = at(to.ring, to.passed);
    const auto cookie = static_cast<std::uint32_t>(to.passed);
    const SendPost post{message.bytes, message.size, message.tag, message.check, cookie};
    const Status status = message.status == Status::kOk ? post_send(number, post)
                                                        : post_refusal(number, message.tag, cookie);
    if (status != Status::kOk) break;
    ++to.passed;
    if (to.announced < to.passed) to.announced = to.passed;
    moved = true;
  }
  return moved;
}

// The board's next message is the one after those it was told of: where the fabric told a later one
// early, those before it, which the board awaits, are told first.
void Bridge::tell_early(std::uint32_t number) {
  Link& link = links_[number];
  ToBoard& to = link.to;
  Early& early = link.early;
  while (!early.tags.empty()) {
    if (early.first >= to.announced) {
      const bool awaited = to.announced < early.first;
      const std::uint64_t tag = awaited ? at(to.ring, to.announced).tag : early.tags.front();
      if (announce(number, tag) != Status::kOk) return;
      ++to.announced;
      if (awaited) continue;
    }
    early.tags.erase(early.tags.begin());
    ++early.first;
  }
}

}  // namespace espalier::gateway
