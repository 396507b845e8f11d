#pragma once
// Starts the processes of a job on this host or on several, forwards signals, input and output, and
// learns how each process ended. Host only.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "espalier/base/result.h"
#include "tools/launch/hosts.h"

namespace espalier::launch {

// A cable between interfaces of two hosts.
struct HostCable {
  struct End {
    std::string host = {}, interface = {};
  };
  std::array<End, 2> ends = {};
};

// How a job uses the cables between hosts that have no switch.
struct CableOptions {
  bool are_used = false;        // the ranks join over cables
  bool lead_to_hosts = false;   // the hosts, too, are reached over cables only
  bool names_keys = false;      // the remote shell is ssh, which gets a host's name for its key
  std::string interfaces = {};  // where neighbours are looked for; empty: at all
  std::string file = {};        // names the hosts and cables; empty: any host is taken
  std::vector<HostCable> expected = {};  // as the file has them
};

struct JobOptions {
  std::vector<Host> hosts;  // placed; one without a name: this host, without a shell; if cables
                            // lead to the hosts and no file names them: any host
  CableOptions cables = {};
  std::uint32_t ranks = 1;   // of the whole job
  std::string remote_shell;  // words for sh; the host's name and a command follow them
  std::string address;       // of this host, for the rendezvous; empty: all that serve
  std::string interfaces;    // that the launcher offers; empty: as ESPALIER_INTERFACE says
  std::string ports;         // of the rendezvous; empty: as ESPALIER_PORTS says
  std::string job_file;      // written while the job runs; empty: none
  std::string ticket;        // of a running job that the processes join; empty: none
  std::vector<std::string> variables;  // NAME=VALUE, for the processes
  std::vector<std::string> arguments;  // the program and its arguments
  std::uint32_t deadline_ms = 30'000;  // for each host's answer before the start
  std::uint32_t grace_ms = 30'000;     // after the first signal that ends the job
  std::uint32_t max_restarts = 0;      // failed processes that are started again, as newcomers
  bool kill_on_failure = false;        // the first failure ends all other processes
  bool verbose = false;
};

// Runs the job and waits for its end. Prints each line of a process's stdout and stderr with its
// rank. INT, TERM, HUP and QUIT end the job, also during the start. If a reader of the output does
// not read after such a signal, it ends the launcher's process itself. Returns 0, or the first exit
// status other than 0, or 128 plus the number of the first signal that ended a process; failures
// are named on stderr.
// Errors, before any process starts: a host that cannot be reached, or without the program.
[[nodiscard]] Result<int> run_job(const JobOptions& options);

}  // namespace espalier::launch
