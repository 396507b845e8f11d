#pragma once
// Which interfaces a job uses, and which ports: what users set. Host only.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/network/interfaces.h"

namespace espalier::network {

// Names of interfaces and subnets, "eth0,10.0.0.0/8,!docker0". An address is used if its interface
// or subnet is named, or none is, unless an entry with ! names it. The loopback interface serves
// processes of one host, whatever is named, unless an entry with ! names it.
class InterfaceFilter {
 public:
  InterfaceFilter() = default;  // takes all
  // Error, one line that begins with `source`: an empty or malformed entry.
  [[nodiscard]] static Result<InterfaceFilter> parse(const std::string& text,
                                                     const std::string& source);
  // Returns the interfaces with their addresses that are used. Error, one line that begins with the
  // source: an entry without ! that names nothing here; the entries with ! leave nothing, or
  // nothing of what the others name.
  [[nodiscard]] Result<std::vector<Interface>> apply(
      const std::vector<Interface>& interfaces) const;
  [[nodiscard]] bool is_empty() const { return entries_.empty(); }

 private:
  struct Entry {
    std::string text;  // without !
    bool excludes = false;
    bool is_subnet = false;
    Address first = {};  // of a subnet
    unsigned bits = 0;
    [[nodiscard]] bool names(const Interface& interface, const InterfaceAddress& address) const;
  };
  [[nodiscard]] static Result<Entry> parse_entry(const std::string& text,
                                                 const std::string& source);
  // Whether an entry without ! names it.
  [[nodiscard]] bool is_named(const Interface& interface, const InterfaceAddress& address) const;
  [[nodiscard]] bool takes(const Interface& interface, const InterfaceAddress& address) const;

  std::vector<Entry> entries_;
  std::string source_;
};

// Returns the filter of the option `given`; if that is empty, of ESPALIER_INTERFACE; otherwise one
// that takes all. Errors: as parse(), with the option's name.
[[nodiscard]] Result<InterfaceFilter> interface_filter(const std::string& given,
                                                       const std::string& option = "interfaces");

// Ports to listen at.
struct PortRange {
  std::uint16_t first = 0, last = 0;  // 0: any that the system chooses
  std::string source = {};            // "ESPALIER_PORTS=40000-40100"
  [[nodiscard]] bool is_any() const { return first == 0; }
};
// Returns the range of the option `given`, "40000-40100"; if that is empty, of ESPALIER_PORTS;
// otherwise any. Error: malformed, in one line with the option's name.
[[nodiscard]] Result<PortRange> port_range(const std::string& given,
                                           const std::string& option = "ports");
// Calls `try_port` with the ports of the range, or once with 0, until it returns 0. EADDRINUSE and
// EACCES: the next port is tried. Returns the port. Errors: the range is used up; another number
// of errno, whose text is added to `action`, "cannot listen at 10.0.0.1".
[[nodiscard]] Result<std::uint16_t> take_port(const PortRange& range, const std::string& action,
                                              const std::function<int(std::uint16_t)>& try_port);

}  // namespace espalier::network
