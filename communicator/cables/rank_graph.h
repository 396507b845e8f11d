#pragma once
// The links between the ranks of a communicator over cables: a plain graph, on which schedules run
// hop by hop. Host only.
//
// Each cable belongs to one rank at each end: the k-th cable of a host to the host's rank number
// k mod R, if the communicator has R ranks on the host. The ranks of a host are all linked over
// mem. Cables between the same two ranks are one link.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bootstrap/cables/job_graph.h"
#include "espalier/base/result.h"
#include "espalier/hal/ofi/ofi_endpoint.h"
#include "espalier/topology/topology.h"

namespace espalier::communicator {

// The most lanes of a cable; a slower cable has fewer, in proportion to the rates.
inline constexpr std::uint32_t kMaxCableLanes = 8;

// Lanes for cables of these rates, Mbit/s. 0: not known, as slow as the slowest. Each lane's share
// of its cable is within an eighth of the same, where kMaxCableLanes allow that.
[[nodiscard]] std::vector<std::uint32_t> lanes_of(const std::vector<std::uint32_t>& rates);

// Whether the cables are between interfaces with link-local addresses.
[[nodiscard]] bool has_link_local(const cables::JobGraph& job);
// Scales the rates of the drivers to the median of the measured ones. Their proportions stay those
// of the drivers: measurements on busy hosts would make another graph of each job.
void scale_rates(const cables::JobGraph& measured, cables::JobGraph& graph);
// Gives the cables that both graphs have the rates of `from`.
void take_rates(const cables::JobGraph& from, cables::JobGraph& to);

class RankGraph {
 public:
  // Makes the graph of these ranks of the job, in this order. Every rank makes the same. Errors: a
  // rank that is on no host of the job's graph; ranks that these cables do not connect.
  [[nodiscard]] static Result<std::shared_ptr<const RankGraph>> make(
      const cables::JobGraph& job, const std::vector<std::uint32_t>& ranks);

  // Whether all ranks are on one host: then any two of them can talk, and this is not used further.
  [[nodiscard]] bool is_one_host() const { return is_one_host_; }
  // The ranks, their links and capacities. The links within a host are of the class kMemory, and
  // never the narrowest. Only unless is_one_host().
  [[nodiscard]] const std::shared_ptr<const topology::Topology>& topology() const {
    return topology_;
  }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(host_of_.size()); }
  [[nodiscard]] bool has_link(std::uint32_t a, std::uint32_t b) const;
  // Ascending.
  [[nodiscard]] const std::vector<std::uint32_t>& neighbors(std::uint32_t rank) const {
    return neighbors_[rank];
  }
  // The longest distance of a rank from the centre, links.
  [[nodiscard]] std::uint32_t radius() const { return radius_; }
  // The rate of a lane, Mbit/s, rounded to a power of two, so that kept choices serve the next job;
  // 0: not known.
  [[nodiscard]] std::uint32_t lane_mbits() const { return lane_mbits_; }

  // Sets how the endpoint of `rank` leaves: by its cables, and over mem within its host.
  // Errors: a provider that does not serve such ranks.
  [[nodiscard]] Result<void> configure(std::uint32_t rank, ofi::AddedConfig& config) const;

 private:
  struct Cable {
    std::uint32_t number = 0;       // in the job's graph
    std::uint32_t ranks[2] = {};    // its ends
    std::string addresses[2] = {};  // "fe80::7%eth0"
    std::uint32_t rate_mbits = 0, lanes = 1;
  };
  void add_cables(const cables::JobGraph& job,
                  const std::vector<std::vector<std::uint32_t>>& members);
  void add_links(const std::vector<std::vector<std::uint32_t>>& members);
  // The distances of all ranks from `root`; UINT32_MAX: not connected.
  [[nodiscard]] std::vector<std::uint32_t> distances(std::uint32_t root) const;
  [[nodiscard]] Result<void> find_radius(const std::vector<std::uint32_t>& ranks);
  [[nodiscard]] Result<void> make_topology();

  std::vector<std::uint32_t> host_of_;   // place in the job's graph, by rank
  std::vector<std::string> host_names_;  // by rank
  std::vector<Cable> cables_;
  std::vector<topology::Link> links_;  // each once
  std::vector<std::vector<std::uint32_t>> neighbors_;
  std::uint32_t radius_ = 0, lane_mbits_ = 0;
  bool is_one_host_ = false;
  std::shared_ptr<const topology::Topology> topology_;
};

}  // namespace espalier::communicator
