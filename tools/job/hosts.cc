#include "tools/job/hosts.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

namespace espalier::job {
namespace {

constexpr std::uint32_t kMaxSlots = 65536;

// The number in "slots=N", or 0 if the word is malformed.
std::uint32_t slots_of(const std::string& word) {
  const std::string key = "slots=";
  if (!word.starts_with(key) || word.size() == key.size() || word.size() > key.size() + 5) return 0;
  std::uint32_t number = 0;
  for (const char digit : word.substr(key.size())) {
    if (std::isdigit(static_cast<unsigned char>(digit)) == 0) return 0;
    number = number * 10 + static_cast<std::uint32_t>(digit - '0');
  }
  return number <= kMaxSlots ? number : 0;
}

// Names go to the remote shell's command: a leading '-' would be an option there.
bool is_name(const std::string& name) {
  return !name.empty() && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), [](unsigned char letter) {
           return std::isalnum(letter) != 0 || std::strchr(".-_:@%", letter) != nullptr;
         });
}

}  // namespace

Result<std::vector<Host>> read_hostfile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return fail("cannot read the hostfile '" + path + "': " + std::strerror(errno));
  std::vector<Host> hosts;
  std::string line;
  for (std::uint32_t number = 1; std::getline(file, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string name;
    std::string slots;
    std::string more;
    if (!(words >> name)) continue;
    words >> slots >> more;
    const std::uint32_t count = slots.empty() ? 1 : slots_of(slots);
    if (is_name(name) && count > 0 && more.empty()) {
      hosts.push_back({name, count, 0, 0});
      continue;
    }
    return fail(path + ", line " + std::to_string(number) +
                ": expected 'HOST slots=N', with N from 1 to " + std::to_string(kMaxSlots));
  }
  if (hosts.empty()) return fail(path + ": no host; expected lines 'HOST slots=N'");
  return hosts;
}

Result<std::vector<Host>> place(std::vector<Host> hosts, std::uint32_t ranks) {
  std::set<std::string> names;
  std::uint64_t slots = 0;
  bool limited = false;
  for (const Host& host : hosts) {
    if (!host.name.empty() && !is_name(host.name)) {
      return fail("malformed host name '" + host.name + "'; expected letters, digits and .-_:@%");
    }
    if (!names.insert(host.name).second) {
      return fail("host '" + host.name + "' is named twice; expected each host once");
    }
    slots += host.slots;
    limited = limited || host.slots > 0;
  }
  if (limited && slots < ranks) {
    return fail("the hosts have " + std::to_string(slots) + " slots; expected at least " +
                std::to_string(ranks) + ", one per rank");
  }
  std::uint32_t next = 0;
  const auto count = static_cast<std::uint32_t>(hosts.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    Host& host = hosts[i];
    host.first = next;
    host.count =
        limited ? std::min(host.slots, ranks - next) : ranks / count + (i < ranks % count ? 1 : 0);
    next += host.count;
  }
  std::erase_if(hosts, [](const Host& host) { return host.count == 0; });
  return hosts;
}

}  // namespace espalier::job
