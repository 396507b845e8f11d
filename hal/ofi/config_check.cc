#include "hal/ofi/config_check.h"

#include <algorithm>

#include "espalier/base/limits.h"
#include "hal/ofi/lane.h"

namespace espalier::ofi {
namespace {

bool check_lanes(const Config& config, const std::string& node, std::string& error) {
  if (config.lanes.empty()) return true;
  std::uint64_t lanes = 0;
  bool each_has_one = config.lanes.size() == config.peers.size();
  for (const Config::Lanes& link : config.lanes) {
    lanes += std::max(link.out, link.in);
    each_has_one = each_has_one && std::max(link.out, link.in) != 0;
  }
  if (each_has_one && lanes <= kMaxLinks) return true;
  error = node + " has " + std::to_string(lanes) + " lanes for " +
          std::to_string(config.peers.size()) + " links; expected one or more for each, at most " +
          std::to_string(kMaxLinks) + " together";
  return false;
}

}  // namespace

bool check_config(const Config& config, std::string& error) {
  const std::string node = "node " + std::to_string(config.node);
  if (config.peers.size() > kMaxLinks) {
    error = node + " has " + std::to_string(config.peers.size()) + " links; at most " +
            std::to_string(kMaxLinks) + " are possible";
    return false;
  }
  if (config.window == 0 || config.window > kMaxRing) {
    error = "window " + std::to_string(config.window) + " is not in 1.." + std::to_string(kMaxRing);
    return false;
  }
  if (config.eager_bytes > (1u << 24)) {
    error = "eager_bytes " + std::to_string(config.eager_bytes) + " is above 16 MiB";
    return false;
  }
  if (std::count(config.peers.begin(), config.peers.end(), config.node) != 0) {
    error = node + " has a link to itself";
    return false;
  }
  return check_lanes(config, node, error);
}

}  // namespace espalier::ofi
