#include "bootstrap/cables/agent.h"

#include <poll.h>

#include <algorithm>
#include <set>

#include "base/network/interfaces.h"
#include "base/try.h"
#include "bootstrap/cables/codec.h"

namespace espalier::cables {
namespace {

using bootstrap::Socket;

constexpr std::string_view kFloodMagic = "ESPFLOD1";
constexpr Time kScanPause = std::chrono::milliseconds(200);  // between looks at the interfaces
constexpr Time kIdleScanPause = std::chrono::seconds(1);
constexpr Time kGreetTime = std::chrono::seconds(2);  // for an agent's first words
// The agent, for its clients.
constexpr Flood::PeerId kAgentPeer = 1;

void wait_for(std::vector<pollfd>& polled, Time until) {
  constexpr Time kLongest = std::chrono::seconds(3600);
  const Time left = std::clamp(until - now(), Time(0), kLongest);
  const timespec time{static_cast<time_t>(left.count() / 1'000'000'000),
                      static_cast<long>(left.count() % 1'000'000'000)};
  (void)ppoll(polled.data(), polled.size(), &time, nullptr);
}

std::vector<std::pair<HostId, std::uint64_t>> versions_of(const std::vector<HostRecord>& hosts) {
  std::vector<std::pair<HostId, std::uint64_t>> versions;
  for (const HostRecord& each : hosts) versions.push_back({each.host, each.version});
  return versions;
}

// Under the mutex. While the job joins: a process that is refused may end before others look. The
// log of an earlier start comes whole, with its end.
void note_begun(Shared& shared) {
  if (shared.is_idle) return;
  for (const auto& [id, log] : shared.flood.logs()) {
    if (log.has_begun() && !log.has_left() && log.refusal().empty()) shared.seen.insert(id);
  }
}

// Under the mutex.
void take_packet(Shared& shared, Flood::PeerId peer, const FloodPacket& packet) {
  if (!shared.flood.receive(peer, packet, now())) return;
  note_begun(shared);
  shared.changed.notify_all();
}

// Under the mutex.
void set_records(Shared& shared, std::vector<HostRecord> records, Time at) {
  if (view_of(records) != view_of(shared.records)) shared.records_at = at;
  shared.records = std::move(records);
  ++shared.records_count;
  shared.changed.notify_all();
}

// Under the mutex. The logs of processes that run, and those that are needed.
void forget_others(Shared& shared, Time at) {
  std::set<LogId> kept(shared.needed.begin(), shared.needed.end());
  kept.insert(shared.own);
  for (const HostRecord& each : shared.records)
    kept.insert(each.members.begin(), each.members.end());
  shared.flood.keep(kept, at);
}

}  // namespace

Agent::Agent(const ParticipantOptions& options, Shared& shared, Socket listener, std::uint32_t term,
             const std::string& host)
    : shared_(shared),
      secret_(options.secret),
      key_(key_of(options.secret)),
      listener_(std::move(listener)),
      term_(term),
      host_(random_number()),
      ports_({.filter = options.interfaces,
              .port = options.port,
              .is_shared = true,
              .own_ports = options.ports,
              .needs_one = false}),
      discovery_({.host = host_, .network = network::network_id(), .name = host}, key_,
                 random_number) {}

Agent::~Agent() {
  const std::lock_guard lock(shared_.mutex);
  for (const Local& each : locals_) shared_.flood.remove_peer(each.peer);
  for (const auto& [name, peer] : peers_) shared_.flood.remove_peer(peer);
}

Result<void> Agent::scan(Time at) {
  auto ports = ports_.scan(at);
  if (!ports && !has_scanned_) return fail(std::move(ports.error()));
  has_scanned_ = true;
  if (ports) discovery_.set_ports(*ports, at);
  return {};
}

void Agent::update(Time at) {
  std::vector<LogId> members{shared_.own};
  for (const Local& each : locals_) {
    if (each.peer != 0) members.push_back(each.log);
  }
  std::sort(members.begin(), members.end());
  if (members != members_) {
    members_ = std::move(members);
    discovery_.set_members(members_, term_, at);
  }
  discovery_.set_idle(shared_.is_idle);
  shared_.term = term_;
  update_peers(at);
  update_records();
}

void Agent::update_peers(Time at) {
  std::map<CablePeer, Flood::PeerId> peers;
  addresses_.clear();
  for (const Discovery::ProvenPeer& each : discovery_.proven_peers()) {
    const CablePeer name{each.port, each.host, each.peer_port};
    const auto old = peers_.find(name);
    const Flood::PeerId peer = old == peers_.end() ? ++next_peer_ : old->second;
    if (old == peers_.end()) shared_.flood.add_peer(peer, Flood::kCableBytes, at);
    peers[name] = peer;
    addresses_[peer] = each;
  }
  for (const auto& [name, peer] : peers_) {
    if (!peers.contains(name)) shared_.flood.remove_peer(peer);
  }
  peers_ = std::move(peers);
}

void Agent::update_records() {
  std::vector<HostRecord> hosts = discovery_.hosts();
  auto versions = versions_of(hosts);
  if (versions == versions_) return;
  versions_ = std::move(versions);
  set_records(shared_, std::move(hosts), now());
  for (Local& each : locals_) each.lacks_records = true;
}

void Agent::collect(Time at, std::vector<Message>& local,
                    std::vector<Discovery::Outgoing>& cables) {
  for (Local& each : locals_) {
    if (each.peer == 0 || !each.lacks_records || each.owes_receipt) continue;
    each.lacks_records = false;
    each.owes_receipt = true;
    LocalMessage message{.kind = LocalMessage::Kind::kRecords};
    message.number = static_cast<std::uint64_t>(shared_.records_at.count());
    for (const HostRecord& record : shared_.records) message.texts.push_back(encode(record));
    local.push_back({&each, std::move(message)});
  }
  for (Flood::Outgoing& each : shared_.flood.take_due(at)) {
    const auto peer = addresses_.find(each.to);
    if (peer != addresses_.end()) {
      each.packet.host = host_;
      each.packet.port = peer->second.port;
      each.packet.to_host = peer->second.host;
      each.packet.to_port = peer->second.peer_port;
      cables.push_back({peer->second.port, peer->second.address,
                        sealed(kFloodMagic, encode(each.packet), key_)});
      continue;
    }
    for (Local& process : locals_) {
      if (process.peer == each.to) {
        local.push_back({&process, {.texts = {encode(each.packet)}}});
      }
    }
  }
}

void Agent::send(std::vector<Message>& local, const std::vector<Discovery::Outgoing>& cables) {
  for (const Discovery::Outgoing& each : cables) ports_.send(each);
  for (Message& each : local) {
    if (!each.to->is_over) each.to->is_over = !each.to->stream.send(encode(each.message), secret_);
  }
}

Time Agent::next_due() {
  const std::lock_guard lock(shared_.mutex);
  return std::min({discovery_.next_due(), shared_.flood.next_due(), scan_at_});
}

Result<void> Agent::step(int wake) {
  const Time at = now();
  if (at >= scan_at_) ESPALIER_TRY(scan(at));
  std::vector<Message> local;
  std::vector<Discovery::Outgoing> cables = discovery_.take_due(at);
  {
    const std::lock_guard lock(shared_.mutex);
    update(at);
    if (at >= scan_at_) {
      forget_others(shared_, at);
      scan_at_ = at + (shared_.is_idle ? kIdleScanPause : kScanPause);
    }
    collect(at, local, cables);
  }
  send(local, cables);
  std::vector<pollfd> polled{{wake, POLLIN, 0}, {listener_.get(), POLLIN, 0}};
  for (const Local& each : locals_) {
    polled.push_back({each.stream.descriptor(), POLLIN, 0});
  }
  const std::size_t first_cable = polled.size();
  ports_.add_to(polled);
  const bool has_over =
      std::any_of(locals_.begin(), locals_.end(), [](const Local& each) { return each.is_over; });
  wait_for(polled, has_over ? at : next_due());
  for (std::size_t i = first_cable; i < polled.size(); ++i) {
    if (polled[i].revents == 0) continue;
    ports_.receive([this](std::uint32_t port, const network::Address& from,
                          const std::string& bytes) { receive_from_cable(port, from, bytes); });
    break;
  }
  std::size_t next = 2;
  for (Local& each : locals_) {
    if (polled[next++].revents != 0) receive_from(each);
  }
  if (polled[1].revents != 0) {
    while (auto connection = accept_process(listener_)) {
      locals_.push_back({.stream = bootstrap::Stream(std::move(*connection), true)});
      if (!locals_.back().stream.greet()) locals_.pop_back();
    }
  }
  const std::lock_guard lock(shared_.mutex);
  std::erase_if(locals_, [this](const Local& each) {
    if (each.is_over) shared_.flood.remove_peer(each.peer);
    return each.is_over;
  });
  return {};
}

void Agent::receive_from_cable(std::uint32_t port, const network::Address& from,
                               const std::string& bytes) {
  const auto flood = opened(kFloodMagic, bytes, key_);
  if (!flood) return discovery_.receive(port, from, bytes, now());
  const auto packet = decode_flood(*flood);
  if (!packet || packet->to_host != host_ || packet->to_port != port) return;
  const auto peer = peers_.find({port, packet->host, packet->port});
  if (peer == peers_.end()) return;
  const std::lock_guard lock(shared_.mutex);
  take_packet(shared_, peer->second, *packet);
}

void Agent::receive_from(Local& local) {
  local.is_over |= !local.stream.read();
  while (auto bytes = local.stream.next(secret_)) {
    const auto message = decode_local(*bytes);
    local.is_over |= !message;
    if (message) take(local, *message);
  }
  local.is_over |= local.stream.is_broken();
}

void Agent::take(Local& local, const LocalMessage& message) {
  using Kind = LocalMessage::Kind;
  if (message.kind == Kind::kHello && local.peer == 0) {
    const std::lock_guard lock(shared_.mutex);
    local.log = message.number;
    local.peer = ++next_peer_;
    shared_.flood.add_peer(local.peer, Flood::kLocalBytes, now());
    const LocalMessage welcome{.kind = Kind::kWelcome, .number = term_};
    local.is_over |= !local.stream.send(encode(welcome), secret_);
  } else if (message.kind == Kind::kReceipt) {
    local.owes_receipt = false;
  } else if (message.kind == Kind::kFlood && local.peer != 0 && message.texts.size() == 1) {
    const auto packet = decode_flood(message.texts.front());
    if (!packet) return;
    const std::lock_guard lock(shared_.mutex);
    take_packet(shared_, local.peer, *packet);
  }
}

Client::Client(const ParticipantOptions& options, Shared& shared, Socket connection)
    : shared_(shared),
      secret_(options.secret),
      stream_(std::move(connection), false),
      since_(now()) {}

Client::~Client() {
  const std::lock_guard lock(shared_.mutex);
  shared_.flood.remove_peer(kAgentPeer);
}

void Client::greet() {
  LogId own = 0;
  {
    const std::lock_guard lock(shared_.mutex);
    own = shared_.own;
    shared_.flood.add_peer(kAgentPeer, Flood::kLocalBytes, now());
  }
  has_greeted_ = stream_.send(
      encode(LocalMessage{.kind = LocalMessage::Kind::kHello, .number = own}), secret_);
}

bool Client::step(int wake) {
  if (!has_greeted_ && stream_.is_ready()) {
    greet();
    if (!has_greeted_) return false;
  }
  if (!has_greeted_ && now() - since_ > kGreetTime) return false;
  std::vector<std::string> messages;
  Time until = since_ + kGreetTime;
  if (has_greeted_) {
    const std::lock_guard lock(shared_.mutex);
    for (const Flood::Outgoing& each : shared_.flood.take_due(now())) {
      messages.push_back(encode(LocalMessage{.texts = {encode(each.packet)}}));
    }
    until = shared_.flood.next_due();
  }
  for (const std::string& each : messages) {
    if (!stream_.send(each, secret_)) return false;
  }
  std::vector<pollfd> polled{{wake, POLLIN, 0}, {stream_.descriptor(), POLLIN, 0}};
  wait_for(polled, until);
  if (polled[1].revents == 0) return true;
  const bool is_open = stream_.read();
  while (auto bytes = stream_.next(secret_)) {
    const auto message = decode_local(*bytes);
    if (!message) return false;
    take(*message);
    if (message->kind != LocalMessage::Kind::kRecords) continue;
    if (!stream_.send(encode(LocalMessage{.kind = LocalMessage::Kind::kReceipt}), secret_)) {
      return false;
    }
  }
  return is_open && !stream_.is_broken();
}

void Client::take(const LocalMessage& message) {
  using Kind = LocalMessage::Kind;
  const std::lock_guard lock(shared_.mutex);
  if (message.kind == Kind::kWelcome) {
    shared_.term = static_cast<std::uint32_t>(message.number);
  } else if (message.kind == Kind::kRecords) {
    std::vector<HostRecord> records;
    for (const std::string& each : message.texts) {
      auto record = decode_record(each);
      if (record) records.push_back(*std::move(record));
    }
    set_records(shared_, std::move(records), Time(static_cast<std::int64_t>(message.number)));
    forget_others(shared_, now());
  } else if (message.kind == Kind::kFlood && message.texts.size() == 1) {
    const auto packet = decode_flood(message.texts.front());
    if (!packet) return;
    take_packet(shared_, kAgentPeer, *packet);
  }
}

}  // namespace espalier::cables
