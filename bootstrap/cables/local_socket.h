#pragma once
// How the processes of a job reach their host's agent: over a socket of the host whose name comes
// from the job secret. Both ends check the user of the other, and that it knows the secret.
// Host only.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bootstrap/cables/logs.h"
#include "bootstrap/cables/packet.h"
#include "bootstrap/stream.h"
#include "espalier/bootstrap/bootstrap.h"

namespace espalier::cables {

// Becomes the agent. Returns the socket at which the others connect; nothing: another process has
// it, or there is no descriptor.
[[nodiscard]] std::optional<bootstrap::Socket> claim_host(const bootstrap::JobSecret& secret);
// Connects to the agent. Nothing: there is none of this user.
[[nodiscard]] std::optional<bootstrap::Socket> connect_to_agent(const bootstrap::JobSecret& secret);
// Takes a connection of a process. Nothing: none waits, or it is another user's.
[[nodiscard]] std::optional<bootstrap::Socket> accept_process(const bootstrap::Socket& listener);

struct LocalMessage {
  enum class Kind : std::uint8_t {
    kHello,    // to the agent: number is the process's log
    kWelcome,  // to the process: number is the agent's term
    kRecords,  // to the process: texts are the records of all hosts, number is since when
    kReceipt,  // to the agent, for kRecords
    kFlood,    // both ways: texts has one FloodPacket
  };
  Kind kind = Kind::kFlood;
  std::uint64_t number = 0;
  std::vector<std::string> texts = {};
};
[[nodiscard]] std::string encode(const LocalMessage& message);
// Nothing: malformed.
[[nodiscard]] std::optional<LocalMessage> decode_local(const std::string& bytes);

}  // namespace espalier::cables
