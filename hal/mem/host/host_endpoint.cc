#include "hal/mem/host/host_endpoint.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "espalier/internal/base/assert.h"
#include "hal/mem/inbox.h"

namespace espalier::mem {
namespace {

// A wait spins, then yields the core until kYieldNs have passed, then sleeps. Where ranks share
// cores it does not spin. Otherwise it spins the longer the more often that was enough, or nearly
// so, and the shorter the more often the first yield, which took as long as another process runs,
// was what it needed: a peer on the same core can only answer when this end yields.
constexpr std::uint64_t kMinSpinNs = 1'000;
constexpr std::uint64_t kMaxSpinNs = 20'000;
constexpr std::uint64_t kYieldNs = 200'000;
constexpr std::uint64_t kOtherRunsNs = 1'000;  // A yield to nobody takes less.
constexpr std::uint64_t kMaxSleepNs = 1'000'000'000;

// With at most so many links, and a core for each rank, pieces take turns: to write a piece that
// the other core has just read takes three times as long as one that has left its caches. Their
// memory is then touched when a link is added, not by the first messages.
constexpr std::uint32_t kLinksThatTakeTurns = 8;

unsigned cores() {
  static const unsigned found = std::max(1U, std::thread::hardware_concurrency());
  return found;
}

void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value, std::uint64_t ns) {
  const timespec timeout = {static_cast<time_t>(ns / 1'000'000'000),
                            static_cast<long>(ns % 1'000'000'000)};
  (void)syscall(SYS_futex, &word, FUTEX_WAIT, value, &timeout, nullptr, 0);
}

void futex_wake(std::atomic<std::uint32_t>& word) {
  (void)syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

}  // namespace

HostEndpoint::HostEndpoint(const HostConfig& config)
    : MemEndpoint(nullptr, 0, config.endpoint), config_(config) {}

Result<void> HostEndpoint::open() {
  links_.reserve(config_.blocks);
  remotes_.reserve(config_.blocks);
  set_links(links_.data());
  auto segment = Segment::create(config_.blocks, inbox_bytes(config_.endpoint.shape));
  if (!segment) return fail(segment.error());
  segment_ = *std::move(segment);
  memory_ = SharedMemory::of_process();
  return {};
}

Result<void> HostEndpoint::connect(std::uint32_t peer, std::uint32_t own, const SegmentPlace& place,
                                   std::uint32_t remote) {
  const Shape& shape = config_.endpoint.shape;
  auto mapped = RemoteBlock::map(place, remote, inbox_bytes(shape));
  if (!mapped) return fail(mapped.error());
  add_remote(peer, own, *std::move(mapped));
  const RemoteBlock& other = remotes_.back();
  const bool is_own = other.process == segment_.place().process;
  if (is_own ? config_.reads_all_memory || memory_ != nullptr
             : other.shared_memory->bytes() != nullptr) {
    read_in_place(links() - 1);
  }
  Inbox(remotes_.back().block(), shape).sender().present.store(1, std::memory_order_release);
  remotes_.back().head().greetings.fetch_add(1, std::memory_order_release);
  notify(links() - 1);
  return {};
}

Result<void> HostEndpoint::connect_to_none(std::uint32_t peer, std::uint32_t own) {
  auto none = RemoteBlock::of_none(inbox_bytes(config_.endpoint.shape));
  if (!none) return fail(none.error());
  add_remote(peer, own, *std::move(none));
  return {};
}

void HostEndpoint::add_remote(std::uint32_t peer, std::uint32_t own, RemoteBlock block) {
  // The base has the address of the array, which therefore must not move.
  ESPALIER_ASSERT(own < config_.blocks && links_.size() < links_.capacity());
  ESPALIER_ASSERT(links_.size() == links() && remotes_.size() == links());
  links_.emplace_back(peer, segment_.block(own), block.block());
  remotes_.push_back(std::move(block));
  add_link();
  ESPALIER_ASSERT(links_.size() == links() && remotes_.size() == links());
  const bool turns = links() < cores() && links() <= kLinksThatTakeTurns;
  let_pieces_take_turns(turns);
  if (!turns || !config_.touches_memory) return;
  const std::size_t bytes = inbox_bytes(config_.endpoint.shape);
  (void)madvise(segment_.block(own), bytes, MADV_POPULATE_WRITE);
  (void)madvise(remotes_.back().block(), bytes, MADV_POPULATE_WRITE);
}

bool HostEndpoint::take_greetings() {
  const std::uint32_t greetings = segment_.head().greetings.load(std::memory_order_acquire);
  if (greetings == greeted_) return false;
  greeted_ = greetings;
  if (config_.greeted != nullptr) config_.greeted();
  return true;
}

bool HostEndpoint::is_greeted(std::uint32_t own) const {
  ESPALIER_ASSERT(own < config_.blocks);
  return Inbox(segment_.block(own), config_.endpoint.shape)
             .sender()
             .present.load(std::memory_order_acquire) != 0;
}

bool HostEndpoint::poll(Completion& completion) {
  take_greetings();
  return MemEndpoint::poll(completion);
}

bool HostEndpoint::look() {
  const bool greeted = take_greetings();
  return progress() || has_control() || greeted;
}

std::uint64_t HostEndpoint::now() { return monotonic_ns(); }

void HostEndpoint::notify(std::uint32_t link) {
  ESPALIER_ASSERT(link < remotes_.size());
  SegmentHead& head = remotes_[link].head();
  // Either this end sees that the peer sleeps, or the peer's last look before it sleeps sees what
  // this end has written.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (head.sleeping.load(std::memory_order_relaxed) == 0) return;
  head.bell.fetch_add(1, std::memory_order_release);
  futex_wake(head.bell);
}

bool HostEndpoint::find_place(std::uint32_t link, const std::uint8_t* bytes, std::uint64_t size,
                              std::uint64_t& place) {
  ESPALIER_ASSERT(link < remotes_.size());
  if (config_.reads_all_memory && remotes_[link].process == segment_.place().process) {
    place = reinterpret_cast<std::uintptr_t>(bytes);
    return true;
  }
  if (memory_ == nullptr || !memory_->contains(bytes, size)) return false;
  place = memory_->offset_of(bytes);
  return true;
}

const std::uint8_t* HostEndpoint::at_place(std::uint32_t link, std::uint64_t place,
                                           std::uint64_t size) {
  ESPALIER_ASSERT(link < remotes_.size());
  const RemoteBlock& remote = remotes_[link];
  const bool is_own = remote.process == segment_.place().process;
  if (is_own && config_.reads_all_memory) {
    return reinterpret_cast<const std::uint8_t*>(static_cast<std::uintptr_t>(place));
  }
  const std::uint8_t* const begin = is_own ? memory_->bytes() : remote.shared_memory->bytes();
  const std::size_t room = is_own ? memory_->size() : remote.shared_memory->size();
  return begin == nullptr || place > room || size > room - place ? nullptr : begin + place;
}

void HostEndpoint::wait(std::uint64_t until) {
  const std::uint64_t spin_ns = links() < cores() ? spin_ns_ : 0;
  const std::uint64_t start = now();
  std::uint64_t waited = 0;
  std::uint32_t yields = 0;
  while (!look()) {
    if (is_woken_.load(std::memory_order_relaxed)) {
      is_woken_.store(false, std::memory_order_relaxed);
      return;
    }
    waited = now() - start;
    if (start + waited >= until) return;
    if (waited < spin_ns) {
      for (int i = 0; i < 2; ++i) pause_core();
    } else if (waited < kYieldNs) {
      sched_yield();
      ++yields;
    } else if (sleep(until)) {
      break;
    }
  }
  const bool another_ran = yields == 1 && now() - start - waited > kOtherRunsNs;
  if (another_ran) {
    spin_ns_ = std::max(spin_ns_ / 2, kMinSpinNs);
  } else if (yields <= 1) {
    spin_ns_ = std::min(2 * spin_ns_, kMaxSpinNs);
  }
}

void HostEndpoint::wake() {
  is_woken_.store(true, std::memory_order_relaxed);
  SegmentHead& head = segment_.head();
  // Either the other thread sees is_woken_ before it sleeps, or it has the bell of before.
  head.bell.fetch_add(1, std::memory_order_seq_cst);
  futex_wake(head.bell);
}

// Returns whether there was something before it slept.
bool HostEndpoint::sleep(std::uint64_t until) {
  SegmentHead& head = segment_.head();
  const std::uint32_t bell = head.bell.load(std::memory_order_acquire);
  head.sleeping.store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::uint64_t time = now();
  const bool found = look();
  if (!found && !is_woken_.load(std::memory_order_relaxed) && time < until)
    futex_wait(head.bell, bell, std::min(until - time, kMaxSleepNs));
  head.sleeping.store(0, std::memory_order_relaxed);
  return found;
}

}  // namespace espalier::mem
