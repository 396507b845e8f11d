// The logs of a job's processes reach all hosts over lossy cables, and what the processes agree on
// from them: over simulated networks.

#include "bootstrap/cables/flood.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "bootstrap/cables/agreement.h"
#include "bootstrap/cables/logs.h"

namespace espalier::cables {
namespace {

using std::chrono::milliseconds;

constexpr Time kStart = std::chrono::seconds(50);

// Hosts in a line, each with the log of one process, and cables that lose and reorder packets.
class Line {
 public:
  Line(std::uint32_t hosts, double loss, std::uint64_t seed)
      : hosts_(hosts), loss_(loss), random_(seed) {
    for (std::uint32_t host = 0; host + 1 < hosts; ++host) join(host, host + 1);
  }
  void join(std::uint32_t a, std::uint32_t b) {
    hosts_[a].add_peer(b + 1, Flood::kCableBytes, now_);
    hosts_[b].add_peer(a + 1, Flood::kCableBytes, now_);
  }
  void cut(std::uint32_t a, std::uint32_t b) {
    hosts_[a].remove_peer(b + 1);
    hosts_[b].remove_peer(a + 1);
  }
  void put(std::uint32_t host, const std::string& key, const std::string& value) {
    hosts_[host].add(host + 1, {.kind = Entry::Kind::kPut, .key = key, .value = value}, now_);
    hosts_[host].add(host + 1, {.kind = Entry::Kind::kFence}, now_);
  }
  void run_for(Time time) {
    for (const Time end = now_ + time; now_ < end; now_ += std::chrono::microseconds(100)) {
      for (std::uint32_t host = 0; host < hosts_.size(); ++host) {
        if (hosts_[host].next_due() > now_) continue;
        for (Flood::Outgoing& each : hosts_[host].take_due(now_)) send(host, std::move(each));
      }
      for (auto next = flying_.begin(); next != flying_.end() && next->first <= now_;) {
        const Flight& flight = next->second;
        (void)hosts_[flight.to].receive(flight.from + 1, *decode_flood(flight.bytes), now_);
        next = flying_.erase(next);
      }
    }
  }
  // The value that the host has of another one; empty: none.
  [[nodiscard]] std::string value(std::uint32_t host, std::uint32_t of,
                                  const std::string& key) const {
    const auto log = hosts_[host].logs().find(of + 1);
    const std::string* const found =
        log == hosts_[host].logs().end() ? nullptr : log->second.published(key);
    return found == nullptr ? "" : *found;
  }
  [[nodiscard]] bool is_everywhere() const {
    return std::all_of(hosts_.begin(), hosts_.end(),
                       [](const Flood& each) { return each.is_everywhere(); });
  }
  void repeat_all() {
    const auto all = sent_;
    for (const auto& flight : all) {
      (void)hosts_[flight.to].receive(flight.from + 1, *decode_flood(flight.bytes), now_);
    }
  }
  [[nodiscard]] std::size_t sent() const { return sent_.size(); }
  [[nodiscard]] const Logs& logs(std::uint32_t host) const { return hosts_[host].logs(); }

 private:
  struct Flight {
    std::uint32_t from = 0, to = 0;
    std::string bytes = {};
  };
  void send(std::uint32_t from, Flood::Outgoing packet) {
    const Flight flight{from, static_cast<std::uint32_t>(packet.to - 1), encode(packet.packet)};
    sent_.push_back(flight);
    EXPECT_LE(flight.bytes.size(), 2500u);
    if (std::uniform_real_distribution<>()(random_) < loss_) return;
    flying_.emplace(now_ + std::chrono::microseconds(20 + random_() % 2000), flight);
  }

  std::vector<Flood> hosts_;
  double loss_;
  std::mt19937_64 random_;
  Time now_ = kStart;
  std::multimap<Time, Flight> flying_;
  std::vector<Flight> sent_;
};

TEST(Flood, ValuesReachAllHostsOverLossyCables) {
  Line line(4, 0.2, 1);
  for (std::uint32_t host = 0; host < 4; ++host) {
    line.put(host, "a", std::string(host == 2 ? 65'536 : 300, static_cast<char>('a' + host)));
  }
  line.run_for(std::chrono::seconds(8));
  EXPECT_TRUE(line.is_everywhere());
  for (std::uint32_t host = 0; host < 4; ++host) {
    for (std::uint32_t of = 0; of < 4; ++of) {
      EXPECT_EQ(line.value(host, of, "a"),
                std::string(of == 2 ? 65'536 : 300, static_cast<char>('a' + of)));
    }
  }
}

TEST(Flood, AnIdleFloodSendsNothing) {
  Line line(3, 0, 2);
  line.put(0, "a", "1");
  line.run_for(milliseconds(500));
  EXPECT_EQ(line.value(2, 0, "a"), "1");
  const std::size_t before = line.sent();
  line.run_for(std::chrono::seconds(5));
  EXPECT_EQ(line.sent(), before);
}

TEST(Flood, RepeatedPacketsHaveNoEffect) {
  Line line(3, 0.1, 3);
  line.put(0, "a", "1");
  line.put(2, "b", std::string(20'000, 'x'));
  line.run_for(std::chrono::seconds(2));
  std::map<LogId, std::string> before;
  for (const auto& [id, log] : line.logs(1)) before[id] = log.bytes();
  line.repeat_all();
  line.run_for(std::chrono::seconds(2));
  EXPECT_TRUE(line.is_everywhere());
  for (const auto& [id, log] : line.logs(1)) EXPECT_EQ(log.bytes(), before[id]);
}

TEST(Flood, WhatWasSaidDuringACutArrivesOverAnotherCable) {
  Line line(4, 0, 4);
  line.run_for(milliseconds(200));
  line.cut(1, 2);
  line.put(0, "a", "1");
  line.put(3, "b", "2");
  line.run_for(milliseconds(200));
  EXPECT_EQ(line.value(1, 0, "a"), "1");
  EXPECT_EQ(line.value(2, 0, "a"), "");
  line.join(0, 3);
  line.run_for(milliseconds(200));
  EXPECT_EQ(line.value(2, 0, "a"), "1");
  EXPECT_EQ(line.value(1, 3, "b"), "2");
}

TEST(Logs, PartsThatDoNotFollowHaveNoEffect) {
  Log whole(7), other(7);
  whole.add({.kind = Entry::Kind::kBegin, .number = 3, .other = 5});
  whole.add({.kind = Entry::Kind::kPut, .key = "k", .value = "v"});
  whole.add({.kind = Entry::Kind::kFence});
  const std::string bytes = whole.bytes();
  EXPECT_EQ(other.take(10, bytes.substr(10)), 0u);
  EXPECT_EQ(other.take(0, bytes.substr(0, 12)), 12u);
  EXPECT_FALSE(other.has_begun());
  EXPECT_EQ(other.take(4, bytes.substr(4)), bytes.size() - 12);
  EXPECT_EQ(other.rank(), 3u);
  EXPECT_EQ(*other.published("k"), "v");
  EXPECT_EQ(other.take(0, bytes), 0u);
  Log malformed(8);
  (void)malformed.take(0, std::string(40, '\xff'));
  EXPECT_EQ(malformed.take(malformed.bytes().size(), bytes), 0u);
  EXPECT_FALSE(malformed.has_begun());
}

HostRecord host_of(HostId host, std::vector<std::uint64_t> members) {
  HostRecord record{.host = host, .network = 100 + host, .name = "box" + std::to_string(host)};
  record.members = std::move(members);
  return record;
}

void add_cable(HostRecord& a, HostRecord& b) {
  const auto port = [](HostRecord& own, HostId peer) -> PortRecord& {
    const auto number = static_cast<std::uint32_t>(peer);
    own.ports.push_back({{.number = number, .name = "to" + std::to_string(peer)}, {}});
    return own.ports.back();
  };
  port(a, b.host).neighbours = {
      {.host = b.host, .port = static_cast<std::uint32_t>(a.host), .is_proven = true}};
  port(b, a.host).neighbours = {
      {.host = a.host, .port = static_cast<std::uint32_t>(b.host), .is_proven = true}};
}

TEST(Agreement, ARankIsConnectedOverHostsOfRanksOnly) {
  std::vector<HostRecord> hosts{host_of(1, {11, 12}), host_of(2, {21}), host_of(3, {31})};
  add_cable(hosts[0], hosts[1]);
  add_cable(hosts[1], hosts[2]);
  const std::vector<Seat> all{{0, 11}, {1, 12}, {2, 21}, {3, 31}};
  EXPECT_EQ(connected_seats(hosts, all, 0), all);
  const JobGraph graph = graph_between(hosts, all);
  ASSERT_EQ(graph.hosts.size(), 3u);
  EXPECT_EQ(graph.hosts[0].ranks, (std::vector<std::uint32_t>{0, 1}));
  ASSERT_EQ(graph.cables.size(), 2u);
  EXPECT_EQ(graph.cables[0].a.interface, "to2");
  // Without rank 2, no process passes on between hosts 1 and 3.
  const std::vector<Seat> some{{0, 11}, {1, 12}, {3, 31}};
  EXPECT_EQ(connected_seats(hosts, some, 0), (std::vector<Seat>{{0, 11}, {1, 12}}));
  EXPECT_EQ(connected_seats(hosts, some, 3), (std::vector<Seat>{{3, 31}}));
}

TEST(Agreement, TheLastAgentOfAHostCounts) {
  HostRecord old = host_of(1, {11, 12}), next = host_of(2, {12});
  next.network = old.network;
  old.term = 1;
  next.term = 2;
  const auto hosts = hosts_with_members({old, next, host_of(3, {})});
  ASSERT_EQ(hosts.size(), 1u);
  EXPECT_EQ(hosts[0].host, 2u);
  EXPECT_FALSE(running(hosts).contains(11));
}

// Processes that know each other's logs up to some point, and propose, accept and decide at random:
// whatever is proposed and whatever is cut, no process goes by two proposals of one number, and two
// proposals of one number that have a process in common are one.
class Chance {
 public:
  Chance(std::uint32_t processes, std::uint64_t seed) : views_(processes), random_(seed) {
    for (std::uint32_t i = 0; i < processes; ++i) views_[i].try_emplace(i + 1, i + 1);
  }
  void step() {
    const auto i = static_cast<std::uint32_t>(random_() % views_.size());
    switch (random_() % 4) {
      case 0: return propose(i);
      case 1:
        if (const Proposal* const found = to_accept(views_[i], i + 1, current(i), false)) {
          own(i).add(
              {.kind = Entry::Kind::kAccept, .number = found->number, .id = found->proposer});
        }
        return;
      case 2:
        if (const Proposal* const found = find_decided(views_[i], i + 1, current(i))) {
          decided_[found->number].push_back(found->seats);
          own(i).add(
              {.kind = Entry::Kind::kDecided, .number = found->number, .id = found->proposer});
        }
        return;
      default: learn(i, static_cast<std::uint32_t>(random_() % views_.size()));
    }
  }
  [[nodiscard]] std::size_t check() const {
    for (const auto& [number, lists] : decided_) {
      for (const auto& a : lists) {
        for (const auto& b : lists) {
          const bool meet = std::any_of(a.begin(), a.end(), [&b](const Seat& seat) {
            return std::find(b.begin(), b.end(), seat) != b.end();
          });
          EXPECT_TRUE(a == b || !meet) << "number " << number;
        }
      }
    }
    return decided_.size();
  }

 private:
  Log& own(std::uint32_t i) { return views_[i].at(i + 1); }
  std::uint32_t current(std::uint32_t i) { return own(i).decided() ? own(i).decided()->first : 0; }
  void propose(std::uint32_t i) {
    if (random_() % 3 != 0) return;
    Proposal proposal{.number = next_number(views_[i]), .generation = 1, .proposer = i + 1};
    for (std::uint32_t rank = 0; rank < views_.size(); ++rank) {
      if (rank == i || random_() % 3 != 0) proposal.seats.push_back({rank, rank + 1});
    }
    proposal.graph = std::make_shared<const JobGraph>();
    own(i).add(entry_of(proposal));
  }
  // `i` learns from `from` what that one knows, up to some byte.
  void learn(std::uint32_t i, std::uint32_t from) {
    for (const auto& [id, log] : views_[from]) {
      if (i == from || id == i + 1) continue;
      const std::size_t size =
          random_() % 3 == 0 ? random_() % (log.bytes().size() + 1) : log.bytes().size();
      (void)views_[i].try_emplace(id, id).first->second.take(0, log.bytes().substr(0, size));
    }
  }

  std::vector<Logs> views_;
  std::mt19937_64 random_;
  std::map<std::uint32_t, std::vector<std::vector<Seat>>> decided_;
};

TEST(Agreement, NoTwoListsOfOneGenerationShareAProcess) {
  std::size_t decided = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Chance chance(2 + seed % 4, seed);
    for (int i = 0; i < 1500; ++i) chance.step();
    decided += chance.check();
  }
  EXPECT_GT(decided, 100u);
}

}  // namespace
}  // namespace espalier::cables
