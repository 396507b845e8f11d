#pragma once
// The hosts of a job and the ranks that each one gets. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/base/result.h"

namespace espalier::launch {

struct Host {
  std::string name = {};    // empty: this host; may begin with USER@
  std::uint32_t slots = 0;  // ranks that it may get; 0: as many as the others
  std::uint32_t port = 0;   // of the remote shell; 0: its default
  bool is_here = false;     // this host: its ranks start without a remote shell
  std::uint32_t first = 0;  // its ranks are first .. first + count - 1
  std::uint32_t count = 0;
};

// Reads the words of `option`, HOST or HOST:N. Without any N, and without a host that repeats, the
// hosts have no slots; otherwise each word without N has one.
// Error: the first malformed word.
[[nodiscard]] Result<std::vector<Host>> read_hosts(const std::vector<std::string>& words,
                                                   const std::string& option = "--hosts");

// Reads a file of lines HOST, HOST:N or `HOST slots=N max_slots=M port=P user=NAME`; without a
// number one slot. # begins a comment.
// Errors: the system's reason; file and line of the first malformed line.
[[nodiscard]] Result<std::vector<Host>> read_hostfile(const std::string& path);

// Marks the hosts that are this one by their names: localhost, the addresses of its interfaces, and
// its own name, short and in full. Not those with a user or a port, which need a remote shell.
void mark_this_host(std::vector<Host>& hosts);

// Gives `ranks` ranks to the hosts: by slots, in the order of the hosts; to hosts without slots in
// blocks whose sizes differ by at most one. Hosts without a rank are removed.
// Error: too few slots.
[[nodiscard]] Result<std::vector<Host>> place(std::vector<Host> hosts, std::uint32_t ranks);

}  // namespace espalier::launch
