#include "bootstrap/cables/search.h"

#include <poll.h>
#include <sodium.h>

#include <algorithm>
#include <vector>

#include "base/network/filter.h"
#include "base/network/interfaces.h"
#include "base/try.h"
#include "bootstrap/cables/discovery.h"
#include "bootstrap/cables/ports.h"

namespace espalier::cables {
namespace {

constexpr Time kScanTime = std::chrono::milliseconds(200);   // between looks at the interfaces
constexpr Time kQuietTime = std::chrono::milliseconds(300);  // with a known number of hosts
constexpr Time kLongQuietTime = std::chrono::seconds(2);     // without

class Search {
 public:
  Search(const SearchOptions& options, network::InterfaceFilter filter, const std::string& name)
      : options_(options),
        ports_({.filter = std::move(filter), .port = options.port}),
        discovery_({.host = random_number(), .network = network::network_id(), .name = name},
                   key_of(options.secret), random_number) {}

  [[nodiscard]] Result<SearchResult> run();

 private:
  void send(const std::vector<Discovery::Outgoing>& packets) {
    for (const Discovery::Outgoing& packet : packets) ports_.send(packet);
  }
  void wait_and_receive(Time until);
  [[nodiscard]] bool is_settled(Time at) const;

  const SearchOptions& options_;
  Ports ports_;
  Discovery discovery_;
};

void Search::wait_and_receive(Time until) {
  std::vector<pollfd> polled;
  ports_.add_to(polled);
  const auto left = std::max(until - now(), Time(0));
  const timespec time{static_cast<time_t>(left.count() / 1'000'000'000),
                      static_cast<long>(left.count() % 1'000'000'000)};
  if (ppoll(polled.data(), polled.size(), &time, nullptr) <= 0) return;
  ports_.receive(
      [this](std::uint32_t port, const network::Address& from, const std::string& bytes) {
        discovery_.receive(port, from, bytes, now());
      });
}

bool Search::is_settled(Time at) const {
  const std::size_t hosts = discovery_.hosts().size();
  if (discovery_.is_beginning() || hosts < std::max(options_.hosts, 2u)) return false;
  return at - discovery_.changed_at() >= (options_.hosts != 0 ? kQuietTime : kLongQuietTime);
}

Result<SearchResult> Search::run() {
  const Time end = now() + options_.wait;
  SearchResult result;
  for (Time scan_at = now(); !result.is_settled && now() < end;) {
    if (now() >= scan_at) {
      ESPALIER_TRY_TO(const auto ports, ports_.scan(now()));
      discovery_.set_ports(ports, now());
      scan_at = now() + kScanTime;
    }
    send(discovery_.take_due(now()));
    wait_and_receive(std::min({discovery_.next_due(), scan_at, end}));
    const bool is_content = is_settled(now());
    discovery_.set_content(is_content, now());
    // A host that has left saw all others content with this graph, or had no more time.
    result.is_settled = is_content && (discovery_.all_content() || discovery_.has_any_left());
  }
  send(discovery_.leave(now()));
  result.graph = graph_of(discovery_.hosts(), options_.hosts);
  result.refused = discovery_.refused();
  return result;
}

}  // namespace

Result<SearchResult> search(const SearchOptions& options) {
  if (sodium_init() < 0) return fail("libsodium cannot be initialized");
  ESPALIER_TRY_TO(auto filter, network::interface_filter(options.interfaces, "--interface"));
  ESPALIER_TRY_TO(const std::string name, own_name());
  return Search(options, std::move(filter), name).run();
}

}  // namespace espalier::cables
