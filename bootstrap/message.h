#pragma once
// The messages between a process and the rendezvous server. A message is its kind, three
// little-endian numbers and two strings. Host only.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/parse_number.h"
#include "espalier/internal/base/little_endian.h"

namespace espalier::bootstrap {

inline constexpr std::uint32_t kMaxRanks = 1u << 20;  // of a job

enum class Kind : std::uint8_t {
  // From a process.
  kHello = 1,  // a: rank, b: size, text: this host's name
  kPut = 2,    // text: key, data: value
  kFence = 3,
  kGet = 4,        // a: rank, text: key
  kMissing = 5,    // asks which ranks the fence or rejoin waits for
  kRejoin = 6,     // a: deadline, ms
  kLeave = 7,      // The process ends its membership. Once all have, each may join again.
  kNewcomer = 8,   // in place of kHello: the process joins a job that runs, once it is accepted
  kAccept = 9,     // of a member: accept_request(); of a newcomer: it waits to be accepted
  kComplete = 10,  // complete_request()
  kWithdraw = 11,  // of a member that waits in kAccept or before kComplete: it ends the accept() of
                   // all. text: the reason, one line. Has no reply.
  kProbe = 12,     // before kHello: asks whether this is the job's server
  // From the server.
  kWelcome = 20,
  kRefused = 21,    // text: the reason, one line. The request had no effect.
  kDone = 22,       // of kFence
  kValue = 23,      // data
  kSurvivors = 24,  // data: encode_ranks(); a: generation
  kRanks = 25,      // data as above: those that are missing; a: the lowest rank that waits for
                    // them; b: 1, if some of them have joined; text: what is known of them
  kLater = 26,      // of kHello; data as above: those that have not left since this rank left
  kAccepted = 27,   // data as above: the processes; a: generation, b: the size that the job was
                    // started with, text: the number of this process in the job
  kHere = 30,       // of kProbe
};

struct Message {
  Kind kind = Kind::kHello;
  std::uint32_t a = 0, b = 0;
  // The number of a request, in the order of a process's requests; the reply repeats it. So the
  // late reply to a request that was given up is not taken for the reply to the next request.
  std::uint32_t number = 0;
  std::string text = {};
  std::string data = {};
};

[[nodiscard]] inline std::string encode(const Message& message) {
  const auto text_size = static_cast<std::uint32_t>(message.text.size());
  std::string bytes(1, static_cast<char>(message.kind));
  for (const std::uint32_t number : {message.a, message.b, message.number, text_size}) {
    std::uint8_t stored[sizeof(number)];
    store_u32(stored, number);
    bytes.append(reinterpret_cast<const char*>(stored), sizeof(stored));
  }
  return bytes + message.text + message.data;
}

// Nothing: malformed.
[[nodiscard]] inline std::optional<Message> decode(const std::string& bytes) {
  std::uint32_t numbers[4];
  if (bytes.size() < 1 + sizeof(numbers)) return {};
  const auto* stored = reinterpret_cast<const std::uint8_t*>(bytes.data()) + 1;
  for (std::size_t i = 0; i < 4; ++i) numbers[i] = load_u32(stored + 4 * i);
  if (numbers[3] > bytes.size() - 1 - sizeof(numbers)) return {};
  const std::size_t begin = 1 + sizeof(numbers);
  return Message{static_cast<Kind>(bytes[0]),
                 numbers[0],
                 numbers[1],
                 numbers[2],
                 bytes.substr(begin, numbers[3]),
                 bytes.substr(begin + numbers[3])};
}

// A set of ranks as bytes, at most kMaxRanks / 8: one bit per rank, from the lowest one, up to the
// highest rank of the set. `ranks` are below kMaxRanks.
[[nodiscard]] inline std::string encode_ranks(const std::vector<std::uint32_t>& ranks) {
  std::string bytes;
  for (const std::uint32_t rank : ranks) {
    if (rank / 8 >= bytes.size()) bytes.resize(rank / 8 + 1);
    bytes[rank / 8] = static_cast<char>(bytes[rank / 8] | 1 << rank % 8);
  }
  return bytes;
}

// A member's wish to accept newcomers.
struct AcceptRequest {
  std::uint32_t least = 0;       // newcomers
  std::uint32_t time_ms = 0;     // for the newcomers, once all members wait
  std::uint32_t members_ms = 0;  // for the members
};
[[nodiscard]] inline Message accept_request(const AcceptRequest& wish) {
  return {.kind = Kind::kAccept,
          .a = wish.least,
          .b = wish.time_ms,
          .data = std::to_string(wish.members_ms)};
}
// Whether a process is connected to the others that kAccepted named.
struct CompleteRequest {
  std::uint32_t generation = 0;
  std::string failure = {};      // one line; empty: it is connected
  std::uint32_t members_ms = 0;  // for the others
};
[[nodiscard]] inline Message complete_request(const CompleteRequest& vote) {
  return {.kind = Kind::kComplete,
          .a = vote.generation,
          .text = vote.failure,
          .data = std::to_string(vote.members_ms)};
}
// Returns members_ms of either; 0 if the message is malformed.
[[nodiscard]] inline std::uint32_t members_ms_of(const Message& message) {
  std::uint32_t ms = 0;
  return parse_number(message.data, ms) ? ms : 0;
}

// Returns the ranks of the set, ascending.
[[nodiscard]] inline std::vector<std::uint32_t> decode_ranks(const std::string& bytes) {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < 8 * bytes.size(); ++rank) {
    if ((bytes[rank / 8] >> rank % 8 & 1) != 0) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace espalier::bootstrap
