#include "tools/cluster/start_cluster.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <list>

#include "base/process/system_error.h"
#include "base/process/variables.h"
#include "hal/fabric/provider_list.h"
#include "tools/cluster/node_call.h"
#include "tools/common/failure.h"
#include "tools/common/output.h"

namespace espalier::tools {
namespace {

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
    bad_input(std::string("no memory for a schedule: ") + system_error_text(failure));
  }
  InheritedFile(const InheritedFile&) = delete;
  InheritedFile& operator=(const InheritedFile&) = delete;
  ~InheritedFile() { close(descriptor_); }
  // As every process that inherited it may open it.
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

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

void add_node_options(Command command, cluster::LaunchOptions& options) {
  options.provider.clear();
  command.text("--provider", options.provider,
               "The provider: tcp, mem or another that 'espalier doctor' finds; default: "
               "the one that FI_PROVIDER names, otherwise tcp");
  command.number("--deadline", options.deadline_ms, 10, 3'600'000,
                 "How long an awaited link may stay silent before it is declared dead, ms; nodes "
                 "end within twice this time");
  command.text("--node-binary", options.node_binary, "espalier-node; default: beside espalier");
}

void add_place_options(Command command, cluster::LaunchOptions& options) {
  command.text("--launch-prefix", options.prefix,
               "Prefix for each process's command; %r is its first node, %n is %r + 1");
  command.text("--address", options.address, "IP that each process binds; %r and %n as above");
}

void find_node(cluster::LaunchOptions& options) {
  // A library behind libfabric would handle the signals of a node before its main()
  // (hal/fabric/ofi/provider.cc), and write a backtrace into the working directory.
  setenv("IPATH_NO_BACKTRACE", "1", 0);
  options.node_binary = find_node_binary(options.node_binary);
  const auto filter = or_bad_input(read_text(Variable::kFiProvider));
  options.provider =
      or_bad_input(ofi::choose_provider(options.provider, filter ? filter->c_str() : nullptr));
  const std::string& provider = options.provider;
  if (!ofi::has_fixed_links(provider)) {
    bad_input("--provider " + one_line(provider) +
              " is for programs that join a job; expected tcp, mem or another");
  }
  if (!ofi::binds_address(provider) && !options.address.empty()) {
    bad_input("--address is an IP to bind, and " + provider +
              " binds none; expected --provider tcp");
  }
  if (options.authenticate_data && !ofi::authenticates_data(provider)) {
    bad_input("--authenticate-data: " + provider +
              " cannot authenticate payloads; expected --provider tcp");
  }
  // Nodes check these themselves, which saves the time that libfabric takes to start.
  if (provider == "tcp" || !ofi::binds_address(provider)) return;
  const std::string refusal = node_refusal(options.node_binary, provider);
  if (!refusal.empty()) bad_input(one_line(refusal));
}

void check_addresses(const cluster::LaunchOptions& options) {
  if (options.address.empty()) return;
  const bool here = options.prefix.empty() &&
                    std::all_of(options.commands.begin(), options.commands.end(),
                                [](const std::string& command) { return command.empty(); });
  for (std::uint32_t node = 0; node < options.nodes; node += options.nodes_per_process) {
    const std::string text = cluster::expand_template(options.address, node);
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

bool parse_disturbance(const std::string& text, int signal, cluster::LaunchOptions& launch) {
  cluster::Disturbance disturbance{.signal = signal};
  const char* end = text.data() + text.size();
  const auto rank = std::from_chars(text.data(), end, disturbance.node);
  if (rank.ec != std::errc() || rank.ptr == end || *rank.ptr != '@') return false;
  const auto after = std::from_chars(rank.ptr + 1, end, disturbance.after_ms);
  if (after.ec != std::errc() || after.ptr != end || disturbance.node >= launch.nodes) return false;
  launch.disturbances.push_back(disturbance);
  return true;
}

void start_cluster(cluster::LaunchOptions options,
                   const std::vector<std::vector<std::uint8_t>>& schedules,
                   cluster::NodeProcesses& cluster) {
  std::list<InheritedFile> files;
  options.schedules.clear();
  for (const std::vector<std::uint8_t>& bytes : schedules) {
    options.schedules.push_back(files.emplace_back(bytes).path());
  }
  Progress progress("starting nodes");
  options.progress = progress.function();
  const auto started = cluster.start(options);
  if (started) return;
  if (cluster.is_refused()) bad_input(one_line(started.error().message));
  negative(started.error().message);
}

}  // namespace espalier::tools
