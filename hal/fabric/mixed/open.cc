// Opens endpoints: finds out which kind serves a provider.

#include "espalier/hal/ofi/ofi_endpoint.h"
#include "hal/fabric/cables/cabled_links.h"
#include "hal/fabric/config_check.h"
#include "hal/fabric/mem/memory_endpoint.h"
#include "hal/fabric/mixed/mixed_endpoint.h"
#include "hal/fabric/ofi/lanes/libfabric_endpoint.h"
#include "hal/fabric/ofi/provider.h"
#include "hal/fabric/provider_list.h"

namespace espalier::ofi {

Result<void> check_provider(const std::string& name) {
  if (name == kMemProvider) return {};
  if (!has_fixed_links(name)) {
    if (auto sound = check_parts(name); !sound) return sound;
  }
  const auto info = find_provider(fabric_provider(name), "");
  if (!info) return fail("provider \"" + name + "\": " + info.error().message);
  fi_freeinfo(*info);
  return {};
}

bool known_provider(const std::string& name) { return check_provider(name).has_value(); }

std::shared_ptr<SharedFabric> make_shared_fabric() { return std::make_shared<SharedFabric>(); }

Result<std::unique_ptr<FixedLinks>> FixedLinks::open(const FixedConfig& config) {
  if (auto sound = check_config(config); !sound) return fail(sound.error());
  if (config.provider == kMemProvider) return MemoryEndpoint::open(config);
  return LibfabricEndpoint::open(config);
}

Result<std::unique_ptr<AddedLinks>> AddedLinks::open(const AddedConfig& config) {
  if (auto sound = check_config(config); !sound) return fail(sound.error());
  if (config.provider == kMemProvider) return MemoryEndpoint::open(config);
  if (!has_fixed_links(config.provider)) return MixedEndpoint::open(config);
  if (ofi::has_cables(config)) return CabledLinks::open(config);
  return LibfabricEndpoint::open(config);
}

}  // namespace espalier::ofi
