#include "topology/crossbar.h"
#include "topology/families.h"
#include "topology/spec_reader.h"

namespace espalier::topology {
namespace {

constexpr std::string_view kHostsForm =
    "hosts:HxR with H hosts of R ranks, each at least 1, e.g. hosts:4x8";

class Hosts final : public Crossbar {
 public:
  Hosts(std::uint32_t hosts, std::uint32_t host_ranks) : Crossbar({hosts, host_ranks}, {1}, {1}) {}

  [[nodiscard]] std::string spec() const override {
    return "hosts:" + std::to_string(modules()) + "x" + std::to_string(size());
  }
  [[nodiscard]] Shape shape() const override { return {.hosts = modules(), .host_ranks = size()}; }
  [[nodiscard]] LinkClass link_class(std::uint32_t from, std::uint32_t to) const override {
    return from == hub() || to == hub() ? LinkClass::kFabric : LinkClass::kMemory;
  }
  [[nodiscard]] std::vector<LinkClass> link_classes() const override {
    return {LinkClass::kMemory, LinkClass::kFabric};
  }

 private:
  [[nodiscard]] const char* module_word() const override { return "host"; }
};

}  // namespace

Result<std::unique_ptr<Topology>> parse_hosts(std::string_view text) {
  SpecReader reader("hosts:", text, kHostsForm);
  const std::uint32_t hosts = reader.number("the number of hosts");
  reader.literal("x");
  const std::uint32_t host_ranks = reader.number("the number of ranks per host");
  reader.end();
  reader.limit_nodes(std::uint64_t{hosts} * host_ranks + hosts + 1);
  if (auto sound = reader.result(); !sound) return fail(sound.error());
  return std::make_unique<Hosts>(hosts, host_ranks);
}

}  // namespace espalier::topology
