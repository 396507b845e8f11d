#include "espalier/collectives/algorithms/algorithms.h"

#include <span>

#include "collectives/algorithms/generators.h"
#include "collectives/algorithms/trees/fractional_tree.h"
#include "collectives/algorithms/trees/leaf_tree.h"
#include "collectives/build/builder.h"

namespace espalier {
namespace {

constexpr Collective kBroadcast = Collective::kBroadcast;
constexpr Collective kReduce = Collective::kReduce;
constexpr Collective kAllreduce = Collective::kAllreduce;
constexpr Collective kScan = Collective::kScan;
constexpr Collective kExscan = Collective::kExscan;

constexpr Algorithm kAlgorithms[] = {
    {"binomial", kBroadcast, binomial_broadcast, false,
     "one block down a binomial tree: ceil(log2 p) steps"},
    {"knomial", kBroadcast, generate_knomial, false,
     "one block down a k-nomial tree, --radix k: ceil(log_k p) divisions of k-1 steps, or (k-2)S+L "
     "ticks",
     Where::kAnywhere, 0, true, false, false, true},
    {"scatter-allgather", kBroadcast, scatter_allgather_broadcast, false,
     "p segments scattered by a binomial tree, then round the ring: ceil(log2 p)+p-1 steps"},
    {"chain", kBroadcast, generate_chain, false, "one pipeline through all ranks: p-2+N steps",
     Where::kAnywhere, 0, false, false, true},
    {"binary", kBroadcast, binary_broadcast, false,
     "one pipelined binary tree: d+2N-1 steps, d about log_1.62 p (N steps for p = 2)"},
    {"two-tree", kBroadcast, generate_two_tree, false,
     "two pipelined trees, half the message each: at most 2*ceil(log2(p+1))+2N-2 steps"},
    {"two-tree-mirror", kBroadcast, generate_two_tree_mirror, false,
     "two-tree with mirrored trees, odd p only: at most 2*ceil(log2(p+1))+2N-2 steps",
     Where::kAnywhere, 0, false, true},
    {"two-tree-simplex", kBroadcast, generate_two_tree_simplex, false,
     "two-tree for simplex ports, by couples: at most 4*ceil(log2(p+1))+4N-4 steps"},
    {"fractional", kBroadcast, generate_fractional, false,
     "a pipelined fractional tree, --run-length r: d+N+ceil(N/r)-1 steps, d about r*log2(p/r)",
     Where::kAnywhere, kMaxRunLength},
    {"fractional-simplex", kBroadcast, generate_fractional_simplex, false,
     "fractional for simplex ports, by couples: 2(d+N+ceil(N/r)-1) steps, d that of p/2",
     Where::kAnywhere, kMaxSimplexRunLength},
    {"circulant", kBroadcast, generate_circulant_tree, false,
     "circulant graph, N = 1 mod ceil(log2 p): ceil(log2 p)+N-1 steps, p <= 2^20"},
    {"lambda-tree", kBroadcast, lambda_tree_broadcast, false,
     "one block in the postal model, --lambda L/S: T_lambda(p) ticks", Where::kAnywhere, 0, true},
    {"alpha-tree", kBroadcast, alpha_tree_broadcast, false,
     "one block in the postal model, --lambda L/S; a sender keeps the share --ratio of its ranks: "
     "at "
     "least T_lambda(p) ticks",
     Where::kAnywhere, 0, true, false, false, false, 0, true},
    {"alpha-table", kBroadcast, alpha_table_broadcast, false,
     "one block in the postal model, --lambda L/S; the share that is kept by a table: T_lambda(p) "
     "ticks",
     Where::kAnywhere, 0, true},
    {"binomial", kReduce, binomial_reduce, false,
     "one block up a binomial tree, ordered: ceil(log2 p) steps"},
    {"knomial", kReduce, generate_knomial, false,
     "one block up a k-nomial tree, --radix k: ceil(log_k p) divisions of k-1 steps, or (k-2)S+L "
     "ticks",
     Where::kAnywhere, 0, true, false, false, true},
    {"chain", kReduce, generate_chain, true, "one pipeline through all ranks: p-2+N steps",
     Where::kAnywhere, 0, false, false, true},
    {"chain-ends", kReduce, chain_ends_reduce, false,
     "pipelines from both ends to the root: at most max(root, p-1-root)+2N-1 steps"},
    {"binary", kReduce, binary_reduce, true,
     "one pipelined binary tree: d+2N-1 steps, d about log_1.62 p (N steps for p = 2)"},
    {"two-tree", kReduce, generate_two_tree, true,
     "two pipelined trees, half the message each: at most 2*ceil(log2(p+1))+2N-2 steps"},
    {"two-tree-simplex", kReduce, generate_two_tree_simplex, true,
     "two-tree for simplex ports, by couples: at most 4*ceil(log2(p+1))+4N-4 steps"},
    {"two-tree-mirror", kReduce, generate_two_tree_mirror, true,
     "two-tree with mirrored trees, odd p only: at most 2*ceil(log2(p+1))+2N-2 steps",
     Where::kAnywhere, 0, false, true},
    {"fractional", kReduce, generate_fractional, true,
     "a pipelined fractional tree, --run-length r: d+N+ceil(N/r)-1 steps, d about r*log2(p/r)",
     Where::kAnywhere, kMaxReduceRunLength},
    {"fractional-simplex", kReduce, generate_fractional_simplex, true,
     "fractional for simplex ports, by couples: 2(d+N+ceil(N/r)-1) steps, d that of p/2",
     Where::kAnywhere, kMaxSimplexReduceRunLength},
    {"circulant", kReduce, generate_circulant_tree, true,
     "circulant graph, N = 1 mod ceil(log2 p): ceil(log2 p)+N-1 steps, p <= 2^12"},
    {"rabenseifner", kReduce, generate_halving, false,
     "halving, then a binomial gather: 2*log2 p steps; 2*floor(log2 p)+1 if p is not 2^k"},
    {"chain", kAllreduce, generate_chain, false, "reduce, then broadcast by chain: 2(p-2+N) steps",
     Where::kAnywhere, 0, false, false, true},
    {"two-tree", kAllreduce, generate_two_tree, false,
     "reduce, then broadcast by two-tree: at most 4*ceil(log2(p+1))+4N-4 steps"},
    {"two-tree-simplex", kAllreduce, generate_two_tree_simplex, false,
     "reduce, then broadcast for simplex ports: at most 8*ceil(log2(p+1))+8N-8 steps"},
    {"recursive-doubling", kAllreduce, generate_recursive_doubling, false,
     "exchange of sums, twice as far each step: log2 p steps; floor(log2 p)+2 if p is not 2^k"},
    {"combine", kAllreduce, combine_allreduce, true,
     "one block in the postal model, --lambda L/S: T_lambda(p) ticks for integer lambda",
     Where::kAnywhere, 0, true},
    {"rabenseifner", kAllreduce, generate_halving, false,
     "halving, then doubling: 2*log2 p steps; 2*floor(log2 p)+2 if p is not 2^k"},
    {"ring", kAllreduce, generate_ring, true,
     "reduce-scatter, then allgather by ring: 2(p-1)N steps", Where::kAnywhere, 0, false, false,
     true},
    {"circulant", kAllreduce, generate_circulant, true,
     "circulant graph, reduce-scatter, then allgather: 2*ceil(log2 p)+1 steps (p <= 3: one less), "
     "p <= 2^11"},
    {"dual-root", kAllreduce, dual_root_allreduce, false,
     "up and down two binary trees at once: at most 4*floor(log2((p+1)/2))+3N-2 steps"},
    {"chain", kScan, generate_chain_scan, false, "one pipeline through all ranks: p-2+N steps",
     Where::kAnywhere, 0, false, false, true},
    {"two-tree", kScan, generate_two_tree_scan, false,
     "up and down two pipelined trees: at most 4*ceil(log2(p+2))+4N-10 steps"},
    {"two-tree-mirror", kScan, generate_two_tree_mirror_scan, false,
     "two-tree with mirrored trees: 4*ceil(log2(p+1))+4N-10 steps, up to 3 more if p is odd"},
    {"doubly-pipelined", kScan, generate_doubly_pipelined_scan, false,
     "up and down one pipelined binary tree at once: at most 4*floor(log2 p)+3N-5 steps"},
    {"two-tree-simplex", kScan, generate_two_tree_simplex_scan, false,
     "two-tree for simplex ports, by couples: at most 8*ceil(log2(p+4))+8N-21 steps"},
    {"recursive-doubling", kScan, generate_recursive_doubling_scan, false,
     "one block, twice as far each step: ceil(log2 p) steps"},
    {"chain", kExscan, generate_chain_scan, false, "one pipeline through all ranks: p-2+N steps",
     Where::kAnywhere, 0, false, false, true},
    {"two-tree", kExscan, generate_two_tree_scan, false,
     "up and down two pipelined trees: at most 4*ceil(log2(p+2))+4N-9 steps"},
    {"two-tree-mirror", kExscan, generate_two_tree_mirror_scan, false,
     "two-tree with mirrored trees: 4*ceil(log2(p+1))+4N-9 steps, up to 3 more if p is odd"},
    {"doubly-pipelined", kExscan, generate_doubly_pipelined_scan, false,
     "up and down one pipelined binary tree at once: at most 4*floor(log2 p)+3N-5 steps"},
    {"two-tree-simplex", kExscan, generate_two_tree_simplex_scan, false,
     "two-tree for simplex ports, by couples: at most 8*ceil(log2(p+4))+8N-20 steps"},
    {"recursive-doubling", kExscan, generate_recursive_doubling_scan, false,
     "one block, twice as far each step: ceil(log2 p) steps"},
    {"doubling-123", kExscan, doubling_123_exscan, false,
     "one block over distances 1, 2, 3, 6, 12, ...: ceil(log2(p-1)+log2(4/3)) steps"},
    {"binomial", Collective::kScatter, generate_binomial_scatter, false,
     "one block per rank down a binomial tree: ceil(log2 p) steps"},
    {"knomial", Collective::kScatter, generate_knomial_scatter, false,
     "one block per rank down a k-nomial tree, --radix k: ceil(log_k p) divisions of k-1 steps, or "
     "(k-2)S+L ticks",
     Where::kAnywhere, 0, true, false, false, true},
    {"linear", Collective::kScatter, generate_linear, false,
     "straight between the root and each rank, up to 129 ranks: (p-1)N steps", Where::kAnywhere, 0,
     false, false, false, false, kMaxLinearRanks},
    {"chain", Collective::kScatter, generate_chain_scatter, false,
     "one pipeline through all ranks, furthest first: (p-1)N steps", Where::kAnywhere, 0, false,
     false, true},
    {"binomial", Collective::kGather, generate_binomial_scatter, false,
     "one block per rank up a binomial tree: ceil(log2 p) steps"},
    {"knomial", Collective::kGather, generate_knomial_scatter, false,
     "one block per rank up a k-nomial tree, --radix k: ceil(log_k p) divisions of k-1 steps, or "
     "(k-2)S+L ticks",
     Where::kAnywhere, 0, true, false, false, true},
    {"linear", Collective::kGather, generate_linear, false,
     "straight between the root and each rank, up to 129 ranks: (p-1)N steps", Where::kAnywhere, 0,
     false, false, false, false, kMaxLinearRanks},
    {"chain", Collective::kGather, generate_chain_scatter, false,
     "one pipeline through all ranks, nearest first: (p-1)N steps", Where::kAnywhere, 0, false,
     false, true},
    {"ring", Collective::kAllgather, generate_ring, false,
     "every part round the ring: (p-1)N steps"},
    {"recursive-doubling", Collective::kAllgather, generate_recursive_doubling, false,
     "exchange of all parts, twice as far each step: log2 p steps; floor(log2 p)+2 if p is not "
     "2^k"},
    {"circulant", Collective::kAllgather, generate_circulant, false,
     "circulant graph, parts travel together: ceil(log2 p) steps, p <= 2^15"},
    {"bruck", Collective::kAllgather, bruck_allgather, false,
     "parts travel together, twice as far each step: ceil(log2 p) steps, p <= 2^15"},
    {"ring", Collective::kReduceScatter, generate_ring, true,
     "every part's sum round the ring to its owner: (p-1)N steps"},
    {"recursive-halving", Collective::kReduceScatter, generate_halving, false,
     "halving, then one exchange: at most log2 p + 1 steps; floor(log2 p)+3 if p is not 2^k"},
    {"circulant", Collective::kReduceScatter, generate_circulant, true,
     "circulant graph, sums travel together: ceil(log2 p)+1 steps (p <= 3: one less), p <= 2^12"},
    {"pairwise", Collective::kAllToAll, pairwise_all_to_all, false,
     "exchange with every other rank in turn: (p-1)N steps"},
    {"bruck", Collective::kAllToAll, bruck_all_to_all, false,
     "one block, parts travel together, at most 26 ranks: ceil(log2 p)+1 steps"},
    {"dissemination", Collective::kBarrier, dissemination_barrier, false,
     "each step tells a rank twice as far: ceil(log2 p) steps"},
    {"recursive-doubling", Collective::kBarrier, generate_recursive_doubling, false,
     "exchange of news, twice as far each step: log2 p steps; floor(log2 p)+2 if p is not 2^k"},
    {"leaf", kBroadcast, leaf_broadcast, false,
     "one send per node and step, parent first: (k+1)h-1 + k(N-1) steps", Where::kFatTree},
    {"leaf-multiport", kBroadcast, leaf_multiport_broadcast, false,
     "routers send to all at once: 2h+N-1 steps", Where::kFatTree},
    {"leaf", Collective::kScatter, generate_leaf_scatter, false,
     "furthest first: (p-1)N+1 steps, one more for k = 2 < p", Where::kFatTree},
    {"leaf", Collective::kGather, generate_leaf_scatter, false,
     "nearest first: (p-1)N+1 steps, one more for k = 2 < p", Where::kFatTree},
    {"leaf", Collective::kAllgather, leaf_allgather, false,
     "multiport, without queues: (p-1)N+1 steps; pN+1 for k = 2 < p", Where::kFatTree},
    {"leaf", Collective::kAllToAll, leaf_all_to_all, false,
     "multiport, without queues: N*sum of ceil((k-1)k^(2i-2)/c_i) + 2h-1 steps, at most k c_(i-1) "
     "lanes used",
     Where::kFatTree},
    {"leaf-serial", Collective::kAllToAll, leaf_serial_all_to_all, false,
     "level after level, without queues: N*sum of ceil((k-1)k^(2i-2)/c_i) + h^2 steps, at most k "
     "c_(i-1) lanes used",
     Where::kFatTree},
    {"hosts-binomial", kBroadcast, generate_hosts_binomial, false,
     "one block across H hosts, then inside R ranks: ceil(log2 H) network + ceil(log2 R) steps",
     Where::kHosts},
    {"hosts-chain", kBroadcast, generate_hosts_chain, false,
     "a chain of the H hosts, then one in each: H-2+N network + R-2+N steps", Where::kHosts},
    {"hosts-two-tree", kBroadcast, generate_hosts_two_tree, false,
     "two-tree across the H hosts, then in each: at most 2*ceil(log2(H+1))+2N-2 network steps",
     Where::kHosts},
    {"hosts-binomial", kReduce, hosts_binomial_reduce, false,
     "one block inside each host, then across: ceil(log2 R) + ceil(log2 H) network steps",
     Where::kHosts},
    {"hosts-binomial", kAllreduce, generate_hosts_binomial, false,
     "one block inside, across and back: 2*ceil(log2 R) + 2*ceil(log2 H) network steps",
     Where::kHosts},
    {"hosts-chain", kAllreduce, generate_hosts_chain, false,
     "chains inside, across and back: 2(R-2+N) + 2(H-2+N) network steps", Where::kHosts},
    {"hosts-two-tree", kAllreduce, generate_hosts_two_tree, false,
     "two-tree inside, across and back: at most 4*ceil(log2(H+1))+4N-4 network steps",
     Where::kHosts},
    {"hosts-multi-leader", kAllreduce, hosts_multi_leader_allreduce, true,
     "every rank leads for one of R segments: 2(R-1)N + 2(RN+H-2) network steps", Where::kHosts},
    {"hosts-chain", kScan, generate_hosts_chain_scan, false,
     "chains in each host, of the hosts, into the next host: 2(R-2)+N + H-2+2N network steps",
     Where::kHosts},
    {"hosts-chain", kExscan, generate_hosts_chain_scan, false,
     "chains in each host, of the hosts, into the next host: 2R-2+N + H-2+2N network steps",
     Where::kHosts},
    {"hosts-ring", Collective::kAllgather, hosts_ring_allgather, false,
     "rings across the hosts, then in each: R(H-1)N network + H(R-1)N steps", Where::kHosts},
    {"hosts-ring", Collective::kReduceScatter, hosts_ring_reduce_scatter, true,
     "one block per rank, rings in each host, then across: H(R-1) + R(H-1) network steps",
     Where::kHosts},
    {"hosts-pairwise", Collective::kAllToAll, hosts_pairwise_all_to_all, false,
     "with every rank of the host, then of the others in turn: (R-1)N + R^2(H-1)N network steps",
     Where::kHosts},
    {"hosts-binomial", Collective::kScatter, hosts_binomial_scatter, false,
     "one block per rank, to hosts, then to ranks: ceil(log2 H) network + ceil(log2 R) steps",
     Where::kHosts},
    {"hosts-binomial", Collective::kGather, hosts_binomial_gather, false,
     "one block per rank, from ranks, then from hosts: ceil(log2 R) + ceil(log2 H) network steps",
     Where::kHosts},
    {"hosts-dissemination", Collective::kBarrier, hosts_dissemination_barrier, false,
     "inside, across by dissemination, inside: ceil(log2 H) network + 2*ceil(log2 R) steps",
     Where::kHosts},
    {"mesh-binomial", Collective::kScatter, mesh_binomial_scatter, false,
     "one block per rank, along a column, then along rows: ceil(log2 R) + ceil(log2 C) steps",
     Where::kMesh},
    {"bucket", Collective::kAllgather, generate_bucket, false,
     "one block per rank, rings along each dimension, the last first: sum of (n_i - 1) steps",
     Where::kGrid},
    {"bucket", Collective::kReduceScatter, generate_bucket, true,
     "one block per rank, rings along each dimension, the first first: sum of (n_i - 1) steps",
     Where::kGrid},
    {"bucket", kAllreduce, generate_bucket, true,
     "one block per rank, reduce-scatter, then allgather by bucket: 2 * sum of (n_i - 1) steps",
     Where::kGrid},
    {"bidirectional-bucket", Collective::kAllgather, generate_bidirectional_bucket, false,
     "one block per rank, rings in both directions of each dimension: sum of floor(n_i/2) steps",
     Where::kTorus},
    {"bidirectional-bucket", Collective::kReduceScatter, generate_bidirectional_bucket, true,
     "one block per rank, rings in both directions of each dimension: sum of floor(n_i/2) steps",
     Where::kTorus},
    {"bidirectional-bucket", kAllreduce, generate_bidirectional_bucket, true,
     "one block per rank, reduce-scatter, then allgather: 2 * sum of floor(n_i/2) steps",
     Where::kTorus},
};

bool same(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}

}  // namespace

std::span<const Algorithm> algorithms() { return kAlgorithms; }

const Algorithm* find_algorithm(Collective collective, const char* name) {
  for (const Algorithm& algorithm : kAlgorithms) {
    if (algorithm.collective == collective && same(algorithm.name, name)) return &algorithm;
  }
  return nullptr;
}

bool runs_on(const Algorithm& algorithm, const CollectiveParameters& parameters) {
  switch (algorithm.where) {
    case Where::kFatTree: return parameters.height > 0;
    case Where::kHosts: return parameters.hosts > 0;
    case Where::kMesh: return parameters.rows > 0;
    case Where::kGrid: return parameters.rows > 0 || parameters.dimensions > 0;
    case Where::kTorus: return parameters.dimensions > 0 && parameters.wraps;
    default: return true;
  }
}

std::uint32_t algorithm_nodes(const Algorithm& algorithm, const CollectiveParameters& parameters) {
  if (algorithm.where != Where::kFatTree) return parameters.ranks;
  std::uint32_t nodes = parameters.ranks, size = parameters.ranks;
  for (std::uint32_t level = 1; level <= parameters.height; ++level) {
    const std::uint32_t arity = level_arity(parameters, level);
    if (arity < 2) break;
    size /= arity;
    nodes += size;
  }
  return nodes;
}

bool parse_collective(const char* name, Collective& collective) {
  for (std::uint32_t each = Collective::kBroadcast; each <= _espalier_Collective_MAX; ++each) {
    if (same(collective_name(static_cast<Collective>(each)), name)) {
      collective = static_cast<Collective>(each);
      return true;
    }
  }
  return false;
}

}  // namespace espalier
