#include "bootstrap/cables/agreement.h"

#include <algorithm>

#include "base/network/address.h"
#include "bootstrap/cables/graph.h"

namespace espalier::cables {
namespace {

constexpr std::size_t kMaxOddities = 4;

std::string address_text(const Port& port) {
  return network::Address{.is_v6 = true, .ip = port.address}.host();
}

JobEnd end_of(const Graph& graph, End end, std::uint32_t host) {
  return {host, graph.port(end).name, address_text(graph.port(end))};
}

// The lower of two numbers of which 0 is unknown.
std::uint32_t lower(std::uint32_t a, std::uint32_t b) {
  return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b);
}

const Proposal* find(const Logs& logs, const ProposalName& name) {
  const auto log = logs.find(name.second);
  if (log == logs.end()) return nullptr;
  for (const Proposal& each : log->second.proposals()) {
    if (each.number == name.first) return &each;
  }
  return nullptr;
}

bool has_accepted(const Logs& logs, LogId id, const ProposalName& name) {
  const auto log = logs.find(id);
  if (log == logs.end()) return false;
  const auto& all = log->second.accepted();
  return std::find(all.begin(), all.end(), name) != all.end();
}

bool all_accepted(const Logs& logs, const Proposal& proposal) {
  const ProposalName name{proposal.number, proposal.proposer};
  return std::all_of(proposal.seats.begin(), proposal.seats.end(),
                     [&](const Seat& seat) { return has_accepted(logs, seat.log, name); });
}

bool has_seat(const Proposal& proposal, LogId log) {
  return std::any_of(proposal.seats.begin(), proposal.seats.end(),
                     [log](const Seat& seat) { return seat.log == log; });
}

}  // namespace

std::vector<HostRecord> hosts_with_members(const std::vector<HostRecord>& records) {
  std::vector<HostRecord> hosts;
  for (const HostRecord& each : records) {
    if (each.members.empty()) continue;
    const auto same = std::find_if(hosts.begin(), hosts.end(), [&each](const HostRecord& other) {
      return each.network != 0 && each.network == other.network;
    });
    if (same == hosts.end()) {
      hosts.push_back(each);
    } else if (same->term < each.term) {
      *same = each;
    }
  }
  std::stable_sort(hosts.begin(), hosts.end(),
                   [](const HostRecord& a, const HostRecord& b) { return a.name < b.name; });
  return hosts;
}

std::map<LogId, std::size_t> running(const std::vector<HostRecord>& hosts) {
  std::map<LogId, std::size_t> all;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    for (const LogId log : hosts[i].members) all[log] = i;
  }
  return all;
}

JobGraph graph_between(const std::vector<HostRecord>& hosts, const std::vector<Seat>& seats) {
  const auto places = running(hosts);
  std::map<HostId, std::vector<std::uint32_t>> ranks;
  for (const Seat& seat : seats) {
    const auto place = places.find(seat.log);
    if (place != places.end()) ranks[hosts[place->second].host].push_back(seat.rank);
  }
  std::vector<HostRecord> used;
  for (const HostRecord& host : hosts) {
    if (ranks.contains(host.host)) used.push_back(host);
  }
  const Graph graph = graph_of(used, 0);
  JobGraph job;
  for (const GraphHost& host : graph.hosts) {
    std::vector<std::uint32_t>& all = ranks[host.id];
    std::sort(all.begin(), all.end());
    job.hosts.push_back({host.name, std::move(all)});
  }
  for (const Cable& cable : graph.cables) {
    const Port &a = graph.port(cable.a), &b = graph.port(cable.b);
    job.cables.push_back({.a = end_of(graph, cable.a, cable.a.host),
                          .b = end_of(graph, cable.b, cable.b.host),
                          .rate_mbits = lower(a.rate_mbits, b.rate_mbits),
                          .mtu = lower(a.mtu, b.mtu)});
  }
  return job;
}

std::vector<std::uint32_t> islands_of(const JobGraph& graph) {
  std::vector<std::uint32_t> islands(graph.hosts.size());
  for (std::uint32_t host = 0; host < islands.size(); ++host) islands[host] = host;
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (const JobCable& cable : graph.cables) {
      std::uint32_t &a = islands[cable.a.host], &b = islands[cable.b.host];
      has_changed |= a != b;
      a = b = std::min(a, b);
    }
  }
  return islands;
}

std::vector<std::vector<std::uint32_t>> parts_of(const JobGraph& graph) {
  const auto islands = islands_of(graph);
  std::map<std::uint32_t, std::vector<std::uint32_t>> parts;
  for (std::size_t host = 0; host < islands.size(); ++host) {
    auto& part = parts[islands[host]];
    part.insert(part.end(), graph.hosts[host].ranks.begin(), graph.hosts[host].ranks.end());
  }
  std::vector<std::vector<std::uint32_t>> all;
  for (auto& [island, ranks] : parts) {
    std::sort(ranks.begin(), ranks.end());
    all.push_back(std::move(ranks));
  }
  return all;
}

std::vector<Seat> connected_seats(const std::vector<HostRecord>& hosts,
                                  const std::vector<Seat>& seats, std::uint32_t rank) {
  for (const auto& part : parts_of(graph_between(hosts, seats))) {
    if (!std::binary_search(part.begin(), part.end(), rank)) continue;
    std::vector<Seat> connected;
    std::copy_if(seats.begin(), seats.end(), std::back_inserter(connected),
                 [&part](const Seat& seat) {
                   return std::binary_search(part.begin(), part.end(), seat.rank);
                 });
    return connected;
  }
  return {};
}

std::uint32_t next_number(const Logs& logs) {
  std::uint32_t number = 0;
  for (const auto& [id, log] : logs) {
    for (const Proposal& each : log.proposals()) number = std::max(number, each.number);
    for (const ProposalName& each : log.accepted()) number = std::max(number, each.first);
  }
  return number + 1;
}

const Proposal* to_accept(const Logs& logs, LogId own, std::uint32_t above, bool is_first) {
  const auto self = logs.find(own);
  if (self == logs.end()) return nullptr;
  const auto& accepted = self->second.accepted();
  if (!accepted.empty()) above = std::max(above, accepted.back().first);
  const Proposal* newest = nullptr;
  for (const auto& [id, log] : logs) {
    for (const Proposal& each : log.proposals()) {
      if (each.number <= above || (each.generation == 0) != is_first || !has_seat(each, own)) {
        continue;
      }
      if (newest == nullptr || newest->number < each.number) newest = &each;
    }
  }
  return newest;
}

const Proposal* find_decided(const Logs& logs, LogId own, std::uint32_t above) {
  const auto self = logs.find(own);
  if (self == logs.end()) return nullptr;
  const auto& accepted = self->second.accepted();
  const Proposal* newest = nullptr;
  for (auto each = accepted.rbegin(); each != accepted.rend() && each->first > above; ++each) {
    const Proposal* const proposal = find(logs, *each);
    if (proposal == nullptr) return nullptr;
    const bool holds = all_accepted(logs, *proposal);
    if (newest == nullptr) {
      newest = proposal;
      if (holds) return newest;
      continue;
    }
    const bool is_gone_by =
        std::any_of(newest->seats.begin(), newest->seats.end(), [&](const Seat& seat) {
          const auto log = logs.find(seat.log);
          return log != logs.end() && log->second.decided() == *each;
        });
    if (holds && is_gone_by) return proposal;
  }
  return nullptr;
}

bool is_overtaken(const Logs& logs, const Proposal& proposal) {
  const ProposalName name{proposal.number, proposal.proposer};
  return std::any_of(proposal.seats.begin(), proposal.seats.end(), [&](const Seat& seat) {
    const auto log = logs.find(seat.log);
    if (log == logs.end() || has_accepted(logs, seat.log, name)) return false;
    const auto& accepted = log->second.accepted();
    return !accepted.empty() && accepted.back().first >= proposal.number;
  });
}

std::string ranks_text(const std::vector<std::uint32_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size() && i < 16; ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  if (ranks.size() > 16) text += " and " + std::to_string(ranks.size() - 16) + " more";
  return text;
}

std::string oddities(const std::vector<HostRecord>& hosts) {
  std::vector<std::string> all;
  for (const HostRecord& host : hosts) {
    for (const PortRecord& row : host.ports) {
      const std::string where =
          host.name + " " + row.port.name + " (" + address_text(row.port) + ")";
      for (const Neighbour& each : row.neighbours) {
        if (each.is_proven) continue;
        all.insert(all.begin(), where + " receives from " + each.host_name + " " + each.port_name +
                                    ", which does not receive from it");
      }
      if (row.port.state == PortState::kReady && row.neighbours.empty()) {
        all.push_back("no host answers at " + where);
      }
    }
  }
  std::string text;
  for (std::size_t i = 0; i < all.size() && i < kMaxOddities; ++i) {
    text += (i == 0 ? "" : "; ") + all[i];
  }
  if (all.size() > kMaxOddities)
    text += "; and " + std::to_string(all.size() - kMaxOddities) + " more";
  return text;
}

}  // namespace espalier::cables
