// Which of a job's hosts is this one.

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <cstring>

#include "base/network/lookup.h"
#include "tools/launch/hosts.h"

namespace espalier::launch {
namespace {

// For the resolver. Without an answer the host is another one, which ssh finds or not.
constexpr std::chrono::milliseconds kNameTime(2'000);

bool are_equal(const std::string& one, const std::string& other) {
  return strcasecmp(one.c_str(), other.c_str()) == 0;
}

std::string short_name(const std::string& name) { return name.substr(0, name.find('.')); }

// The bytes of a numeric address; empty: it is none.
std::string address_bytes(const std::string& text) {
  char bytes[sizeof(in6_addr)];
  const std::string number = text.substr(0, text.find('%'));
  if (inet_pton(AF_INET, number.c_str(), bytes) == 1) return {bytes, sizeof(in_addr)};
  if (inet_pton(AF_INET6, number.c_str(), bytes) == 1) return {bytes, sizeof(in6_addr)};
  return {};
}

bool has_address(const std::string& bytes) {
  if (bytes.size() == sizeof(in_addr) && bytes[0] == 127) return true;  // all of 127.0.0.0/8
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return false;
  bool found = false;
  for (const ifaddrs* each = all; each != nullptr && !found; each = each->ifa_next) {
    if (each->ifa_addr == nullptr) continue;
    if (each->ifa_addr->sa_family == AF_INET) {
      const auto* v4 = reinterpret_cast<const sockaddr_in*>(each->ifa_addr);
      found = bytes == std::string(reinterpret_cast<const char*>(&v4->sin_addr), sizeof(in_addr));
    } else if (each->ifa_addr->sa_family == AF_INET6) {
      const auto* v6 = reinterpret_cast<const sockaddr_in6*>(each->ifa_addr);
      found = bytes == std::string(reinterpret_cast<const char*>(&v6->sin6_addr), sizeof(in6_addr));
    }
  }
  freeifaddrs(all);
  return found;
}

// The name that the resolver has for `name` in full; empty: none.
std::string full_name(const std::string& name) {
  network::Lookup lookup(name);
  return lookup.wait(std::chrono::steady_clock::now() + kNameTime) ? lookup.full_name() : "";
}

bool is_this_host(const std::string& name) {
  if (are_equal(name, "localhost")) return true;
  if (const std::string bytes = address_bytes(name); !bytes.empty()) return has_address(bytes);
  char own[HOST_NAME_MAX + 1] = "";
  if (gethostname(own, sizeof own - 1) != 0) return false;
  if (are_equal(name, own)) return true;
  if (!are_equal(short_name(name), short_name(own))) return false;
  // One of the two is in full. The resolver is asked only here: it may take seconds.
  return name == short_name(name) || are_equal(name, full_name(own));
}

}  // namespace

void mark_this_host(std::vector<Host>& hosts) {
  for (Host& host : hosts) {
    host.is_here = host.name.empty() || (host.port == 0 && is_this_host(host.name));
  }
}

}  // namespace espalier::launch
