#include "base/network/filter.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/one_line.h"
#include "base/parse_number.h"
#include "base/process/variables.h"
#include "base/try.h"

namespace espalier::network {
namespace {

constexpr std::size_t kMaxNameBytes = 15;  // of an interface

std::string names_of(const std::vector<Interface>& interfaces) {
  std::string text;
  for (const Interface& each : interfaces) text += (text.empty() ? "" : ", ") + each.name;
  return text.empty() ? "none" : text;
}

bool is_loopback(const Interface& interface) { return interface.kind == InterfaceKind::kLoopback; }

}  // namespace

bool InterfaceFilter::Entry::names(const Interface& interface,
                                   const InterfaceAddress& address) const {
  if (!is_subnet) return interface.name == text;
  return address.address.is_v6 == first.is_v6 && address.address.prefix(bits) == first.prefix(bits);
}

Result<InterfaceFilter::Entry> InterfaceFilter::parse_entry(const std::string& text,
                                                            const std::string& source) {
  Entry entry;
  entry.excludes = !text.empty() && text.front() == '!';
  entry.text = text.substr(entry.excludes ? 1 : 0);
  const std::size_t slash = entry.text.find('/');
  const auto first = parse_ip(entry.text.substr(0, slash));
  entry.is_subnet = slash != std::string::npos || first;
  if (entry.is_subnet && first) {
    entry.first = *first;
    entry.bits = 8 * first->ip_bytes();
    if (slash == std::string::npos ||
        (parse_number(std::string_view(entry.text).substr(slash + 1), entry.bits) &&
         entry.bits <= 8 * first->ip_bytes())) {
      return entry;
    }
    return fail(source + ": '" + one_line(text) +
                "' is a subnet with a wrong length; expected 0 to " +
                std::to_string(8 * first->ip_bytes()) + " behind the '/'");
  }
  const bool is_name = !entry.is_subnet && !entry.text.empty() &&
                       entry.text.size() <= kMaxNameBytes &&
                       entry.text.find_first_of(" \t!:") == std::string::npos;
  if (is_name) return entry;
  return fail(source + ": '" + one_line(text) +
              "' is not an interface; expected a name or a subnet, such as eth0,10.0.0.0/8,"
              "!docker0");
}

Result<InterfaceFilter> InterfaceFilter::parse(const std::string& text, const std::string& source) {
  InterfaceFilter filter;
  filter.source_ = source;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    ESPALIER_TRY_TO(auto entry, parse_entry(text.substr(begin, end - begin), source));
    filter.entries_.push_back(std::move(entry));
    begin = end + 1;
  }
  return filter;
}

bool InterfaceFilter::is_named(const Interface& interface, const InterfaceAddress& address) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return !entry.excludes && entry.names(interface, address);
  });
}

bool InterfaceFilter::takes(const Interface& interface, const InterfaceAddress& address) const {
  bool names_any = false;
  for (const Entry& entry : entries_) {
    const bool matches = entry.names(interface, address);
    if (entry.excludes && matches) return false;
    names_any |= !entry.excludes;
  }
  return !names_any || is_loopback(interface) || is_named(interface, address);
}

Result<std::vector<Interface>> InterfaceFilter::apply(
    const std::vector<Interface>& interfaces) const {
  for (const Entry& entry : entries_) {
    if (entry.excludes) continue;
    const bool matches =
        std::any_of(interfaces.begin(), interfaces.end(), [&entry](const Interface& interface) {
          return std::any_of(
              interface.addresses.begin(), interface.addresses.end(),
              [&](const InterfaceAddress& address) { return entry.names(interface, address); });
        });
    if (matches) continue;
    return fail(source_ + ": '" + one_line(entry.text) +
                "' names no interface of this host that is up and running; expected one of " +
                names_of(interfaces));
  }
  std::vector<Interface> used;
  bool names_any = false, leaves_any = false;
  for (const Entry& entry : entries_) names_any |= !entry.excludes;
  for (const Interface& interface : interfaces) {
    for (const InterfaceAddress& address : interface.addresses) {
      leaves_any |= is_named(interface, address) && takes(interface, address);
    }
  }
  if (names_any && !leaves_any) {
    return fail(source_ + " excludes each address that it names; expected one that is left");
  }
  for (const Interface& interface : interfaces) {
    Interface kept = interface;
    std::erase_if(kept.addresses,
                  [&](const InterfaceAddress& address) { return !takes(interface, address); });
    if (!kept.addresses.empty()) used.push_back(std::move(kept));
  }
  if (!used.empty() || interfaces.empty()) return used;
  return fail(source_ + " leaves no interface of this host; it has " + names_of(interfaces));
}

Result<InterfaceFilter> interface_filter(const std::string& given, const std::string& option) {
  if (!given.empty()) return InterfaceFilter::parse(given, option + " '" + one_line(given) + "'");
  ESPALIER_TRY_TO(const auto text, read_text(Variable::kInterface));
  if (!text) return InterfaceFilter();
  return InterfaceFilter::parse(*text, "ESPALIER_INTERFACE='" + one_line(*text) + "'");
}

Result<PortRange> port_range(const std::string& given, const std::string& option) {
  std::string text = given, source = option + " '" + one_line(given) + "'";
  if (given.empty()) {
    ESPALIER_TRY_TO(const auto set, read_text(Variable::kPorts));
    if (!set) return PortRange();
    text = *set;
    source = "ESPALIER_PORTS='" + one_line(text) + "'";
  }
  PortRange range{.source = source};
  const std::size_t dash = std::min(text.find('-'), text.size());
  const std::string_view all = text;
  const bool is_right = dash < text.size() && parse_number(all.substr(0, dash), range.first) &&
                        parse_number(all.substr(dash + 1), range.last) && range.first > 0 &&
                        range.first <= range.last;
  if (is_right) return range;
  return fail(source + "; expected " + row_of(Variable::kPorts).expected);
}

Result<std::uint16_t> take_port(const PortRange& range, const std::string& action,
                                const std::function<int(std::uint16_t)>& try_port) {
  int error = 0;
  for (std::uint32_t port = range.first; port <= range.last; ++port) {
    error = try_port(static_cast<std::uint16_t>(port));
    if (error == 0) return static_cast<std::uint16_t>(port);
    if (range.is_any() || (error != EADDRINUSE && error != EACCES)) {
      return fail(action + ": " + std::strerror(error));
    }
  }
  return fail(action + ": no port of " + range.source + " is free; expected a wider range");
}

}  // namespace espalier::network
