// A rank whose endpoint has cables, for links.py: it runs allreduces around a ring of all ranks.
//
// cabled-links RANK RANKS PROVIDER HOST BYTES ROUNDS DEADLINE_MS [NUMBER,NODE,ADDRESS]...
// Prints its address in hexadecimal and reads those of all ranks, a line each. ROUNDS = 0: until a
// round fails. Prints `cable NUMBER sent BYTES received BYTES` and `right ROUNDS`; or
// `dead DETECTOR PEER NANOSECONDS STATUS` (CLOCK_MONOTONIC, when the cause was known) and
// `ended NANOSECONDS`.

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "espalier/hal/ofi/ofi_endpoint.h"
#include "hal/fabric/testing/collective_rank.h"

namespace espalier {
namespace {

std::string to_hex(const std::string& bytes) {
  std::string text;
  for (const char each : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(each));
    text += digits;
  }
  return text;
}

std::string from_hex(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

int refuse(const std::string& message) {
  std::printf("refused: %s\n", message.c_str());
  return 1;
}

ofi::AddedConfig::Cable parse_cable(const std::string& text) {
  const std::size_t first = text.find(','), second = text.find(',', first + 1);
  return {.number = static_cast<std::uint32_t>(std::stoul(text.substr(0, first))),
          .node = static_cast<std::uint32_t>(std::stoul(text.substr(first + 1, second))),
          .local_address = text.substr(second + 1)};
}

// Runs one round. Prints what failed.
bool run_round(ofi::CollectiveRank& rank, Endpoint& endpoint, std::uint64_t count,
               std::uint32_t round) {
  Status status = rank.start(count, round);
  bool is_dead = false;
  while (status == Status::kOk || status == Status::kBusy) {
    status = rank.poll();
    if (status != Status::kBusy) break;
    const Cause& cause = rank.machine().cause();
    if (!is_dead && cause.status != Status::kOk) {
      is_dead = true;
      std::printf("dead %" PRIu32 " %" PRIu32 " %" PRIu64 " %s\n", cause.detector, cause.peer,
                  monotonic_ns(), status_name(cause.status));
      std::fflush(stdout);
    }
    const std::uint64_t next = rank.machine().next_deadline();
    if (next > endpoint.now()) endpoint.wait(next);
  }
  if (status != Status::kOk) std::printf("ended %" PRIu64 "\n", monotonic_ns());
  return status == Status::kOk;
}

int run(char** words, int count) {
  ofi::AddedConfig config;
  config.node = static_cast<std::uint32_t>(std::atoi(words[1]));
  const auto ranks = static_cast<std::uint32_t>(std::atoi(words[2]));
  config.provider = words[3];
  config.host = words[4];
  config.max_links = ranks - 1;
  config.has_secret = true;
  for (int i = 8; i < count; ++i) config.cables.push_back(parse_cable(words[i]));
  const auto opened = ofi::AddedLinks::open(config);
  if (!opened) return refuse(opened.error().message);
  ofi::AddedLinks& links = **opened;
  std::printf("%s\n", to_hex(links.address()).c_str());
  std::fflush(stdout);
  std::vector<std::string> addresses;
  for (std::string line; addresses.size() < ranks && std::getline(std::cin, line);) {
    addresses.push_back(from_hex(line));
  }
  if (auto set = links.set_addresses(std::move(addresses)); !set)
    return refuse(set.error().message);
  const std::uint64_t elements = std::strtoull(words[5], nullptr, 10) / 4;
  ofi::CollectiveRank rank(ranks, elements);
  std::vector<std::uint32_t> needed;
  for (const std::uint32_t step : {1U, ranks - 1}) {
    const auto link = links.add_link((config.node + step) % ranks);
    if (!link) return refuse(link.error().message);
    needed.push_back(*link);
  }
  while (true) {
    const auto connected = links.connect_links(needed);
    if (!connected) return refuse(connected.error().message);
    if (*connected) break;
    links.endpoint().wait(links.endpoint().now() + 10'000'000);
  }
  Endpoint& endpoint = links.endpoint();
  const std::uint64_t deadline_ns = std::strtoull(words[7], nullptr, 10) * 1'000'000;
  if (rank.init(endpoint, deadline_ns) != Status::kOk ||
      !rank.plan(Collective::kAllreduce, "ring")) {
    return refuse("no plan");
  }
  std::printf("begins\n");
  std::fflush(stdout);
  const auto rounds = static_cast<std::uint32_t>(std::atoi(words[6]));
  std::uint32_t right = 0;
  for (std::uint32_t round = 0; rounds == 0 || round < rounds; ++round) {
    if (!run_round(rank, endpoint, elements, round)) return 0;
    right += rank.incorrect() == 0 ? 1 : 0;
  }
  std::vector<ofi::CableTraffic> traffic(config.cables.size());
  if (links.cable_traffic(traffic) != traffic.size()) return refuse("no traffic");
  for (const ofi::CableTraffic& each : traffic) {
    std::printf("cable %" PRIu32 " sent %" PRIu64 " received %" PRIu64 "\n", each.number,
                each.sent_bytes, each.received_bytes);
  }
  std::printf("right %" PRIu32 "\n", right);
  std::fflush(stdout);
  // Others may still need this end.
  for (std::string line; std::getline(std::cin, line);) {
  }
  return 0;
}

}  // namespace
}  // namespace espalier

int main(int count, char** words) { return count < 8 ? 2 : espalier::run(words, count); }
