#include "tools/launch/rendezvous.h"

#include <algorithm>
#include <utility>

#include "base/network/filter.h"
#include "base/network/interfaces.h"
#include "base/process/variables.h"
#include "base/try.h"
#include "bootstrap/newcomers.h"

namespace espalier::launch {

Result<void> Rendezvous::start(const JobOptions& options, bool is_one_host,
                               const std::string& secret) {
  secret_ = bootstrap::secret_of(secret);
  bootstrap::ListenOptions listens{.lookup_time = std::chrono::milliseconds(options.deadline_ms)};
  ESPALIER_TRY_TO(listens.ports, network::port_range(options.ports, "--port-range"));
  ESPALIER_TRY_TO(const auto filter, network::interface_filter(options.interfaces, "--interface"));
  if (options.address.empty()) listens.interfaces = filter;
  ESPALIER_TRY_TO(const auto interfaces, filter.apply(network::running_interfaces()));
  const auto serve_at = [&](const std::string& host) {
    return bootstrap::Server::start(network::join(host, 0), options.ranks, secret_, nullptr,
                                    listens);
  };
  // Newcomers may be on other hosts.
  const bool is_local = is_one_host && options.job_file.empty() && !is_set(Variable::kJobFile);
  const std::string host = !options.address.empty() ? options.address
                           : is_local               ? "127.0.0.1"
                                                    : "::";
  auto server = serve_at(host);
  if (!server && host == "::") server = serve_at("0.0.0.0");  // IPv6 is off
  if (!server) return fail(server.error());
  server_ = *std::move(server);
  ESPALIER_TRY_TO(const auto at, network::split(server_->address()));
  const auto address = network::parse_ip(host);
  if (address && address->is_wildcard()) {
    offer_ = bootstrap::own_candidates(interfaces, at.port);
    // Each host would try each link-local address by each of its interfaces.
    const auto is_wide = [](const network::Address& each) {
      return !each.is_loopback() && !each.needs_scope();
    };
    if (std::any_of(offer_.addresses.begin(), offer_.addresses.end(), is_wide)) {
      std::erase_if(offer_.addresses,
                    [](const network::Address& each) { return each.needs_scope(); });
    }
  } else if (address && address->needs_scope()) {
    offer_ = {network::network_id(), {address->with_port(at.port)}};
  } else {  // each host finds a name's address by itself
    named_ = network::join(address ? address->host() : host, at.port);
  }
  return {};
}

std::string Rendezvous::ticket_for(const Callers& callers, std::size_t host) const {
  return bootstrap::job_ticket(
      {.address = named_, .candidates = candidates_for(callers, host), .secret = secret_});
}

Result<void> Rendezvous::write_job_file(const std::string& path, const Callers& callers) {
  std::string ticket = ticket_for(callers, callers.size() - 1);
  ESPALIER_TRY_TO(job_file_, bootstrap::write_job_file(path, ticket));
  ticket_ = std::move(ticket);
  return {};
}

void Rendezvous::remove_job_file() {
  if (!ticket_.empty()) bootstrap::remove_job_file(job_file_, ticket_);
  ticket_.clear();
}

// The first address is the one from which the host's daemon was called: an interface that leads to
// the host. Processes on this host begin with the same one as the others, which must reach them.
bootstrap::Candidates Rendezvous::candidates_for(const Callers& callers, std::size_t host) const {
  bootstrap::Candidates offer = offer_;
  const auto prefer = [&offer](const std::string& caller) {
    const auto ip = network::parse_ip(caller);
    if (!ip || ip->is_loopback() || offer.addresses.empty()) return false;
    const network::Address called = ip->bare().with_port(offer.addresses.front().port);
    const auto known = std::find_if(
        offer.addresses.begin(), offer.addresses.end(),
        [&called](const network::Address& each) { return each.bare() == called.bare(); });
    if (known != offer.addresses.end()) offer.addresses.erase(known);
    offer.addresses.insert(offer.addresses.begin(), called);
    return true;
  };
  if (prefer(callers[host])) return offer;
  (void)std::any_of(callers.begin(), callers.end(), prefer);
  return offer;
}

Fields Rendezvous::addresses_for(const Callers& callers, std::size_t host) const {
  if (!named_.empty()) return {"0", named_};
  const bootstrap::Candidates offer = candidates_for(callers, host);
  Fields fields{std::to_string(offer.network)};
  for (network::Address each : offer.addresses) {
    each.scope = 0;  // a number of this host's own
    fields.push_back(each.text());
  }
  return fields;
}

}  // namespace espalier::launch
