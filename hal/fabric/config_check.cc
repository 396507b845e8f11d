#include "hal/fabric/config_check.h"

#include <algorithm>
#include <set>

#include "base/counted.h"
#include "espalier/internal/base/limits.h"
#include "hal/fabric/provider_list.h"

namespace espalier::ofi {
namespace {

std::string node_text(const Config& config) { return "node " + std::to_string(config.node); }

Result<void> check_common(const Config& config) {
  if (config.window == 0 || config.window > kMaxRing) {
    return fail("window " + std::to_string(config.window) + " is not in 1.." +
                std::to_string(kMaxRing));
  }
  if (config.eager_bytes > (1u << 24)) {
    return fail("eager_bytes " + std::to_string(config.eager_bytes) + " is above 16 MiB");
  }
  return {};
}

Result<void> check_lanes(const FixedConfig& config) {
  if (config.lanes.empty()) return {};
  std::uint64_t lanes = 0;
  bool each_has_one = config.lanes.size() == config.peers.size();
  for (const FixedConfig::Lanes& link : config.lanes) {
    lanes += std::max(link.out, link.in);
    each_has_one = each_has_one && std::max(link.out, link.in) != 0;
  }
  if (each_has_one && lanes <= kMaxLinks) return {};
  return fail(node_text(config) + " has " + counted(lanes, "lane") + " for " +
              counted(config.peers.size(), "link") + "; expected one or more for each, at most " +
              std::to_string(kMaxLinks) + " together");
}

// After check_lanes().
Result<void> check_lane_addresses(const FixedConfig& config) {
  const std::size_t count = config.lane_addresses.size();
  if (count == 0 && config.separate_domains) {
    return fail(node_text(config) + " has separate_domains without lane_addresses; expected both");
  }
  if (count == 0) return {};
  std::size_t lanes = 0;
  for (const FixedConfig::Lanes& link : config.lanes) lanes += std::max(link.out, link.in);
  if (!binds_address(config.provider)) {
    return fail(node_text(config) + ": provider " + config.provider +
                " binds no addresses; expected no lane_addresses");
  }
  if (count == lanes && config.local_address.empty()) return {};
  return fail(node_text(config) + " has " + counted(count, "lane address") + " for " +
              counted(lanes, "lane") +
              (config.local_address.empty() ? "" : " and a local_address") +
              "; expected one per lane, and no local_address");
}

Result<void> check_cable(const AddedConfig& config, const AddedConfig::Cable& cable) {
  const std::string which = node_text(config) + ": cable " + std::to_string(cable.number);
  if (cable.node == config.node) return fail(which + " leads back to this node");
  if (cable.lanes == 0) return fail(which + " has no lane; expected one or more");
  if (cable.local_address.empty()) {
    return fail(which + " has no address; expected that of its interface, such as fe80::7%eth0");
  }
  const auto has_number = [&](const auto& each) { return each.number == cable.number; };
  const auto times = std::count_if(config.cables.begin(), config.cables.end(), has_number);
  if (times == 1) return {};
  return fail(which + " is given " + counted(static_cast<std::uint64_t>(times), "time") +
              "; expected another number for each");
}

Result<void> check_cables(const AddedConfig& config) {
  const bool is_mixed = fabric_provider(config.provider) != config.provider;
  if (config.is_without_cables && (!is_mixed || !config.cables.empty())) {
    return fail(node_text(config) + " is_without_cables and has " +
                (is_mixed ? counted(config.cables.size(), "cable")
                          : "provider " + config.provider + "; expected mem+NAME") +
                (is_mixed ? "; expected none" : ""));
  }
  if (!has_cables(config)) return {};
  if (!binds_address(config.provider)) {
    return fail(node_text(config) + ": provider " + config.provider +
                " has no use for cables; expected none, or mem+tcp");
  }
  if (!config.local_address.empty()) {
    return fail(node_text(config) + " has cables and the local_address " + config.local_address +
                "; expected none, because each lane binds the address of its cable");
  }
  std::uint64_t lanes = 0;
  std::set<std::uint32_t> nodes;
  for (const AddedConfig::Cable& cable : config.cables) {
    if (auto sound = check_cable(config, cable); !sound) return sound;
    lanes += cable.lanes;
    nodes.insert(cable.node);
  }
  if (lanes <= kMaxLinks && nodes.size() <= config.max_links) return {};
  return fail(node_text(config) + " has " + counted(lanes, "lane") + " over cables to " +
              counted(nodes.size(), "node") + "; expected at most " + std::to_string(kMaxLinks) +
              " lanes, and max_links = " + std::to_string(config.max_links) + " nodes");
}

}  // namespace

bool has_cables(const AddedConfig& config) {
  return !config.cables.empty() || config.is_without_cables;
}

Result<void> check_parts(const std::string& provider) {
  if (auto serves = check_not_refused(provider); !serves) return serves;
  const std::string fabric = fabric_provider(provider);
  if (binds_address(fabric)) return {};
  return fail("provider \"" + provider + "\": " + fabric +
              " is of one host; expected mem alone, or mem+tcp");
}

Result<void> check_config(const FixedConfig& config) {
  const std::string node = node_text(config);
  if (config.peers.size() > kMaxLinks) {
    return fail(node + " has " + counted(config.peers.size(), "link") + "; at most " +
                std::to_string(kMaxLinks) + " are possible");
  }
  if (auto sound = check_common(config); !sound) return sound;
  if (std::count(config.peers.begin(), config.peers.end(), config.node) != 0) {
    return fail(node + " has a link to itself");
  }
  if (auto sound = check_lanes(config); !sound) return sound;
  if (auto sound = check_lane_addresses(config); !sound || has_fixed_links(config.provider))
    return sound;
  if (auto sound = check_parts(config.provider); !sound) return sound;
  return fail(node + ": provider " + config.provider +
              " finds out which peers are on this host; with fixed links, expected mem or " +
              fabric_provider(config.provider));
}

Result<void> check_config(const AddedConfig& config) {
  const std::string node = node_text(config);
  if (config.max_links == 0 || config.max_links > kMaxLinks) {
    return fail(node + ": max_links " + std::to_string(config.max_links) + " is not in 1.." +
                std::to_string(kMaxLinks));
  }
  const bool is_mixed = fabric_provider(config.provider) != config.provider;
  if (!config.host.empty() && !is_mixed) {
    return fail(node + ": host \"" + config.host + "\" with provider " + config.provider +
                ", which does not ask who shares memory; expected mem+NAME");
  }
  if (auto sound = check_common(config); !sound) return sound;
  if (is_mixed) {
    if (auto sound = check_parts(config.provider); !sound) return sound;
  }
  return check_cables(config);
}

}  // namespace espalier::ofi
