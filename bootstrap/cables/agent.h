#pragma once
// The two parts that a participant may have on its host. Host only.

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "bootstrap/cables/discovery.h"
#include "bootstrap/cables/flood.h"
#include "bootstrap/cables/local_socket.h"
#include "bootstrap/cables/participant.h"
#include "bootstrap/cables/ports.h"
#include "bootstrap/stream.h"
#include "espalier/base/result.h"

namespace espalier::cables {

// Searches for cables, and passes logs on between them and the processes of the host.
class Agent {
 public:
  Agent(const ParticipantOptions& options, Shared& shared, bootstrap::Socket listener,
        std::uint32_t term, const std::string& host);
  ~Agent();
  // Sends what is due, waits until something arrives or `wake` does, and takes it. Error: no
  // interface can be used.
  [[nodiscard]] Result<void> step(int wake);

 private:
  // A process of this host.
  struct Local {
    bootstrap::Stream stream;
    Flood::PeerId peer = 0;  // 0: it has not said which it is
    LogId log = 0;
    bool lacks_records = true, owes_receipt = false, is_over = false;
  };
  using CablePeer = std::tuple<std::uint32_t, HostId, std::uint32_t>;  // own port, host, its port
  struct Message {
    Local* to = nullptr;
    LocalMessage message = {};
  };

  [[nodiscard]] Result<void> scan(Time at);
  // Under the mutex: brings members, peers and records up to date.
  void update(Time at);
  void update_peers(Time at);
  void update_records();
  // Under the mutex: what is to be sent to processes, and over cables.
  void collect(Time at, std::vector<Message>& local, std::vector<Discovery::Outgoing>& cables);
  void send(std::vector<Message>& local, const std::vector<Discovery::Outgoing>& cables);
  [[nodiscard]] Time next_due();
  void receive_from_cable(std::uint32_t port, const network::Address& from,
                          const std::string& bytes);
  void receive_from(Local& local);
  void take(Local& local, const LocalMessage& message);

  Shared& shared_;
  bootstrap::JobSecret secret_;
  Key key_;
  bootstrap::Socket listener_;
  std::uint32_t term_;
  HostId host_;
  Ports ports_;
  Discovery discovery_;
  std::list<Local> locals_;
  Flood::PeerId next_peer_ = 1;
  std::map<CablePeer, Flood::PeerId> peers_;
  std::map<Flood::PeerId, Discovery::ProvenPeer> addresses_;
  std::vector<LogId> members_;
  std::vector<std::pair<HostId, std::uint64_t>> versions_;
  Time scan_at_{0};
  bool has_scanned_ = false;
};

// A process that reaches its cables through its host's agent.
class Client {
 public:
  Client(const ParticipantOptions& options, Shared& shared, bootstrap::Socket connection);
  ~Client();
  // Sends the first words. False: the connection has ended.
  [[nodiscard]] bool greet_agent() { return stream_.greet(); }
  // As Agent::step(). False: the connection has ended.
  [[nodiscard]] bool step(int wake);

 private:
  void greet();
  void take(const LocalMessage& message);

  Shared& shared_;
  bootstrap::JobSecret secret_;
  bootstrap::Stream stream_;
  bool has_greeted_ = false;
  Time since_;
};

}  // namespace espalier::cables
