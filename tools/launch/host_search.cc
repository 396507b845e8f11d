#include "tools/launch/host_search.h"

#include <algorithm>

#include "base/clock.h"
#include "base/counted.h"
#include "base/host_name.h"

namespace espalier::launch {
namespace {

using State = Connection::State;

// Neighbours are reached in batches, so that few hosts are reached by two ways at once. One that
// does not answer holds up the next batch for this time only.
constexpr std::uint64_t kBatchTime = 3'000'000'000;  // ns

bool has(const std::vector<Neighbour>& all, const Neighbour& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

}  // namespace

Result<void> HostSearch::begin() {
  Connection& here = connections_.emplace_back();
  here.host.is_here = true;
  progress_[0].since_ns = monotonic_ns();
  return here.start(how_);
}

bool HostSearch::is_host(const Connection& each) const {
  const Phase phase = progress_.at(each.number).phase;
  return phase == Phase::kAsked || phase == Phase::kKnown;
}

std::size_t HostSearch::hosts() const {
  return static_cast<std::size_t>(
      std::count_if(connections_.begin(), connections_.end(),
                    [this](const Connection& each) { return is_host(each); }));
}

std::string HostSearch::expected_at(const std::string& host, const std::string& interface) const {
  for (const HostCable& cable : options_.cables.expected) {
    for (std::size_t i = 0; i < 2; ++i) {
      const HostCable::End& end = cable.ends[i];
      if (end.host == host && end.interface == interface) return cable.ends[1 - i].host;
    }
  }
  return {};
}

void HostSearch::drop(Connection& connection, const std::string& reason) {
  if (!reason.empty()) reasons_.push_back(connection.where() + ": " + reason);
  if (connection.state != State::kOver) connection.close_messages();
  connection.state = State::kOver;
  progress_[connection.number].phase = Phase::kDropped;
}

Result<Host> HostSearch::placed(const Connection& connection) const {
  const std::string& name = connection.announced;
  for (const Connection& each : connections_) {
    if (!is_host(each)) continue;
    if (each.identity == connection.identity) return fail(std::string());
    if (has_file() && each.host.name == name) {
      return fail("another host has the name " + name + ", too; expected one of each name");
    }
  }
  Host host{.name = name, .is_here = !connection.way};
  if (!has_file()) return host;
  for (const Host& each : options_.hosts) {
    if (each.name != name) continue;
    host.first = each.first;
    host.count = each.count;
    return host;
  }
  return fail("it is host " + name + ", which " + options_.cables.file + " does not name");
}

// A cable in a wrong port keeps no job from its start: the ranks find the cables by themselves.
void HostSearch::remark_port(const Connection& connection) {
  const Way& way = *connection.way;
  for (const Connection& from : connections_) {
    if (from.number != way.from) continue;
    const std::string expected = expected_at(from.host.name, way.to.interface);
    if (expected == connection.announced) return;
    ports_.push_back(way.to.interface + " of host " + from.host.name + " leads to host " +
                     connection.announced + "; expected host " + expected + ", as " +
                     options_.cables.file + " says");
  }
}

void HostSearch::take_hello(Connection& connection) {
  auto host = placed(connection);
  if (has_file() && connection.way) remark_port(connection);
  if (!host) return drop(connection, host.error().message);
  connection.host = *std::move(host);
  progress_[connection.number].phase = Phase::kAsked;
  connection.send({"neighbours", options_.cables.interfaces});
}

void HostSearch::take(Connection& connection, std::uint64_t now_ns) {
  const auto [phase, since_ns] = progress_.at(connection.number);
  if (phase == Phase::kDropped) return;
  if (!connection.refusal.empty()) return drop(connection, connection.refusal);
  if (connection.state == State::kOver) {
    const std::string words = connection.last_error_line();
    return drop(connection, words.empty() ? "the remote shell ended" : words);
  }
  if (phase == Phase::kAsked && connection.surroundings) {
    progress_[connection.number].phase = Phase::kKnown;
  } else if (phase == Phase::kCalled && connection.state == State::kHello) {
    take_hello(connection);
  } else if (phase != Phase::kKnown && now_ns > since_ns + options_.deadline_ms * kNsPerMs) {
    drop(connection, "no answer within " + std::to_string(options_.deadline_ms / 1000) + " s");
  }
}

// Whether a host of the job has this address, and has found the other end of the same cable.
bool HostSearch::leads_to_host(const Connection& from, const Neighbour& to) const {
  for (const Connection& each : connections_) {
    if (!is_host(each) || !each.surroundings) continue;
    for (const Neighbour& own : each.surroundings->own) {
      if (own.address != to.address) continue;
      for (const Neighbour& back : from.surroundings->own) {
        const bool is_end = back.interface == to.interface;
        if (is_end && has(each.surroundings->found, {own.interface, back.address})) return true;
      }
    }
  }
  return false;
}

void HostSearch::add_candidates(const Connection& host, std::vector<Candidate>& all) const {
  const auto& found = host.surroundings->found;
  for (const Neighbour& to : found) {
    const bool is_cable = std::count_if(found.begin(), found.end(), [&to](const Neighbour& other) {
                            return other.interface == to.interface;
                          }) == 1;
    const Candidate candidate{host.number, to.interface, to.address};
    if (!is_cable || tried_.contains(candidate) || leads_to_host(host, to)) continue;
    const std::string expected = expected_at(host.host.name, to.interface);
    if (has_file() && expected.empty()) continue;  // no cable of the job
    const bool is_there = std::any_of(
        connections_.begin(), connections_.end(), [this, &expected](const Connection& each) {
          return has_file() && is_host(each) && each.host.name == expected;
        });
    if (!is_there) all.push_back(candidate);
  }
}

void HostSearch::reach(const Candidate& candidate, std::uint64_t now_ns) {
  const auto& [number, interface, address] = candidate;
  tried_.insert(candidate);
  std::string from;
  for (const Connection& each : connections_) {
    if (each.number == number) from = each.host.name;
  }
  const auto next = static_cast<std::uint32_t>(progress_.size());
  Connection& connection = connections_.emplace_back();
  connection.number = next;
  connection.channel = next;
  connection.came_from = address + " at " + interface + " of host " + from;
  progress_[next].since_ns = now_ns;
  std::string shell = how_.remote_shell;
  const std::string name = expected_at(from, interface);
  if (options_.cables.names_keys && is_host_name(name)) shell += " -o HostKeyAlias=" + name;
  connection.start_over({number, {interface, address}}, how_.espalier, shell, relay_);
}

bool HostSearch::advance(std::uint64_t now_ns) {
  for (Connection& connection : connections_) take(connection, now_ns);
  if (hosts() >= options_.hosts.size()) return false;
  const bool is_pending =
      std::any_of(connections_.begin(), connections_.end(), [this](const Connection& each) {
        const Phase phase = progress_.at(each.number).phase;
        return phase == Phase::kCalled || phase == Phase::kAsked;
      });
  if (is_pending && now_ns < batch_at_ns_ + kBatchTime) return true;
  batch_at_ns_ = now_ns;
  std::vector<Candidate> next;
  for (const Connection& each : connections_) {
    if (is_host(each) && each.surroundings) add_candidates(each, next);
  }
  for (const Candidate& candidate : next) reach(candidate, now_ns);
  return is_pending || !next.empty();
}

std::string HostSearch::silent() const {
  std::string all;
  for (const Connection& each : connections_) {
    if (progress_.at(each.number).phase != Phase::kCalled) continue;
    all += (all.empty() ? "" : ", ") + each.where();
  }
  return all;
}

std::vector<std::string> HostSearch::remarks() const {
  std::vector<std::string> all = ports_;
  if (hosts() < options_.hosts.size()) {
    all.insert(all.end(), reasons_.begin(), reasons_.end());
  }
  return all;
}

Error HostSearch::missing() const {
  std::string names;
  for (const Host& wanted : options_.hosts) {
    const bool is_there =
        std::any_of(connections_.begin(), connections_.end(), [this, &wanted](const auto& each) {
          return is_host(each) && each.host.name == wanted.name;
        });
    if (!is_there) names += (names.empty() ? " " : ", ") + wanted.name;
  }
  const std::string found = "cables lead to " + std::to_string(hosts()) + " of " +
                            counted(options_.hosts.size(), "host") + ", this one included";
  if (has_file()) return {found + "; missing:" + names};
  return {found +
          "; expected cables and sshd on all, or fewer ranks (-n), or more on each host "
          "(--slots)"};
}

Result<void> HostSearch::finish() {
  if (hosts() < options_.hosts.size()) return fail(missing());
  // A host is reached through earlier ones.
  std::size_t kept = 0;
  for (Connection& each : connections_) {
    const bool is_kept = is_host(each) && kept < options_.hosts.size();
    kept += is_kept;
    if (!is_kept) drop(each, "");
  }
  std::erase_if(connections_, [this](const Connection& each) { return !is_host(each); });
  if (has_file()) {
    std::sort(connections_.begin(), connections_.end(),
              [](const Connection& a, const Connection& b) { return a.host.first < b.host.first; });
    return {};
  }
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    connections_[i].host.first = options_.hosts[i].first;
    connections_[i].host.count = options_.hosts[i].count;
  }
  return {};
}

}  // namespace espalier::launch
