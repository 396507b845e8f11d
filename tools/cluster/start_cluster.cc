#include "tools/cluster/start_cluster.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <list>

#include "base/network/address.h"
#include "base/process/system_error.h"
#include "base/process/variables.h"
#include "bootstrap/first_word.h"
#include "communicator/record/folder.h"
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

// Returns what is wrong with an address, which if `here` a socket of this host must be able to
// have; empty: nothing.
std::string address_refusal(const std::string& text, bool here) {
  const auto address = network::parse_ip(text);
  const std::size_t percent = text.find('%');
  if (!address && !here && percent != std::string::npos && percent + 1 < text.size()) {
    const auto bare = network::parse_ip(text.substr(0, percent));  // another host's interface
    if (bare && bare->needs_scope()) return {};
  }
  if (!address) return " is not a numeric IPv4 or IPv6 address";
  if (address->needs_scope() && address->scope == 0) return " has no interface";
  if (address->is_group()) return " is not the address of one host";
  if (!here) return {};
  sockaddr_storage name;
  const socklen_t size = address->to_socket(name);
  const int file = socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool is_bound =
      file >= 0 && bind(file, reinterpret_cast<const sockaddr*>(&name), size) == 0;
  const int failure = errno;
  if (file >= 0) close(file);
  if (is_bound) return {};
  return std::string(" is not an address of this host (") + std::strerror(failure) + ")";
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
  command.text(
      "--address", options.address,
      "IP that each process binds; a link-local one has its interface, fe80::1%eth0; %r and "
      "%n as above");
}

void find_node(cluster::LaunchOptions& options) {
  // A library behind libfabric would handle the signals of a node before its main()
  // (hal/fabric/ofi/provider.cc), and write a backtrace into the working directory.
  setenv("IPATH_NO_BACKTRACE", "1", 0);
  options.node_binary = find_node_binary(options.node_binary);
  (void)or_bad_input(bootstrap::patience());
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
    const std::string text = cluster::expand_address(options.address, node);
    const std::string refusal = address_refusal(text, here);
    if (refusal.empty()) continue;
    bad_input("--address '" + one_line(options.address) + "': " +
              (text == options.address
                   ? "it"
                   : "'" + one_line(text) + "' for node " + std::to_string(node)) +
              refusal + "; expected e.g. 127.0.0.1, 10.0.0.%n or fe80::%n%eth0");
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
  if (options.ranks != 0) (void)or_bad_input(record::given_folder());
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
