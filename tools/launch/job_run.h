#pragma once
// A job that runs: the launcher's side of it. Host only.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "espalier/base/result.h"
#include "tools/cluster/keeper.h"
#include "tools/launch/connection.h"
#include "tools/launch/detours.h"
#include "tools/launch/frames.h"
#include "tools/launch/job.h"
#include "tools/launch/job_signals.h"
#include "tools/launch/output.h"
#include "tools/launch/rendezvous.h"

namespace espalier::launch {

inline constexpr std::uint64_t kNever = UINT64_MAX;

class Job {
 public:
  explicit Job(const JobOptions& options) : options_(options) {}
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job() { end(); }
  // Returns the job's status once all output is printed, or cannot be: then is_abandoned().
  Result<int> run();
  // Whether a reader does not read: a thread waits for it inside write().
  [[nodiscard]] bool is_abandoned() const { return is_abandoned_; }

 private:
  Result<void> start();
  Result<void> start_daemons(const DaemonStart& how);
  // Finds the hosts over the cables, and starts their daemons.
  Result<void> find_hosts(const DaemonStart& how);
  void go();
  void go_on();
  bool drain();
  Result<void> await(Connection::State state);
  Result<void> serve_rendezvous();
  [[nodiscard]] Rendezvous::Callers callers() const;
  void describe_job(Connection& connection);
  void wait_and_serve(int timeout_ms);
  void serve(Connection& connection);
  void take_messages(Connection& connection, bool is_open);
  [[nodiscard]] Connection* find(std::uint32_t number);
  // Takes what a neighbour's daemon said to the one of `connection`. False: malformed.
  [[nodiscard]] bool take_relayed(Connection& connection, const Fields& message);
  void take_hello(Connection& connection, const Fields& message);
  [[nodiscard]] bool handle(Connection& connection, const Fields& message);
  void lose(Connection& connection);  // and those that are reached through it
  void print_errors(Connection& connection);
  void take_signal();
  void stop_and_go_on();
  void take_printed();
  [[nodiscard]] bool may_read_input() const;
  void say(const std::string& line);
  void take_input();
  [[nodiscard]] bool take_end(Connection& connection, const RankEnd& end);
  // Starts a process in place of a rank that failed. False: the job goes on without it.
  [[nodiscard]] bool start_again(Connection& connection, std::uint32_t rank,
                                 const std::string& how);
  [[nodiscard]] bool take_output(Connection& connection, const Fields& message);
  void fail_with(const std::string& line, int status);
  void end_all(int signal_number);
  void end();

  const JobOptions& options_;
  const JobSignals signals_;
  cluster::Keeper keeper_;
  Detours detours_{options_, connections_, [this](const std::string& line) { say(line); },
                   [this](Connection& host) { lose(host); }};
  Rendezvous rendezvous_;  // none of its own: the ranks are newcomers of another job
  std::vector<Connection> connections_;
  std::vector<bool> ended_;
  std::string secret_;
  std::unique_ptr<Output> output_;
  bool is_closed_[2] = {};  // a stream of the launcher, as its daemons know
  bool is_abandoned_ = false;
  int interrupted_by_ = 0;             // the first signal that ends the job
  std::vector<int> held_signals_;      // for the ranks, once they run
  std::uint64_t kill_ns_ = kNever;     // when the ranks that go on are killed
  std::uint64_t give_up_ns_ = kNever;  // when a host that does not answer is given up
  bool takes_input_ = false;
  std::uint32_t living_ = 0;
  std::uint32_t restarts_ = 0;
  int status_ = 0;
};

}  // namespace espalier::launch
