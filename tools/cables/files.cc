#include "tools/cables/files.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "base/counted.h"
#include "base/one_line.h"
#include "base/parse_number.h"
#include "base/try.h"
#include "tools/common/json.h"

namespace espalier::cables {
namespace {

using tools::Json;

constexpr std::uint32_t kMaxMbits = 100'000'000;

struct NamedEnd {
  std::string host = {}, interface = {};
};

// Collects cables between names.
class GraphBuilder {
 public:
  // Errors, behind `where`: a name that is none, too many hosts or interfaces.
  [[nodiscard]] Result<void> add(const std::string& where, const NamedEnd& a, const NamedEnd& b,
                                 std::uint32_t mbits) {
    for (const std::string& name : {a.host, a.interface, b.host, b.interface}) {
      if (name.empty() || !is_name(name)) {
        return fail(where + ": '" + one_line(name) + "' is not a name; expected 1 to " +
                    std::to_string(kMaxNameBytes) + " printable characters without spaces");
      }
    }
    const End one = place(a, mbits), other = place(b, mbits);
    if (graph_.hosts.size() > kMaxHosts || graph_.hosts[one.host].ports.size() > kMaxPorts ||
        graph_.hosts[other.host].ports.size() > kMaxPorts) {
      return fail(where + ": too many; expected at most " + counted(kMaxHosts, "host") + " of " +
                  counted(kMaxPorts, "interface"));
    }
    adjacencies_.push_back({one, other, 0});
    return {};
  }
  [[nodiscard]] Result<Graph> finish(const std::string& source) {
    if (adjacencies_.empty()) return fail(source + " has no cable; expected one or more");
    const std::vector<std::uint32_t> places = order_hosts(graph_);
    for (Adjacency& each : adjacencies_) {
      each.a.host = places[each.a.host];
      each.b.host = places[each.b.host];
    }
    add_adjacencies(graph_, adjacencies_);
    return graph_;
  }

 private:
  End place(const NamedEnd& end, std::uint32_t mbits) {
    const auto next = static_cast<std::uint32_t>(graph_.hosts.size());
    const auto [host, is_new] = hosts_.emplace(end.host, next);
    if (is_new) graph_.hosts.push_back({.name = end.host});
    std::vector<Port>& ports = graph_.hosts[host->second].ports;
    const auto known = std::find_if(ports.begin(), ports.end(), [&end](const Port& port) {
      return port.name == end.interface;
    });
    const auto port = static_cast<std::uint32_t>(known - ports.begin());
    if (known == ports.end()) {
      ports.push_back({.number = port, .name = end.interface, .rate_mbits = mbits});
    }
    return {host->second, port};
  }

  Graph graph_;
  std::map<std::string, std::uint32_t> hosts_;
  std::vector<Adjacency> adjacencies_;
};

// The member's text; empty: it has none.
std::string text_in(const Json& json, const char* name) {
  const Json* const member = json.find(name);
  const std::string* const text = member == nullptr ? nullptr : member->text();
  return text == nullptr ? "" : *text;
}

// The neighbour on an interface: its system's name, and the name of its port.
NamedEnd lldp_neighbour(const Json& entry) {
  NamedEnd end;
  const Json* const chassis = entry.find("chassis");
  const Json* const port = entry.find("port");
  if (chassis != nullptr && chassis->members() != nullptr && !chassis->members()->empty()) {
    const auto& [name, about] = chassis->members()->front();
    // A system without a name is not inside of one: its members begin with its id.
    if (about.find("id") != nullptr) end.host = name;
  }
  if (port == nullptr) return end;
  const Json* const id = port->find("id");
  const bool has_name = id != nullptr && text_in(*id, "type") == "ifname";
  end.interface = has_name ? text_in(*id, "value") : text_in(*port, "descr");
  return end;
}

using LldpHosts = std::vector<std::pair<std::string, Source>>;

// Returns the only host given whose name is this one with or without a domain; otherwise the name.
std::string given_host(const std::string& name, const LldpHosts& hosts) {
  const std::string* found = nullptr;
  for (const auto& [host, source] : hosts) {
    if (host == name) return name;
    if (!host.starts_with(name + ".") && !name.starts_with(host + ".")) continue;
    if (found != nullptr) return name;
    found = &host;
  }
  return found == nullptr ? name : *found;
}

Result<void> add_lldp(GraphBuilder& builder, const LldpHosts& hosts, const std::string& host,
                      const Source& source) {
  const std::string form =
      "'" + one_line(source.name) + "' is not what 'lldpcli -f json show neighbors' prints";
  const auto json = Json::parse(source.text);
  const Json* const all = json ? json->find("lldp") : nullptr;
  if (all == nullptr || !all->is_object()) return fail(form + "; expected an object 'lldp'");
  const Json* const interfaces = all->find("interface");
  if (interfaces == nullptr) return {};
  // One interface is an object, several are an array of objects.
  std::vector<Json> entries = {*interfaces};
  if (interfaces->items() != nullptr) entries = *interfaces->items();
  for (const Json& entry : entries) {
    if (entry.members() == nullptr) return fail(form + "; expected objects in 'interface'");
    for (const auto& [name, about] : *entry.members()) {
      const NamedEnd neighbour = lldp_neighbour(about);
      if (neighbour.host.empty() || neighbour.interface.empty()) continue;  // it says no names
      // Switches have names such as "Port 3".
      const NamedEnd there{given_host(name_from(neighbour.host), hosts),
                           name_from(neighbour.interface)};
      ESPALIER_TRY(builder.add(form, {host, name}, there, 0));
    }
  }
  return {};
}

// The devices that `from` has on cables to host `to`: null, a name, or several.
Result<std::vector<std::string>> mlx_devices(const std::string& form, const Json& from,
                                             std::size_t to, std::size_t hosts) {
  const Json* const rdma = from.find("rdma");
  if (rdma == nullptr || rdma->items() == nullptr || rdma->items()->size() != hosts) {
    return fail(form + "; expected an array 'rdma' with one entry per host in each host");
  }
  const Json& entry = (*rdma->items())[to];
  if (entry.is_null()) return std::vector<std::string>{};
  if (entry.text() != nullptr) return std::vector<std::string>{*entry.text()};
  std::vector<std::string> names;
  for (const Json& each : entry.items() == nullptr ? std::vector<Json>{Json()} : *entry.items()) {
    if (each.text() == nullptr) {
      return fail(form + "; expected null, a name, or an array of names in 'rdma'");
    }
    names.push_back(*each.text());
  }
  return names;
}

}  // namespace

Result<Graph> read_lines(const Source& source) {
  GraphBuilder builder;
  std::istringstream lines(source.text);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string where = one_line(source.name) + ":" + std::to_string(++number);
    std::istringstream text(line.substr(0, line.find('#')));
    std::vector<std::string> words;
    for (std::string word; text >> word;) words.push_back(word);
    if (words.empty()) continue;
    std::uint32_t mbits = 0;
    const bool is_right =
        words.size() == 4 ||
        (words.size() == 5 && parse_number(words[4], mbits) && mbits > 0 && mbits <= kMaxMbits);
    if (!is_right) {
      return fail(where +
                  ": expected HOST INTERFACE HOST INTERFACE, and perhaps a rate in Mbit/s "
                  "up to " +
                  std::to_string(kMaxMbits));
    }
    ESPALIER_TRY(builder.add(where, {words[0], words[1]}, {words[2], words[3]}, mbits));
  }
  return builder.finish("'" + one_line(source.name) + "'");
}

Result<Graph> read_lldp(const LldpHosts& hosts) {
  GraphBuilder builder;
  for (const auto& [host, source] : hosts) ESPALIER_TRY(add_lldp(builder, hosts, host, source));
  return builder.finish("LLDP");
}

Result<Graph> read_mlx(const Source& source) {
  const std::string form = "'" + one_line(source.name) + "' is not a host file of MLX";
  const auto json = Json::parse(source.text);
  const Json* const hosts = !json ? nullptr : json->is_object() ? json->find("hosts") : &*json;
  if (hosts == nullptr || hosts->items() == nullptr || hosts->items()->size() > kMaxHosts) {
    return fail(form + "; expected an array of up to " + std::to_string(kMaxHosts) +
                " hosts, or an object with 'hosts'");
  }
  const std::vector<Json>& all = *hosts->items();
  GraphBuilder builder;
  for (std::size_t a = 0; a < all.size(); ++a) {
    for (std::size_t b = a; b < all.size(); ++b) {
      const std::string one = text_in(all[a], "ssh"), other = text_in(all[b], "ssh");
      ESPALIER_TRY_TO(const auto there, mlx_devices(form, all[a], b, all.size()));
      ESPALIER_TRY_TO(const auto back, mlx_devices(form, all[b], a, all.size()));
      if (there.size() != back.size()) {
        return fail(form + ": " + one_line(one) + " has " + counted(there.size(), "device") +
                    " to " + one_line(other) + ", which has " + std::to_string(back.size()) +
                    " back; expected as many");
      }
      for (std::size_t i = 0; a != b && i < there.size(); ++i) {
        ESPALIER_TRY(builder.add(form, {one, there[i]}, {other, back[i]}, 0));
      }
    }
  }
  return builder.finish("'" + one_line(source.name) + "'");
}

}  // namespace espalier::cables
