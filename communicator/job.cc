#include "communicator/job.h"

#include <algorithm>
#include <chrono>

#include "communicator/channel.h"

namespace espalier::communicator {
namespace {

// How long the progress thread sleeps between two looks.
constexpr auto kProgressPause = std::chrono::microseconds(200);

}  // namespace

Job::Job(JoinOptions options, std::shared_ptr<bootstrap::Bootstrap> members)
    : options_(std::move(options)), members_(std::move(members)) {
  if (options_.progress_thread) progress_ = std::thread([this] { progress_forever(); });
}

Job::~Job() {
  ends_ = true;
  if (progress_.joinable()) progress_.join();
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

bool Job::progress_others(const Channel* waiting) {
  if (waiting != nullptr && only_ == waiting) return false;
  const std::lock_guard lock(mutex_);
  bool is_busy = false;
  for (Channel* channel : channels_) {
    if (channel != waiting) is_busy = channel->try_progress() || is_busy;
  }
  return is_busy;
}

void Job::progress_forever() {
  while (!ends_) {
    (void)progress_others(nullptr);
    std::this_thread::sleep_for(kProgressPause);
  }
}

}  // namespace espalier::communicator
