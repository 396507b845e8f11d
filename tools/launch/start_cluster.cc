#include "tools/launch/start_cluster.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <list>

#include "tools/common/failure.h"
#include "tools/common/output.h"

namespace espalier::tools {
namespace {

namespace fs = std::filesystem;

// A file in memory, which the processes started meanwhile inherit. A launcher that is killed leaves
// no file behind.
class InheritedFile {
 public:
  explicit InheritedFile(const std::vector<std::uint8_t>& bytes)
      : descriptor_(memfd_create("schedule", 0)) {
    std::size_t written = 0;
    while (descriptor_ >= 0 && written < bytes.size()) {
      const ssize_t now = write(descriptor_, bytes.data() + written, bytes.size() - written);
      if (now < 0 && errno != EINTR) break;
      written += now > 0 ? static_cast<std::size_t>(now) : 0;
    }
    if (descriptor_ >= 0 && written == bytes.size()) return;
    const int failure = errno;
    if (descriptor_ >= 0) close(descriptor_);
    negative(std::string("no memory for a schedule: ") + std::strerror(failure));
  }
  InheritedFile(const InheritedFile&) = delete;
  InheritedFile& operator=(const InheritedFile&) = delete;
  ~InheritedFile() { close(descriptor_); }
  // As every process that inherited it may open it.
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

std::string find_node_binary(const std::string& given) {
  if (!given.empty()) {
    if (access(given.c_str(), X_OK) == 0) return fs::absolute(given).string();
    bad_input("cannot run '" + one_line(given) + "': " + std::strerror(errno));
  }
  std::error_code ignored;
  const fs::path here = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const fs::path& path :
       {here / "espalier-node", here.parent_path() / "firmware" / "node" / "espalier-node"}) {
    if (access(path.c_str(), X_OK) == 0) return path.string();
  }
  bad_input("no espalier-node beside " + (here / "espalier").string() +
            "; expected --node-binary PATH");
}

// Returns why `espalier-node --check` refuses this provider; empty if it takes it. Only the node is
// linked with libfabric, which is slow to start.
std::string node_refusal(const std::string& node_binary, const std::string& provider) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    negative(std::string("cannot open a pipe: ") + std::strerror(errno));
  }
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) negative(std::string("cannot start a process: ") + std::strerror(errno));
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    dup2(ends[1], STDERR_FILENO);
    execl(node_binary.c_str(), node_binary.c_str(), "--check", "--provider", provider.c_str(),
          static_cast<char*>(nullptr));
    _exit(127);
  }
  close(ends[1]);
  std::string text;
  char part[512];
  for (ssize_t size = 1; size != 0;) {
    size = read(ends[0], part, sizeof part);
    if (size < 0 && errno != EINTR) break;
    if (size > 0) text.append(part, static_cast<std::size_t>(size));
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  // Libraries behind libfabric print lines of their own; the node's is the last.
  while (text.ends_with('\n')) text.pop_back();
  text.erase(0, text.rfind('\n') + 1);
  const std::string prefix = "espalier-node: ";
  if (!text.starts_with(prefix)) return "provider \"" + provider + "\": " + node_binary + " failed";
  return text.substr(prefix.size());
}

// 0 if `text` is a numeric IP, and if `here` one that sockets of this host can have; otherwise
// EINVAL or why binding fails.
int bind_status(const std::string& text, bool here) {
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  v4.sin_family = AF_INET;
  v6.sin6_family = AF_INET6;
  const bool is_v4 = inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1;
  if (!is_v4 && inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) != 1) return EINVAL;
  if (!here) return 0;
  const int file = socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (file < 0) return errno;
  const auto* address =
      is_v4 ? reinterpret_cast<const sockaddr*>(&v4) : reinterpret_cast<const sockaddr*>(&v6);
  const int status = bind(file, address, is_v4 ? sizeof v4 : sizeof v6) == 0 ? 0 : errno;
  close(file);
  return status;
}

}  // namespace

void find_node(launch::LaunchOptions& options) {
  options.node_binary = find_node_binary(options.node_binary);
  const std::string& provider = options.provider;
  if (provider == "shm" && !options.address.empty()) {
    bad_input("--address is an IP to bind, and shm binds none; expected --provider tcp");
  }
  // Nodes check these two themselves, which saves the time that libfabric takes to start.
  if (provider == "tcp" || provider == "shm") return;
  const std::string refusal = node_refusal(options.node_binary, provider);
  if (!refusal.empty()) bad_input(one_line(refusal));
}

void check_addresses(const launch::LaunchOptions& options) {
  if (options.address.empty()) return;
  const bool here = options.prefix.empty() &&
                    std::all_of(options.commands.begin(), options.commands.end(),
                                [](const std::string& command) { return command.empty(); });
  for (std::uint32_t node = 0; node < options.nodes; node += options.nodes_per_process) {
    const std::string text = launch::expand_template(options.address, node);
    const int status = bind_status(text, here);
    if (status == 0) continue;
    bad_input(
        "--address '" + one_line(options.address) + "': " +
        (text == options.address ? "it"
                                 : "'" + one_line(text) + "' for node " + std::to_string(node)) +
        (status == EINVAL
             ? " is not a numeric IPv4 or IPv6 address"
             : std::string(" is not an address of this host (") + std::strerror(status) + ")") +
        "; expected e.g. 127.0.0.1 or 10.0.0.%n");
  }
}

void start_cluster(launch::LaunchOptions options,
                   const std::vector<std::vector<std::uint8_t>>& schedules,
                   launch::NodeProcesses& cluster) {
  std::list<InheritedFile> files;
  options.schedules.clear();
  for (const std::vector<std::uint8_t>& bytes : schedules) {
    options.schedules.push_back(files.emplace_back(bytes).path());
  }
  Progress progress("starting nodes");
  options.progress = [&progress](double done) { progress.show(done); };
  or_negative(cluster.start(options));
}

}  // namespace espalier::tools
