#include "hal/fabric/ofi/provider.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <signal.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/counted.h"
#include "base/process/variables.h"
#include "hal/fabric/ofi/libfabric_call.h"
#include "hal/fabric/provider_list.h"
#include "hal/mem/host/access.h"

namespace espalier::ofi {
namespace {

constexpr std::uint64_t kMinInjectBytes = 64;  // Every entry of wire.h fits.
constexpr std::size_t kImmediateBytes = 8;

struct InfoDeleter {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, InfoDeleter>;

// Whether the handler is code of libfabric or of a library behind it.
bool is_of_fabric(const struct sigaction& action) {
  if ((action.sa_flags & SA_SIGINFO) == 0 &&
      (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)) {
    return false;
  }
  void* code = nullptr;
  std::memcpy(&code, &action.sa_sigaction, sizeof code);
  Dl_info about = {};
  if (dladdr(code, &about) == 0 || about.dli_fname == nullptr) return false;
  const std::string_view path = about.dli_fname;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("libinfinipath.") || name.starts_with("libpsm") ||
         name.starts_with("libfabric.");
}

// The actions of signals in the program that uses libfabric. Libraries behind libfabric (PSM's)
// replace them when they are loaded: at SIGINT, SIGILL, SIGABRT, SIGBUS, SIGSEGV and SIGTERM they
// print a backtrace and call exit(1). Here the program gets its own actions back.
//
// Remembers the actions of all signals while libfabric may load libraries.
class SignalActions {
 public:
  SignalActions() {
    for (int signal = 1; signal < NSIG; ++signal) {
      struct sigaction& action = actions_[static_cast<std::size_t>(signal)];
      if (sigaction(signal, nullptr, &action) != 0 || is_of_fabric(action)) action = {};
    }
  }
  // Gives each signal that such a library handles now the remembered action; the default action if
  // that was such a handler, too. All other handlers stay.
  void restore() const {
    for (int signal = 1; signal < NSIG; ++signal) {
      struct sigaction now = {};
      if (sigaction(signal, nullptr, &now) != 0 || !is_of_fabric(now)) continue;
      (void)sigaction(signal, &actions_[static_cast<std::size_t>(signal)], nullptr);
    }
  }

 private:
  std::array<struct sigaction, NSIG> actions_ = {};
};

// If a program is linked with libfabric, these libraries are loaded before main(), and before this.
// What they replaced is unknown then.
__attribute__((constructor)) void restore_defaults() { SignalActions().restore(); }

// FI_PROVIDER=tcp hides libfabric 1.17's "net", which serves "tcp" here (candidates()). libfabric
// reads the variable once, when it is first called.
void show_net() {
  static std::once_flag once;
  std::call_once(once, [] {
    const char* const filter = raw_value(Variable::kFiProvider);
    if (filter != nullptr) setenv("FI_PROVIDER", filter_with_net(filter).c_str(), 1);
  });
}

Info get_info(const std::string& address, std::uint64_t flags, const fi_info* hints) {
  show_net();
  const char* node = address.empty() ? nullptr : address.c_str();
  fi_info* all = nullptr;
  const SignalActions actions;  // the first call may load providers
  const int code = fi_getinfo(FI_VERSION(1, 17), node, nullptr,
                              flags | (node != nullptr ? FI_SOURCE : 0), hints, &all);
  actions.restore();
  return Info(code == 0 ? all : nullptr);
}

Info hints_for(const std::string& name) {
  Info hints(fi_allocinfo());
  if (hints != nullptr) hints->fabric_attr->prov_name = strdup(name.c_str());  // freed with it
  return hints;
}

// Finds exactly this provider: a layered provider ("tcp;ofi_rxm") does not match the name of a part
// of it.
Info find_exactly(const std::string& name, const std::string& address, int mr_mode) {
  const Info hints = hints_for(name);
  if (hints == nullptr) return nullptr;
  hints->caps = FI_MSG | FI_RMA;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->cq_data_size = kImmediateBytes;
  hints->domain_attr->mr_mode = mr_mode;
  hints->tx_attr->msg_order = FI_ORDER_SAS | FI_ORDER_WAW;
  const Info all = get_info(address, 0, hints.get());
  for (const fi_info* info = all.get(); info != nullptr; info = info->next) {
    if (name == info->fabric_attr->prov_name && info->tx_attr->inject_size >= kMinInjectBytes) {
      return Info(fi_dupinfo(info));
    }
  }
  return nullptr;
}

bool is_ip(std::uint32_t format) {
  return format == FI_SOCKADDR || format == FI_SOCKADDR_IN || format == FI_SOCKADDR_IN6;
}

// Without an address of its own, an endpoint binds the loopback interface where the provider has
// IP addresses and offers that interface.
Info find_bound(const std::string& name, const std::string& address, int mr_mode) {
  if (!address.empty()) return find_exactly(name, address, mr_mode);
  Info local = find_exactly(name, "127.0.0.1", mr_mode);
  if (local != nullptr && is_ip(local->addr_format)) return local;
  return find_exactly(name, "", mr_mode);
}

// Names of libfabric's to try for the name that the user gave.
std::vector<std::string> candidates(const std::string& name) {
  std::vector<std::string> names = {name};
  // "tcp" means the tcp provider with reliable datagram endpoints. libfabric 1.17 ships it under
  // the name "net"; from 1.18 on it is "tcp".
  if (name == "tcp") names.emplace_back("net");
  // A provider of connected endpoints only, such as verbs, has datagram ones through this layer.
  if (name.find(';') == std::string::npos) names.push_back(name + ";ofi_rxm");
  std::erase_if(names, find_refusal);
  return names;
}

bool is_compiled_in(const std::string& name) {
  const Info all = get_info("", FI_PROV_ATTR_ONLY, nullptr);
  for (const fi_info* info = all.get(); info != nullptr; info = info->next) {
    if (name == info->fabric_attr->prov_name) return true;
  }
  return false;
}

// Returns what this entry of libfabric's list lacks; null if only the combination is missing.
const char* missing(const fi_info& info) {
  if (info.ep_attr->type != FI_EP_RDM) return "it has no reliable datagram endpoints (FI_EP_RDM)";
  if ((info.caps & FI_RMA) == 0) return "it has no remote writes (FI_RMA)";
  if (info.domain_attr->cq_data_size < kImmediateBytes) {
    return "its writes carry fewer than 8 bytes of immediate data (cq_data_size)";
  }
  if (info.tx_attr->inject_size < kMinInjectBytes) {
    return "it injects fewer than 64 bytes (inject_size)";
  }
  return nullptr;
}

// Returns the providers that have a device here, and lack nothing.
std::string provider_names() {
  std::set<std::string> whole, names = {kMemProvider};
  const Info all = get_info("", 0, nullptr);
  for (const fi_info* info = all.get(); info != nullptr; info = info->next) {
    if (missing(*info) == nullptr) whole.insert(info->fabric_attr->prov_name);
  }
  for (const fi_info* info = all.get(); info != nullptr; info = info->next) {
    const std::string name = info->fabric_attr->prov_name;
    for (const std::string& each : candidates(name)) {
      if (whole.contains(each)) names.insert(name);
    }
  }
  std::erase_if(names, find_refusal);
  std::string text;
  for (const std::string& each : names) text += (text.empty() ? "" : ", ") + each;
  return text;
}

// Finds out why no candidate serves.
std::string reason(const std::string& name, const std::string& address) {
  std::array<std::uint8_t, sizeof(in6_addr)> bytes;
  const std::string number = address.substr(0, address.find('%'));
  if (!address.empty() && inet_pton(AF_INET, number.c_str(), bytes.data()) != 1 &&
      inet_pton(AF_INET6, number.c_str(), bytes.data()) != 1) {
    return "this is not an IP address";
  }
  const Info hints = hints_for(name);
  if (hints == nullptr) return "out of memory";
  hints->mode = ~std::uint64_t{0};
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_RAW | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
                                FI_MR_PROV_KEY | FI_MR_MMU_NOTIFY | FI_MR_RMA_EVENT |
                                FI_MR_ENDPOINT | FI_MR_HMEM;
  const Info all = get_info("", 0, hints.get());
  const char* first = nullptr;
  bool is_listed = false;
  bool has_all = false;
  for (const fi_info* info = all.get(); info != nullptr; info = info->next) {
    if (name != info->fabric_attr->prov_name) continue;
    is_listed = true;
    const char* const lacks = missing(*info);
    has_all = has_all || lacks == nullptr;
    if (first == nullptr || info->ep_attr->type == FI_EP_RDM) first = lacks;
  }
  if (is_listed && !has_all) return first;
  if (is_listed && !address.empty()) return "it cannot bind this address";
  if (is_listed) {
    return "it does not keep writes in order (FI_ORDER_SAS and FI_ORDER_WAW), or needs a "
           "registration mode (mr_mode) or a mode that this library does not have";
  }
  const char* const filter = raw_value(Variable::kFiProvider);
  if (hides_provider(filter, name)) {
    return std::string("FI_PROVIDER=") + filter +
           " hides it from libfabric; expected another, or "
           "FI_PROVIDER unset";
  }
  if (is_compiled_in(name)) return "libfabric has it, but it finds no device here";
  // libfabric 1.17 lists no verbs without a device.
  return "libfabric has no such provider, or no device for it; expected one of: " +
         provider_names() + (hides_provider(filter, "tcp") ? "; without FI_PROVIDER also tcp" : "");
}

// Returns an entry of this provider: the first with reliable datagram endpoints, otherwise the
// first.
const fi_info* find_entry(const Info& all, const std::string& name) {
  const fi_info* found = nullptr;
  for (const fi_info* info = all.get(); info != nullptr; info = info->next) {
    if (name != info->fabric_attr->prov_name) continue;
    if (info->ep_attr->type == FI_EP_RDM) return info;
    if (found == nullptr) found = info;
  }
  return found;
}

std::string version_text(const fi_info& info) {
  const std::uint32_t version = info.fabric_attr->prov_version;
  return std::to_string(FI_MAJOR(version)) + "." + std::to_string(FI_MINOR(version));
}

std::string offers_text(const fi_info& info) {
  std::string text = info.ep_attr->type == FI_EP_RDM     ? "reliable datagrams"
                     : info.ep_attr->type == FI_EP_DGRAM ? "unreliable datagrams only"
                                                         : "connections only";
  if ((info.caps & FI_RMA) != 0) {
    text += ", remote writes with " + counted(info.domain_attr->cq_data_size, "byte") +
            " of immediate data";
  }
  text += ", " + counted(info.tx_attr->inject_size, "byte") + " injected";
  if ((info.domain_attr->mr_mode & FI_MR_PROV_KEY) != 0) text += ", keys of its own choice";
  if ((info.domain_attr->mr_mode & FI_MR_LOCAL) != 0) text += ", local memory registered, too";
  return text;
}

// libfabric's layers, hooks, and its own collectives for other providers ("off_coll" since 2.0).
bool is_layer_or_hook(const std::string& name) {
  return name.starts_with("ofi_") || name.starts_with("off_");
}

// Describes one provider; `entry` is null if it finds no device.
ProviderSummary summarize(const std::string& name, const fi_info* entry) {
  ProviderSummary summary;
  summary.name = name;
  const Result<fi_info*> served = find_provider(name, "");
  if (served) {
    const Info info(*served);
    summary.served_by = info->fabric_attr->prov_name;
    summary.offers = offers_text(*info);
    return summary;
  }
  if (entry != nullptr) summary.offers = offers_text(*entry);
  if (const ProviderRefusal* refused = find_refusal(name)) {
    summary.refusal = refused->reason;
    summary.remedy = std::string("use ") + refused->expected;
  } else if (hides_provider(raw_value(Variable::kFiProvider), name)) {
    summary.refusal = "FI_PROVIDER hides it from libfabric";
    summary.remedy = "unset FI_PROVIDER";
  } else {
    summary.refusal = served.error().message;
    summary.remedy = entry != nullptr ? "use a provider that serves"
                                      : "if this host has such a device, load its driver and check "
                                        "who may open it";
  }
  return summary;
}

}  // namespace

ProviderList list_providers() {
  const LibfabricCall mark;
  ProviderList list;
  char number[] = "";  // fi_tostr() wants data even for its own version
  const char* const version = fi_tostr(number, FI_TYPE_VERSION);
  list.libfabric = version != nullptr ? version : "unknown";
  std::map<std::string, std::string> versions;
  const Info compiled_in = get_info("", FI_PROV_ATTR_ONLY, nullptr);
  const Info found = get_info("", 0, nullptr);
  for (const Info* all : {&compiled_in, &found}) {
    for (const fi_info* info = all->get(); info != nullptr; info = info->next) {
      const std::string name = info->fabric_attr->prov_name;
      if (!is_layer_or_hook(name)) versions[name] = version_text(*info);
    }
  }
  for (const auto& [name, provider_version] : versions) {
    ProviderSummary summary = summarize(name, find_entry(found, name));
    summary.version = provider_version;
    list.providers.push_back(std::move(summary));
  }
  const std::string refusal = mem::sharing_refusal();
  list.providers.push_back({kMemProvider, "built-in", refusal.empty() ? kMemProvider : "", refusal,
                            refusal.empty() ? "" : "use tcp, or see what 'host' says below",
                            "processes of one user on one host, without libfabric"});
  return list;
}

Result<fi_info*> find_provider(const std::string& name, const std::string& local_address) {
  if (const ProviderRefusal* refused = find_refusal(name)) return fail(refusal_text(*refused));
  const LibfabricCall mark;
  // Prefer offsets and keys that we choose; otherwise take the modes that the provider requires.
  for (const int mr_mode : {0, FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_LOCAL}) {
    for (const std::string& candidate : candidates(name)) {
      if (Info info = find_bound(candidate, local_address, mr_mode)) return info.release();
    }
  }
  return fail(reason(name, local_address));
}

}  // namespace espalier::ofi
