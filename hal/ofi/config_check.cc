#include "hal/ofi/config_check.h"

#include <algorithm>

#include "base/counted.h"
#include "espalier/base/limits.h"
#include "espalier/hal/ofi/provider_list.h"
#include "hal/ofi/lane.h"

namespace espalier::ofi {
namespace {

Result<void> check_lanes(const Config& config, const std::string& node) {
  if (config.lanes.empty()) return {};
  std::uint64_t lanes = 0;
  bool each_has_one = config.lanes.size() == config.peers.size();
  for (const Config::Lanes& link : config.lanes) {
    lanes += std::max(link.out, link.in);
    each_has_one = each_has_one && std::max(link.out, link.in) != 0;
  }
  if (each_has_one && lanes <= kMaxLinks) return {};
  return fail(node + " has " + counted(lanes, "lane") + " for " +
              counted(config.peers.size(), "link") + "; expected one or more for each, at most " +
              std::to_string(kMaxLinks) + " together");
}

}  // namespace

Result<void> check_config(const Config& config) {
  const std::string node = "node " + std::to_string(config.node);
  if (config.max_links > kMaxLinks) {
    return fail(node + ": max_links " + std::to_string(config.max_links) + "; at most " +
                std::to_string(kMaxLinks) + " are possible");
  }
  if (config.max_links != 0 && !(config.peers.empty() && config.lanes.empty())) {
    return fail(node + ": with max_links, expected no peers and no lanes");
  }
  if (config.peers.size() > kMaxLinks) {
    return fail(node + " has " + counted(config.peers.size(), "link") + "; at most " +
                std::to_string(kMaxLinks) + " are possible");
  }
  if (!config.host.empty() && fabric_provider(config.provider) == config.provider) {
    return fail(node + ": host \"" + config.host + "\" with provider " + config.provider +
                ", which does not ask who shares memory; expected mem+NAME");
  }
  if (config.window == 0 || config.window > kMaxRing) {
    return fail("window " + std::to_string(config.window) + " is not in 1.." +
                std::to_string(kMaxRing));
  }
  if (config.eager_bytes > (1u << 24)) {
    return fail("eager_bytes " + std::to_string(config.eager_bytes) + " is above 16 MiB");
  }
  if (std::count(config.peers.begin(), config.peers.end(), config.node) != 0) {
    return fail(node + " has a link to itself");
  }
  return check_lanes(config, node);
}

}  // namespace espalier::ofi
