#include "espalier/topology/topology.h"

#include "base/digest.h"
#include "topology/crossbar.h"
#include "topology/families.h"

namespace espalier::topology {

const char* link_class_name(LinkClass link_class) {
  switch (link_class) {
    case LinkClass::kFabric: return "fabric";
    case LinkClass::kOnChip: return "on-chip";
    case LinkClass::kMemory: return "memory";
    case LinkClass::kSerial: return "serial";
  }
  return "unknown";
}

std::uint64_t Topology::digest() const {
  const std::string text = spec();
  const std::uint64_t digest = digest_bytes(kDigestSeed, text.data(), text.size());
  return digest == 0 ? 1 : digest;
}

Result<std::unique_ptr<Topology>> parse(std::string_view spec) {
  struct Family {
    std::string_view prefix;
    Result<std::unique_ptr<Topology>> (*parse)(std::string_view);
  };
  constexpr Family kFamilies[] = {
      {"complete:", parse_complete},   {"mesh:", parse_mesh},           {"torus:", parse_torus},
      {"ring:", parse_ring},           {"hypercube:", parse_hypercube}, {"hyperx:", parse_hyperx},
      {"dragonfly:", parse_dragonfly}, {"crossbar:", parse_crossbar},   {"hosts:", parse_hosts},
      {"fattree:", parse_fat_tree},    {"custom:", parse_custom}};
  for (const Family& family : kFamilies) {
    if (spec.starts_with(family.prefix)) return family.parse(spec.substr(family.prefix.size()));
  }
  return fail("unknown topology '" + std::string(spec) + "'; expected " + kSpecificationForms);
}

Result<std::unique_ptr<Topology>> read(std::string_view spec) {
  constexpr std::string_view kFile = "file:";
  if (!spec.starts_with(kFile)) return parse(spec);
  return read_topology_file(std::string(spec.substr(kFile.size())));
}

}  // namespace espalier::topology
