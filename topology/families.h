#pragma once
// The parsers of the families of topologies. Each parses the text after the family's name and ':'.

#include <memory>
#include <string>
#include <string_view>

#include "espalier/topology/topology.h"

namespace espalier::topology {

// complete:N: every rank has a link to every other.
[[nodiscard]] Result<std::unique_ptr<Topology>> parse_complete(std::string_view text);

// Grids with dimension-order routes: mesh:RxC, mesh:AxBxC, torus:RxC, torus:AxBxC, ring:P,
// hypercube:D, hyperx:AxB and hyperx:AxBxC. A line along one dimension is a path (mesh), a ring
// (torus, ring), or has a link between every two ranks (hyperx). A hypercube is a grid with two
// ranks in each dimension. Sources: [BLPG93] for meshes and tori; Ahn et al., HyperX, SC 2009.
[[nodiscard]] Result<std::unique_ptr<Topology>> parse_mesh(std::string_view text);
[[nodiscard]] Result<std::unique_ptr<Topology>> parse_torus(std::string_view text);
[[nodiscard]] Result<std::unique_ptr<Topology>> parse_ring(std::string_view text);
[[nodiscard]] Result<std::unique_ptr<Topology>> parse_hypercube(std::string_view text);
[[nodiscard]] Result<std::unique_ptr<Topology>> parse_hyperx(std::string_view text);

// fattree:k=K,h=H,c=...: a complete K-ary tree of height H, with K^H ranks at the leaves and
// routers above. fattree:k=K1x...xKH,c=...: routers of level l have Kl children, and there are
// K1 * ... * KH ranks. "Branch" and "level" are used as in [DD96], section 2: the branches of level
// l connect level l-1 with level l.
// c=1: every branch has one lane per direction; c=k: exponential,
// at level l as many lanes as there are ranks below the branch, K^(l-1); c=c1,...,cH: as listed,
// beginning with c1 at the leaves. A list of arities also begins at the leaves; after it, ",h=H"
// and ",c=..." may be absent, and c is 1 then.
[[nodiscard]] Result<std::unique_ptr<Topology>> parse_fat_tree(std::string_view text);

// dragonfly:GxAxP: G groups of A routers of P ranks, with one global link between every two groups.
// Source: Kim, Dally, Scott and Abts, Technology-Driven, Highly-Scalable Dragonfly Topology, ISCA
// 2008.
[[nodiscard]] Result<std::unique_ptr<Topology>> parse_dragonfly(std::string_view text);

// hosts:HxR: a cluster of H hosts with R ranks each. Memory links connect all ranks of a host; the
// ranks of a host share one link into the network and one out of it. It is a crossbar (crossbar.h)
// whose modules are hosts with one channel in and one out. Rank h*R + i is on host h. Routers: the
// network port of each host, then the switch. A message between hosts crosses four links: to the
// port, to the switch, to the other port, to the rank. The two in the middle are the hosts' shared
// links.
[[nodiscard]] Result<std::unique_ptr<Topology>> parse_hosts(std::string_view text);

// custom:TEXT: a topology of the user, from a topology file's text in one line
// (proto/topology.proto, docs/topologies.md).
[[nodiscard]] Result<std::unique_ptr<Topology>> parse_custom(std::string_view text);

// Reads the topology file at `path`. An error in its text is "PATH:LINE: ...".
[[nodiscard]] Result<std::unique_ptr<Topology>> read_topology_file(const std::string& path);

}  // namespace espalier::topology
