#include "hal/fabric/ofi/lanes/shared_fabric.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <new>
#include <utility>

#include "base/clock.h"
#include "base/process/open_files.h"
#include "hal/fabric/ofi/lanes/endpoint_parts.h"

namespace espalier::ofi {
namespace {

constexpr std::size_t kCompletionBatch = 16;  // completions read from libfabric at once
constexpr std::size_t kCompletions = 1024;
constexpr std::size_t kPeers = 128;
constexpr std::size_t kMostLongPorts = 8;  // while some are idle
constexpr std::uint64_t kTendNs = 1'000'000;
constexpr std::uint64_t kGoodbyeNs = 5'000'000'000;

}  // namespace

void EndpointParts::take(const Arrival& arrival) {
  if (arrival.completed == nullptr) {
    return receiver.data_arrived(unpack(arrival.data), arrival.lane);
  }
  const auto& context = *static_cast<const WriteContext*>(arrival.completed);
  ESPALIER_ASSERT(context.owner == this && context.lane < state.lanes.size());
  Lane& lane = state.lanes[context.lane];
  if (arrival.has_failed) {
    lane.out.writing &= ~bit(context.position);
    if ((lane.out.own_bytes & bit(context.position)) != 0) {
      SharedFabric::end_message(state.long_port);
    }
    sender.write_failed(lane);
  } else {
    sender.write_completed(lane, context.position);
  }
}

// A greeting may add a lane, with room for what arrives on it.
void EndpointParts::empty_inbox() {
  for (std::size_t i = 0; i < inbox.size(); ++i) take(Arrival(inbox[i]));
  inbox.clear();
}

void EndpointParts::retry() {
  const std::uint64_t time_ns = monotonic_ns();
  state.to_push.for_each([&](std::uint32_t index) {
    Lane& lane = state.lanes[index];
    if (lane.refusals == 0 || time_ns >= lane.retry_at_ns) sender.push(lane);
  });
}

SharedFabric::~SharedFabric() { close(); }

Result<void> SharedFabric::open(const Config& config) {
  const Domain::Capacity capacity{1, kPeers, kCompletions, config.first_port, config.last_port};
  if (auto opened = domain_.open(config.provider, config.local_address, capacity); !opened) {
    domain_.close();
    return opened;
  }
  is_unfit_ = !domain_.can_be_shared();
  if (is_unfit_) {
    domain_.close();
    return {};
  }
  is_open_ = true;
  const auto time = std::chrono::system_clock::now().time_since_epoch();
  opened_ = static_cast<std::uint32_t>(time / std::chrono::milliseconds(100));
  long_ports_.reserve(kMaxLinks);
  waiting_.reserve(kMaxLinks);
  greetings_ = Pages(std::size_t{kGreetings} * 64);
  nudge_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (nudge_ < 0 || greetings_.get() == nullptr ||
      !domain_.register_memory(greetings_.get(), std::uint64_t{kGreetings} * 64,
                               greetings_registration_)) {
    close();
    return fail("provider \"" + config.provider +
                "\": no memory or descriptor for what endpoints share");
  }
  return {};
}

void SharedFabric::close() {
  if (!is_open_) return;
  ESPALIER_ASSERT(live_ == 0 && poller_ == nullptr && waiting_.empty());
  for (const auto& parts : departed_) erase(*parts);
  domain_.deregister(greetings_registration_);
  domain_.close();
  departed_.clear();  // Until now libfabric could read what their pending writes send.
  greetings_ = Pages();
  if (nudge_ >= 0) ::close(nudge_);
  nudge_ = -1;
  is_open_ = false;
  lanes_.clear();
  free_lanes_.clear();
}

Result<bool> SharedFabric::add(EndpointParts& parts, const Config& config) {
  if (!is_open_ && !is_unfit_) {
    if (auto opened = open(config); !opened) return fail(opened.error());
  }
  if (is_unfit_) return false;
  if (members_.size() >= kMaxLaneIds) {
    return fail("provider \"" + config.provider + "\": " + std::to_string(members_.size()) +
                " endpoints in this process, the limit");
  }
  // Not the number of one that ended lately: a greeting for that one may still come.
  while (members_.count(next_member_) != 0) next_member_ = (next_member_ + 1) % kMaxLaneIds;
  parts.state.member = next_member_;
  // remove() may find no memory.
  if (departed_.capacity() <= members_.size()) departed_.reserve(2 * members_.size() + 1);
  members_[next_member_] = &parts;
  next_member_ = (next_member_ + 1) % kMaxLaneIds;
  parts.state.domain = &domain_;
  ++live_;
  check_invariants();
  return true;
}

void SharedFabric::add_contexts(EndpointParts& parts) {
  contexts_[parts.state.contexts.data()] = &parts;
  ESPALIER_ASSERT(!parts.state.contexts.empty() || parts.state.contexts.capacity() != 0);
}

std::uint32_t SharedFabric::add_lane(EndpointParts& parts, std::uint32_t index) {
  std::uint32_t id = 0;
  if (free_lanes_.empty()) {
    id = static_cast<std::uint32_t>(lanes_.size());
    lanes_.emplace_back();
    free_lanes_.reserve(lanes_.capacity());  // erase() may find no memory
  } else {
    id = free_lanes_.back();
    free_lanes_.pop_back();
  }
  ESPALIER_ASSERT(id < kMaxLaneIds && lanes_[id].parts == nullptr);
  lanes_[id] = {&parts, index};
  // Its own writes, and each opcode from the peer.
  parts.inbox.reserve(std::size_t{index + 1} * (6 * parts.state.layout.ring() + 8));
  return id;
}

void SharedFabric::erase(EndpointParts& parts) {
  for (const Lane& lane : parts.state.lanes) {
    ESPALIER_ASSERT(lanes_[lane.id].parts == &parts && lanes_[lane.id].index == lane.index);
    lanes_[lane.id] = {};
    free_lanes_.push_back(lane.id);
    domain_.remove(lane.remote_name, lane.target);
  }
  // The lowest is taken first: its words have the longest codes.
  std::sort(free_lanes_.begin(), free_lanes_.end(), std::greater<>());
  ESPALIER_ASSERT(members_.count(parts.state.member) == 1);
  members_.erase(parts.state.member);
  contexts_.erase(parts.state.contexts.data());
  close_long_port(parts.state.long_port);
  domain_.deregister(parts.state.arena_registration);
  domain_.deregister(parts.staging_registration);
}

void SharedFabric::end_long_messages(EndpointParts& parts) {
  close_long_port(parts.state.long_port);
  for (Lane& lane : parts.state.lanes) {
    lane.out.writing &= ~lane.out.own_bytes;
    lane.out.own_bytes = 0;
  }
  parts.regions.clear(domain_);
}

void SharedFabric::remove(std::unique_ptr<EndpointParts> parts) {
  EndpointState& state = parts->state;
  ESPALIER_ASSERT(live_ > 0 && parts.get() != poller_);
  end_long_messages(*parts);
  state.released = true;
  --live_;
  if (live_ == 0) {
    erase(*parts);
    close();
    return;
  }
  state.has_departed = true;
  parts->empty_inbox();
  for (Lane& lane : state.lanes) {
    lane.outbox.goodbye = true;
    state.to_push.insert(lane.index);
  }
  try {
    std::vector<std::uint32_t> links;
    for (const Lane& lane : state.lanes) links.push_back(lane.link);
    (void)parts->connector.start_links(links);
    parts->retry();  // The process may call nothing for long.
  } catch (const std::bad_alloc&) {
    // A peer may then miss its goodbye, and this memory stays until the domain closes.
  }
  departed_.push_back(std::move(parts));
  tend_at_ns_ = 0;
  check_invariants();
}

void SharedFabric::note_end_of(const std::string& port_name) {
  if (port_name.empty()) return;
  for (const auto& [number, parts] : members_) {
    for (Lane& lane : parts->state.lanes) {
      if (lane.remote_name == port_name) lane.has_ended = true;
    }
  }
  tend_at_ns_ = 0;
}

void SharedFabric::tend_departed() {
  const std::uint64_t time_ns = monotonic_ns();
  if (time_ns < tend_at_ns_) return;
  bool has_more = false;
  std::erase_if(departed_, [&](const auto& parts) {
    EndpointState& state = parts->state;
    if (parts->departed_until_ns == 0) parts->departed_until_ns = time_ns + kGoodbyeNs;
    if (time_ns < parts->departed_until_ns) {
      if (!state.greeting.empty()) parts->connector.repeat_greetings();
      parts->retry();
    }
    const bool is_over = std::all_of(state.lanes.begin(), state.lanes.end(), [](const Lane& lane) {
      const bool has_parted = lane.goodbye_received && !lane.outbox.goodbye;
      return (has_parted || lane.has_ended) && lane.out.writing == 0;
    });
    if (is_over) erase(*parts);
    const bool has_words = !state.to_push.empty() || !state.greeting.empty();
    has_more = has_more || (!is_over && has_words && time_ns < parts->departed_until_ns);
    return is_over;
  });
  tend_at_ns_ = has_more ? time_ns + kTendNs : UINT64_MAX;
  check_invariants();
}

EndpointParts* SharedFabric::owner_of(const void* context) const {
  if (context == nullptr) return nullptr;
  auto after = contexts_.upper_bound(context);
  if (after == contexts_.begin()) return nullptr;
  EndpointParts* const parts = std::prev(after)->second;
  const auto& contexts = parts->state.contexts;
  return context < contexts.data() + contexts.size() ? parts : nullptr;
}

void SharedFabric::deliver(EndpointParts& to, const Arrival& arrival, EndpointParts& own) {
  if (to.state.has_departed) tend_at_ns_ = 0;
  if (&to == &own || to.state.has_departed) return to.take(arrival);
  to.inbox.push_back(arrival);
  wake(to);
}

void SharedFabric::take_entry(const fi_cq_data_entry& entry, EndpointParts& own) {
  EndpointParts* const writer = entry.op_context == nullptr ? nullptr : owner_of(entry.op_context);
  if (writer != nullptr) {
    return deliver(*writer, {0, entry.op_context, 0, false}, own);
  }
  if ((entry.flags & FI_REMOTE_CQ_DATA) == 0) return;
  const Immediate immediate = unpack(entry.data);
  if (immediate.opcode == Opcode::kGreeting) {
    const auto found = members_.find(immediate.lane);
    if (found != members_.end()) deliver(*found->second, {entry.data, nullptr, 0, false}, own);
  } else if (immediate.lane < lanes_.size() && lanes_[immediate.lane].parts != nullptr) {
    const LaneOwner& lane = lanes_[immediate.lane];
    if (lane.parts == &own) return own.receiver.data_arrived(immediate, lane.index);
    deliver(*lane.parts, {entry.data, nullptr, lane.index, false}, own);
  }
}

bool SharedFabric::progress(EndpointParts& parts) {
  ESPALIER_ASSERT(is_open_ && !parts.state.has_departed);
  // First what other threads read, because it arrived earlier.
  bool moved = !parts.inbox.empty();
  parts.empty_inbox();
  std::array<fi_cq_data_entry, kCompletionBatch> entries;
  // To the end: what stays in the queue wakes nobody.
  for (int count = kCompletionBatch; count == kCompletionBatch || count == Domain::kFailure;) {
    count = domain_.read_completions(entries.data(), entries.size());
    moved = moved || count > 0 || count == Domain::kFailure;
    if (count == Domain::kFailure) {
      const void* const context = domain_.read_failure();
      if (EndpointParts* const writer = owner_of(context)) {
        deliver(*writer, {0, context, 0, true}, parts);
      }
    }
    for (int i = 0; i < count; ++i) take_entry(entries[static_cast<std::size_t>(i)], parts);
  }
  if (!departed_.empty()) tend_departed();
  return moved;
}

void SharedFabric::wait(EndpointParts& parts, std::uint64_t ns) {
  if (tend_at_ns_ != UINT64_MAX) ns = std::min(ns, kTendNs);
  ESPALIER_ASSERT(poller_ != &parts);
  if (poller_ != nullptr) {
    waiting_.push_back(&parts);
    parts.woken.wait_for(mutex, std::chrono::nanoseconds(ns));
    std::erase(waiting_, &parts);
    return pass_poll_on();
  }
  if (!domain_.may_block()) return pass_poll_on();
  poller_ = &parts;
  const timespec timeout = {static_cast<time_t>(ns / 1'000'000'000),
                            static_cast<long>(ns % 1'000'000'000)};
  pollfd wanted[] = {{domain_.wake(), POLLIN, 0}, {nudge_, POLLIN, 0}};
  mutex.unlock();
  (void)ppoll(wanted, 2, &timeout, nullptr);
  mutex.lock();
  ESPALIER_ASSERT(poller_ == &parts);
  poller_ = nullptr;
  std::uint64_t nudges = 0;
  if (wanted[1].revents != 0) (void)!read(nudge_, &nudges, sizeof(nudges));
  pass_poll_on();
}

void SharedFabric::wake(EndpointParts& parts) {
  if (poller_ != &parts) return parts.woken.notify_one();
  const std::uint64_t one = 1;
  (void)!write(nudge_, &one, sizeof(one));
}

// Another thread waits for the sockets, if this one does not go on to.
void SharedFabric::pass_poll_on() {
  if (poller_ == nullptr && !waiting_.empty()) waiting_.front()->woken.notify_one();
}

Result<void> SharedFabric::open_long_port(LongPort& port, std::size_t connections) {
  ESPALIER_ASSERT(port.port == 0 && port.messages == 0);
  while (long_ports_.size() >= kMostLongPorts) {
    LongPort* oldest = nullptr;
    for (LongPort* const each : long_ports_) {
      if (each->messages == 0 && (oldest == nullptr || each->idle_since < oldest->idle_since)) {
        oldest = each;
      }
    }
    if (oldest == nullptr) break;
    close_long_port(*oldest);
  }
  if (auto free = check_free_files(1 + connections, ""); !free) return free;
  const auto opened = domain_.add_port(kPeers);
  if (!opened) return fail(" gets no port for long messages: " + opened.error().message);
  port.port = *opened;
  port.number = domain_.socket_port(*opened);
  ++port.epoch;
  long_ports_.push_back(&port);
  return {};
}

void SharedFabric::end_message(LongPort& port) {
  if (port.messages != 0 && --port.messages == 0) port.idle_since = monotonic_ns();
}

void SharedFabric::close_long_port(LongPort& port) {
  if (port.port == 0) return;
  domain_.close_port(port.port);
  port.port = port.number = port.messages = 0;
  std::erase(long_ports_, &port);
  ESPALIER_ASSERT(std::find(long_ports_.begin(), long_ports_.end(), &port) == long_ports_.end());
}

}  // namespace espalier::ofi
