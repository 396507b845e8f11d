#pragma once
// The thread by which a process takes part in the flood of its job. One process of each host is the
// agent of all of them: it searches for cables, and passes logs on. The others reach the agent over
// a socket of their host. If the agent ends, another process takes its place; each process has all
// logs, so nothing is lost. Host only.

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/network/filter.h"
#include "bootstrap/cables/flood.h"
#include "bootstrap/stream.h"
#include "espalier/base/result.h"
#include "espalier/bootstrap/bootstrap.h"

namespace espalier::cables {

struct ParticipantOptions {
  bootstrap::JobSecret secret = {};
  network::InterfaceFilter interfaces = {};
  network::PortRange ports = {};
  std::uint16_t port = 0;  // of UDP, as SearchOptions::port
};

// What a process and its thread share, under the mutex.
struct Shared {
  std::mutex mutex;
  std::condition_variable changed;
  Flood flood;
  LogId own = 0;
  std::vector<LogId> needed;  // logs to keep, though their processes may have ended
  std::set<LogId> seen;  // that had begun, and had neither left nor been refused, when they came
  std::vector<HostRecord> records;  // of the hosts that are reached, this one included
  std::uint64_t records_count = 0;  // changes of them
  Time records_at{0};               // when view_of(records) became as it is
  std::uint32_t term = 0;           // of this host's agent: HostRecord::term
  bool is_idle = false;             // nothing is awaited
  std::string failure;              // why this thread has ended; empty: it has not
};

class Participant {
 public:
  // Errors: no thread, no descriptor.
  [[nodiscard]] static Result<std::unique_ptr<Participant>> start(
      const ParticipantOptions& options);
  ~Participant();
  Participant(const Participant&) = delete;
  Participant& operator=(const Participant&) = delete;

  [[nodiscard]] Shared& shared() { return shared_; }
  // Adds to the own log; the mutex must be held.
  void add(const Entry& entry);
  // Has the thread look at what has changed.
  void wake();
  // Waits until each peer has all logs, for at most this time.
  void flush(Time time);

 private:
  Participant(const ParticipantOptions& options, bootstrap::Socket wake);
  void run();
  // Takes part as the agent or through it, until that ends.
  [[nodiscard]] Result<void> take_part();
  // Whether the thread is to go on; takes what wakes it.
  [[nodiscard]] bool goes_on();

  ParticipantOptions options_;
  Shared shared_;
  bootstrap::Socket wake_;
  bool ends_ = false;  // under the mutex
  std::thread thread_;
};

}  // namespace espalier::cables
