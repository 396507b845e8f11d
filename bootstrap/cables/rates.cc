#include "bootstrap/cables/rates.h"

#include <net/if.h>
#include <sodium.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "base/try.h"
#include "bootstrap/listener.h"
#include "bootstrap/subnet_rates.h"

namespace espalier::cables {
namespace {

// Keys of what ranks publish: "PORT TOKEN", and "CABLE KBITS CABLE KBITS ..." of what arrived.
constexpr const char* kOfferKey = "espalier.cables.offer";
constexpr const char* kRatesKey = "espalier.cables.rates";

// The rate of a cable that carried nothing while parallel ones did.
constexpr std::uint32_t kNothingKbits = 1;

// Where a host is reached while it measures, and by which token it knows its peers.
struct Offer {
  std::uint16_t port = 0;
  std::uint64_t token = 0;
};

std::optional<network::Address> address_of(const JobEnd& end) {
  auto address = network::parse_ip(end.address);
  if (address && address->needs_scope()) address->scope = if_nametoindex(end.interface.c_str());
  return address;
}

class RatesOfJob {
 public:
  RatesOfJob(bootstrap::Bootstrap& members, JobGraph& graph)
      : members_(members), graph_(graph), pairs_(measured_pairs(graph)) {
    for (std::uint32_t host = 0; host < graph.hosts.size(); ++host) {
      const std::vector<std::uint32_t>& ranks = graph.hosts[host].ranks;
      if (!ranks.empty() && ranks.front() == members.rank()) own_ = host;
    }
  }
  [[nodiscard]] Result<void> run(const network::PortRange& ports);

 private:
  // The lowest rank of each host measures.
  [[nodiscard]] bool measures() const { return own_.has_value(); }
  [[nodiscard]] std::uint32_t first_rank(std::uint32_t host) const {
    return graph_.hosts[host].ranks.front();
  }
  [[nodiscard]] Result<Offer> offer_of(std::uint32_t host);
  [[nodiscard]] Result<void> measure(const MeasuredPair& pair, int listener);
  [[nodiscard]] Result<void> take_rates();

  bootstrap::Bootstrap& members_;
  JobGraph& graph_;
  std::vector<MeasuredPair> pairs_;
  std::optional<std::uint32_t> own_;  // the host of which this is the lowest rank
  Offer offer_;
  std::string arrived_;  // as published
};

Result<void> RatesOfJob::run(const network::PortRange& ports) {
  std::optional<bootstrap::Listener> listener;
  if (measures()) {
    bool is_in_use = false;
    const auto first = graph_.cables.empty() ? std::nullopt : address_of(graph_.cables.front().a);
    const std::string all = first && !first->is_v6 ? "0.0.0.0:0" : "[::]:0";
    ESPALIER_TRY_TO(listener, bootstrap::listen_at(all, {.ports = ports}, is_in_use));
    offer_.port = listener->bound.port;
    randombytes_buf(&offer_.token, sizeof offer_.token);
    ESPALIER_TRY(
        members_.put(kOfferKey, std::to_string(offer_.port) + " " + std::to_string(offer_.token)));
  }
  std::uint32_t turns = 0;
  for (const MeasuredPair& pair : pairs_) turns = std::max(turns, pair.turn + 1);
  ESPALIER_TRY(members_.fence());
  for (std::uint32_t turn = 0; turn < turns; ++turn) {
    for (const MeasuredPair& pair : pairs_) {
      const bool is_own = measures() && (pair.a == *own_ || pair.b == *own_);
      if (pair.turn != turn || !is_own) continue;
      ESPALIER_TRY(measure(pair, listener->socket.get()));
    }
    if (turn + 1 == turns && measures()) ESPALIER_TRY(members_.put(kRatesKey, arrived_));
    ESPALIER_TRY(members_.fence());
  }
  return turns == 0 ? Result<void>() : take_rates();
}

Result<Offer> RatesOfJob::offer_of(std::uint32_t host) {
  ESPALIER_TRY_TO(const std::string text, members_.get(first_rank(host), kOfferKey));
  std::istringstream words(text);
  Offer offer;
  if (words >> offer.port >> offer.token) return offer;
  return fail("host " + graph_.hosts[host].name + " offers no transfer over its cables");
}

Result<void> RatesOfJob::measure(const MeasuredPair& pair, int listener) {
  const bool is_a = pair.a == *own_;
  ESPALIER_TRY_TO(const Offer peer, offer_of(is_a ? pair.b : pair.a));
  bootstrap::RateTest test{
      .listener = listener, .own_token = offer_.token, .peer_token = peer.token};
  std::vector<std::size_t> cables;
  for (const std::size_t cable : pair.cables) {
    const JobCable& each = graph_.cables[cable];
    const auto from = address_of(is_a ? each.a : each.b);
    auto to = network::parse_ip((is_a ? each.b : each.a).address);
    if (!from || !to) continue;
    to->scope = from->scope;
    test.subnets.push_back({*from, to->with_port(peer.port)});
    cables.push_back(cable);
  }
  const std::vector<std::uint32_t> kbits = bootstrap::measured_rates(test);
  for (std::size_t i = 0; i < kbits.size(); ++i) {
    arrived_ += std::to_string(cables[i]) + " " + std::to_string(kbits[i]) + " ";
  }
  return {};
}

// A rate is the slower direction's.
Result<void> RatesOfJob::take_rates() {
  std::vector<std::vector<std::uint32_t>> kbits(graph_.cables.size());
  std::set<std::uint32_t> hosts;
  for (const MeasuredPair& pair : pairs_) hosts.insert({pair.a, pair.b});
  for (const std::uint32_t host : hosts) {
    ESPALIER_TRY_TO(const std::string text, members_.get(first_rank(host), kRatesKey));
    std::istringstream words(text);
    std::size_t cable = 0;
    std::uint32_t rate = 0;
    while (words >> cable >> rate) {
      if (cable < kbits.size() && rate > kNothingKbits) kbits[cable].push_back(rate);
    }
  }
  for (std::size_t cable = 0; cable < kbits.size(); ++cable) {
    if (kbits[cable].size() != 2) continue;
    const std::uint32_t slower = std::min(kbits[cable][0], kbits[cable][1]);
    graph_.cables[cable].rate_mbits = std::max(1U, (slower + 500) / 1000);
  }
  return {};
}

}  // namespace

std::vector<MeasuredPair> measured_pairs(const JobGraph& graph) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> places;
  std::vector<MeasuredPair> pairs;
  for (std::size_t cable = 0; cable < graph.cables.size(); ++cable) {
    const JobCable& each = graph.cables[cable];
    const auto [place, is_new] = places.emplace(std::pair(each.a.host, each.b.host), pairs.size());
    if (is_new) pairs.push_back({.a = each.a.host, .b = each.b.host});
    pairs[place->second].cables.push_back(cable);
  }
  std::vector<std::set<std::uint32_t>> busy(graph.hosts.size());  // the turns of each host
  for (MeasuredPair& pair : pairs) {
    while (busy[pair.a].contains(pair.turn) || busy[pair.b].contains(pair.turn)) ++pair.turn;
    busy[pair.a].insert(pair.turn);
    busy[pair.b].insert(pair.turn);
  }
  return pairs;
}

Result<void> measure_rates(bootstrap::Bootstrap& members, const network::PortRange& ports,
                           JobGraph& graph) {
  return RatesOfJob(members, graph).run(ports);
}

}  // namespace espalier::cables
