#include "communicator/job.h"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/clock.h"
#include "base/try.h"
#include "communicator/cables/rank_graph.h"
#include "communicator/channel.h"

namespace espalier::communicator {
namespace {

// How long a progress thread sleeps between two looks at collectives.
constexpr auto kProgressPause = std::chrono::microseconds(200);
// How long the thread sleeps otherwise. A rank that awaits this one probes every D/8, from D/2 on.
constexpr std::chrono::nanoseconds kMaxIdlePause = std::chrono::milliseconds(100);
constexpr int kIdlePausesPerDeadline = 16;
// How long channels without a collective in progress may wait.
constexpr std::uint64_t kIdlePauseNs = 2'000'000;
// If there are very many, looking at them takes at most one part of the time in so many.
constexpr std::uint64_t kIdleShare = 16;
// The least time between two notes in the record.
constexpr std::uint64_t kBeatNs = 50'000'000;

}  // namespace

Job::Job(JoinOptions options, std::shared_ptr<bootstrap::Bootstrap> members,
         std::shared_ptr<record::Writer> record)
    : options_(std::move(options)),
      members_(std::move(members)),
      record_(std::move(record)),
      idle_pause_(std::min(kMaxIdlePause, options_.deadline / kIdlePausesPerDeadline)) {
  // Without members: in tests of what a job keeps.
  if (members_ != nullptr && members_->size() > 1) thread_ = start_thread();
}

Job::~Job() { end_thread(); }

void Job::provide_thread() {
  if (!thread_.joinable()) thread_ = start_thread();
}

void Job::end_thread() {
  {
    const std::lock_guard lock(pause_mutex_);
    ends_ = true;
  }
  pause_.notify_one();
  if (thread_.joinable()) thread_.join();
}

// The program's signals are for its own threads.
std::thread Job::start_thread() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread started([this] { progress_forever(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return started;
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
}

std::uint64_t Job::quiet_ns() const {
  const std::uint64_t moved_at = waiting_moved_at_.load(std::memory_order_relaxed);
  return moved_at == 0 ? 0 : monotonic_ns() - moved_at;
}

Job::Opening Job::opening() const {
  const std::lock_guard lock(opening_mutex_);
  return opening_;
}

void Job::set_address(const std::string& address) {
  const std::lock_guard lock(opening_mutex_);
  if (!opening_.address.empty() && opening_.address != address) opening_ = {};
  opening_.address = address;
}

std::shared_ptr<const cables::JobGraph> Job::cables() const {
  const std::lock_guard lock(opening_mutex_);
  return cables_;
}

void Job::set_cables(std::shared_ptr<const cables::JobGraph> cables) {
  const std::lock_guard lock(opening_mutex_);
  cables_ = std::move(cables);
}

std::optional<NetworkCost> Job::network() const {
  const std::lock_guard lock(opening_mutex_);
  return network_;
}

void Job::set_network(const std::optional<NetworkCost>& cost) {
  {
    const std::lock_guard lock(opening_mutex_);
    network_ = cost;
  }
  const std::lock_guard lock(schedules_mutex_);
  schedules_.clear();  // they choose by what was known before
}

// The model and the network are the same for all communicators of the job. Schedules that measure
// are not shared, because they change.
Result<std::shared_ptr<Schedules>> Job::find_schedules(const Ranks& ranks, const Costs& costs,
                                                       std::shared_ptr<const ImagePrograms> image) {
  const std::lock_guard lock(schedules_mutex_);
  const SchedulesKey key{ranks, costs.ranks_per_host, costs.memory_cores,
                         costs.graph == nullptr ? 0 : costs.graph->topology()->digest()};
  if (!costs.is_measuring) {
    if (auto shared = schedules_[key].lock()) return shared;
  }
  ESPALIER_TRY_TO(std::shared_ptr<Schedules> schedules,
                  Schedules::make(ranks.rank, ranks.size,
                                  ranks.is_whole ? options_.schedules : std::vector<std::string>(),
                                  costs, std::move(image)));
  if (!costs.is_measuring) schedules_[key] = schedules;
  return schedules;
}

void Job::add(Channel& channel) {
  const std::lock_guard lock(mutex_);
  channels_.push_back(&channel);
  only_ = channels_.size() == 1 ? channels_.front() : nullptr;
}

void Job::remove(Channel& channel) {
  const std::lock_guard lock(mutex_);
  channels_.erase(std::remove(channels_.begin(), channels_.end(), &channel), channels_.end());
  only_ = channels_.size() == 1 ? channels_.front() : nullptr;
}

bool Job::progress_others(const Channel* waiting, bool skips_used) {
  if (waiting != nullptr && only_ == waiting) return false;
  const int own = waiting != nullptr && waiting->is_active() ? 1 : 0;
  const std::lock_guard lock(mutex_);
  if (const std::uint64_t now = monotonic_ns(); now >= idle_until_ns_) {
    progress_idle(skips_used);
    const std::uint64_t end = monotonic_ns();
    idle_until_ns_ = end + std::max(kIdlePauseNs, kIdleShare * (end - now));
  }
  if (active_.load(std::memory_order_relaxed) <= own) return false;
  bool is_busy = false;
  for (Channel* channel : channels_) {
    if (channel == waiting || !channel->is_active()) continue;
    if (skips_used && channel->take_used()) continue;
    is_busy = channel->try_progress() || is_busy;
  }
  return is_busy;
}

// Peers may connect to idle channels, probe them, or leave them.
void Job::progress_idle(bool skips_used) {
  for (Channel* channel : channels_) {
    if (channel->is_active() || (skips_used && channel->take_used())) continue;
    (void)channel->try_progress();
  }
}

std::size_t Job::progress_leaving(bool skips_used) {
  const std::lock_guard ending(end_mutex_);
  std::vector<std::shared_ptr<Channel>> gone;  // ends without mutex_: channels remove themselves
  (void)progress_others(nullptr, skips_used);
  std::size_t kept = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto first = std::partition(leaving_.begin(), leaving_.end(),
                                      [](const auto& each) { return !each->has_left(); });
    kept = static_cast<std::size_t>(first - leaving_.begin());
    try {
      gone.assign(std::make_move_iterator(first), std::make_move_iterator(leaving_.end()));
    } catch (const std::bad_alloc&) {
      return leaving_.size();  // they end in a later call
    }
    leaving_.erase(first, leaving_.end());
  }
  for (const auto& channel : gone) channel->close();
  return kept;
}

void Job::keep_until_left(std::shared_ptr<Channel> channel) {
  const std::shared_ptr<Job> self = channel->shared_job();  // until all have left
  {
    const std::lock_guard lock(mutex_);
    leaving_.push_back(std::move(channel));
  }
  call_progress_thread();
  // Those that left before it are ended here if no thread does.
  while (progress_leaving() != 0 && wholes_ == 0) std::this_thread::sleep_for(kProgressPause);
}

void Job::end_whole(bool waits) {
  if (--wholes_ == 0) end_kept(waits, false);
}

void Job::end_earlier_wholes(bool waits) {
  if (wholes_ == 0) end_kept(waits, true);
}

std::size_t Job::parts_leaving() {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(std::count_if(
      leaving_.begin(), leaving_.end(), [](const auto& each) { return each->members().is_part; }));
}

void Job::end_kept(bool waits, bool all) {
  std::size_t before = 0;
  while (waits) {
    std::size_t kept = progress_leaving();
    if (!all) kept = parts_leaving();
    if (kept == 0) break;
    if (kept != std::exchange(before, kept)) note_waiting(monotonic_ns());
    std::this_thread::sleep_for(kProgressPause);
  }
  // Parts that were cancelled end by themselves: the other ranks wait for that.
  while (ending_.load() > 0 && progress_leaving() != 0) std::this_thread::sleep_for(kProgressPause);
  note_waiting(0);
  const std::lock_guard ending(end_mutex_);
  while (true) {
    std::shared_ptr<Channel> gone;
    {
      const std::lock_guard lock(mutex_);
      const auto found = std::find_if(leaving_.begin(), leaving_.end(), [all](const auto& each) {
        return all || each->members().is_part;
      });
      if (found == leaving_.end()) return;
      gone = std::move(*found);
      leaving_.erase(found);
    }
    gone->close();
  }
}

void Job::progress_forever() {
  while (true) {
    // The calls of a program that calls often reply, and find the thread in no channel.
    pause(progress_leaving(!options_.progress_thread));
    beat();
    const std::lock_guard lock(pause_mutex_);
    if (ends_) return;
  }
}

void Job::beat() {
  const std::lock_guard lock(mutex_);
  if (record_ == nullptr) return;
  const std::uint64_t now = monotonic_ns();
  if (now < next_beat_ns_) return;
  next_beat_ns_ = now + kBeatNs;
  record_->beat(now);
  for (Channel* channel : channels_) channel->beat(now);
}

void Job::pause(std::size_t kept) {
  // Before active_ is read: who starts a collective afterwards sees it, and calls.
  is_idle_.store(true);
  const bool hurries =
      (options_.progress_thread && (kept != 0 || active_.load() > 0)) || ending_.load() > 0;
  std::unique_lock lock(pause_mutex_);
  const auto time = hurries ? std::chrono::nanoseconds(kProgressPause) : idle_pause_;
  pause_.wait_for(lock, time, [this] { return is_called_ || ends_; });
  is_called_ = false;
  is_idle_.store(false);
}

void Job::count_ending(int change) {
  ending_.fetch_add(change);
  if (change < 0) return;
  {
    const std::lock_guard lock(pause_mutex_);
    is_called_ = true;
  }
  pause_.notify_one();
}

void Job::call_progress_thread() {
  if (!options_.progress_thread) return;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!is_idle_.exchange(false)) return;
  {
    const std::lock_guard lock(pause_mutex_);
    is_called_ = true;
  }
  pause_.notify_one();
}

}  // namespace espalier::communicator
