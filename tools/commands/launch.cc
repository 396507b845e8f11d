// espalier launch: starts a program's processes on this host or on several.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <string>
#include <utility>
#include <vector>

#include "base/network/filter.h"
#include "base/network/interfaces.h"
#include "base/network/links.h"
#include "base/network/lookup.h"
#include "base/process/variables.h"
#include "bootstrap/cables/packet.h"
#include "bootstrap/first_word.h"
#include "bootstrap/newcomers.h"
#include "tools/commands/commands.h"
#include "tools/common/failure.h"
#include "tools/common/output.h"
#include "tools/launch/job.h"
#include "topology/custom_content.h"

namespace espalier::tools {
namespace {

constexpr std::uint32_t kMaxRanks = 65536;
constexpr const char* kRemoteShell = "ssh -o BatchMode=yes";
constexpr const char* kOverCable = " -o ConnectTimeout=10";  // a neighbour may be a stranger

constexpr const char* kLaunchExamples =
    "Starts N processes of PROGRAM, with their rank and the rendezvous in the environment\n"
    "(ESPALIER_RANK, ESPALIER_SIZE, ESPALIER_ADDRESS, ESPALIER_SECRET_FILE). Over several hosts,\n"
    "one daemon per host, started by ssh, starts that host's processes; espalier must be at the\n"
    "same path there; this host needs neither ssh nor sshd. Each line of output gets its rank in\n"
    "front; rank 0 reads the input. INT, TERM, HUP and QUIT are forwarded and end the job: a\n"
    "second one, or the end of --grace, kills all processes. USR1 and USR2 are forwarded.\n"
    "Variables whose names begin with ESPALIER_ or FI_ reach all hosts.\n"
    "Examples:\n"
    "  espalier launch -n 4 ./solver --size 1000\n"
    "  espalier launch -n 16 --hosts a,b,c,d ./solver\n"
    "  espalier launch -n 16 --hostfile hosts.txt --rsh 'ssh -p 2222' ./solver\n"
    "  espalier launch -n 4 --job-file job ./solver     (two more later:)\n"
    "  espalier launch -n 2 --join job ./solver\n"
    "  espalier launch -n 4 --cables ./solver           (four hosts that have no switch)\n"
    "Exit status: 0 if every process ended with 0; otherwise the first other status, or 128 plus\n"
    "the number of the signal that ended a process; 2 also for bad input.";

struct LaunchWords {
  launch::JobOptions job;
  std::vector<std::string> hosts, variables;
  std::string hostfile, join, topology;
  std::uint32_t slots = 0;  // 0: not given
  std::uint32_t deadline_s = 30, grace_s = 30;
};

void add_variables(LaunchWords& words) {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    // Only this launcher's own option decides how its processes join.
    if (text.starts_with("ESPALIER_CABLES=")) continue;
    if (text.starts_with("ESPALIER_") || text.starts_with("FI_"))
      words.job.variables.push_back(text);
  }
  for (const std::string& text : words.variables) {
    const std::size_t equals = text.find('=');
    if (equals == 0) bad_input("--env '" + one_line(text) + "' has no name; expected NAME=VALUE");
    if (equals != std::string::npos) {
      words.job.variables.push_back(text);
    } else if (const char* value = raw_value(text)) {
      words.job.variables.push_back(text + "=" + value);
    } else {
      bad_input("--env " + one_line(text) + " is not set here; expected NAME=VALUE");
    }
  }
}

// Checks where the launcher listens, before anything starts, and tells the processes.
void take_network(launch::JobOptions& job) {
  const auto filter = or_bad_input(network::interface_filter(job.interfaces, "--interface"));
  if (job.cables.are_used) {
    (void)or_bad_input(network::links_up(filter));
  } else {
    (void)or_bad_input(filter.apply(network::running_interfaces()));
  }
  (void)or_bad_input(network::port_range(job.ports, "--port-range"));
  if (const auto checked = bootstrap::patience(); !checked) {
    bad_input(checked.error().message);
  }
  if (!job.interfaces.empty()) job.variables.push_back("ESPALIER_INTERFACE=" + job.interfaces);
  if (!job.ports.empty()) job.variables.push_back("ESPALIER_PORTS=" + job.ports);
  if (job.address.empty()) return;
  if (!network::is_host(job.address)) {
    bad_input("--address '" + one_line(job.address) +
              "'; expected a name or an address, without a port");
  }
  const auto found =
      network::resolve(network::join(job.address, 0), std::chrono::milliseconds(job.deadline_ms));
  if (!found) bad_input("--address: " + found.error().message);
  // Without brackets; a link-local address without an interface would be ambiguous.
  if (const auto ip = network::parse_ip(job.address)) {
    if (ip->needs_scope() && ip->scope == 0) {
      bad_input("--address '" + job.address + "' has no interface; expected ADDRESS%INTERFACE");
    }
    job.address = ip->host();
  }
}

std::string own_name() {
  std::array<char, HOST_NAME_MAX + 1> name = {};
  (void)gethostname(name.data(), name.size() - 1);
  return cables::name_from(name.data());
}

// The hosts and cables of a topology file.
std::vector<launch::Host> read_cables(const LaunchWords& words, launch::CableOptions& cables) {
  const std::string& path = words.topology;
  const auto content = or_bad_input(topology::read_custom_file(path));
  std::vector<std::string> names;
  for (const auto& node : content.nodes) names.push_back(node.host.empty() ? node.name : node.host);
  for (const topology::Cable& cable : content.cables) {
    launch::HostCable& expected = cables.expected.emplace_back();
    for (std::size_t i = 0; i < 2; ++i) {
      expected.ends[i] = {names[cable.ends[i].node], cable.ends[i].interface};
    }
  }
  if (cables.expected.empty()) {
    bad_input(path + " has no cables; expected a file that 'espalier cables --topology' wrote");
  }
  std::vector<launch::Host> hosts;
  bool is_this_one = false;
  for (const std::string& name : names) {
    if (name.empty()) {
      bad_input(path + " has a rank without the name of a host; expected one for each rank");
    }
    is_this_one = is_this_one || name == own_name();
    hosts.push_back({.name = name, .slots = words.slots});
  }
  if (!is_this_one) {
    bad_input(path + " does not name this host, " + own_name() +
              "; expected a start on one of its hosts");
  }
  cables.file = path;
  return hosts;
}

// The hosts to which cables lead. Without a file, any: then as many as the ranks need.
std::vector<launch::Host> hosts_over_cables(LaunchWords& words) {
  launch::JobOptions& job = words.job;
  job.cables.lead_to_hosts = true;
  job.cables.interfaces = job.interfaces;
  job.cables.names_keys = job.remote_shell.empty();
  if (job.remote_shell.empty()) job.remote_shell = std::string(kRemoteShell) + kOverCable;
  if (!words.topology.empty()) return read_cables(words, job.cables);
  const std::uint32_t slots = std::max(words.slots, 1u);
  return std::vector<launch::Host>((job.ranks + slots - 1) / slots, {.slots = slots});
}

std::vector<launch::Host> hosts_of(LaunchWords& words) {
  const bool are_named = !words.hosts.empty() || !words.hostfile.empty();
  if (!words.job.cables.are_used && (!words.topology.empty() || words.slots != 0)) {
    bad_input(std::string(words.slots != 0 ? "--slots" : "--topology") +
              " is about hosts to which cables lead; expected --cables with it");
  }
  if (words.job.cables.are_used && !are_named) return hosts_over_cables(words);
  std::vector<launch::Host> hosts;
  if (!words.hosts.empty()) {
    auto read = launch::read_hosts(words.hosts);
    if (!read) bad_input(read.error().message);
    hosts = std::move(*read);
  }
  if (!words.hostfile.empty()) {
    auto read = launch::read_hostfile(words.hostfile);
    if (!read) bad_input(read.error().message);
    hosts = std::move(*read);
  }
  if (hosts.empty()) {
    if (!words.job.remote_shell.empty()) {
      bad_input("--rsh reaches other hosts; expected --hosts or --hostfile with it");
    }
    hosts.emplace_back();
  }
  // A remote shell that the user names reaches every host, this one too: it may lead into a
  // container.
  if (words.job.remote_shell.empty()) launch::mark_this_host(hosts);
  if (words.job.remote_shell.empty()) words.job.remote_shell = kRemoteShell;
  return hosts;
}

void run_launch(LaunchWords words) {
  std::vector<std::string>& program = words.job.arguments;
  if (program.empty()) bad_input("no program; expected 'espalier launch -n N PROGRAM ARGUMENTS'");
  if (program.front().starts_with('-')) {
    bad_input("unknown option '" + one_line(program.front()) + "'; see 'espalier launch --help'");
  }
  std::vector<launch::Host> hosts = hosts_of(words);
  const std::size_t all_hosts = hosts.size();
  if (!words.job.job_file.empty() && is_set(Variable::kJobFile)) {
    bad_input("--job-file contradicts ESPALIER_JOB_FILE, by which rank 0 writes one; expected one");
  }
  if (!words.join.empty()) {
    auto ticket = bootstrap::read_ticket(words.join);
    if (!ticket) bad_input("--join: " + ticket.error().message);
    bootstrap::Place job;
    if (!bootstrap::take_job_ticket(*ticket, job)) {
      bad_input("--join: " + bootstrap::malformed_ticket(words.join).message);
    }
    words.job.ticket = *std::move(ticket);
  }
  auto placed = launch::place(std::move(hosts), words.job.ranks);
  if (!placed) bad_input(placed.error().message);
  words.job.hosts = std::move(*placed);
  if (!words.topology.empty() && words.job.hosts.size() < all_hosts) {
    bad_input(words.topology + " has " + counted(all_hosts, "host") + ", and " +
              counted(words.job.ranks, "rank") +
              " leave some without a rank; expected a rank for "
              "each host, as a rank passes on what its neighbours say");
  }
  words.job.deadline_ms = words.deadline_s * 1000;
  words.job.grace_ms = words.grace_s * 1000;
  add_variables(words);
  take_network(words.job);
  const auto status = launch::run_job(words.job);
  if (!status) bad_input(status.error().message);
  if (*status != 0) throw Failure{*status, "the job failed"};
}

void add_cable_options(Command& command, LaunchWords& words, const std::vector<Option>& named,
                       const std::vector<Option>& networks) {
  Option cables = command.flag(
      "--cables", words.job.cables.are_used,
      "The ranks join over the cables between hosts that have no switch; sets ESPALIER_CABLES. "
      "Without --hosts and --hostfile, the hosts are found: this one, its neighbours, theirs, as "
      "many as the ranks need");
  for (const Option& each : networks) cables.excludes(each);
  Option topology = command.text(
      "--topology", words.topology,
      "FILE of 'espalier cables --topology': the hosts to which the cables lead, in the order of "
      "their ranks; a missing one is named");
  Option slots = command
                     .number("--slots", words.slots, 1, kMaxRanks,
                             "Ranks on each host to which cables lead; with --topology at most "
                             "so many, otherwise in equal blocks")
                     .show_default("1");
  for (const Option& each : named) {
    topology.excludes(each);
    slots.excludes(each);
  }
}

}  // namespace

void add_launch(Command app) {
  Command command =
      app.add_command("launch", "Starts the processes of a program on this host or over several");
  auto& words = command.bind<LaunchWords>(run_launch);
  command.number("-n", words.job.ranks, 1, kMaxRanks, "Number of processes");
  Option hosts =
      command.list("--hosts", words.hosts,
                   "Hosts, e.g. a,b,c; each gets an equal block of ranks; a:4,b:2: up to so many");
  Option hostfile = command.text(
      "--hostfile", words.hostfile,
      "File of lines 'HOST slots=N' or 'HOST:N'; ranks go to slots in order; # begins a "
      "comment");
  hostfile.excludes(hosts);
  command
      .text("--rsh", words.job.remote_shell,
            "Remote shell, words for sh; the host's name and one command follow them; if given, it "
            "reaches this host, too")
      .show_default(kRemoteShell);
  Option address = command.text(
      "--address", words.job.address,
      "IP or name of this host at which all hosts reach it; default: all its addresses are "
      "tried, first the one from which ssh reached them; 127.0.0.1 without hosts and --job-file");
  command.text("--interface", words.job.interfaces,
               "Interfaces and subnets that the job uses on all hosts, or not: "
               "eth0,10.0.0.0/8,!docker0; sets ESPALIER_INTERFACE");
  command.text("--port-range", words.job.ports,
               "Ports of the rendezvous and of the ranks, e.g. 40000-40100; sets ESPALIER_PORTS");
  Option restarts = command.number(
      "--max-restarts", words.job.max_restarts, 0, 1000,
      "Failed processes that are started again while others run; each joins the job once its ranks "
      "call accept()");
  Option job_file =
      command.text("--job-file", words.job.job_file,
                   "FILE of mode 0600 through which processes join the job while it runs; removed "
                   "at its end");
  Option join = command.text(
      "--join", words.join,
      "FILE of --job-file, or of ESPALIER_JOB_FILE: the N processes join that job, once its "
      "ranks call accept()");
  join.excludes(job_file).excludes(address).excludes(restarts);
  add_cable_options(command, words, {hosts, hostfile}, {address, restarts, job_file, join});
  command.texts("--env", words.variables,
                "NAME=VALUE, or NAME for its value here: a variable for all processes; may be "
                "repeated");
  command.number("--connect-deadline", words.deadline_s, 1, 3600,
                 "How long each host may take to answer before the start, s");
  command.number(
      "--grace", words.grace_s, 0, 86400,
      "How long processes may go on after INT, TERM, HUP or QUIT before they are killed, "
      "s");
  command
      .flag("--kill-on-failure", words.job.kill_on_failure,
            "The first failed process ends all others; by default they go on")
      .excludes(restarts);
  command.flag("--verbose", words.job.verbose, "Print each host's ranks");
  command.rest(words.job.arguments);
  command.set_footer(kLaunchExamples);
}

}  // namespace espalier::tools
