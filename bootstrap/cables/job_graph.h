#pragma once
// The hosts and cables of a job that is joined over its cables, as all its ranks agreed on them.
// Host only.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "espalier/bootstrap/bootstrap.h"

namespace espalier::cables {

struct JobEnd {
  std::uint32_t host = 0;      // place in JobGraph::hosts
  std::string interface = {};  // "eth0"
  std::string address = {};    // link-local, without a scope: "fe80::7"
};

// A cable whose both directions are proven.
struct JobCable {
  JobEnd a = {}, b = {};         // a.host < b.host
  std::uint32_t rate_mbits = 0;  // Mbit/s of each direction, measured or as drivers say; 0: unknown
  std::uint32_t mtu = 0;         // bytes; 0: unknown
};

// The same on all ranks, in the same order.
struct JobGraph {
  struct Host {
    std::string name = {};
    std::vector<std::uint32_t> ranks = {};  // of the job, ascending
  };
  std::vector<Host> hosts = {};
  std::vector<JobCable> cables = {};  // by hosts, then by the interfaces of a
};

// What a membership that came over cables is, too.
class OverCables {
 public:
  virtual ~OverCables() = default;
  // As the function below.
  [[nodiscard]] virtual std::shared_ptr<const JobGraph> job_graph() const = 0;
};

// Returns the graph of a membership that came over cables; after rejoin(), that of the survivors.
// Null: another kind of membership.
[[nodiscard]] std::shared_ptr<const JobGraph> job_graph(const bootstrap::Bootstrap& members);

}  // namespace espalier::cables
