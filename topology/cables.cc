#include "topology/cables.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/counted.h"

namespace espalier::topology {
namespace {

using Tree = google::protobuf::TextFormat::ParseInfoTree;

constexpr std::size_t kMaxHostLetters = 255;
constexpr std::size_t kMaxInterfaceLetters = 15;  // IFNAMSIZ - 1
constexpr std::uint32_t kMinMtu = 1280;           // of IPv6
constexpr std::uint32_t kMaxMtu = 65536;

// ',' and ':' separate interfaces in the options of a node.
bool is_interface_name(const std::string& name) {
  const auto allowed = [](char c) {
    return c > ' ' && c < 0x7f && std::string_view("/:,\"'").find(c) == std::string_view::npos;
  };
  return !name.empty() && name.size() <= kMaxInterfaceLetters &&
         std::all_of(name.begin(), name.end(), allowed);
}

// Keeps the first error; values read after it are meaningless.
class CableReader {
 public:
  CableReader(const TopologyFile& file, const Tree& tree,
              const std::vector<CustomContent::NodeEntry>& nodes)
      : file_(file), tree_(tree), nodes_(nodes) {}

  [[nodiscard]] Result<std::vector<Cable>, ParseError> read() {
    std::vector<Cable> cables;
    if (file_.cable_size() != 0) read_hosts();
    for (int i = 0; i < file_.cable_size() && !error_; ++i) cables.push_back(read_cable(i));
    if (error_) return fail(*error_);
    return cables;
  }

 private:
  [[nodiscard]] SourcePosition source_of(const char* field, int index) const {
    const auto* const descriptor = TopologyFile::descriptor()->FindFieldByName(field);
    const auto location = tree_.GetLocation(descriptor, index);
    return {std::max(location.line, 0), std::max(location.column, 0)};
  }
  void refuse(SourcePosition source, const std::string& what) {
    if (!error_) error_ = ParseError{source, what};
  }
  void read_hosts();
  [[nodiscard]] Cable read_cable(int index);
  [[nodiscard]] Cable::End read_end(const TopologyFile::Cable::End& end, SourcePosition source);
  void check_mtu(std::uint32_t mtu, SourcePosition source);

  const TopologyFile& file_;
  const Tree& tree_;
  const std::vector<CustomContent::NodeEntry>& nodes_;
  std::map<std::string, std::uint32_t> hosts_;  // the node of each
  std::set<std::pair<std::uint32_t, std::string>> taken_;
  std::optional<ParseError> error_;
};

void CableReader::read_hosts() {
  for (int i = 0; i < file_.node_size(); ++i) {
    const std::uint32_t node = file_.node(i).node();
    const std::string& host = nodes_[node].host;
    const auto allowed = [](char c) { return c > ' ' && c < 0x7f && c != '"' && c != '\\'; };
    if (host.empty()) continue;
    if (host.size() > kMaxHostLetters || !std::all_of(host.begin(), host.end(), allowed)) {
      return refuse(source_of("node", i), "node " + std::to_string(node) +
                                              "'s host is not the name of a host; expected host: "
                                              "\"...\", or a node's name without spaces");
    }
    const auto [first, is_new] = hosts_.insert({host, node});
    if (is_new) continue;
    return refuse(source_of("node", i), "nodes " + std::to_string(first->second) + " and " +
                                            std::to_string(node) + " have the host " + host +
                                            "; expected a host of its own for each node");
  }
}

Cable::End CableReader::read_end(const TopologyFile::Cable::End& end, SourcePosition source) {
  const auto host = hosts_.find(end.host());
  if (host == hosts_.end()) {
    const std::string what = end.host().empty() ? "an end has no host"
                                                : "host '" + end.host() + "' is not a node's host";
    refuse(source, "cable: " + what + "; expected one that a node { ... host: \"...\" } names");
    return {};
  }
  const std::uint32_t node = host->second;
  const std::string& interface = end.interface();
  if (!is_interface_name(interface)) {
    refuse(source, "cable: '" + interface + "' at host " + end.host() +
                       " is not the name of an interface; expected 1 to 15 printable characters "
                       "without '/', ':', ',' and quotes");
  }
  if (!taken_.insert({node, interface}).second) {
    refuse(source, "cable: interface " + interface + " of host " + end.host() +
                       " is the end of two cables; expected one cable per interface");
  }
  return {node, interface};
}

void CableReader::check_mtu(std::uint32_t mtu, SourcePosition source) {
  if (mtu >= kMinMtu && mtu <= kMaxMtu) return;
  refuse(source, "cable: mtu is " + std::to_string(mtu) + "; expected " + std::to_string(kMinMtu) +
                     " to " + std::to_string(kMaxMtu) + " bytes");
}

Cable CableReader::read_cable(int index) {
  const TopologyFile::Cable& entry = file_.cable(index);
  const SourcePosition source = source_of("cable", index);
  Cable cable;
  if (entry.end_size() != 2) {
    refuse(source, "cable: it has " + counted(static_cast<std::uint64_t>(entry.end_size()), "end") +
                       "; expected two, each end { host: ... interface: ... }");
    return cable;
  }
  for (int i = 0; i < 2; ++i)
    cable.ends[static_cast<std::size_t>(i)] = read_end(entry.end(i), source);
  if (!error_ && cable.ends[0].node == cable.ends[1].node) {
    refuse(source, "cable: both ends are at host " + entry.end(0).host() +
                       "; expected the interfaces of two hosts");
  }
  if (entry.has_rate_mbits() && entry.rate_mbits() == 0) {
    refuse(source, "cable: rate_mbits is 0; expected its Mbit/s per direction, or no rate");
  }
  if (entry.has_mtu()) check_mtu(entry.mtu(), source);
  cable.rate_mbits = entry.rate_mbits();
  cable.mtu = entry.mtu();
  return cable;
}

}  // namespace

Result<std::vector<Cable>, ParseError> read_cables(
    const TopologyFile& file, const Tree& tree,
    const std::vector<CustomContent::NodeEntry>& nodes) {
  return CableReader(file, tree, nodes).read();
}

}  // namespace espalier::topology
