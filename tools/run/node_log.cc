#include "tools/run/node_log.h"

#include <cstring>

#include "base/counted.h"
#include "firmware/node/control.h"

namespace espalier::run_command {

Result<NodeLog> NodeLog::copy(const EventLog& shared, const Program& program) {
  NodeLog copied;
  copied.counts_ = shared.counts();
  const std::uint32_t count = copied.counts_.count;
  if (count == 0) return copied;
  copied.events_.resize(count);
  copied.times_.resize(count);
  std::memcpy(copied.events_.data(), &shared.event(0), count * sizeof(Event));
  std::memcpy(copied.times_.data(), &shared.times(0), count * sizeof(EventTimes));
  for (std::uint32_t i = 0; i < count; ++i) {
    const Event& event = copied.events_[i];
    const std::string record = "reports record " + std::to_string(i) + " of its log ";
    if (event.link != Event::kNoLink && event.link >= links_count(program)) {
      return fail(record + "on link " + std::to_string(event.link) + "; expected one of its " +
                  counted(links_count(program), "link"));
    }
    if (event.kind < ActionKind::kSend || event.kind > ActionKind::kCopy) {
      return fail(record + "of kind " + std::to_string(event.kind) +
                  "; expected a send, receive, combine or copy");
    }
    if (!control::is_flag(event.begun) || !control::is_flag(event.done)) {
      return fail(record + "with a flag that is neither 0 nor 1");
    }
  }
  return copied;
}

}  // namespace espalier::run_command
