#include <strings.h>

#include "hal/fabric/provider_list.h"

namespace espalier::ofi {
namespace {

// In libfabric 1.17.0 both. In 2.1.0 no other node of 56 jobs with a killed node crashed, but the
// conformance test ReleaseGivesTheBytesBack crashes over links that are added, in fi_cq_read().
constexpr const char kLayerCrashes[] =
    "libfabric's ofi_rxm crashes when a peer dies, or gives up a collective, within a message";
// Only their behaviour is the reason, so they are listed by name.
constexpr ProviderRefusal kRefusals[] = {
    {"shm", "a peer that is stopped or killed can block all processes that share its memory",
     "mem, which joins the processes of one host"},
    {"udp;ofi_rxd",
     "it crashes when an endpoint with pending writes is closed, as every failed collective does",
     "tcp"},
    {"tcp;ofi_rxm", kLayerCrashes, "tcp, which uses the same network"},
    {"net;ofi_rxm", kLayerCrashes, "tcp, which uses the same network"},
    {"sockets", "it is deprecated upstream and slow", "tcp, which uses the same network, or mem"},
    // libfabric 2.0 and later.
    {"lnx", "it joins other providers, which FI_LNX_PROV_LINKS names, and has no device of its own",
     "one of those providers, or mem+tcp, which joins memory and a network"},
};

}  // namespace

const ProviderRefusal* find_refusal(const std::string& name) {
  for (const ProviderRefusal& refused : kRefusals) {
    if (strcasecmp(name.c_str(), refused.name) == 0) return &refused;  // as libfabric does
  }
  return nullptr;
}

std::string refusal_text(const ProviderRefusal& refused) {
  return std::string(refused.reason) + "; expected " + refused.expected;
}

Result<void> check_not_refused(const std::string& name) {
  const ProviderRefusal* const refused = find_refusal(fabric_provider(name));
  if (refused == nullptr) return {};
  return fail("provider \"" + name + "\": " + refusal_text(*refused));
}

}  // namespace espalier::ofi
