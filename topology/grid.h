#pragma once
// Grids with dimension-order routes: mesh:RxC, mesh:AxBxC, torus:RxC, torus:AxBxC, ring:P,
// hypercube:D, hyperx:AxB and hyperx:AxBxC. A line along one dimension is a path (mesh), a ring
// (torus, ring), or has a link between every two ranks (hyperx). A hypercube is a grid with two
// ranks in each dimension. Sources: [BLPG93] for meshes and tori; Ahn et al., HyperX, SC 2009.

#include <memory>
#include <string>
#include <string_view>

#include "espalier/topology/topology.h"

namespace espalier::topology {

// Each parses the text after the family's name and ':'.
[[nodiscard]] Result<std::unique_ptr<Topology>> parse_mesh(std::string_view text);
[[nodiscard]] Result<std::unique_ptr<Topology>> parse_torus(std::string_view text);
[[nodiscard]] Result<std::unique_ptr<Topology>> parse_ring(std::string_view text);
[[nodiscard]] Result<std::unique_ptr<Topology>> parse_hypercube(std::string_view text);
[[nodiscard]] Result<std::unique_ptr<Topology>> parse_hyperx(std::string_view text);

}  // namespace espalier::topology
