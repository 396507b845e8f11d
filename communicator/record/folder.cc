#include "communicator/record/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "base/one_line.h"
#include "base/process/variables.h"
#include "base/try.h"
#include "communicator/record/layout.h"
#include "communicator/record/view.h"

namespace espalier::record {
namespace {

constexpr char kPrefix[] = "espalier-";

template <typename Number>
bool take_number(std::string& text, Number& number) {
  const std::size_t dot = text.rfind('.');
  if (dot == std::string::npos) return false;
  const std::string digits = text.substr(dot + 1);
  if (digits.empty() || digits.size() > std::numeric_limits<Number>::digits10 ||
      digits.find_first_not_of("0123456789") != std::string::npos) {
    return false;
  }
  number = static_cast<Number>(std::stoull(digits));
  text.resize(dot);
  return true;
}

// The fields of /proc/PID/stat behind the name, from the state. Empty: no such process.
std::string stat_of(std::uint32_t pid) {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/%u/stat", pid);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return "";
  char text[1024];
  const ssize_t count = read(file, text, sizeof text);
  close(file);
  if (count <= 0) return "";
  const std::string all(text, static_cast<std::size_t>(count));
  const std::size_t end = all.rfind(')');
  return end == std::string::npos || end + 2 >= all.size() ? "" : all.substr(end + 2);
}

std::uint64_t start_of(const std::string& stat) {
  constexpr int kField = 19;  // starttime is field 22; the state is 3
  std::size_t begin = 0;
  for (int i = 0; i < kField; ++i) {
    begin = stat.find(' ', begin);
    if (begin == std::string::npos) return 0;
    ++begin;
  }
  return std::strtoull(stat.c_str() + begin, nullptr, 10);
}

// 0: there is no /proc, or it shows other numbers than this process has.
std::uint64_t own_pid_space() {
  char self[16] = "";
  if (readlink("/proc/self", self, sizeof self - 1) < 0) return 0;
  if (std::to_string(getpid()) != self) return 0;
  struct stat status {};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

bool is_lock_held(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return errno != ENOENT;
  struct flock lock = whole_file();
  const bool is_known = fcntl(file, F_OFD_GETLK, &lock) == 0;
  close(file);
  return !is_known || lock.l_type != F_UNLCK;
}

// Whether the file is blank because its process was killed while it made the record.
bool is_unfinished(const std::string& path, const FileName& name, const struct stat& status) {
  constexpr time_t kMakingS = 10;
  if (!S_ISREG(status.st_mode) || time(nullptr) - status.st_mtime < kMakingS) return false;
  if (own_pid_space() == 0 || !stat_of(name.pid).empty()) return false;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (file < 0) return false;
  char magic[sizeof kMagic] = {};
  const ssize_t count = read(file, magic, sizeof magic);
  close(file);
  const bool is_blank = std::all_of(magic, magic + sizeof magic, [](char c) { return c == 0; });
  return count >= 0 && is_blank && !is_lock_held(path);
}

}  // namespace

std::string text_of(const FileName& name) {
  return kPrefix + name.job + "." + std::to_string(name.rank) + "." + std::to_string(name.pid) +
         (name.pid_space == 0 ? "" : "." + std::to_string(name.pid_space));
}

bool parse(const std::string& text, FileName& name) {
  if (!text.starts_with(kPrefix)) return false;
  std::string rest = text.substr(sizeof kPrefix - 1);
  name.pid_space = 0;
  if (std::count(rest.begin(), rest.end(), '.') == 3 && !take_number(rest, name.pid_space)) {
    return false;
  }
  if (!take_number(rest, name.pid) || !take_number(rest, name.rank)) return false;
  name.job = rest;
  return !rest.empty() && rest.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::vector<std::string> run_folders() {
  const std::string user = std::to_string(geteuid());
  std::vector<std::string> all;
  const char* const given = raw_value(Variable::kRuntimeDir);
  struct stat status {};
  if (given != nullptr && *given == '/' && "/run/user/" + user != given &&
      stat(given, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid()) {
    return {std::string(given) + "/espalier"};
  }
  for (const std::string& each :
       {"/run/user/" + user + "/espalier", "/dev/shm/espalier-" + user, "/tmp/espalier-" + user}) {
    all.push_back(each);
  }
  return all;
}

bool is_own(const std::string& folder) {
  struct stat status {};
  return lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == geteuid() && (status.st_mode & 077) == 0;
}

std::string make_run_folder() {
  for (const std::string& folder : run_folders()) {
    (void)mkdir(folder.c_str(), 0700);
    if (is_own(folder) && access(folder.c_str(), W_OK | X_OK) == 0) return folder;
  }
  return "";
}

Result<std::string> given_folder() {
  ESPALIER_TRY_TO(const auto given, read_text(Variable::kRecord));
  if (!given) return "";
  (void)mkdir(given->c_str(), 0700);
  struct stat status {};
  if (stat(given->c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
      access(given->c_str(), W_OK | X_OK) != 0) {
    return fail(wrong_value(Variable::kRecord, "a folder that this process can write to"));
  }
  const std::unique_ptr<char, void (*)(void*)> whole(realpath(given->c_str(), nullptr), std::free);
  return whole == nullptr ? *given : std::string(whole.get());
}

Result<std::vector<std::string>> list(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(opendir(folder.c_str()), closedir);
  if (opened == nullptr) {
    return fail("cannot read the folder '" + one_line(folder) + "': " + std::strerror(errno));
  }
  std::vector<std::string> paths;
  while (const dirent* const entry = readdir(opened.get())) {
    FileName name;
    if (parse(entry->d_name, name)) paths.push_back(folder + "/" + entry->d_name);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

Identity own_identity() {
  const auto pid = static_cast<std::uint32_t>(getpid());
  return {pid, own_pid_space(), start_of(stat_of(pid))};
}

// The lock is of the open file, so that no other descriptor of the process ends it. A lock of NFS
// waits for a server, which may not answer.
bool lock_record(int file) {
  struct statfs system {};
  if (fstatfs(file, &system) != 0 || system.f_type == NFS_SUPER_MAGIC) return false;
  struct flock lock = whole_file();
  return fcntl(file, F_OFD_SETLK, &lock) == 0;
}

Life life_of(const Identity& identity, const std::string& path) {
  if (identity.pid_space == 0 || identity.pid_space != own_pid_space()) {
    return identity.is_locked && !is_lock_held(path) ? Life::kEnded : Life::kRuns;
  }
  const std::string stat = stat_of(identity.pid);
  if (stat.empty() || stat[0] == 'Z' || stat[0] == 'X') return Life::kEnded;
  if (start_of(stat) != identity.start_ticks) return Life::kEnded;
  return stat[0] == 'T' || stat[0] == 't' ? Life::kStopped : Life::kRuns;
}

namespace {

// The record of a process that has ended.
struct Ended {
  std::string path = {};
  std::uint32_t rank = 0;
  std::uint64_t start_ticks = UINT64_MAX;  // of the process; not known
};

}  // namespace

// A job that lives keeps the records of its ended processes, except those that were replaced.
void remove_stale(const std::string& folder) {
  const auto paths = list(folder);
  if (!paths) return;
  std::set<std::string> living;
  std::map<std::string, std::vector<Ended>> ended;
  std::map<std::pair<std::string, std::uint32_t>, std::uint64_t> newest;  // start, by job and rank
  for (const std::string& path : *paths) {
    FileName name;
    (void)parse(path.substr(folder.size() + 1), name);
    struct stat status {};
    const auto view = read_view(path);
    // A link whose file is gone is stale, too, unless another namespace has the file.
    const bool is_gone = stat(path.c_str(), &status) != 0;
    if (is_gone && (name.pid_space != own_pid_space() || !stat_of(name.pid).empty())) continue;
    if (!is_gone && !view) {
      if (is_unfinished(path, name, status)) (void)unlink(path.c_str());
      continue;
    }
    const std::uint64_t start = is_gone ? UINT64_MAX : view->identity.start_ticks;
    if (!is_gone) {
      std::uint64_t& last = newest[{name.job, name.rank}];
      last = std::max(last, start);
    }
    if (!is_gone && life_of(view->identity, path) != Life::kEnded) {
      living.insert(name.job);
    } else {
      ended[name.job].push_back({path, name.rank, start});
    }
  }
  for (const auto& [job, of] : ended) {
    for (const Ended& one : of) {
      const bool is_replaced = one.start_ticks != 0 && one.start_ticks < newest[{job, one.rank}];
      if (is_replaced || !living.contains(job)) (void)unlink(one.path.c_str());
    }
  }
}

}  // namespace espalier::record
