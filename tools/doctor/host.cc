#include "tools/doctor/host.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>

#include "tools/common/host.h"
#include "tools/common/output.h"

namespace espalier::tools::doctor {
namespace {

constexpr rlim_t kMinFiles = 1024;
constexpr rlim_t kMinProcesses = 256;
constexpr rlim_t kMinFileBytes = rlim_t{64} << 20;  // as hal/mem/host/access.cc
// A clock that the C library reads without a system call takes 20 to 60 ns.
constexpr double kMaxClockNs = 250;

// The first line of a file; empty if it cannot be read.
std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

// "64.0 MiB"
std::string bytes_text(std::uint64_t bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double number = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; number >= 1024 && unit < 4; ++unit) number /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", number, units[unit]);
  return text;
}

std::string count_text(std::uint64_t count) { return std::to_string(count); }

std::string limit_text(rlim_t limit, std::string (*text)(std::uint64_t)) {
  return limit == RLIM_INFINITY ? "unlimited" : text(limit);
}

std::string limits_text(const rlimit& limit, std::string (*text)(std::uint64_t)) {
  return limit_text(limit.rlim_cur, text) + " (hard limit " + limit_text(limit.rlim_max, text) +
         ")";
}

// What to do about a limit: an option of the shell's ulimit, and an item of limits.conf.
std::string limit_remedy(const rlimit& limit, const std::string& option, const std::string& item,
                         rlim_t wanted) {
  if (limit.rlim_max >= wanted) return "ulimit -S" + option + " hard";
  return "raise '" + item + "' in /etc/security/limits.conf, and log in again";
}

// A limit of this process, which is a problem below `wanted`.
HostFact limit_fact(const char* name, __rlimit_resource resource,
                    std::string (*text)(std::uint64_t), rlim_t wanted, const std::string& problem,
                    const std::string& option, const std::string& item) {
  rlimit limit{};
  getrlimit(resource, &limit);
  HostFact fact{name, limits_text(limit, text), "", ""};
  if (limit.rlim_cur < wanted) {
    fact.problem = problem;
    fact.remedy = limit_remedy(limit, option, item, wanted);
  }
  return fact;
}

HostFact locked_memory_fact(bool locks_memory) {
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  HostFact fact{"locked memory", limits_text(limit, bytes_text), "", ""};
  if (!locks_memory) {
    fact.value += "; the providers that serve here lock none";
  } else if (limit.rlim_cur != RLIM_INFINITY) {
    fact.problem = "a device's provider locks the memory that it registers";
    fact.remedy = limit_remedy(limit, "l", "memlock", RLIM_INFINITY);
  }
  return fact;
}

HostFact hugepages_fact() {
  std::map<std::string, std::string> words;
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (!line.starts_with("Huge") || colon == std::string::npos) continue;
    words[line.substr(0, colon)] = line.substr(line.find_first_not_of(' ', colon + 1));
  }
  const std::string mode = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  const std::size_t begin = mode.find('['), end = mode.find(']');
  const bool is_known = begin != std::string::npos && end != std::string::npos;
  return {"hugepages",
          words["HugePages_Free"] + " of " + words["HugePages_Total"] + " free (" +
              words["Hugepagesize"] +
              "); transparent: " + (is_known ? mode.substr(begin + 1, end - begin - 1) : "unknown"),
          "", ""};
}

// Opens a file of the parent from a child, as ranks over mem open each other's memory. 0, or why
// the kernel refuses.
int mapping_status() {
  const std::string path = "/proc/" + std::to_string(getpid()) + "/fd/0";
  std::fflush(stdout);
  const pid_t child = fork();
  if (child < 0) return errno;
  if (child == 0) {
    struct stat about {};
    _exit(stat(path.c_str(), &about) == 0 || errno == ENOENT ? 0 : std::min(errno, 255));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : EFAULT;
}

HostFact mapping_fact() {
  const int status = access("/proc/self/fd", X_OK) == 0 ? mapping_status() : ENOENT;
  if (status == 0) return {"memory of other processes", "may be mapped", "", ""};
  return {"memory of other processes", "may not be mapped",
          std::string("mem cannot serve, and ranks of this host use the network's provider: ") +
              std::strerror(status),
          "mount /proc, and start programs that are dumpable (prctl PR_SET_DUMPABLE): neither "
          "set-uid nor with file capabilities"};
}

// The shortest time per reading of several batches: other work on the host only lengthens them.
double clock_ns() {
  using Clock = std::chrono::steady_clock;
  constexpr int kBatches = 20, kReadings = 1000;
  double best = 1e9;
  for (int batch = 0; batch < kBatches; ++batch) {
    const auto begin = Clock::now();
    for (int i = 1; i < kReadings; ++i) (void)Clock::now();
    const std::chrono::duration<double, std::nano> took = Clock::now() - begin;
    best = std::min(best, took.count() / kReadings);
  }
  return best;
}

HostFact clock_fact() {
  const std::string folder = "/sys/devices/system/clocksource/clocksource0/";
  const std::string source = first_line(folder + "current_clocksource");
  const double ns = clock_ns();
  char text[64];
  std::snprintf(text, sizeof text, ", %.0f ns per reading", ns);
  HostFact fact{"clock", (source.empty() ? "unknown source" : source) + text, "", ""};
  if (ns > kMaxClockNs) {
    fact.problem = "each reading is a system call, and nodes read the clock while they poll";
    fact.remedy = "choose another of '" + first_line(folder + "available_clocksource") +
                  "' (tsc where it is reliable), by the kernel's option clocksource=";
  }
  return fact;
}

HostFact cores_fact() {
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  const long usable = usable_processors();
  HostFact fact{"cores",
                std::to_string(online) + " online, " + std::to_string(usable) + " for this process",
                "", ""};
  if (usable < online) {
    fact.problem =
        "the affinity mask leaves some cores out, and ranks that share a core take "
        "turns";
    fact.remedy = "taskset, or the launcher's option for binding";
  }
  long long quota = 0, period = 0;
  const std::string limit = first_line("/sys/fs/cgroup/cpu.max");
  if (std::sscanf(limit.c_str(), "%lld %lld", &quota, &period) == 2 && period > 0 &&
      quota < usable * period) {
    fact.value += ", cgroup cpu.max " + limit;
    fact.problem = "the control group stops processes that use more than its share of the cores";
    fact.remedy = "start fewer ranks, or raise the control group's cpu.max";
  }
  return fact;
}

HostFact congestion_fact() {
  const std::string control = first_line("/proc/sys/net/ipv4/tcp_congestion_control");
  HostFact fact{"TCP congestion control", control.empty() ? "unknown" : control, "", ""};
  if (control.starts_with("bbr")) {
    fact.problem =
        "two hosts that exchange long messages over tcp use a part of their links only, and some "
        "collectives take longer than a model predicts";
    fact.remedy =
        "sysctl net.ipv4.tcp_congestion_control=cubic, or 'congctl cubic' on the network's route "
        "(ip route)";
  }
  return fact;
}

}  // namespace

std::vector<HostFact> host_facts(bool locks_memory) {
  std::vector<HostFact> facts;
  for (HostFact& fact : std::vector<HostFact>{
           limit_fact(
               "open files", RLIMIT_NOFILE, count_text, kMinFiles,
               "a process that drives many nodes, or a rank with many peers over tcp, needs " +
                   std::to_string(kMinFiles) + " or more",
               "n", "nofile"),
           limit_fact("file size", RLIMIT_FSIZE, bytes_text, kMinFileBytes,
                      "memory that processes share counts as a file, so mem cannot serve", "f",
                      "fsize"),
           limit_fact(
               "processes", RLIMIT_NPROC, count_text, kMinProcesses,
               "'espalier run' starts a process per node unless --nodes-per-process says more", "u",
               "nproc"),
           locked_memory_fact(locks_memory), hugepages_fact(), mapping_fact(), clock_fact(),
           cores_fact(), congestion_fact()}) {
    facts.push_back(std::move(fact));
  }
  return facts;
}

}  // namespace espalier::tools::doctor
