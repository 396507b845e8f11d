#pragma once
// The results of `espalier run` and their printing. Host only.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "espalier/collectives/schedule/program.h"
#include "espalier/collectives/verify/verify.h"

namespace espalier::run_command {

// How one node's part of the runs of one size went.
struct NodeResult {
  std::uint32_t node = 0;
  std::string name = {};  // "rank 3", "router 17 (level 1)"
  bool router = false;    // it has neither input nor result
  std::int32_t pid = 0;
  double seconds = 0;       // of the last repetition, by its own clock
  bool has_bytes = false;   // it gives or holds the message, so it has a digest
  std::uint64_t bytes = 0;  // of what sha256 is of
  std::string sha256 = {};  // of the result (broadcast's root: of the message it sent)
  bool checked = false;     // it had to hold a result
  bool right = false;       // and it did, each repetition
  std::string status = {};  // "ok", or how it failed, one line
  bool failed = false;
  bool disturbed = false;  // --kill or --stop hit its process
  std::string cause = {};  // final status of its machine: "dead link"; empty: none reported
  std::uint32_t detector = 0;
  std::uint32_t peer = 0;
  double after_disturbance = 0;  // s from the last --kill or --stop to its end
};

// All repetitions of one message size.
struct SizeResult {
  std::uint64_t bytes = 0;
  std::uint32_t blocks = 0;       // N
  std::int64_t steps = 0;         // of the schedule for N
  std::int64_t bound_steps = 0;   // that no schedule can have fewer of
  std::uint64_t block_bytes = 0;  // the longest block
  double alpha = 0, beta = 0;     // s, s/B: the line that gives the time of such a block
  double predicted = 0;           // s: of all steps, each as long as its longest message
  // Per repetition, s: the slowest node by its own start, and from the last start to the last end.
  // Divided by the collectives that run back to back.
  std::vector<double> times;
  std::vector<double> spans;
  bool right = false;
  std::vector<NodeResult> nodes;
};

// One endpoint of a hop-by-hop run: a lane of a link.
struct EndpointResult {
  std::uint32_t node = 0;
  std::string name;  // of the node
  std::int32_t pid = 0;
  std::uint32_t link = 0, lane = 0;  // link: number of the link at this node
  std::uint32_t peer = 0;
  std::string peer_name;
  std::string interface;              // of the cable; empty: the fabric chose
  std::string address, peer_address;  // in the form of the provider: own, and of the only peer
};

struct RunResult {
  std::string topology, topology_title, collective, algorithm, provider, type, op;
  std::uint32_t ranks = 0, nodes = 0, root = 0, nodes_per_process = 1;
  Collective kind = Collective::kBroadcast;
  bool rooted = false, combines = false, bytes_per_rank = false;
  // Elements by rank, of --counts; then `bytes` of a size are those of the longest part. Empty: all
  // parts are equal.
  std::vector<std::uint64_t> counts;
  std::string counts_option;  // as typed
  std::int64_t proven_blocks = 0;
  std::string proven_for;  // "every N", "every N up to 21"
  std::string chosen;      // why it was chosen; empty: it was named
  std::string chosen_by;   // "selection": the file's; otherwise as choice_word()
  std::vector<verify::LowerBound> bounds;
  std::uint32_t processors = 0;  // of this host, if it has all nodes; 0: some may be elsewhere
  bool default_model = false;    // the prediction is from default constants
  std::uint64_t descriptor_bytes = 0;  // of the longest descriptor
  std::uint32_t back_to_back = 1;
  bool hop_by_hop = false;
  std::vector<EndpointResult> endpoints;  // of a hop-by-hop run
  std::vector<SizeResult> sizes;
  bool right = false;
};

// Bandwidths in GB/s (1e9 bytes), as nccl-tests defines them. Neither has a value without a time;
// `bus` also has none for a scan, which nccl-tests does not define.
struct Bandwidth {
  std::optional<double> algorithm;  // all bytes by the time; of a collective with a part per rank
                                    // all ranks' parts
  std::optional<double> bus;        // of the bytes that any algorithm must move per rank
};
[[nodiscard]] Bandwidth bandwidth_of(Collective collective, std::uint32_t ranks, double bytes,
                                     double seconds);

// The results of one schedule, or of several that were chosen for different sizes.
[[nodiscard]] std::string to_json(const std::vector<RunResult>& results);
// A table per schedule, with one row per size. `ranks`: also one row per rank, and per endpoint of
// a hop-by-hop run.
[[nodiscard]] std::string to_text(const std::vector<RunResult>& results, bool ranks);

}  // namespace espalier::run_command
