#pragma once
// What the communicators of one process share: the membership in the job, and progress. Host only.

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "communicator/schedules.h"
#include "espalier/communicator.h"

namespace espalier::communicator {

class Channel;

class Job {
 public:
  Job(JoinOptions options, std::shared_ptr<bootstrap::Bootstrap> members);
  ~Job();  // ends the progress thread
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  [[nodiscard]] const JoinOptions& options() const { return options_; }
  [[nodiscard]] bootstrap::Bootstrap& members() { return *members_; }
  // Numbers the values that this process publishes, so that no key is used twice.
  [[nodiscard]] std::uint32_t next_publication() { return publications_++; }

  // What messages between its hosts cost; nothing: it was not measured.
  [[nodiscard]] const std::optional<NetworkCost>& network() const { return network_; }
  void set_network(const NetworkCost& cost) { network_ = cost; }

  // A channel makes progress whenever any other channel of the job waits.
  void add(Channel& channel);
  void remove(Channel& channel);
  // Makes progress on all channels except `waiting`. Returns whether any of them has a collective
  // in progress: then its caller must not block.
  bool progress_others(const Channel* waiting);

 private:
  void progress_forever();

  JoinOptions options_;
  std::shared_ptr<bootstrap::Bootstrap> members_;
  std::uint32_t publications_ = 0;
  std::optional<NetworkCost> network_;
  std::mutex mutex_;  // of channels_
  std::vector<Channel*> channels_;
  std::atomic<const Channel*> only_ = nullptr;  // the channel, if there is just one
  std::atomic<bool> ends_ = false;
  std::thread progress_;
};

}  // namespace espalier::communicator
