#include "tools/cluster/launcher.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <sstream>

#include "base/command_line.h"
#include "base/counted.h"
#include "base/process/open_files.h"
#include "base/process/system_error.h"
#include "base/try.h"
#include "communicator/record/folder.h"
#include "espalier/hal/ofi/ofi_endpoint.h"

namespace espalier::cluster {
namespace {

// How long nodes get to end by themselves.
constexpr std::uint64_t kEndPatience = 3'000'000'000;  // ns
constexpr std::uint64_t kFilesPerNode = 2;             // its channel and its memory

// `start`: of LaunchOptions.commands, expanded.
std::vector<std::string> node_command(const LaunchOptions& options, const std::string& job,
                                      std::uint32_t first, const std::string& start,
                                      const std::vector<int>& channels, bool comes_back) {
  std::vector<std::string> command;
  std::istringstream prefix(expand_template(options.prefix, first));
  for (std::string word; prefix >> word;) command.push_back(word);
  if (start.empty()) {
    command.push_back(options.node_binary);
  } else {  // the shell makes words of it, and then way for it
    command.insert(command.end(), {"sh", "-c", "exec " + start + " \"$@\"", "sh"});
  }
  for (const std::string& schedule : options.schedules) {
    command.insert(command.end(), {"--schedule", schedule});
  }
  if (options.boots.empty() || options.boots[first]) {
    command.insert(command.end(), options.boot.begin(), options.boot.end());
  }
  command.insert(command.end(), options.role.begin(), options.role.end());
  for (std::uint32_t i = 0; i < channels.size(); ++i) {
    command.insert(command.end(),
                   {"--node", std::to_string(first + i), "--control", std::to_string(channels[i])});
    if (!options.links.empty()) {
      command.insert(command.end(), {"--links", options.links[first + i]});
    }
  }
  if (!options.topology.empty()) command.insert(command.end(), {"--topology", options.topology});
  command.insert(command.end(),
                 {"--provider", options.provider, "--window", std::to_string(options.window),
                  "--deadline", std::to_string(options.deadline_ms)});
  if (!options.address.empty()) {
    command.insert(command.end(), {"--address", expand_address(options.address, first)});
  }
  if (!job.empty()) command.insert(command.end(), {"--job", job});
  if (options.check_blocks) command.push_back("--check-blocks");
  if (options.authenticate_data) command.push_back("--authenticate-data");
  if (options.log) command.push_back("--log");
  if (comes_back) command.push_back("--comes-back");
  return command;
}

// The child's side of spawn(): becomes the node, or says why not. SIGKILL, because a process that
// gets SIGTERM inside fi_getinfo() can hang: a library there calls exit(), and libfabric's
// destructor then waits for a lock that the interrupted call holds.
[[noreturn]] void become_node(const std::vector<std::string>& command,
                              const std::vector<int>& channels) {
  for (const int channel : channels) fcntl(channel, F_SETFD, 0);
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  control::Failed failed;
  std::snprintf(failed.text, sizeof failed.text, "cannot run %s: %s", words[0],
                std::strerror(errno));
  for (const int channel : channels) (void)control::send(channel, failed);
  _exit(127);
}

}  // namespace

std::string expand_template(const std::string& text, std::uint32_t node) {
  return with_node_number(with_node_number(text, node), node + 1, "%n");
}

std::string expand_address(const std::string& text, std::uint32_t node) {
  if (text.find(':') == std::string::npos) return expand_template(text, node);
  std::string expanded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_number =
        text[i] == '%' && i + 1 < text.size() && (text[i + 1] == 'r' || text[i + 1] == 'n') &&
        (i + 2 == text.size() || std::isalnum(static_cast<unsigned char>(text[i + 2])) == 0);
    if (is_number) {
      expanded += std::to_string(text[++i] == 'r' ? node : node + 1);
    } else {
      expanded += text[i];
    }
  }
  if (expanded.size() < 2 || expanded.front() != '[' || expanded.back() != ']') return expanded;
  return expanded.substr(1, expanded.size() - 2);
}

void SharedMemory::swap(SharedMemory& other) {
  std::swap(bytes_, other.bytes_);
  std::swap(layout_, other.layout_);
  std::swap(descriptor_, other.descriptor_);
}

SharedMemory::~SharedMemory() {
  if (bytes_ != nullptr) munmap(bytes_, control::memory_bytes(layout_));
  if (descriptor_ >= 0) close(descriptor_);
}

EventLog SharedMemory::log(const EventLog::Counts& counts) const {
  auto* times = reinterpret_cast<EventTimes*>(
      bytes_ + control::log_offset(layout_.input_bytes, layout_.output_bytes));
  return {reinterpret_cast<Event*>(times + layout_.events), times, counts};
}

Result<SharedMemory> SharedMemory::create(const control::Memory& layout) {
  SharedMemory memory;
  memory.layout_ = layout;
  memory.descriptor_ = memfd_create("espalier", MFD_CLOEXEC);
  if (memory.descriptor_ < 0) return fail(system_error_text(errno));
  const std::uint64_t size = control::memory_bytes(layout);
  if (size == 0) return memory;
  // Allocated now: a full memory is an error here and not a bus error later.
  if (ftruncate(memory.descriptor_, static_cast<off_t>(size)) != 0) {
    return fail(system_error_text(errno));
  }
  const int status = posix_fallocate(memory.descriptor_, 0, static_cast<off_t>(size));
  if (status != 0) return fail(system_error_text(status));
  void* bytes = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory.descriptor_, 0);
  if (bytes == MAP_FAILED) return fail(system_error_text(errno));
  memory.bytes_ = static_cast<std::uint8_t*>(bytes);
  return memory;
}

Result<void> NodeProcesses::start(const LaunchOptions& options) {
  options_ = options;
  members_.resize(options_.nodes);
  options_.commands.resize(options_.nodes);
  auto started = start_processes();
  is_refused_ = !started && signals_.check();
  if (started) started = wire_up();
  options_.progress = nullptr;  // its caller may not outlive start()
  return started;
}

Result<void> NodeProcesses::start_processes() {
  const std::uint64_t files = kOwnFiles + kFilesPerNode * options_.nodes;
  ESPALIER_TRY(allow_open_files(files, counted(options_.nodes, "node")));
  ESPALIER_TRY(keeper_.start());
  ESPALIER_TRY(name_job());
  for (std::uint32_t first = 0; first < options_.nodes; first = process_end(first)) {
    ESPALIER_TRY(signals_.check());
    ESPALIER_TRY(spawn(first, process_end(first)));
  }
  return {};
}

// Names the job for the nodes' records (docs/watching.md).
Result<void> NodeProcesses::name_job() {
  if (options_.ranks == 0) return {};
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) return {};  // then without records
  char name[16];
  std::snprintf(name, sizeof name, "%012" PRIx64, number & 0xffff'ffff'ffff);
  job_ = std::string(name) + ":" + std::to_string(options_.nodes) + ":" +
         std::to_string(options_.ranks);
  if (const std::string folder = record::make_run_folder(); !folder.empty()) {
    record::remove_stale(folder);
  }
  return {};
}

// After the last node of the process whose first is `first`.
std::uint32_t NodeProcesses::process_end(std::uint32_t first) const {
  const auto own = [this](std::uint32_t node) { return !options_.commands[node].empty(); };
  if (own(first)) return first + 1;
  const std::uint32_t most = std::min(options_.nodes, first + options_.nodes_per_process);
  std::uint32_t end = first + 1;
  while (end < most && !own(end)) ++end;
  return end;
}

std::string NodeProcesses::name(std::uint32_t node) const {
  return node < options_.names.size() ? options_.names[node] : "node " + std::to_string(node);
}

// Starts the process of nodes first .. end-1.
Result<void> NodeProcesses::spawn(std::uint32_t first, std::uint32_t end, bool comes_back) {
  std::vector<int> theirs;
  for (std::uint32_t node = first; node < end; ++node) {
    theirs.push_back(-1);
    if (control::open_channel(members_[node].channel, theirs.back())) continue;
    const int failure = errno;
    theirs.pop_back();
    for (const int channel : theirs) close(channel);
    return fail(std::string("cannot open a control channel: ") + system_error_text(failure));
  }
  const std::string start = expand_template(options_.commands[first], first);
  const std::vector<std::string> command =
      node_command(options_, job_, first, start, theirs, comes_back);
  const pid_t child = keeper_.fork_group();
  if (child == 0) become_node(command, theirs);
  const int failure = errno;
  for (const int channel : theirs) close(channel);
  for (std::uint32_t node = first; node < end; ++node) {
    members_[node].process = static_cast<std::uint32_t>(processes_.size());
    members_[node].heard_ns = clock_.now();
  }
  processes_.emplace_back();
  processes_.back().child = child;
  processes_.back().command = start;
  if (child < 0) return fail(std::string("cannot start a process: ") + system_error_text(failure));
  return {};
}

// No collective runs between two releases: it might have other programs, or the same ones with
// another meaning.
Result<void> NodeProcesses::check_releases() const {
  if (options_.any_releases) return {};
  const Member* first = nullptr;
  for (std::uint32_t node = 0; node < members_.size(); ++node) {
    const control::Hello& hello = members_[node].hello;
    if (hello.release_digest == 0) continue;  // it boots no image
    if (first == nullptr) first = &members_[node];
    if (hello.release_digest == first->hello.release_digest) continue;
    const auto text = [](const control::Hello& of) {
      char line[64];
      std::snprintf(line, sizeof line, "release %u.%u.%u (digest %016" PRIx64 ")", of.release >> 24,
                    of.release >> 16 & 255, of.release & 65535, of.release_digest);
      return std::string(line);
    };
    const auto other = static_cast<std::uint32_t>(first - members_.data());
    return fail(name(node) + " has " + text(hello) + ", " + name(other) + " has " +
                text(first->hello) + ", and nodes of two releases run nothing together; " +
                "expected one release, see 'espalier update --help'");
  }
  return {};
}

Result<void> NodeProcesses::wire_up() {
  ESPALIER_TRY(await(Member::State::kHello));
  ESPALIER_TRY(check_releases());
  std::vector<std::vector<std::uint32_t>> lanes;  // the peer of each
  for (const Member& member : members_) {
    const control::Hello& hello = member.hello;
    lanes.emplace_back(hello.peers, hello.peers + std::min(hello.lanes, control::kMaxLanes));
  }
  std::uint8_t secret[sizeof(control::Peers::secret)];
  if (getrandom(secret, sizeof secret, 0) != sizeof secret) {
    return fail(std::string("no random bytes for the job secret: ") + std::strerror(errno));
  }
  for (std::uint32_t node = 0; node < members_.size(); ++node) {
    control::Peers peers;
    std::copy(std::begin(secret), std::end(secret), peers.secret);
    peers.lanes = static_cast<std::uint32_t>(lanes[node].size());
    for (std::uint32_t lane = 0; lane < peers.lanes; ++lane) {
      const std::uint32_t peer = lanes[node][lane];
      const bool started = peer < members_.size();
      const std::uint32_t there = started ? ofi::other_end(lanes, node, lane) : 0;
      if (!started || there == lanes[peer].size()) {
        return fail(name(node) + " has a link to node " + std::to_string(peer) +
                    ", which is not started or has none to it");
      }
      peers.addresses[lane] = members_[peer].hello.addresses[there];
    }
    if (!control::send(members_[node].channel, peers)) lose(members_[node]);
  }
  return await(Member::State::kReady);
}

Result<void> NodeProcesses::give_memory(std::uint32_t node, std::uint64_t input_bytes,
                                        std::uint64_t output_bytes, std::uint32_t events,
                                        std::span<const std::uint64_t> counts) {
  Member& member = members_[node];
  member.memory = SharedMemory();
  control::Memory packet{.input_bytes = input_bytes,
                         .output_bytes = output_bytes,
                         .events = events,
                         .counts = counts.size()};
  auto memory = SharedMemory::create(packet);
  if (!memory) {
    return fail("no memory for " + name(node) + " (" + counted(input_bytes + output_bytes, "byte") +
                "): " + memory.error().message);
  }
  member.memory = *std::move(memory);
  if (!counts.empty()) std::copy(counts.begin(), counts.end(), member.memory.counts());
  member.state = Member::State::kReady;
  member.heard_ns = clock_.now();
  if (!control::send(member.channel, packet, member.memory.descriptor())) lose(member);
  return {};
}

Result<void> NodeProcesses::await_memory() { return await(Member::State::kMapped); }

// Whether all others went on without the node in their newest run, and did nothing since.
Result<void> NodeProcesses::check_left_out(std::uint32_t node) const {
  if (members_[node].state != Member::State::kFailed) return fail(name(node) + " has not failed");
  for (std::uint32_t other = 0; other < members_.size(); ++other) {
    if (other == node) continue;
    const Member& member = members_[other];
    if (member.process == members_[node].process) {
      return fail(name(node) + " cannot come back: it shared its process with " + name(other));
    }
    const bool is_right = member.state == Member::State::kReported &&
                          member.report.loss.generation != 0 &&
                          member.report.loss.loss() == Loss::node(node);
    if (!is_right) {
      return fail(name(node) + " cannot come back: " + name(other) +
                  " has not completed its newest run without it");
    }
  }
  return {};
}

Result<void> NodeProcesses::come_back(std::uint32_t node) {
  ESPALIER_TRY(check_left_out(node));
  Member& member = members_[node];
  if (member.channel >= 0) close(member.channel);
  end_groups({processes_[member.process].child});
  const control::Memory layout = member.memory.layout();
  member = Member{};
  ESPALIER_TRY(spawn(node, node + 1, true));
  for (std::uint32_t other = 0; other < members_.size(); ++other) {
    if (other == node) continue;
    members_[other].state = Member::State::kStarting;
    if (!control::send(members_[other].channel, control::Return{control::Packet::kReturn, node})) {
      lose(members_[other]);
    }
  }
  ESPALIER_TRY(wire_up());
  for (Member& other : members_) other.state = Member::State::kMapped;
  auto given = give_memory(node, layout.input_bytes, layout.output_bytes, layout.events);
  if (given) given = await_memory();
  if (!given) return given;
  member.state = Member::State::kAsks;
  if (!control::send(member.channel, control::Return{control::Packet::kReturn, node})) lose(member);
  return {};
}

NodeProcesses::~NodeProcesses() { end(); }

bool NodeProcesses::has_ended(Process& process) {
  if (process.ended) return true;
  siginfo_t about{};
  if (waitid(P_PID, static_cast<id_t>(process.child), &about, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      about.si_pid != process.child) {
    return false;
  }
  process.ended = true;
  process.killed = about.si_code != CLD_EXITED;
  process.status = about.si_status;
  return true;
}

void NodeProcesses::end() {
  for (Member& member : members_) {
    if (member.channel < 0) continue;
    (void)control::send(member.channel, control::Quit{}, -1, 0);
    close(member.channel);
    member.channel = -1;
  }
  const std::uint64_t until = monotonic_ns() + kEndPatience;
  std::vector<pid_t> groups;
  for (std::uint32_t i = 0; i < processes_.size(); ++i) {
    Process& process = processes_[i];
    if (process.child <= 0) continue;
    groups.push_back(process.child);
    // Only nodes that serve their channel read Quit. Those that start, failed or hang get no time.
    bool serves = true;
    for (const Member& member : members_) {
      if (member.process != i) continue;
      serves =
          serves && member.state >= Member::State::kReady && member.state != Member::State::kFailed;
    }
    while (serves && !has_ended(process) && monotonic_ns() < until) usleep(1000);
  }
  end_groups(groups);
  keeper_.stop();
  for (const pid_t child : groups) {
    kill(child, SIGKILL);  // it may have left its group
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
  }
  processes_.clear();
  members_.clear();
}

}  // namespace espalier::cluster
