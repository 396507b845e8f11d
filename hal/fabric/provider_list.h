#pragma once
// The providers of this host, and the choice of one by FI_PROVIDER: libfabric's, and mem, which is
// Espalier's own (hal/mem). Only list_providers() needs libfabric; a program that starts nodes gets
// the list as text from `espalier-node --providers`. Host only.

#include <string>
#include <string_view>
#include <vector>

#include "espalier/base/result.h"

namespace espalier::ofi {

// Espalier's own provider of links through shared memory, between the processes of one host
// (hal/mem). It needs no libfabric.
inline constexpr const char* kMemProvider = "mem";

// Whether an endpoint over this provider binds an IP address.
[[nodiscard]] bool binds_address(std::string_view provider);
// Whether an endpoint over this provider can have Config.authenticate_data.
[[nodiscard]] bool authenticates_data(std::string_view provider);

// One provider: whether an endpoint can be opened by its name, and with what.
struct ProviderSummary {
  std::string name;
  // "117.0": libfabric's own providers have libfabric's version times 100. mem: "built-in".
  std::string version;
  // The provider that an endpoint opened by this name gets ("net" for "tcp" in libfabric 1.17).
  // Empty: it cannot serve, for the reason `refusal`, and `remedy` says what to do.
  std::string served_by;
  std::string refusal, remedy;
  std::string offers;  // of served_by, otherwise of the entry that comes nearest; empty: no device
};

// The providers of one libfabric, by name; then mem.
struct ProviderList {
  std::string libfabric;  // "1.17.0"
  std::vector<ProviderSummary> providers;
};

// Asks libfabric. Lists providers with a device on this host, and those that libfabric has without
// one. Layers and hooks (ofi_*) are not listed by themselves. mem is always there.
[[nodiscard]] ProviderList list_providers();

// Returns the list as lines of fields between tabs.
[[nodiscard]] std::string provider_list_text(const ProviderList& list);
// Reads such text back. Error: text that provider_list_text() does not give.
[[nodiscard]] Result<ProviderList> parse_provider_list(const std::string& text);

// Returns the provider to use: `given` (empty: the user named none), otherwise the one that
// `filter` names, otherwise tcp. `filter` is the value of FI_PROVIDER, or null: one name, several
// between commas (tcp if it is among them, otherwise the first), or ^ and names that it excludes.
// Errors: a provider of libfabric's that is known not to serve, such as shm; `filter` hides the
// provider from libfabric. It cannot hide mem.
[[nodiscard]] Result<std::string> choose_provider(const std::string& given, const char* filter);

// Returns the provider that also uses memory between processes of one host: "mem+tcp" for "tcp". A
// provider of one host stays as it is.
[[nodiscard]] std::string with_memory(const std::string& name);
// Returns the provider between hosts: "tcp" of "mem+tcp", otherwise the name itself.
[[nodiscard]] std::string fabric_provider(const std::string& name);

// Whether nodes whose links are fixed, as those of `espalier run` are, can use the provider.
[[nodiscard]] bool has_fixed_links(const std::string& name);

// Whether `filter`, as above, hides this provider from libfabric.
[[nodiscard]] bool hides_provider(const char* filter, const std::string& name);

// Returns `filter`, as above, with libfabric 1.17's "net" beside "tcp": it serves "tcp" there.
[[nodiscard]] std::string filter_with_net(const std::string& filter);

// A provider that offers everything and cannot serve nevertheless.
struct ProviderRefusal {
  const char* name;      // as libfabric has it
  const char* reason;    // why the provider cannot serve
  const char* expected;  // what to use instead
};

// Returns the refusal of the provider with this name of libfabric's; null if it may serve.
[[nodiscard]] const ProviderRefusal* find_refusal(const std::string& name);
// Returns the refusal in one line, without the name.
[[nodiscard]] std::string refusal_text(const ProviderRefusal& refused);
// Error: the provider with this name, or NAME of "mem+NAME", has a refusal; in one line.
[[nodiscard]] Result<void> check_not_refused(const std::string& name);

}  // namespace espalier::ofi
