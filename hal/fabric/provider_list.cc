#include "hal/fabric/provider_list.h"

#include <strings.h>

#include <algorithm>

namespace espalier::ofi {
namespace {

constexpr std::string_view kMemoryAnd = "mem+";
constexpr std::string_view kLibfabricRow = "libfabric", kProviderRow = "provider";

std::vector<std::string> split(std::string_view text, char between) {
  std::vector<std::string> parts(1);
  for (const char each : text) {
    if (each == between) {
      parts.emplace_back();
    } else {
      parts.back() += each;
    }
  }
  return parts;
}

bool is_same(const std::string& a, const std::string& b) {
  return strcasecmp(a.c_str(), b.c_str()) == 0;  // as libfabric compares them
}

// "tcp" of "tcp;ofi_rxm": FI_PROVIDER filters by it, and leaves the layers.
std::string core_of(const std::string& name) { return name.substr(0, name.find(';')); }

struct ProviderFilter {
  bool excludes = false;
  std::vector<std::string> names;

  // "tcp" is libfabric 1.17's "net" (provider.cc).
  [[nodiscard]] bool has(const std::string& name) const {
    return std::any_of(names.begin(), names.end(), [&](const std::string& each) {
      return is_same(core_of(each), core_of(name)) ||
             (!excludes && is_same(name, "tcp") && is_same(core_of(each), "net"));
    });
  }
  [[nodiscard]] bool shows(const std::string& name) const {
    return names.empty() || has(name) != excludes;
  }
};

ProviderFilter read_filter(std::string_view text) {
  ProviderFilter filter;
  filter.excludes = text.starts_with('^');
  if (filter.excludes) text.remove_prefix(1);
  filter.names = split(text, ',');
  std::erase(filter.names, "");
  return filter;
}

// Returns tcp if the filter names none, or tcp among several; otherwise the first that it names.
std::string provider_of(const ProviderFilter& filter) {
  const bool names_any = !filter.names.empty() && !filter.excludes;
  return names_any && (filter.names.size() == 1 || !filter.has("tcp")) ? filter.names.front()
                                                                       : "tcp";
}

}  // namespace

bool binds_address(std::string_view provider) { return provider != kMemProvider; }

bool authenticates_data(std::string_view provider) { return provider != kMemProvider; }

std::string provider_list_text(const ProviderList& list) {
  std::string text = std::string(kLibfabricRow) + "\t" + list.libfabric + "\n";
  for (const ProviderSummary& each : list.providers) {
    text += kProviderRow;
    for (const std::string* field :
         {&each.name, &each.version, &each.served_by, &each.refusal, &each.remedy, &each.offers}) {
      text += "\t" + *field;
    }
    text += "\n";
  }
  return text;
}

Result<ProviderList> parse_provider_list(const std::string& text) {
  ProviderList list;
  for (const std::string& line : split(text, '\n')) {
    if (line.empty()) continue;
    std::vector<std::string> fields = split(line, '\t');
    if (fields.front() == kLibfabricRow && fields.size() == 2) {
      list.libfabric = fields[1];
    } else if (fields.front() == kProviderRow && fields.size() == 7) {
      list.providers.push_back({fields[1], fields[2], fields[3], fields[4], fields[5], fields[6]});
    } else {
      return fail("'" + line + "' is not a line of a list of providers");
    }
  }
  if (list.libfabric.empty()) return fail("a list of providers without libfabric's version");
  return list;
}

std::string with_memory(const std::string& name) {
  return binds_address(name) ? std::string(kMemoryAnd) + name : name;
}

std::string fabric_provider(const std::string& name) {
  return name.starts_with(kMemoryAnd) ? name.substr(kMemoryAnd.size()) : name;
}

bool has_fixed_links(const std::string& name) { return fabric_provider(name) == name; }

bool hides_provider(const char* filter, const std::string& name) {
  return filter != nullptr && !read_filter(filter).shows(name);
}

std::string filter_with_net(const std::string& filter) {
  const ProviderFilter read = read_filter(filter);
  const auto is_named = [&](const char* name) {
    return std::any_of(read.names.begin(), read.names.end(),
                       [&](const std::string& each) { return is_same(each, name); });
  };
  return !read.excludes && is_named("tcp") && !is_named("net") ? filter + ",net" : filter;
}

Result<std::string> choose_provider(const std::string& given, const char* filter) {
  const std::string text = filter == nullptr ? "" : filter;
  const ProviderFilter read = read_filter(text);
  const bool is_of_filter = given.empty() && !read.names.empty() && !read.excludes;
  const std::string name = given.empty() ? provider_of(read) : given;
  const std::string fabric = fabric_provider(name);
  if (const auto serves = check_not_refused(name); !serves) {
    return fail((is_of_filter ? "FI_PROVIDER=" + text + ": " : "") + serves.error().message);
  }
  if (is_of_filter || name == kMemProvider || read.shows(fabric)) return name;
  return fail("FI_PROVIDER=" + text + " hides the provider \"" + fabric + "\"" +
              (given.empty() ? ", the default," : "") + " from libfabric; expected " +
              (read.excludes ? "another provider" : "provider \"" + read.names.front() + "\"") +
              ", or FI_PROVIDER unset");
}

}  // namespace espalier::ofi
