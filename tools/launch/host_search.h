#pragma once
// Finds the hosts of a job that have no network in common: from this host over its cables to its
// neighbours, from them to theirs. Host only.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "espalier/base/result.h"
#include "tools/launch/connection.h"
#include "tools/launch/job.h"

namespace espalier::launch {

class HostSearch {
 public:
  // All must outlive the search. `connections`: none at the beginning.
  HostSearch(const JobOptions& options, const DaemonStart& how, Connection::Relay relay,
             std::vector<Connection>& connections)
      : options_(options), how_(how), relay_(std::move(relay)), connections_(connections) {}

  // Starts the daemon of this host. Errors: no process.
  [[nodiscard]] Result<void> begin();
  // Takes what the connections have learned, and starts daemons on further neighbours. Returns
  // false once all hosts are there, or no further one can be found.
  [[nodiscard]] bool advance(std::uint64_t now_ns);
  // Returns the hosts whose daemons have not answered yet, for a message.
  [[nodiscard]] std::string silent() const;
  // Keeps the connections of the job's hosts only, in the order of their ranks.
  // Errors: a host is missing.
  [[nodiscard]] Result<void> finish();
  // Returns lines for the user: if hosts are missing, why each neighbour is none of the job;
  // otherwise which cables are not where the topology file has them.
  [[nodiscard]] std::vector<std::string> remarks() const;

 private:
  enum class Phase { kCalled, kAsked, kKnown, kDropped };
  struct Progress {
    Phase phase = Phase::kCalled;
    std::uint64_t since_ns = 0;
  };
  // A host, its interface, and the address that answered there.
  using Candidate = std::tuple<std::uint32_t, std::string, std::string>;

  [[nodiscard]] bool has_file() const { return !options_.cables.expected.empty(); }
  [[nodiscard]] bool is_host(const Connection& each) const;  // of the job
  [[nodiscard]] std::size_t hosts() const;
  void take(Connection& connection, std::uint64_t now_ns);
  void take_hello(Connection& connection);
  // Error: the host is none of the job; empty: it is there by another way.
  [[nodiscard]] Result<Host> placed(const Connection& connection) const;
  void drop(Connection& connection, const std::string& reason);
  void remark_port(const Connection& connection);
  void add_candidates(const Connection& host, std::vector<Candidate>& all) const;
  [[nodiscard]] bool leads_to_host(const Connection& from, const Neighbour& to) const;
  // The host that the topology file has at the other end of this interface; empty: none.
  [[nodiscard]] std::string expected_at(const std::string& host,
                                        const std::string& interface) const;
  void reach(const Candidate& candidate, std::uint64_t now_ns);
  [[nodiscard]] Error missing() const;

  const JobOptions& options_;
  const DaemonStart& how_;
  Connection::Relay relay_;
  std::vector<Connection>& connections_;
  std::map<std::uint32_t, Progress> progress_;  // by a connection's number
  std::set<Candidate> tried_;
  std::vector<std::string> reasons_, ports_;
  std::uint64_t batch_at_ns_ = 0;
};

}  // namespace espalier::launch
