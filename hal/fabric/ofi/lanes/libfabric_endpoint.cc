#include "hal/fabric/ofi/lanes/libfabric_endpoint.h"

#include <net/if.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "base/counted.h"
#include "base/process/system_error.h"

namespace espalier::ofi {
namespace {

constexpr std::uint32_t kDefaultEagerBytes = 16384;
// With a job secret, each end also computes the code of an eager payload: together 0.8 us per KiB.
// For the short parts of a ring, a clear to send costs more.
constexpr std::uint32_t kAuthenticatedEagerBytes = 8192;
constexpr std::size_t kBatch = 16;  // completions read from libfabric at once
constexpr std::uint64_t kMaxBlockNs = 1'000'000'000;
// The same for a provider whose wait no other thread can end.
constexpr std::uint64_t kMaxDeafBlockNs = 20'000'000;
constexpr std::uint64_t kMaxSpinNs = 150'000;
constexpr std::uint64_t kMaxSleepNs = 200'000;
// So many waits in a row that ended at once and for nothing: the sockets will go on to say that
// there is something, e.g. a connection for which there is no descriptor.
constexpr std::uint32_t kMaxVainWaits = 1'000;
constexpr std::uint64_t kVainWaitNs = 50'000;

}  // namespace

LibfabricEndpoint::LibfabricEndpoint(const Config& config) {
  state_.config = config;
  state_.config.secret = {};
  if (config.has_secret) state_.authentication.set_secret(config.secret);
  state_.config.eager_bytes = eager_bytes_of(config);
}

std::uint32_t LibfabricEndpoint::eager_bytes_of(const Config& config) {
  if (config.eager_bytes != 0) return config.eager_bytes;
  return config.has_secret ? kAuthenticatedEagerBytes : kDefaultEagerBytes;
}

Result<std::unique_ptr<LibfabricEndpoint>> LibfabricEndpoint::open(const FixedConfig& config) {
  std::unique_ptr<LibfabricEndpoint> endpoint(new LibfabricEndpoint(config));
  const bool is_routed = config.lanes.empty();
  for (std::uint32_t link = 0; link < config.peers.size(); ++link) {
    const FixedConfig::Lanes has = is_routed ? FixedConfig::Lanes{} : config.lanes[link];
    endpoint->state_.add_link(config.peers[link], has.out, has.in, is_routed);
  }
  endpoint->state_.lane_addresses = config.lane_addresses;
  endpoint->state_.separate_domains = config.separate_domains;
  if (auto opened = endpoint->open_domain(is_routed); !opened) return fail(opened.error());
  endpoint->watch_carriers();
  return endpoint;
}

Result<std::unique_ptr<LibfabricEndpoint>> LibfabricEndpoint::open_apart(
    const FixedConfig& config) {
  auto endpoint = open(config);
  if (!endpoint) return endpoint;
  (*endpoint)->is_mute_ = true;
  (*endpoint)->nudge_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if ((*endpoint)->nudge_ < 0) {
    return fail("no descriptor for an endpoint (eventfd): " + system_error_text(errno));
  }
  return endpoint;
}

// Only link-local addresses name their interface.
void LibfabricEndpoint::watch_carriers() {
  std::vector<std::uint32_t> indexes;
  for (std::uint32_t lane = 0; lane < state_.lane_addresses.size(); ++lane) {
    const std::string& own = state_.lane_addresses[lane];
    const std::size_t percent = own.find('%');
    const std::uint32_t index =
        percent == std::string::npos ? 0 : if_nametoindex(own.c_str() + percent + 1);
    if (index == 0) continue;
    indexes.push_back(index);
    watched_lanes_.push_back(lane);
  }
  if (!indexes.empty()) carriers_ = network::CarrierWatch::open(std::move(indexes));
}

void LibfabricEndpoint::look_at_carriers(std::uint64_t time_ns) {
  if (!carriers_->check(time_ns)) return;
  for (std::size_t place = 0; place < watched_lanes_.size(); ++place) {
    Lane& lane = state_.lanes[watched_lanes_[place]];
    if (lane.has_no_carrier || !carriers_->is_lost(place)) continue;
    lane.has_no_carrier = lane.down = true;
    lane.down_reported = false;
    state_.to_report.insert(lane.index);
  }
}

Result<std::unique_ptr<LibfabricEndpoint>> LibfabricEndpoint::open(const AddedConfig& config) {
  std::unique_ptr<LibfabricEndpoint> endpoint(new LibfabricEndpoint(config));
  EndpointState& state = endpoint->state_;
  state.max_links = config.max_links;
  state.links.reserve(config.max_links);
  state.lanes.reserve(config.max_links);
  if (config.fabric != nullptr) {
    const LightLock lock(&config.fabric->mutex);
    const auto added = config.fabric->add(*endpoint->parts_, config);
    if (!added) return fail(added.error());
    if (*added) {
      state.shared = config.fabric;
      endpoint->mutex_ = &config.fabric->mutex;
      if (auto made = endpoint->make_arena(); !made) return fail(made.error());
      return endpoint;
    }
  }
  if (auto opened = endpoint->open_domain(true); !opened) return fail(opened.error());
  return endpoint;
}

Result<void> LibfabricEndpoint::open_domain(bool is_routed) {
  state_.own_domain = std::make_unique<Domain>();
  state_.domain = state_.own_domain.get();
  Domain::Capacity capacity{.ports = is_routed ? 1 : max_lanes(),
                            .peers = is_routed ? max_lanes() : 1,
                            .addresses = state_.lane_addresses,
                            .separate = state_.separate_domains};
  // A lane can have these completions outstanding: its own writes, and each opcode from the peer.
  capacity.completions = 64 + capacity.peers * (6 * std::bit_ceil(state_.config.window) + 8);
  const Config& config = state_.config;
  capacity.first_socket = config.first_port;
  capacity.last_socket = config.last_port;
  const auto opened = state_.domain->open(config.provider, config.local_address, capacity);
  if (!opened) return opened;
  return make_arena();
}

Result<void> LibfabricEndpoint::make_arena() {
  state_.layout = ArenaLayout(state_.config.window, state_.config.eager_bytes);
  const std::size_t lanes = max_lanes();
  ESPALIER_ASSERT(state_.layout.ring() <= kMaxRing && state_.config.window <= state_.layout.ring());
  state_.contexts.reserve(lanes * state_.layout.ring());
  if (state_.shared != nullptr) state_.shared->add_contexts(*parts_);
  state_.add_contexts();
  ESPALIER_ASSERT(state_.contexts.size() == state_.lanes.size() * state_.layout.ring());
  const std::uint64_t bytes =
      state_.layout.bytes(static_cast<std::uint32_t>(std::max<std::size_t>(lanes, 1)));
  state_.arena = Pages(bytes);
  state_.staging = Pages(bytes);
  if (state_.arena.get() == nullptr || state_.staging.get() == nullptr) {
    return fail("no memory: " + counted(2 * bytes, "byte") + " for the slots of node " +
                std::to_string(state_.config.node));
  }
  const bool staging_registered =
      !state_.domain->registers_local_memory() ||
      state_.domain->register_memory(state_.staging.get(), bytes, parts_->staging_registration);
  if (staging_registered &&
      state_.domain->register_memory(state_.arena.get(), bytes, state_.arena_registration)) {
    return {};
  }
  return fail("provider " + state_.domain->provider() + " refused to register " +
              counted(bytes, "byte"));
}

LibfabricEndpoint::~LibfabricEndpoint() {
  if (nudge_ >= 0) close(nudge_);
  if (state_.domain == nullptr) return;  // open() failed
  if (const std::shared_ptr<SharedFabric> shared = state_.shared) {
    const std::lock_guard lock(shared->mutex);
    shared->remove(std::move(parts_));
    return;
  }
  regions_.clear(*state_.domain);
  state_.domain->deregister(state_.arena_registration);
  state_.domain->deregister(parts_->staging_registration);
  state_.domain->close();
}

std::vector<std::uint32_t> LibfabricEndpoint::lane_peers() const {
  std::vector<std::uint32_t> peers;
  for (const Lane& lane : state_.lanes) peers.push_back(lane.peer);
  return peers;
}

Result<bool> LibfabricEndpoint::go_on_connecting() {
  const auto lock = locked();
  (void)progress();
  return connector_.check();
}

Result<bool> LibfabricEndpoint::check_links(std::span<const std::uint32_t> links) {
  (void)progress();
  bool all = true;
  for (const std::uint32_t link : links) {
    const auto one = connector_.check_link(link);
    if (!one) return one;
    all = all && *one;
  }
  return all;
}

Result<void> LibfabricEndpoint::set_secret(const Secret& secret) {
  const auto lock = locked();
  if (connector_.has_addresses()) return fail("the addresses were given before the job secret");
  state_.authentication.set_secret(secret);
  return {};
}

Result<bool> LibfabricEndpoint::connect_links(std::span<const std::uint32_t> links) {
  const auto lock = locked();
  if (auto started = connector_.start_links(links); !started) return fail(started.error());
  (void)progress();
  return connector_.check_links(links);
}

Status LibfabricEndpoint::prepare(const Region* regions, std::uint32_t count) {
  if (count > kMaxRegions) return Status::kTooLarge;
  bool outstanding = state_.released;
  for (const LinkState& link : state_.links) {
    outstanding = outstanding || link.in.outstanding != 0 || link.out.outstanding != 0;
  }
  if (outstanding) return Status::kBadArgument;
  const auto lock = locked_for_regions();
  return regions_.prepare(*state_.domain, regions, count);
}

void LibfabricEndpoint::release_regions() {
  const auto lock = locked_for_regions();
  regions_.release(*state_.domain);
}

Result<void> LibfabricEndpoint::keep(std::span<const Region> regions) {
  const auto lock = locked();
  const bool has_long = std::any_of(regions.begin(), regions.end(), [this](const Region& region) {
    return region.size > state_.config.eager_bytes;
  });
  const bool has_port = state_.released || !has_long || state_.has_long_port();
  if (has_port && (state_.released || regions_.keep(*state_.domain, regions) == Status::kOk)) {
    return {};
  }
  return fail("the provider does not register " + counted(regions.size(), "region") + " of memory");
}

void LibfabricEndpoint::forget(std::span<const Region> regions) {
  const auto lock = locked();
  regions_.forget(*state_.domain, regions);
}

bool LibfabricEndpoint::progress() {
  if (is_mute_) return false;
  const std::uint64_t writes_before = state_.writes;
  const bool moved = state_.shared != nullptr ? state_.shared->progress(*parts_) : read_queue();
  if (!state_.greeting.empty()) connector_.repeat_greetings();
  if (!state_.requesting.empty()) sender_.push_requests();
  if (!state_.to_push.empty()) parts_->retry();
  return moved || state_.writes != writes_before;
}

// Reads one batch of completions; whether there was anything.
bool LibfabricEndpoint::read_queue() {
  std::array<fi_cq_data_entry, kBatch> entries;
  const int count = state_.domain->read_completions(entries.data(), entries.size());
  const auto own = [this](const void* context) -> const WriteContext* {
    const WriteContext* const begin = state_.contexts.data();
    const bool is_own = context >= begin && context < begin + state_.contexts.size();
    return context != nullptr && is_own ? static_cast<const WriteContext*>(context) : nullptr;
  };
  if (count == Domain::kFailure) {
    const WriteContext* const context = own(state_.domain->read_failure());
    if (context != nullptr) sender_.write_failed(state_.lanes[context->lane]);
  }
  for (int i = 0; i < count; ++i) {
    const fi_cq_data_entry& entry = entries[static_cast<std::size_t>(i)];
    if (const WriteContext* const context = own(entry.op_context)) {
      sender_.write_completed(state_.lanes[context->lane], context->position);
    } else if ((entry.flags & FI_REMOTE_CQ_DATA) != 0) {
      const Immediate immediate = unpack(entry.data);
      receiver_.data_arrived(immediate, immediate.lane);
    }
  }
  return count > 0 || count == Domain::kFailure;
}

// A look that found something is not repeated before its caller has used what it found: after the
// last of these completions, poll() says once that there is none.
bool LibfabricEndpoint::poll(Completion& completion) {
  if (!reporter_.empty() && reporter_.take(completion)) return true;
  if (has_just_looked_) {
    has_just_looked_ = false;
    return false;
  }
  const auto lock = locked();
  (void)progress();
  has_just_looked_ = !reporter_.empty() && reporter_.take(completion);
  return has_just_looked_;
}

// Once the regions are deregistered and no operation is pending, no write arrives in the caller's
// memory and nothing reads it. Pending operations on sockets end only with the libfabric endpoint.
void LibfabricEndpoint::release() {
  const auto lock = locked();
  if (state_.released) return;
  state_.released = true;
  if (state_.shared != nullptr) {
    return state_.shared->end_long_messages(*parts_);
  }
  bool pending = false;
  for (const Lane& lane : state_.lanes) {
    pending = pending || (lane.out.writing & lane.out.own_bytes) != 0;
    for (std::uint64_t n = lane.in.consumed; n < lane.in.posted; ++n) {
      pending = pending || lane.in.posts[state_.position(n)].size > state_.config.eager_bytes;
    }
  }
  if (pending) {
    state_.domain->restart();
    for (Lane& lane : state_.lanes) lane.refusals = 0;
  }
  regions_.clear(*state_.domain);
}

bool LibfabricEndpoint::block(std::uint64_t ns) {
  if (state_.shared == nullptr) {
    const std::array others = {carriers_ == nullptr ? -1 : carriers_->descriptor(), nudge_};
    std::array<bool, 2> is_readable;
    const bool has_waited =
        state_.domain->wait(nudge_ >= 0 ? ns : std::min(ns, kMaxDeafBlockNs), others, is_readable);
    if (is_readable[0]) look_at_carriers(now());
    return has_waited;
  }
  state_.shared->wait(*parts_, ns);
  return true;
}

void LibfabricEndpoint::wake() {
  const auto lock = locked();
  is_woken_.store(true, std::memory_order_relaxed);
  if (state_.shared != nullptr) state_.shared->wake(*parts_);
  if (nudge_ >= 0) (void)eventfd_write(nudge_, 1);
}

// Spins as long as recent waits were short, and yields the core after each attempt. Then it blocks.
// If the provider cannot block, it sleeps for a sixteenth of the time waited so far, so the sleep
// adds at most that fraction to the wait. Spinning answers a short message 20 us sooner (the time
// to wake an idle core), but with long messages it takes the cores from processes that have work.
void LibfabricEndpoint::wait(std::uint64_t until) {
  const auto lock = locked();
  const std::uint64_t start = now();
  const std::uint64_t opened = state_.opened;
  std::uint64_t waited = 0;
  std::uint32_t vain_waits = 0;
  if (!reporter_.empty()) return;  // e.g. that a message was sent
  while (true) {
    const bool moved = progress();
    const std::uint64_t time = now();
    if (carriers_ != nullptr && time >= carriers_->due_ns()) look_at_carriers(time);
    has_just_looked_ = !reporter_.empty();
    waited = time - start;
    if (is_woken_.load(std::memory_order_relaxed)) {
      is_woken_.store(false, std::memory_order_relaxed);
      eventfd_t count = 0;
      if (nudge_ >= 0) (void)eventfd_read(nudge_, &count);
      break;
    }
    if (!reporter_.empty() || time >= until || state_.opened != opened) break;
    const std::uint64_t next =
        std::min({until, connector_.next_greeting_ns(), sender_.next_request_ns(),
                  carriers_ != nullptr ? carriers_->due_ns() : UINT64_MAX});
    if (moved) {  // There may be more.
      vain_waits = 0;
    } else if (waited < spin_ns_) {
      if (mutex_ != nullptr) mutex_->unlock();
      sched_yield();
      if (mutex_ != nullptr) mutex_->lock();
    } else if (state_.to_push.empty() && vain_waits < kMaxVainWaits &&
               block(std::min(next - std::min(time, next), kMaxBlockNs))) {
      vain_waits = now() - time < kVainWaitNs ? vain_waits + 1 : 0;
    } else {
      const std::uint64_t sleep_ns = std::min({waited / 16, kMaxSleepNs, until - time});
      const timespec t = {0, static_cast<long>(sleep_ns)};
      if (mutex_ != nullptr) mutex_->unlock();
      nanosleep(&t, nullptr);
      if (mutex_ != nullptr) mutex_->lock();
    }
  }
  const std::uint64_t aim_ns = waited < kMaxSpinNs ? kMaxSpinNs : 0;
  spin_ns_ = (3 * spin_ns_ + aim_ns) / 4;
}

}  // namespace espalier::ofi
