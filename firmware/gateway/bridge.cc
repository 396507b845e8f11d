#include "firmware/gateway/bridge.h"

#include "base/counted.h"

namespace espalier::gateway {
namespace {

constexpr std::uint64_t kAlignment = 64;
constexpr int kMaxCompletions = 64;          // of the fabric, per step
constexpr std::size_t kUnexpectedTags = 64;  // per link; a fabric has at most this many slots

std::string link_name(std::uint32_t link) { return "its link " + std::to_string(link); }

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

std::uint64_t Bridge::buffer_bytes(std::uint64_t links, std::uint32_t window,
                                   std::uint64_t block_bytes) {
  return 2 * links * window * aligned(block_bytes);
}

Bridge::Bridge(SerialPort& port, SerialLink* links, Endpoint& fabric, const Shape& shape,
               const SerialConfig& config)
    : SerialLinks(port, links, static_cast<std::uint32_t>(shape.fabric_links.size()), config),
      fabric_(fabric),
      board_(shape.board),
      peers_(shape.peers),
      block_bytes_(aligned(shape.block_bytes)),
      reports_link_down_(shape.reports_link_down),
      links_(shape.fabric_links.size()) {
  arena_bytes_ = buffer_bytes(links_.size(), window(), block_bytes_);
  arena_.reset(static_cast<std::uint8_t*>(std::calloc(arena_bytes_, 1)));
  if (!has_memory()) return;
  std::uint8_t* next = arena_.get();
  for (std::uint32_t number = 0; number < links_.size(); ++number) {
    Link& link = links_[number];
    link.fabric = shape.fabric_links[number];
    link.reports_unexpected = shape.reports_unexpected[number];
    link.unexpected.tags.reserve(kUnexpectedTags);
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
  board_link_.assign(fabric_.links(), kNone);
  for (std::uint32_t number = 0; number < links_.size(); ++number) {
    if (links_[number].fabric != kNone) board_link_[links_[number].fabric] = number;
  }
  const Region region{arena_.get(), arena_bytes_};
  return fabric_.prepare(&region, arena_bytes_ == 0 ? 0 : 1);
}

bool Bridge::step() {
  bool progress = false;
  Completion completion;
  for (int i = 0; i < kMaxCompletions && fabric_.poll(completion); ++i) {
    take(completion);
    progress = true;
  }
  for (std::uint32_t link = 0; link < links_.size(); ++link) {
    progress = take_from_board(link) || progress;
    progress = pass_to_board(link) || progress;
    progress = pass_to_fabric(link) || progress;
    report_unexpected(link);
  }
  return progress;
}

bool Bridge::granted(std::uint32_t number, std::uint64_t tag, std::uint32_t size) {
  Link& link = links_[number];
  ToBoard& to = link.to;
  if (link.fabric == kNone) {
    fail("it receives on " + link_name(number) + ", which no program of this run uses");
    return true;
  }
  if (size > block_bytes_) {
    fail("it receives " + counted(size, "byte") + " at once on " + link_name(number) +
         ", more than it has room for");
    return true;
  }
  // A completion of the board may still be unread: it arrived in the same frame as this grant.
  if (to.posted - to.done >= window()) return false;
  Message& message = slot(to.ring, to.posted);
  message.size = size;
  message.tag = tag;
  const ReceivePost post{message.bytes, size, tag, static_cast<std::uint32_t>(to.posted)};
  const Status status = fabric_.post_receive(link.fabric, post);
  if (status == Status::kTryAgain) return false;
  if (status == Status::kOk) {
    ++to.posted;
  } else {
    fail("the fabric rejects a receive of " + counted(size, "byte") + " on " + link_name(number) +
         ": " + status_name(status));
  }
  return true;
}

bool Bridge::opened(std::uint32_t number, const SerialOpening& opening) {
  Link& link = links_[number];
  FromBoard& from = link.from;
  if (link.fabric == kNone || opening.size > block_bytes_) {
    fail("it sends " + counted(opening.size, "byte") + " on " + link_name(number) +
         (link.fabric == kNone ? ", which no program of this run uses"
                               : ", more than it has room for"));
    return true;
  }
  if (from.opened - from.acknowledged >= window()) return false;
  Message& message = slot(from.ring, from.opened++);
  message.size = opening.size;
  message.tag = opening.tag;
  message.check = opening.check;
  message.status = Status::kOk;
  return true;
}

bool Bridge::controlled(std::uint32_t number, const Control& control) {
  const Link& link = links_[number];
  // The board sends causes on all links, also on those that this run does not use.
  return link.fabric == kNone || fabric_.post_control(link.fabric, control) != Status::kTryAgain;
}

void Bridge::broken(std::uint32_t /*link*/) {
  fail("it restarted, or its device closed the connection");
}

void Bridge::tell_board(std::uint32_t number, const Control& control) {
  if (post_control(number, control) != Status::kOk) fail("it accepts no controls");
}

void Bridge::take(const Completion& completion) {
  const std::uint32_t number = board_link_[completion.link];
  if (number == kNone) return;
  Link& link = links_[number];
  switch (completion.kind) {
    case Completion::Kind::kSent: {
      // Another context is a second completion: the message had completed, and the peer found a
      // mismatch later. The board has its final status already, and will receive the cause from the
      // node that detected the mismatch.
      if (completion.context != static_cast<std::uint32_t>(link.from.done)) return;
      slot(link.from.ring, link.from.done++).status = completion.status;
      return;
    }
    case Completion::Kind::kReceived: {
      Message& message = slot(link.to.ring, link.to.received++);
      message.status = completion.status;
      message.check = completion.check;
      return;
    }
    case Completion::Kind::kUnexpected: {
      Unexpected& unexpected = link.unexpected;
      // The fabric reports them in order, each once, except those whose receive was posted
      // meanwhile.
      if (unexpected.first + unexpected.tags.size() < link.to.posted) {
        unexpected.tags.clear();
        unexpected.first = link.to.posted;
      }
      if (link.reports_unexpected && unexpected.tags.size() < kUnexpectedTags) {
        unexpected.tags.push_back(completion.tag);
      }
      return;
    }
    case Completion::Kind::kControl: return tell_board(number, completion.control);
    case Completion::Kind::kLinkDown:
      if (reports_link_down_) {
        Control control;
        control.kind = ControlKind::kCause;
        control.cause = {Status::kDeadLink, board_, peers_[number]};
        tell_board(number, control);
      }
      return;
  }
}

bool Bridge::take_from_board(std::uint32_t number) {
  Link& link = links_[number];
  bool progress = false;
  Completion completion;
  while (SerialLinks::take(number, completion)) {
    progress = true;
    ++board_messages_;
    if (completion.kind == Completion::Kind::kSent) {
      link.bytes.received += slot(link.to.ring, link.to.done++).size;
    } else if (completion.status == Status::kOk) {
      ++link.from.received;
    } else {
      fail("it sent a message on " + link_name(number) + " that differs from its request to send");
    }
  }
  FromBoard& from = link.from;
  while (from.granted < from.opened) {
    const Message& message = slot(from.ring, from.granted);
    const ReceivePost post{message.bytes, message.size, message.tag, 0};
    if (post_receive(number, post) != Status::kOk) break;
    ++from.granted;
    progress = true;
  }
  return progress;
}

bool Bridge::pass_to_fabric(std::uint32_t number) {
  Link& link = links_[number];
  FromBoard& from = link.from;
  bool progress = false;
  while (from.sent < from.received) {
    const Message& message = slot(from.ring, from.sent);
    const SendPost post{message.bytes, message.size, message.tag, message.check,
                        static_cast<std::uint32_t>(from.sent)};
    const Status status = fabric_.post_send(link.fabric, post);
    if (status != Status::kOk && status != Status::kTryAgain) {
      fail(std::string("the fabric rejects a send on ") + link_name(number) + ": " +
           status_name(status));
    }
    if (status != Status::kOk) break;
    ++from.sent;
    progress = true;
  }
  while (from.acknowledged < from.done) {
    const Message& message = slot(from.ring, from.acknowledged);
    if (settle(number, message.status) != Status::kOk) break;
    link.bytes.sent += message.size;
    ++from.acknowledged;
    progress = true;
  }
  return progress;
}

bool Bridge::pass_to_board(std::uint32_t number) {
  ToBoard& to = links_[number].to;
  bool progress = false;
  while (to.passed < to.received) {
    const Message& message = slot(to.ring, to.passed);
    const auto context = static_cast<std::uint32_t>(to.passed);
    const SendPost post{message.bytes, message.size, message.tag, message.check, context};
    const Status status = message.status == Status::kOk
                              ? post_send(number, post)
                              : post_refusal(number, message.tag, context);
    if (status != Status::kOk) break;
    ++to.passed;
    if (to.announced < to.passed) to.announced = to.passed;
    progress = true;
  }
  return progress;
}

// The board takes each report as one of its next message. If the fabric reported a later message,
// the earlier ones, which the board awaits, are announced first.
void Bridge::report_unexpected(std::uint32_t number) {
  Link& link = links_[number];
  ToBoard& to = link.to;
  Unexpected& unexpected = link.unexpected;
  while (!unexpected.tags.empty()) {
    if (unexpected.first >= to.announced) {
      const bool awaited = to.announced < unexpected.first;
      const std::uint64_t tag = awaited ? slot(to.ring, to.announced).tag : unexpected.tags.front();
      if (announce(number, tag) != Status::kOk) return;
      ++to.announced;
      if (awaited) continue;
    }
    unexpected.tags.erase(unexpected.tags.begin());
    ++unexpected.first;
  }
}

}  // namespace espalier::gateway
