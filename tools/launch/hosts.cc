#include "tools/launch/hosts.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "base/counted.h"
#include "base/host_name.h"
#include "base/network/address.h"
#include "base/one_line.h"
#include "base/parse_number.h"
#include "base/read_file.h"
#include "base/try.h"

namespace espalier::launch {
namespace {

constexpr std::uint32_t kMaxSlots = 65536;
constexpr std::uint32_t kMaxPort = 65535;
constexpr const char* kForm = "expected 'HOST', 'HOST:N' or 'HOST slots=N'";

// A number from 1 to `max` in decimal digits.
std::optional<std::uint32_t> number_of(const std::string& text, std::uint32_t max) {
  std::uint32_t number = 0;
  if (!parse_number(text, number) || number == 0 || number > max) return std::nullopt;
  return number;
}

bool is_ipv6(const std::string& text) {
  in6_addr address{};
  const std::string number = text.substr(0, text.find('%'));
  return inet_pton(AF_INET6, number.c_str(), &address) == 1;
}

// HOST or HOST:N. An IPv6 address has N only behind brackets, as in [::1]:4.
Result<Host> read_host(const std::string& word) {
  Host host{.name = word};
  std::string number;
  bool has_number = false;
  const std::size_t user = word.find('@') == std::string::npos ? 0 : word.find('@') + 1;
  const std::string rest = word.substr(user);
  if (rest.starts_with('[')) {
    const std::size_t end = rest.find(']');
    const std::string inside = rest.substr(1, end == std::string::npos ? end : end - 1);
    const std::string after = end == std::string::npos ? "" : rest.substr(end + 1);
    if (end == std::string::npos || !is_ipv6(inside) || (!after.empty() && after[0] != ':')) {
      return fail("malformed host '" + one_line(word) + "'; expected '[IPV6]' or '[IPV6]:N'");
    }
    host.name = word.substr(0, user) + inside;
    has_number = !after.empty();
    if (has_number) number = after.substr(1);
  } else if (std::count(rest.begin(), rest.end(), ':') == 1) {
    has_number = true;
    number = rest.substr(rest.find(':') + 1);
    host.name = word.substr(0, user + rest.find(':'));
  } else if (rest.find(':') != std::string::npos && !is_ipv6(rest)) {
    return fail("malformed host '" + one_line(word) + "'; " + kForm);
  }
  if (!is_host_name(host.name)) {
    return fail("malformed host name '" + one_line(host.name) +
                "'; expected letters, digits and .-_:@%, or 'HOST:N'");
  }
  ESPALIER_TRY(network::check_host(host.name.substr(user)));
  if (!has_number) return host;
  const auto slots = number_of(number, kMaxSlots);
  if (!slots) {
    return fail("malformed host '" + one_line(word) + "'; expected 'HOST:N', with N from 1 to " +
                std::to_string(kMaxSlots));
  }
  host.slots = *slots;
  return host;
}

// Adds the slots of a host that was named before; hosts are one if name and port are.
// Error: two ports.
Result<void> add(std::vector<Host>& hosts, const Host& host) {
  for (Host& before : hosts) {
    if (before.name != host.name) continue;
    if (before.port != host.port) {
      return fail("host '" + host.name + "' has two ports; expected one");
    }
    before.slots = std::min(before.slots + host.slots, kMaxSlots);
    return {};
  }
  hosts.push_back(host);
  return {};
}

// The words of a line, with "key = value" made one word.
std::vector<std::string> words_of(std::string line) {
  for (std::size_t at = line.find('='); at != std::string::npos; at = line.find('=', at + 1)) {
    const auto is_blank = [&line](std::size_t i) { return line[i] == ' ' || line[i] == '\t'; };
    while (at + 1 < line.size() && is_blank(at + 1)) line.erase(at + 1, 1);
    for (; at > 0 && is_blank(at - 1); --at) line.erase(at - 1, 1);
  }
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

struct LineOptions {
  std::optional<std::uint32_t> slots, max_slots, port;
  std::string user;
};

std::string repeated(const std::string& word, const std::string& form) {
  return "'" + one_line(word) + "' after another value; expected '" + form + "' once per line";
}

Result<void> read_option(const std::string& word, LineOptions& options) {
  const std::size_t equals = word.find('=');
  const std::string key = word.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
  if (key == "user" || key == "username") {
    if (value.empty() || value.find('@') != std::string::npos || !is_host_name(value + "@x")) {
      return fail("malformed '" + one_line(word) + "'; expected 'user=NAME'");
    }
    if (!options.user.empty()) return fail(repeated(word, "user=NAME"));
    options.user = value;
    return {};
  }
  const bool is_slots = key == "slots";
  const bool is_max = key == "max_slots" || key == "max-slots";
  if (!is_slots && !is_max && key != "port") {
    return fail("'" + one_line(word) +
                "' is not understood; expected slots=N, max_slots=N, port=N or user=NAME after the "
                "host");
  }
  const std::uint32_t max = key == "port" ? kMaxPort : kMaxSlots;
  auto& number = is_slots ? options.slots : is_max ? options.max_slots : options.port;
  if (number) return fail(repeated(word, (is_max ? "max_slots" : key) + "=N"));
  number = number_of(value, max);
  if (number) return {};
  return fail("malformed '" + one_line(word) + "'; expected '" + key + "=N', with N from 1 to " +
              std::to_string(max));
}

Result<Host> read_line(const std::vector<std::string>& words) {
  auto host = read_host(words.front());
  if (!host) return host;
  LineOptions options;
  for (std::size_t i = 1; i < words.size(); ++i) {
    ESPALIER_TRY(read_option(words[i], options));
  }
  if (options.slots && host->slots != 0) {
    return fail("both ':N' and 'slots=N' for host '" + host->name + "'; expected one of them");
  }
  if (!options.user.empty() && host->name.find('@') != std::string::npos) {
    return fail("both 'USER@' and 'user=' for host '" + host->name + "'; expected one of them");
  }
  host->slots = std::max(host->slots, options.slots.value_or(host->slots == 0 ? 1 : host->slots));
  if (options.max_slots && *options.max_slots < host->slots) {
    return fail("max_slots=" + std::to_string(*options.max_slots) + " is below the " +
                counted(host->slots, "slot") + " of host '" + host->name +
                "'; expected at least as many");
  }
  host->port = options.port.value_or(0);
  if (!options.user.empty()) host->name = options.user + "@" + host->name;
  return host;
}

}  // namespace

Result<std::vector<Host>> read_hosts(const std::vector<std::string>& words,
                                     const std::string& option) {
  std::vector<Host> read;
  bool has_slots = false;
  for (const std::string& word : words) {
    auto host = read_host(word);
    if (!host) return fail(option + ": " + host.error().message);
    has_slots = has_slots || host->slots != 0;
    for (const Host& before : read) has_slots = has_slots || before.name == host->name;
    read.push_back(*std::move(host));
  }
  std::vector<Host> hosts;
  for (Host& host : read) {
    if (has_slots && host.slots == 0) host.slots = 1;
    ESPALIER_TRY(add(hosts, host));
  }
  return hosts;
}

Result<std::vector<Host>> read_hostfile(const std::string& path) {
  auto text = read_file(path, FileKind::kHostList);
  if (!text) return fail("--hostfile: " + text.error().message);
  if (text->starts_with("\xef\xbb\xbf")) text->erase(0, 3);  // a byte order mark
  std::istringstream file(*text);
  std::vector<Host> hosts;
  std::string line;
  for (std::uint32_t number = 1; std::getline(file, line); ++number) {
    const std::vector<std::string> words = words_of(line.substr(0, line.find('#')));
    if (words.empty()) continue;
    auto host = read_line(words);
    auto added = host ? add(hosts, *host) : Result<void>(fail(host.error()));
    if (!added)
      return fail(path + ", line " + std::to_string(number) + ": " + added.error().message);
  }
  if (hosts.empty()) return fail(path + ": no host; expected lines 'HOST slots=N'");
  return hosts;
}

Result<std::vector<Host>> place(std::vector<Host> hosts, std::uint32_t ranks) {
  std::uint64_t slots = 0;
  bool limited = false;
  for (const Host& host : hosts) {
    slots += host.slots;
    limited = limited || host.slots > 0;
  }
  if (limited && slots < ranks) {
    return fail("the hosts have " + counted(slots, "slot") + "; expected at least " +
                std::to_string(ranks) + ", one per rank: 'HOST:N' or 'HOST slots=N' gives more");
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

}  // namespace espalier::launch
