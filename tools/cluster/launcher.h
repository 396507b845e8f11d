#pragma once
// Starts espalier-node processes of one or several nodes each, wires the nodes up, has them run
// collectives and hears how they ended. Every wait has a limit and says who was waited for. Host
// only.

#include <sys/types.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "espalier/base/result.h"
#include "firmware/node/control.h"
#include "tools/cluster/keeper.h"

namespace espalier::cluster {

// A test aid: node's process gets a signal some time after the first run began.
struct Disturbance {
  std::uint32_t node = 0;
  int signal = 0;  // SIGKILL, SIGSTOP
  std::uint32_t after_ms = 0;
  std::uint64_t at_ns = 0;  // CLOCK_MONOTONIC when it was sent; 0: not yet
};

struct LaunchOptions {
  std::string node_binary;  // path of espalier-node
  std::vector<std::string> schedules;
  // Or the words that say what nodes boot from instead: --image FILE ..., with any %r left as it
  // is.
  std::vector<std::string> boot;
  // By node: whether `boot` is for it; the command of any other says what it boots. Empty: for all.
  std::vector<bool> boots;
  std::vector<std::string> role;  // words for all nodes: their part in an update; empty: runs
  std::string topology;           // canonical specification
  std::string provider = "tcp";
  // Words before each process's command, and its IP to bind: %r stands for the number of its first
  // node, %n for that plus one. Empty: none.
  std::string prefix;
  std::string address;
  std::uint32_t nodes = 0;
  std::uint32_t ranks = 0;  // of the schedule; the other nodes are routers. 0: no records are kept
  std::uint32_t nodes_per_process = 1;
  // By node: what starts it in espalier-node's place, in a process of its own; words for sh, which
  // get a node's options after them, %r and %n as above. Empty, or not there: espalier-node.
  std::vector<std::string> commands;
  // Hop by hop: each node's links, as espalier-node's --links takes them. Empty: routed.
  std::vector<std::string> links;
  // By node, if `links` name the interfaces of cables: the end of each lane, "eth0 of host1".
  std::vector<std::vector<std::string>> cables;
  std::vector<std::string> hosts;  // the same: the host that the cables' file names; may be empty
  std::vector<std::string> names;  // of the nodes, for messages; empty: "node 3"
  std::uint32_t window = kMaxWindow;
  std::uint32_t deadline_ms = 5000;  // D of the nodes' machines
  bool check_blocks = false;
  bool authenticate_data = false;
  // Starts nodes of different releases too, which otherwise do not join one another.
  bool any_releases = false;
  bool log = false;  // nodes keep logs where give_memory() has room for them
  std::vector<Disturbance> disturbances;
  std::function<void(double done)> progress;  // called during start(), 0 .. 1; may be empty
};

// `text` with %r and %n replaced for `node`.
[[nodiscard]] std::string expand_template(const std::string& text, std::uint32_t node);
// The same of an address, without its brackets. In an IPv6 one a letter or digit behind %r or %n
// makes it the name of an interface, as in fe80::%n%net0.
[[nodiscard]] std::string expand_address(const std::string& text, std::uint32_t node);

// Memory that a node and this process share.
class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  SharedMemory(SharedMemory&& other) noexcept { swap(other); }
  SharedMemory& operator=(SharedMemory&& other) noexcept {
    SharedMemory old(std::move(other));
    swap(old);
    return *this;
  }
  ~SharedMemory();
  // Error: the system's reason.
  [[nodiscard]] static Result<SharedMemory> create(const control::Memory& layout);
  [[nodiscard]] std::uint8_t* input() const { return bytes_; }
  [[nodiscard]] std::uint8_t* output() const {
    return bytes_ + control::output_offset(layout_.input_bytes);
  }
  // The log, whose counts a report tells.
  [[nodiscard]] EventLog log(const EventLog::Counts& counts) const;
  // layout().counts numbers.
  [[nodiscard]] std::uint64_t* counts() const {
    return reinterpret_cast<std::uint64_t*>(
        bytes_ + control::counts_offset(layout_.input_bytes, layout_.output_bytes, layout_.events));
  }
  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] const control::Memory& layout() const { return layout_; }

 private:
  void swap(SharedMemory& other);

  std::uint8_t* bytes_ = nullptr;
  control::Memory layout_;
  int descriptor_ = -1;
};

// A process of one or several nodes.
struct Process {
  pid_t child = -1;     // the forked process; the prefix's process if the prefix does not exec
  std::string command;  // of LaunchOptions.commands, expanded; empty: espalier-node
  bool ended = false;   // child has ended; it stays a zombie, so that its number stays its own
  bool killed = false;  // ... by the signal `status`, otherwise with that exit status
  int status = 0;
};

// One node.
struct Member {
  // kAsks: it comes back, and was not taken in yet.
  enum class State { kStarting, kHello, kReady, kMapped, kRunning, kReported, kAsks, kFailed };
  State state = State::kStarting;
  std::uint32_t process = 0;   // position among the cluster's
  std::int32_t pid = 0;        // the node's own word
  int channel = -1;            // negative: closed
  std::uint64_t heard_ns = 0;  // AwakeClock of the cluster: its last packet
  std::uint64_t moved_ns = 0;  // ... of its last sign of progress
  std::uint64_t asked_ns = 0;
  control::Hello hello;
  control::Report report;
  std::uint64_t completed_before = 0;  // collectives of all runs before the report's
  std::string failure;                 // kFailed: why, one line
  bool refused =
      false;  // ... before it had an endpoint: its input, or an espalier-node that says so
  SharedMemory memory;
};

// While it exists, SIGINT, SIGTERM, SIGHUP and SIGQUIT interrupt the waits of the cluster instead
// of ending the process, so that everything is cleared away. A signal that the
// parent ignores stays ignored.
class SignalWatch {
 public:
  SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  ~SignalWatch();
  // Error: a signal was caught.
  [[nodiscard]] static Result<void> check();

 private:
  std::array<struct sigaction, 4> before_;
};

// A node that begins a run later than the others.
struct Late {
  std::uint32_t node = 0;
  std::uint64_t ns = 0;
};

class NodeProcesses {
 public:
  NodeProcesses() = default;
  NodeProcesses(const NodeProcesses&) = delete;
  NodeProcesses& operator=(const NodeProcesses&) = delete;
  // Ends every process. If the launcher is killed, a Keeper does.
  ~NodeProcesses();

  // Starts and wires up all nodes.
  [[nodiscard]] Result<void> start(const LaunchOptions& options);
  // Whether start() failed because this system does not let the processes start, or their endpoints
  // open: a limit, or an option of the provider. False: a node failed, or a signal came.
  [[nodiscard]] bool is_refused() const { return is_refused_; }
  // Gives node its memory; both sizes may be 0, then the node has no such buffer. events: records
  // of a log that it may keep. counts: of runs with RunRequest::counts.
  [[nodiscard]] Result<void> give_memory(std::uint32_t node, std::uint64_t input_bytes,
                                         std::uint64_t output_bytes, std::uint32_t events = 0,
                                         std::span<const std::uint64_t> counts = {});
  // Waits until all nodes have mapped their memory.
  [[nodiscard]] Result<void> await_memory();
  // Runs `order` (number and start are set here) on all live nodes, which start at one time.
  // Returns whether every node reported kOk. Otherwise members() say what happened to each. Error:
  // the wait itself was interrupted (a signal).
  [[nodiscard]] Result<bool> run(control::RunRequest order, const Late& late = {});

  // Starts a failed node again, which has spares, and which all others left out in their newest
  // run. They take it in when one of the next runs begins, of which it then has a report like the
  // others. Until then its state is kAsks; kFailed: it was refused, or the others did not answer.
  // Error: nothing was started, or a node failed meanwhile.
  [[nodiscard]] Result<void> come_back(std::uint32_t node);

  [[nodiscard]] const std::vector<Member>& members() const { return members_; }
  [[nodiscard]] const std::vector<Disturbance>& disturbances() const {
    return options_.disturbances;
  }
  // Whether both nodes are of one process.
  [[nodiscard]] bool share(std::uint32_t one, std::uint32_t other) const {
    return members_[one].process == members_[other].process;
  }
  // One line on how a node's run ended, e.g. "dead link: rank 3 found its link to rank 7 dead,
  // ...".
  [[nodiscard]] std::string describe(std::uint32_t node) const;

 private:
  [[nodiscard]] std::string name(std::uint32_t node) const;
  [[nodiscard]] std::string waits_for(const StallReport& stall) const;
  [[nodiscard]] std::uint32_t process_end(std::uint32_t first) const;
  // comes_back: the node is started again.
  [[nodiscard]] Result<void> spawn(std::uint32_t first, std::uint32_t end, bool comes_back = false);
  [[nodiscard]] Result<void> check_releases() const;
  [[nodiscard]] Result<void> start_processes();
  [[nodiscard]] Result<void> name_job();
  [[nodiscard]] Result<void> wire_up();
  [[nodiscard]] Result<void> check_left_out(std::uint32_t node) const;
  // Whether nodes have reported that they took in a node again.
  [[nodiscard]] bool takes_in() const;
  // Waits until every member is in `state`. Errors: one failed, was silent too long, or the user
  // broke it off.
  [[nodiscard]] Result<void> await(Member::State state);
  void say_unconnected() const;
  // Returns the cables between nodes that have not connected, and nodes on hosts of other names
  // than the cables' file has, as the end of a line.
  [[nodiscard]] std::string unconnected_cables() const;
  [[nodiscard]] std::string cable_end(std::uint32_t node, std::uint32_t lane) const;
  [[nodiscard]] std::uint32_t other_lane(std::uint32_t node, std::uint32_t lane) const;
  // Returns a node's error with the name of the neighbour that did not connect.
  [[nodiscard]] std::string with_name(const std::string& error) const;
  [[nodiscard]] Result<void> await_reports();
  [[nodiscard]] Result<void> listen(std::uint64_t until_ns);
  void take_packet(Member& member);
  void give_order(Member& member);
  void take_report(Member& member, const control::Report& report);
  // Puts a member that is in state `from` into state `to`; fails any other.
  void advance(Member& member, Member::State from, Member::State to);
  // Fails a member whose packet has numbers or a kind that no node sends.
  void refuse(Member& member, const std::string& why);
  void lose(Member& member);
  static bool has_ended(Process& process);  // does not wait
  void watch(Member& member, std::uint64_t now);
  void disturb(std::uint64_t now);
  void end();

  bool is_refused_ = false;
  std::string job_;  // words for the nodes' records; empty: they keep none
  SignalWatch signals_;
  AwakeClock clock_;
  Keeper keeper_;
  LaunchOptions options_;
  std::vector<Process> processes_;
  std::vector<Member> members_;
  std::uint32_t runs_ = 0;
  control::RunRequest order_;  // the newest one
  std::uint64_t first_run_ns_ = 0;
};

}  // namespace espalier::cluster
