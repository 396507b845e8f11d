#pragma once
// What the communicators of one process share: the membership in the job, and progress. Host only.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "bootstrap/cables/job_graph.h"
#include "communicator/begin_record.h"
#include "communicator/record/writer.h"
#include "communicator/schedules.h"
#include "espalier/communicator.h"
#include "espalier/hal/ofi/ofi_endpoint.h"

namespace espalier::communicator {

class Channel;

class Job {
 public:
  // `record`: null: this process keeps none.
  Job(JoinOptions options, std::shared_ptr<bootstrap::Bootstrap> members,
      std::shared_ptr<record::Writer> record = nullptr);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  [[nodiscard]] const JoinOptions& options() const { return options_; }
  [[nodiscard]] bootstrap::Bootstrap& members() { return *members_; }
  // How a new endpoint opens. `address`: the IP that it binds; empty: the provider has none.
  // `fabric`: what all endpoints at this address share.
  struct Opening {
    std::string address = {};
    std::shared_ptr<ofi::SharedFabric> fabric = ofi::make_shared_fabric();
  };
  [[nodiscard]] Opening opening() const;
  // Endpoints at an earlier address keep what they share.
  void set_address(const std::string& address);
  // The hosts and cables when the whole job was connected last; null: it has a network.
  [[nodiscard]] std::shared_ptr<const cables::JobGraph> cables() const;
  void set_cables(std::shared_ptr<const cables::JobGraph> cables);
  [[nodiscard]] const std::shared_ptr<record::Writer>& record() const { return record_; }
  // For a process without one: a newcomer, or one that was alone in its job.
  void set_record(std::shared_ptr<record::Writer> record) {
    if (observer_ != nullptr) observer_->set_writer(record);
    const std::lock_guard lock(mutex_);
    record_ = std::move(record);
  }
  // Learns of a record that begins later.
  void set_observer(std::shared_ptr<record::JobObserver> observer) {
    observer_ = std::move(observer);
  }

  // What messages between its hosts cost; nothing: it was not measured.
  [[nodiscard]] std::optional<NetworkCost> network() const;
  // Nothing: newcomers do not know it, so all processes measure anew.
  void set_network(const std::optional<NetworkCost>& cost);
  // The agreement on newcomers that made the last communicator of the whole job; 0: none yet.
  // Earlier communicators of the whole job neither rejoin() nor accept().
  [[nodiscard]] std::uint32_t growth() const { return growth_; }
  void set_growth(std::uint32_t generation) { growth_ = generation; }
  // Whether newcomers were taken: some ranks may have measured with them, and others not.
  [[nodiscard]] bool has_grown() const { return has_grown_; }
  void note_growth() { has_grown_ = true; }
  // Starts the thread, unless it runs: a job of one process has none. Throws what std::thread does.
  void provide_thread();

  struct Ranks {
    std::uint32_t rank = 0, size = 0;
    bool is_whole = false;  // those of the job, in its order, which files and images serve
    auto operator<=>(const Ranks&) const = default;
  };
  // Returns the schedules of a communicator of these ranks. Communicators that live at once and
  // have the same ranks and costs share them, so that each is chosen once. `image`: null unless
  // ranks.is_whole. Errors: as Schedules::make().
  [[nodiscard]] Result<std::shared_ptr<Schedules>> find_schedules(
      const Ranks& ranks, const Costs& costs, std::shared_ptr<const ImagePrograms> image);

  // A channel makes progress whenever any other channel of the job waits.
  void add(Channel& channel);
  void remove(Channel& channel);
  // Makes progress on all channels except `waiting`; on those without a collective in progress, of
  // which there may be very many, now and then. Returns whether any of them has a collective in
  // progress: then its caller must not block.
  // `skips_used`: not on those that the program has used since the last time.
  bool progress_others(const Channel* waiting, bool skips_used = false);
  // Channels whose queues are not empty.
  void count_active(int change) { active_.fetch_add(change, std::memory_order_relaxed); }
  // Channels that were cancelled and end: the thread looks at them every kProgressPause.
  void count_ending(int change);
  // A call waits, and what it waits for moved last at this time (monotonic_ns()); 0: no call waits.
  void note_waiting(std::uint64_t moved_at) {
    waiting_moved_at_.store(moved_at, std::memory_order_relaxed);
  }
  // MachineConfig::quiet_ns: for how long nothing has moved that a call waits for; 0: none waits.
  [[nodiscard]] std::uint64_t quiet_ns() const;
  // Ends the thread: between two calls this process is then as one that is stopped.
  void end_thread();
  // A collective was started that no call waits for: a progress thread goes on with it.
  void call_progress_thread();

  // Keeps the channel until has_left(). Waits for that if there is no channel of the whole job.
  void keep_until_left(std::shared_ptr<Channel> channel);
  // A channel of the whole job begins. There are two while the job is joined anew.
  void begin_whole() { ++wholes_; }
  // It ends. After the last one: waits for the parts that are kept, or ends them at once.
  void end_whole(bool waits);
  // The other ranks know that it ends. After the last one: the same for earlier communicators of
  // the whole job, which other ranks may end after the last one.
  void end_earlier_wholes(bool waits);

 private:
  [[nodiscard]] std::thread start_thread();
  void progress_forever();
  // Sleeps until the thread is called: kProgressPause at most if a progress thread has work (a
  // collective in progress, or one of the `kept` channels), otherwise idle_pause_.
  void pause(std::size_t kept);
  // Makes progress on all channels, and ends those that have left. Returns how many are kept.
  std::size_t progress_leaving(bool skips_used = false);
  void progress_idle(bool skips_used);  // with mutex_
  // Returns how many of the kept channels are parts.
  [[nodiscard]] std::size_t parts_leaving();
  // Waits until the kept channels have left, or ends them at once. `all`: not only the parts.
  void end_kept(bool waits, bool all);
  void beat();  // notes in the record that the process lives

  JoinOptions options_;
  // For opening_, cables_ and network_: threads may split() meanwhile.
  mutable std::mutex opening_mutex_;
  Opening opening_;
  std::shared_ptr<const cables::JobGraph> cables_;
  std::shared_ptr<bootstrap::Bootstrap> members_;
  std::uint32_t growth_ = 0;
  bool has_grown_ = false;
  std::shared_ptr<record::Writer> record_;  // changed with mutex_
  std::shared_ptr<record::JobObserver> observer_;
  std::uint64_t next_beat_ns_ = 0;  // of the thread
  std::optional<NetworkCost> network_;
  std::mutex schedules_mutex_;
  // And three of the costs.
  using SchedulesKey = std::tuple<Ranks, std::uint32_t, std::uint32_t, std::uint64_t>;
  std::map<SchedulesKey, std::weak_ptr<Schedules>> schedules_;  // with schedules_mutex_
  std::mutex mutex_;                                            // of channels_
  std::vector<Channel*> channels_;
  std::atomic<const Channel*> only_ = nullptr;  // the channel, if there is just one
  std::atomic<int> active_ = 0;
  std::atomic<int> ending_ = 0;
  std::atomic<std::uint64_t> waiting_moved_at_ = 0;
  std::vector<std::shared_ptr<Channel>> leaving_;  // with mutex_
  std::atomic<int> wholes_ = 0;
  std::mutex end_mutex_;             // held while channels that have left end; taken before mutex_
  std::uint64_t idle_until_ns_ = 0;  // with mutex_: when idle channels are next
  // The thread replies to other ranks while the program does not call. Idle, it wakes so seldom
  // that neither a core nor a call notices.
  std::chrono::nanoseconds idle_pause_;
  std::mutex pause_mutex_;
  std::condition_variable pause_;
  bool is_called_ = false, ends_ = false;  // with pause_mutex_
  std::atomic<bool> is_idle_ = false;      // it sleeps for idle_pause_, unless it is called
  std::thread thread_;
};

}  // namespace espalier::communicator
