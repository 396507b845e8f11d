#pragma once
// The rendezvous server of a launched job: where it listens, at which addresses the ranks of each
// host try it, and the job file through which newcomers do.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "bootstrap/candidates.h"
#include "bootstrap/server.h"
#include "espalier/base/result.h"
#include "tools/launch/frames.h"
#include "tools/launch/job.h"

namespace espalier::launch {

class Rendezvous {
 public:
  Rendezvous() = default;
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;
  ~Rendezvous() { remove_job_file(); }
  // `is_one_host`: all ranks are on this host. Without a job file, no other host then reaches the
  // server. `secret`: the bytes that the ranks read. Errors: an address, interface or range of
  // ports that cannot be used.
  [[nodiscard]] Result<void> start(const JobOptions& options, bool is_one_host,
                                   const std::string& secret);
  [[nodiscard]] bool has_started() const { return server_ != nullptr; }

  // By host: the address from which its daemon was called; empty: not known.
  using Callers = std::vector<std::string>;
  // Returns what the daemon of host `host` is told: the number of the network in which the server
  // is, 0 for a name; then HOST:PORT of each address, in the order in which they are tried.
  [[nodiscard]] Fields addresses_for(const Callers& callers, std::size_t host) const;

  // Returns the ticket by which a process on host `host` joins the job while it runs.
  [[nodiscard]] std::string ticket_for(const Callers& callers, std::size_t host) const;
  // Newcomers reach the server as the last host does.
  [[nodiscard]] Result<void> write_job_file(const std::string& path, const Callers& callers);
  void remove_job_file();

 private:
  [[nodiscard]] bootstrap::Candidates candidates_for(const Callers& callers,
                                                     std::size_t host) const;

  std::unique_ptr<bootstrap::Server> server_;
  bootstrap::JobSecret secret_ = {};
  bootstrap::Candidates offer_;    // addresses of the server; none: `named_`
  std::string named_;              // HOST:PORT of the server, the same for all hosts
  std::string job_file_, ticket_;  // what it has; empty: none is written
};

}  // namespace espalier::launch
