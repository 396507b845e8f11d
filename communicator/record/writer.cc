#include "communicator/record/writer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/digest.h"
#include "base/host_name.h"
#include "base/one_line.h"
#include "base/process/file_limit.h"
#include "base/process/system_error.h"
#include "base/process/variables.h"
#include "base/try.h"
#include "base/version.h"
#include "communicator/record/fields.h"
#include "communicator/record/folder.h"

namespace espalier::record {
namespace {

constexpr std::size_t kMaxHost = sizeof Process::host - 1;
constexpr const char* kHex = "0123456789abcdef";

std::string own_host() {
  std::array<char, kMaxHost + 1> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "";
  std::string text = name.data();
  // The words of Process::hosts.
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == ' ' || c == '*' || c == '\n'; }, '_');
  return text;
}

std::string hex_of(std::uint64_t number) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%012llx",
                static_cast<unsigned long long>(number & 0xffffffffffff));
  return text.data();
}

// A name that no other job has.
std::string new_job() {
  static std::atomic<std::uint64_t> count = 0;
  const std::string host = own_host();
  std::uint64_t digest = digest_bytes(kDigestSeed, host.data(), host.size());
  for (const std::uint64_t part :
       {wall_ns(), monotonic_ns(), static_cast<std::uint64_t>(getpid()), ++count}) {
    digest = digest_u64(digest, part);
  }
  return hex_of(digest);
}

std::string hosts_text(const std::vector<Card>& cards) {
  constexpr std::size_t kRoom = sizeof Process::hosts - kMaxHost - 16;
  std::string text;
  for (std::size_t first = 0, next = 0; first < cards.size(); first = next) {
    while (next < cards.size() && cards[next].host == cards[first].host) ++next;
    text += (text.empty() ? "" : " ") + cards[first].host + "*" + std::to_string(next - first);
    if (text.size() > kRoom && next < cards.size()) return text + " ...";
  }
  return text;
}

// Returns the name that the job has, otherwise the first one that a rank with a record proposes.
std::string job_named(const std::vector<Card>& cards) {
  const auto has_joined = [](const Card& card) { return card.has_joined; };
  const auto has_name = [](const Card& card) { return !card.job.empty(); };
  auto found = std::find_if(cards.begin(), cards.end(), has_joined);
  if (found == cards.end()) found = std::find_if(cards.begin(), cards.end(), has_name);
  return found == cards.end() ? "" : found->job;
}

void say_why_not(const std::string& reason) {
  if (!is_set(Variable::kVerbose)) return;
  std::fprintf(stderr, "espalier: 'espalier status' will not show this process: %s\n",
               reason.c_str());
}

}  // namespace

std::string with_card(const std::string& address, const Card& card) {
  const std::string text = card.host + "\n" + card.job + (card.has_joined ? "+" : "-");
  return address + text + static_cast<char>(text.size());
}

Card take_card(std::string& address) {
  Card card;
  if (address.empty()) return card;
  const auto size = static_cast<unsigned char>(address.back());
  if (size + std::size_t{1} > address.size()) return card;
  const std::string text = address.substr(address.size() - 1 - size, size);
  const std::size_t line = text.find('\n');
  if (line == std::string::npos || text.size() < line + 2) return card;
  address.resize(address.size() - 1 - size);
  // Both come from another process, and go into names of files and to a remote shell.
  if (line <= kMaxHost && is_host_name(text.substr(0, line))) card.host = text.substr(0, line);
  const std::string job = text.substr(line + 1, text.size() - line - 2);
  if (job.size() >= sizeof Process::job || job.find_first_not_of(kHex) != std::string::npos) {
    return card;
  }
  card.job = job;
  card.has_joined = text.back() == '+' && !job.empty();
  return card;
}

Result<std::shared_ptr<Writer>> Writer::make(const Origin& origin) {
  ESPALIER_TRY_TO(std::string folder, given_folder());
  const bool is_given = !folder.empty();
  const std::string run_folder = make_run_folder();
  if (folder.empty()) folder = run_folder;
  const std::shared_ptr<Writer> none;
  if (folder.empty()) {
    say_why_not("no folder of this user in " + run_folders().front() + ", /dev/shm or /tmp");
    return none;
  }
  static std::atomic<bool> has_looked = false;
  // The launcher of nodes has looked for all of them.
  const bool is_node = origin.schedule_ranks != 0;
  if (!run_folder.empty() && !is_node && !has_looked.exchange(true)) remove_stale(run_folder);
  auto writer = std::shared_ptr<Writer>(new Writer(folder));
  writer->is_given_ = is_given;
  writer->proposal_ = is_node ? origin.joining : new_job();
  const Identity self = own_identity();
  const std::string job = origin.joining.empty() ? writer->proposal_ : origin.joining;
  writer->name_ = text_of({job, origin.rank, self.pid});
  if (!writer->map(folder + "/" + writer->name_)) {
    say_why_not("'" + one_line(folder) + "': " + system_error_text(errno));
    return none;
  }
  Record& record = *writer->record_;
  Process& process = record.process;
  put_text(process.library, espalier::kVersion);
  put_text(process.provider, origin.provider);
  put_text(process.joining, origin.joining);
  put_text(process.host, own_host());
  process.rank = origin.rank;
  process.size = origin.size;
  process.schedule_ranks = origin.schedule_ranks;
  process.pid = self.pid;
  process.pid_space = self.pid_space;
  process.has_far_ranks = origin.has_far_ranks ? 1 : 0;
  process.is_locked = writer->file_ >= 0 ? 1 : 0;
  process.start_ticks = self.start_ticks;
  process.state = ProcessState::kJoining;
  process.since_ns = process.joining_ns = monotonic_ns();
  process.since_wall = wall_ns();
  process.deadline_ms = static_cast<std::uint32_t>(
      std::min<std::int64_t>(origin.deadline.count() / 1'000'000, UINT32_MAX));
  record.version = record::kVersion;
  record.bytes = sizeof(Record);
  std::memcpy(record.magic, kMagic, sizeof kMagic);
  writer->beat(process.since_ns);
  if (is_given && !run_folder.empty() && run_folder != folder) {
    writer->run_folder_ = run_folder;
    writer->link_file();
  }
  return writer;
}

namespace {

// Whether the process of a record has ended. False also if that is not known. Keeps errno.
bool has_ended(const std::string& path) {
  const int before = errno;
  const auto view = read_view(path);
  const bool ended = view && life_of(view->identity, path) == Life::kEnded;
  errno = before;
  return ended;
}

}  // namespace

// All pages are there before they are written: a full file system is no signal later.
bool Writer::map(const std::string& path) {
  if (max_file_bytes() < sizeof(Record)) {
    errno = EFBIG;
    return false;
  }
  const auto create = [&path] {
    return open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  };
  int file = create();
  // A start of the same name in a container, where processes get the same numbers again.
  if (file < 0 && errno == EEXIST && has_ended(path) && unlink(path.c_str()) == 0) file = create();
  if (file < 0) return false;
  int error = posix_fallocate(file, 0, sizeof(Record));
  void* memory = MAP_FAILED;
  if (error == 0) {
    memory = mmap(nullptr, sizeof(Record), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) error = errno;
  }
  close(file);
  if (memory == MAP_FAILED) {
    (void)unlink(path.c_str());
    errno = error;
    return false;
  }
  record_ = static_cast<Record*>(memory);
  // Opened anew: the mapping, which forked children have, too, keeps the open file of its own.
  file_ = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file_ >= 0 && lock_record(file_)) {
    close_in_children(file_);
  } else if (file_ >= 0) {
    close(std::exchange(file_, -1));
  }
  return true;
}

Writer::~Writer() {
  if (generation_ != process_generation() || record_ == nullptr) return;
  const bool stays = is_kept_ && is_given_;
  if (stays) {
    const Change change(record_->sequence);
    record_->process.end_wall = wall_ns();
  }
  if (!run_folder_.empty()) (void)unlink(link_path().c_str());
  (void)munmap(record_, sizeof(Record));
  if (!stays) (void)unlink((folder_ + "/" + name_).c_str());
  if (file_ < 0) return;
  forget_descriptor(file_);
  close(file_);
}

std::string Writer::link_path() const {
  const std::uint64_t space = record_->process.pid_space;
  return run_folder_ + "/" + name_ + (space == 0 ? "" : "." + std::to_string(space));
}

void Writer::link_file() { (void)symlink((folder_ + "/" + name_).c_str(), link_path().c_str()); }

// Requires mutex_.
void Writer::name_file(const std::string& job) {
  const std::string name = text_of({job, record_->process.rank, record_->process.pid});
  if (name == name_) return;
  if (!run_folder_.empty()) (void)unlink(link_path().c_str());
  if (rename((folder_ + "/" + name_).c_str(), (folder_ + "/" + name).c_str()) == 0) name_ = name;
  if (!run_folder_.empty()) link_file();
}

std::string Writer::job() const {
  const std::lock_guard lock(mutex_);
  return record_->process.job;
}

std::uint32_t Writer::rank() const {
  const std::lock_guard lock(mutex_);
  return record_->process.rank;
}

Card Writer::card() const {
  const std::lock_guard lock(mutex_);
  const bool has_joined = record_->process.job[0] != 0;
  return {record_->process.host, has_joined ? record_->process.job : proposal_, has_joined};
}

// Survivors keep their numbers, and those of the job's start count as its ranks.
void Writer::joined(const std::vector<Card>& cards, std::uint32_t rank) {
  const std::string name = job_named(cards);
  const std::string hosts = hosts_text(cards);
  const auto size = static_cast<std::uint32_t>(cards.size());
  const std::lock_guard lock(mutex_);
  {
    const Change change(record_->sequence);
    Process& process = record_->process;
    const bool is_first = process.job[0] == 0;
    process.sight = {};  // it may have been replaced
    put_text(process.hosts, hosts);
    process.size = is_first ? size : std::max(size, process.size);
    process.rank = rank;
    if (is_first) {
      put_text(process.job, name.empty() ? proposal_ : name);
      process.state = ProcessState::kJoined;
      process.since_ns = monotonic_ns();
      process.since_wall = wall_ns();
    }
  }
  neighbours_.clear();
  name_file(record_->process.job);
}

// Requires mutex_.
void Writer::note_sight(std::uint32_t rank, Sighted what) {
  const Sight& known = record_->process.sight;
  const bool is_same = known.rank == rank;
  if (known.what == Sighted::kNothing ? what == Sighted::kNothing
                                      : !is_same || what != Sighted::kNothing) {
    return;
  }
  const Change change(record_->sequence);
  record_->process.sight = {.at_wall = wall_ns(), .rank = rank, .what = what};
}

void Writer::join_failed(const std::string& why) {
  const std::lock_guard lock(mutex_);
  const Change change(record_->sequence);
  Process& process = record_->process;
  process.state = ProcessState::kJoinFailed;
  process.since_ns = monotonic_ns();
  process.since_wall = wall_ns();
  put_text(process.text, one_line(why));
  is_kept_ = true;
}

void Writer::begin_agreement(Agreement agreement) {
  agreement.since_ns = monotonic_ns();
  const std::lock_guard lock(mutex_);
  const Change change(record_->sequence);
  record_->process.agreement = agreement;
}

void Writer::end_agreement() {
  const std::lock_guard lock(mutex_);
  const Change change(record_->sequence);
  record_->process.agreement = {};
}

void Writer::connected() {
  const std::lock_guard lock(mutex_);
  const Change change(record_->sequence);
  Process& process = record_->process;
  put_text(process.job, proposal_);
  process.state = ProcessState::kJoined;
  process.since_ns = monotonic_ns();
  process.since_wall = wall_ns();
}

void Writer::ended(const std::string& why) {
  const std::lock_guard lock(mutex_);
  const Change change(record_->sequence);
  put_text(record_->process.text, one_line(why));
  is_kept_ = true;
}

void Writer::name_board(const std::string& board) {
  const std::lock_guard lock(mutex_);
  const Change change(record_->sequence);
  put_text(record_->process.board, one_line(board));
}

void Writer::fail() {
  const std::lock_guard lock(mutex_);
  const Change change(record_->sequence);
  ++record_->process.failures;
  is_kept_ = true;
}

void Writer::beat(std::uint64_t now_ns) {
  record_->heartbeat_ns.store(now_ns, std::memory_order_relaxed);
  // A board gave its sign a while ago.
  record_->heartbeat_wall.store(wall_ns() - (monotonic_ns() - now_ns), std::memory_order_relaxed);
}

// All members make the communicators of one group in the same order; each generation counts anew,
// because newcomers have seen none before. A communicator is made from one of its generation that
// is open, or begins a generation: the counts of one that has no open communicator end.
Part* Writer::add(std::uint32_t rank, const std::vector<std::uint32_t>& ranks,
                  std::uint32_t generation) {
  std::uint64_t group = digest_u64(digest_u64(kDigestSeed, generation), ranks.size());
  for (const std::uint32_t each : ranks) group = digest_u64(group, each);
  const std::lock_guard lock(mutex_);
  Generation& own = generations_[generation];
  const std::uint64_t id = std::max<std::uint64_t>(1, digest_u64(group, ++own.groups[group]));
  ++own.open;
  Part* found = nullptr;
  for (Part& part : record_->communicators) {
    const bool is_free = part.details.id == 0;
    if (is_free || (part.details.has_left != 0 && found == nullptr)) found = &part;
    if (is_free) break;
  }
  const std::uint32_t number = record_->process.communicators;
  {
    const Change change(record_->sequence);
    ++record_->process.communicators;
    if (found == nullptr) ++record_->process.unrecorded;
  }
  if (found == nullptr) return nullptr;
  const std::uint64_t now = monotonic_ns();
  found->begun.store(0, std::memory_order_relaxed);
  found->done.store(0, std::memory_order_relaxed);
  found->clock_ns.store(now & ~kAlgorithmBits, std::memory_order_relaxed);
  found->changed_ns.store(now, std::memory_order_relaxed);
  found->inside_ns.store(0, std::memory_order_relaxed);
  const Change change(found->sequence);
  found->details = {};
  found->details.id = id;
  found->details.number = number;
  found->details.rank = rank;
  found->details.size = static_cast<std::uint32_t>(ranks.size());
  return found;
}

void Writer::remove(std::uint32_t generation) {
  const std::lock_guard lock(mutex_);
  const auto found = generations_.find(generation);
  if (found != generations_.end() && --found->second.open == 0) generations_.erase(found);
}

std::size_t Writer::generations() const {
  const std::lock_guard lock(mutex_);
  return generations_.size();
}

// Requires mutex_. Returns other_peers if there is no row for the rank, and no room for one.
Peer& Writer::row_of(std::uint32_t rank) {
  for (Peer& peer : record_->peers) {
    const std::uint64_t known = peer.rank.load(std::memory_order_relaxed);
    if (known != 0 && known != rank + std::uint64_t{1}) continue;
    if (known == 0) peer.rank.store(rank + std::uint64_t{1}, std::memory_order_release);
    return peer;
  }
  return record_->other_peers;
}

void Writer::add_bytes(std::uint32_t rank, std::uint64_t sent, std::uint64_t received) {
  const std::lock_guard lock(mutex_);
  const auto add = [](Word& word, std::uint64_t more) {
    word.store(word.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  };
  Peer& row = row_of(rank);
  add(row.sent, sent);
  add(row.received, received);
}

}  // namespace espalier::record
