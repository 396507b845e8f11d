#include "espalier/hal/serial/serial_endpoint.h"

namespace espalier {

SerialEndpoint::SerialEndpoint(SerialPort& port, SerialLink* links, const std::uint32_t* peers,
                               std::uint32_t count, std::uint32_t node, const SerialConfig& config)
    : SerialLinks(port, links, count, at_once(config)), peers_(peers), node_(node) {
  ESPALIER_ASSERT(count <= kMaxLinks);
}

SerialConfig SerialEndpoint::at_once(SerialConfig config) {
  config.settles = false;
  return config;
}

Status SerialEndpoint::prepare(const Region*, std::uint32_t count) {
  return count > kMaxRegions ? Status::kTooLarge : Status::kOk;
}

bool SerialEndpoint::poll(Completion& completion) {
  bool found = next(completion);
  if (!found && idle_) {
    for (int sent = 0; sent < SerialPort::kFramesPerPoll && port().transmit(); ++sent) {
    }
  }
  for (int taken = 0; !found && taken < SerialPort::kFramesPerPoll && port().receive(); ++taken) {
    found = next(completion);
  }
  idle_ = !found;
  return found;
}

// Returns the next completion of the frames received so far, if there is one.
bool SerialEndpoint::next(Completion& completion) {
  completion = Completion();
  if (control_link_ != LinkSet::kNone) {
    ESPALIER_ASSERT(control_link_ < SerialLinks::links());
    completion.kind = Completion::Kind::kControl;
    completion.link = control_link_;
    completion.control = control_;
    control_link_ = LinkSet::kNone;
    return true;
  }
  const std::uint32_t broken = broken_.next(0);
  if (broken != LinkSet::kNone) {
    ESPALIER_ASSERT(broken < SerialLinks::links());
    broken_.erase(broken);
    completion.kind = Completion::Kind::kLinkDown;
    completion.link = broken;
    return true;
  }
  for (std::uint32_t link = 0; link < SerialLinks::links(); ++link) {
    if (take(link, completion)) return true;
  }
  if (early_link_ == LinkSet::kNone) return false;
  ESPALIER_ASSERT(early_link_ < SerialLinks::links());
  completion.kind = Completion::Kind::kUnexpected;
  completion.link = early_link_;
  completion.tag = early_tag_;
  early_link_ = LinkSet::kNone;
  return !posted(completion.link, early_number_);
}

#if ESPALIER_SERIAL_MAC
SerialLinkEnds SerialEndpoint::ends(std::uint32_t link) const {
  ESPALIER_ASSERT(link < SerialLinks::links());
  SerialLinkEnds names{node_, peers_[link], 0};
  for (std::uint32_t before = 0; before < link; ++before) {
    if (peers_[before] == names.peer) ++names.number;
  }
  return names;
}
#endif

bool SerialEndpoint::granted(std::uint32_t, std::uint64_t, std::uint32_t) { return true; }

bool SerialEndpoint::opened(std::uint32_t link, const SerialOpening& opening) {
  ESPALIER_ASSERT(link < SerialLinks::links() && !posted(link, opening.number));
  if (early_link_ != LinkSet::kNone) return false;
  early_link_ = link;
  early_tag_ = opening.tag;
  early_number_ = opening.number;
  return true;
}

bool SerialEndpoint::controlled(std::uint32_t link, const Control& control) {
  ESPALIER_ASSERT(link < SerialLinks::links());
  if (control_link_ != LinkSet::kNone) return false;
  control_link_ = link;
  control_ = control;
  return true;
}

}  // namespace espalier
