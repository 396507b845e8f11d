#include "collectives/algorithms/trees/fractional_tree.h"
#include "collectives/search/exchange_flow.h"
#include "collectives/search/searches.h"
#include "collectives/search/simplex_family.h"
#include "espalier/collectives/search.h"

namespace espalier::searched {
namespace {

bool anywhere(const topology::Topology&) { return true; }
bool on_mesh(const topology::Topology& topology) { return topology.shape().rows > 0; }
bool on_crossbar(const topology::Topology& topology) { return !topology.shape().crossbar.empty(); }

bool on_torus(const topology::Topology& topology) {
  const topology::Shape shape = topology.shape();
  return shape.wraps || shape.hypercube > 0;
}
bool on_fat_tree(const topology::Topology& topology) { return topology.shape().height > 0; }
bool on_thin_tree(const topology::Topology& topology) {
  const topology::Shape shape = topology.shape();
  for (const std::uint32_t lanes : shape.capacities) {
    if (lanes != 1) return false;
  }
  return shape.height > 0;
}

bool with_routers(const topology::Topology& topology) {
  return topology.nodes() > topology.ranks() && topology.ranks() > 1;
}

constexpr const char* kWithRouters = "topologies with routers, which run programs too";

constexpr SearchedAlgorithm kAlgorithms[] = {
    {"double-fibonacci", Collective::kBroadcast, double_fibonacci_broadcast, false,
     "two pipelined Fibonacci trees, half the message each: D-1+2N steps, D about 1.44 log2 p",
     "any topology", anywhere, 0, true},
    {"double-fibonacci", Collective::kReduce, double_fibonacci_reduce, true,
     "two pipelined Fibonacci trees, half the message each: D-1+2N steps, D about 1.44 log2 p",
     "any topology", anywhere, 0, true},
    {"fractional-direct", Collective::kBroadcast, fractional_direct_broadcast, false,
     "a fractional tree for simplex ports, --run-length r: a+(2r+1)N/r steps, N a multiple of r",
     "any topology", anywhere, kMaxDirectRunLength, true},
    {"fractional-direct", Collective::kReduce, fractional_direct_reduce, true,
     "a fractional tree for simplex ports, --run-length r: a+(2r+1)N/r steps, N a multiple of r",
     "any topology", anywhere, kMaxDirectRunLength, true},
    {"fractional-mesh", Collective::kBroadcast, fractional_mesh_broadcast, false,
     "a fractional tree of rectangles, by a known embedding: d+N+ceil(N/r)-1 steps", "mesh:RxC",
     on_mesh, kMaxRunLength, false, true},
    {"fractional-mesh", Collective::kReduce, fractional_mesh_reduce, true,
     "a fractional tree of rectangles, by a known embedding: d+N+ceil(N/r)-1 steps", "mesh:RxC",
     on_mesh, kMaxReduceRunLength, false, true},
    {"crossbar-a", Collective::kBroadcast, crossbar_a_broadcast, false,
     "a fractional tree, --run-length r, two channels in and out of a module: d+N+ceil(N/r)-1 "
     "steps",
     "crossbar:AxB[xC..]", on_crossbar, kMaxRunLength},
    {"crossbar-b", Collective::kBroadcast, crossbar_b_broadcast, false,
     "a fractional tree, --run-length r, one channel in and two out of a module: d+N+ceil(N/r)-1 "
     "steps",
     "crossbar:AxB[xC..]", on_crossbar, kMaxRunLength},
    {"crossbar-a", Collective::kReduce, crossbar_a_reduce, true,
     "a fractional tree, --run-length r, two channels in and out of a module: d+N+ceil(N/r)-1 "
     "steps",
     "crossbar:AxB[xC..]", on_crossbar, kMaxReduceRunLength},
    {"crossbar-b", Collective::kReduce, crossbar_b_reduce, true,
     "a fractional tree, --run-length r, two channels in and one out of a module: d+N+ceil(N/r)-1 "
     "steps",
     "crossbar:AxB[xC..]", on_crossbar, kMaxReduceRunLength},
    {"mesh-balanced", Collective::kAllToAll, mesh_balanced_all_to_all, false,
     "permutations that load every row and column evenly, p <= 129: about "
     "N*max(p-1, R*floor(C^2/4), C*floor(R^2/4)) steps",
     "mesh:RxC", on_mesh},
    {"all-port", Collective::kAllgather, all_port_allgather, false,
     "every link of a node at once, moved trees: N*ceil((p-1)/links) steps, p <= 256",
     "tori, rings and hypercubes", on_torus},
    {"all-port", Collective::kReduceScatter, all_port_reduce_scatter, true,
     "every link of a node at once, moved trees: N*ceil((p-1)/links) steps, p <= 256",
     "tori, rings and hypercubes", on_torus},
    {"all-port", Collective::kAllreduce, all_port_allreduce, true,
     "reduce-scatter, then allgather over every link at once: 2N*ceil((p-1)/links) steps, p <= 256",
     "tori, rings and hypercubes", on_torus},
    {"leaf-overlapped", Collective::kAllToAll, leaf_overlapped_all_to_all, false,
     "every port at once, levels overlapped: N about n^2 (k-1)/k^2, + 2h-1 steps, n <= 64 leaves",
     "fattree:k=K,h=H,c=1", on_thin_tree, 0, false, false, true},
    {"leaf-single", Collective::kAllToAll, leaf_single_all_to_all, false,
     "one send per node and step, without queues: N n^2 (k-1)/k + 2h-1 steps; k = 2 < n: "
     "N (3 - 1/k') n^2/4 + 2h-3, k' of the level below; n <= 256",
     "fattree:k=K,h=H", on_fat_tree, 0, false, false, true},
    {"leaf-flood", Collective::kAllgather, leaf_flood_allgather, false,
     "every port at once, queues unrolled: (n-1)N+1 steps for c_1 = 1, nN+1 for k = 2 < n, n <= "
     "256 "
     "leaves",
     "fattree:k=K,h=H", on_fat_tree, 0, false, false, true},
    {"leaf-single", Collective::kAllgather, leaf_single_allgather, false,
     "one send per node and step, up first: kn+(k+1)(h-2)+1 steps for N = 1, n <= 256 leaves",
     "fattree:k=K,h=H", on_fat_tree, 0, false, false, true},
    {"in-network", Collective::kBroadcast, in_network_broadcast, false,
     "routers replicate along a breadth-first tree: e+N-1 steps, e to the furthest rank",
     kWithRouters, with_routers, 0, false, false, true},
    {"in-network", Collective::kReduce, in_network_reduce, false,
     "routers combine, the result goes from the centre to the root: at most 2D+N-1 steps, D = h on "
     "a fat tree",
     kWithRouters, with_routers, 0, false, false, true},
    {"in-network", Collective::kAllreduce, in_network_allreduce, false,
     "routers combine up a tree from the centre and replicate down: 2D+N-1 steps, D = h on a fat "
     "tree",
     kWithRouters, with_routers, 0, false, false, true},
    {"in-network", Collective::kScan, in_network_scan, false,
     "routers combine up, and add prefixes down: at most 2D+N-1 steps, D = h on a fat tree",
     kWithRouters, with_routers, 0, false, false, true},
    {"in-network", Collective::kExscan, in_network_exscan, false,
     "routers combine up, and add prefixes down: at most 2D+N-1 steps, D = h on a fat tree",
     kWithRouters, with_routers, 0, false, false, true},
    {"in-network", Collective::kBarrier, in_network_barrier, false,
     "routers wait for all below, then let all go: 2D steps, D = h on a fat tree", kWithRouters,
     with_routers, 0, false, false, true},
    {"packed-trees", Collective::kBroadcast, packed_trees_broadcast, false,
     "spanning trees packed from the root, k = its least maximum flow: d+ceil(N/k) steps",
     "at most 256 nodes of 16 links", can_pack_one_root, 0, false, false, false, true},
    {"packed-trees", Collective::kReduce, packed_trees_reduce, true,
     "spanning trees packed into the root, k = its least maximum flow: d+ceil(N/k) steps",
     "at most 256 nodes of 16 links", can_pack_one_root, 0, false, false, false, true},
    {"packed-trees", Collective::kAllreduce, packed_trees_allreduce, true,
     "spanning trees packed into and out of every rank: d+T*ceil(N/(p*k)) steps",
     "at most 64 nodes of 16 links", can_pack_all_roots, 0, false, false, false, true},
    {"packed-trees", Collective::kAllgather, packed_trees_allgather, false,
     "k spanning trees packed from every rank: d+T*ceil(N/k) steps, T/k the least of any",
     "at most 64 nodes of 16 links", can_pack_all_roots, 0, false, false, false, true},
    {"packed-trees", Collective::kReduceScatter, packed_trees_reduce_scatter, true,
     "k spanning trees packed into every rank: d+T*ceil(N/k) steps, T/k the least of any",
     "at most 64 nodes of 16 links", can_pack_all_roots, 0, false, false, false, true},
    {"packed-paths", Collective::kAllToAll, packed_paths_all_to_all, false,
     "k paths per pair from a multi-commodity flow: d+T*ceil(N/k) steps, T/k near the least of any",
     "at most 64 nodes of 16 links", can_pack_all_roots, 0, false, false, false, true,
     missing_flow_solver},
    {"breadth-first", Collective::kBroadcast, breadth_first_broadcast, false,
     "a breadth-first tree from the root: e+N-1 steps, e to the furthest rank",
     "at most 256 nodes of 16 links", can_pack_one_root, 0, false, false, false, true},
    {"breadth-first", Collective::kReduce, breadth_first_reduce, true,
     "a breadth-first tree into the root: e+N-1 steps, e from the furthest rank",
     "at most 256 nodes of 16 links", can_pack_one_root, 0, false, false, false, true},
    {"breadth-first", Collective::kAllreduce, breadth_first_allreduce, true,
     "into the centre and out again: 2D+N-1 steps, D to the furthest rank",
     "at most 256 nodes of 16 links", can_pack_one_root, 0, false, false, false, true},
    {"breadth-first", Collective::kBarrier, breadth_first_barrier, false,
     "into the centre and out again: 2D steps, D to the furthest rank",
     "at most 256 nodes of 16 links", can_pack_one_root, 0, false, false, false, true},
    {"time-expanded", Collective::kAllgather, time_expanded_allgather, false,
     "few steps for one block, by matchings step by step: S*N steps, S near "
     "max(diameter, ceil((p-1)/lanes))",
     "at most 64 nodes of 16 links", can_pack_all_roots, 0, false, false, false, true},
    {"time-expanded", Collective::kReduceScatter, time_expanded_reduce_scatter, true,
     "few steps for one block, by matchings step by step: S*N steps, S near "
     "max(diameter, ceil((p-1)/lanes))",
     "at most 64 nodes of 16 links", can_pack_all_roots, 0, false, false, false, true},
};

}  // namespace

std::span<const SearchedAlgorithm> searched_algorithms() { return kAlgorithms; }

const SearchedAlgorithm* find_searched(Collective collective, const std::string& name) {
  for (const SearchedAlgorithm& algorithm : kAlgorithms) {
    if (algorithm.collective == collective && algorithm.name == name) return &algorithm;
  }
  return nullptr;
}

}  // namespace espalier::searched
