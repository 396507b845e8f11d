#include "hal/fabric/cables/cabled_links.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "base/counted.h"
#include "base/process/open_files.h"
#include "hal/fabric/address.h"

namespace espalier::ofi {
namespace {

template <class Part>
void append(std::string& text, const Part& part) {
  text.append(reinterpret_cast<const char*>(&part), sizeof(part));
}

std::string interface_of(const std::string& local_address) {
  const std::size_t percent = local_address.find('%');
  return percent == std::string::npos ? "" : local_address.substr(percent + 1);
}

// "fe80::9" of "[fe80::9]:4000".
std::string without_port(std::string text) {
  text = text.substr(0, text.rfind(':'));
  return text.starts_with('[') ? text.substr(1, text.find(']') - 1) : text;
}

}  // namespace

// Both ends deal out the messages of a link over its lanes in this order: the first lanes of all
// its cables, then the second ones.
CabledLinks::CabledLinks(const AddedConfig& config) : config_(config) {
  config_.secret = {};
  for (std::uint32_t cable = 0; cable < config_.cables.size(); ++cable) {
    const AddedConfig::Cable& each = config_.cables[cable];
    if (std::find(nodes_.begin(), nodes_.end(), each.node) == nodes_.end()) {
      nodes_.push_back(each.node);
    }
    for (std::uint32_t lane = 0; lane < each.lanes; ++lane) lanes_.push_back({cable, lane});
  }
  const auto link_of = [this](const CableLane& lane) {
    return std::find(nodes_.begin(), nodes_.end(), config_.cables[lane.cable].node);
  };
  std::sort(lanes_.begin(), lanes_.end(), [&](const CableLane& a, const CableLane& b) {
    return std::tuple(link_of(a), a.number, config_.cables[a.cable].number) <
           std::tuple(link_of(b), b.number, config_.cables[b.cable].number);
  });
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    if (lane == 0 || link_of(lanes_[lane]) != link_of(lanes_[lane - 1]))
      first_lane_.push_back(lane);
    ways_.push_back(way_of(static_cast<std::uint32_t>(lane), ""));
  }
  first_lane_.push_back(lanes_.size());
  ESPALIER_ASSERT(first_lane_.size() == nodes_.size() + 1);
  errors_.resize(nodes_.size());
}

Result<std::unique_ptr<CabledLinks>> CabledLinks::open(const AddedConfig& config) {
  std::unique_ptr<CabledLinks> cabled(new CabledLinks(config));
  FixedConfig fixed;
  static_cast<Config&>(fixed) = config;
  fixed.peers = cabled->nodes_;
  for (std::size_t link = 0; link < cabled->nodes_.size(); ++link) {
    const auto lanes =
        static_cast<std::uint32_t>(cabled->first_lane_[link + 1] - cabled->first_lane_[link]);
    fixed.lanes.push_back({lanes, lanes});
  }
  for (const CableLane& lane : cabled->lanes_) {
    fixed.lane_addresses.push_back(config.cables[lane.cable].local_address);
  }
  auto inner = LibfabricEndpoint::open_apart(fixed);
  if (!inner) return fail("node " + std::to_string(config.node) + ": " + inner.error().message);
  cabled->inner_ = *std::move(inner);
  cabled->inner_->set_lane_texts(cabled->ways_);
  return cabled;
}

// "over eth0 (fe80::7%eth0 to fe80::9)". there: empty: not known.
std::string CabledLinks::way_of(std::uint32_t lane, const std::string& there) const {
  const std::string& own = config_.cables[lanes_[lane].cable].local_address;
  const std::string interface = interface_of(own);
  const std::string ends = own + (there.empty() ? "" : " to " + there);
  return interface.empty() ? "over " + ends : "over " + interface + " (" + ends + ")";
}

std::string CabledLinks::address() const {
  const std::vector<std::string> addresses = inner_->addresses();
  ESPALIER_ASSERT(addresses.size() == lanes_.size());
  std::string text;
  append(text, CabledHead{.lanes = static_cast<std::uint32_t>(lanes_.size())});
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    const AddedConfig::Cable& cable = config_.cables[lanes_[lane].cable];
    append(text, CabledLaneHead{.cable = cable.number,
                                .lane = lanes_[lane].number,
                                .node = cable.node,
                                .bytes = static_cast<std::uint32_t>(addresses[lane].size())});
    text += addresses[lane];
  }
  return text;
}

Result<std::vector<CabledLinks::Entry>> CabledLinks::read(const std::string& address) {
  CabledHead head;
  if (address.size() < sizeof(head)) return fail("too short");
  std::memcpy(&head, address.data(), sizeof(head));
  if (head.magic != CabledHead().magic) return fail("of a node without cables");
  std::vector<Entry> entries;
  std::size_t at = sizeof(head);
  for (std::uint32_t i = 0; i < head.lanes; ++i) {
    CabledLaneHead lane;
    if (address.size() - at < sizeof(lane)) return fail("malformed");
    std::memcpy(&lane, address.data() + at, sizeof(lane));
    at += sizeof(lane);
    if (address.size() - at < lane.bytes) return fail("malformed");
    entries.push_back({lane.cable, lane.lane, lane.node, address.substr(at, lane.bytes)});
    at += lane.bytes;
  }
  return entries;
}

// libfabric opens the connections later, while it polls, and drops its messages without an error if
// no descriptor is free then.
Result<void> CabledLinks::set_addresses(std::vector<std::string> addresses) {
  if (auto free = check_free_files(lanes_.size() + 1, "node " + std::to_string(config_.node));
      !free) {
    return free;
  }
  if (auto begun = inner_->begin(); !begun) return begun;
  known_nodes_ = static_cast<std::uint32_t>(addresses.size());
  for (std::uint32_t link = 0; link < nodes_.size(); ++link) {
    if (nodes_[link] >= addresses.size()) {
      errors_[link] = "node " + std::to_string(config_.node) + ": no address of node " +
                      std::to_string(nodes_[link]);
    } else if (auto started = start(link, addresses[nodes_[link]]); !started) {
      errors_[link] = started.error().message;
    }
  }
  inner_->set_lane_texts(ways_);
  return {};
}

Result<void> CabledLinks::start(std::uint32_t link, const std::string& address) {
  const std::string whose = "address of node " + std::to_string(nodes_[link]) + ": ";
  auto entries = read(address);
  if (!entries) return fail(whose + entries.error().message);
  std::erase_if(*entries, [this](const Entry& each) { return each.node != config_.node; });
  const std::size_t first = first_lane_[link];
  const std::size_t count = first_lane_[link + 1] - first;
  std::vector<std::string> there;
  for (std::size_t i = 0; i < std::max(count, entries->size()); ++i) {
    const CableLane* const own = i < count ? &lanes_[first + i] : nullptr;
    const std::uint32_t cable = own == nullptr ? 0 : config_.cables[own->cable].number;
    const bool is_paired = own != nullptr && i < entries->size() && (*entries)[i].cable == cable &&
                           (*entries)[i].lane == own->number;
    if (!is_paired) {
      const std::string lane =
          "lane " + std::to_string(own == nullptr ? (*entries)[i].lane : own->number) +
          " of cable " + std::to_string(own == nullptr ? (*entries)[i].cable : cable);
      return fail(whose + lane +
                  " has one end only; expected the same cables, with as many lanes, at both ends");
    }
    ways_[first + i] = way_of(static_cast<std::uint32_t>(first + i),
                              without_port(address_text((*entries)[i].address)));
    there.push_back(std::move((*entries)[i].address));
  }
  return inner_->start_link(link, there);
}

Result<std::uint32_t> CabledLinks::add_link(std::uint32_t node) {
  const std::string own = "node " + std::to_string(config_.node);
  if (known_nodes_ == 0 || node >= known_nodes_ || node == config_.node) {
    return fail(own + ": no address of node " + std::to_string(node));
  }
  const auto found = std::find(nodes_.begin(), nodes_.end(), node);
  if (found == nodes_.end()) {
    return fail(own + ": no cable leads to node " + std::to_string(node));
  }
  const auto link = static_cast<std::uint32_t>(found - nodes_.begin());
  if (!errors_[link].empty()) return fail(errors_[link]);
  return link;
}

Result<bool> CabledLinks::connect_links(std::span<const std::uint32_t> links) {
  for (const std::uint32_t link : links) {
    if (link < nodes_.size() && known_nodes_ != 0) continue;
    return fail("node " + std::to_string(config_.node) + ": cannot connect link " +
                std::to_string(link));
  }
  return inner_->check_links(links);
}

std::string CabledLinks::way_of_link(std::uint32_t link) const {
  std::string text;
  for (std::size_t lane = link < nodes_.size() ? first_lane_[link] : lanes_.size();
       lane < lanes_.size() && lane < first_lane_[link + 1]; ++lane) {
    if (lanes_[lane].number == 0) text += (text.empty() ? "" : " and ") + ways_[lane];
  }
  return text;
}

std::size_t CabledLinks::cable_traffic(std::span<CableTraffic> to) const {
  const std::size_t count = std::min(to.size(), config_.cables.size());
  for (std::size_t cable = 0; cable < count; ++cable) {
    to[cable] = {.number = config_.cables[cable].number};
  }
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    const std::uint32_t cable = lanes_[lane].cable;
    if (cable >= count) continue;
    to[cable].sent_bytes += inner_->lane(lane).sent.get();
    to[cable].received_bytes += inner_->lane(lane).received.get();
  }
  return config_.cables.size();
}

}  // namespace espalier::ofi
