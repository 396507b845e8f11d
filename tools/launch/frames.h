#pragma once
// The messages between a job's launcher and the daemon of each host, over two pipes. A message is a
// list of fields; its first field names it. Host only.
//
//   launcher to daemon                      daemon to launcher
//   job SIZE RANKS SECRET FOLDER IGNORED N ENV.. ARGUMENTS..
//                                           hello VERSION CALLER IDENTITY NAME
//   neighbours INTERFACES                   neighbours N (INTERFACE ADDRESS)..
//   go NETWORK ADDRESS.. (HOST:PORT)
//   go cables                               ready | refused REASON
//   signal NUMBER                           output RANK STREAM LINES
//   input BYTES (none: end of input)        taken
//   printed BYTES                           end RANK STATUS (negative: a signal)
//   closed STREAM
//   again RANK TICKET
//   reach NUMBER ADDRESS ESPALIER SHELL [SESSION]
//   to NUMBER BYTES                         from NUMBER BYTES
//   shut NUMBER | cut NUMBER                words NUMBER TEXT, gone NUMBER
//   lasting SESSION                         lasting
// `output` may hold a part of a line. `printed` says how much of it the launcher has printed, and
// `closed` that the reader of a stream is gone. `again` starts a process in place of a rank that
// has ended: it joins the job by the ticket. IGNORED: signals that the ranks ignore.
// CALLER is the launcher's IP as ssh reports it, or empty. NETWORK is the number of the network in
// which the addresses are the launcher's (network::network_id()); 0: the ranks take all addresses
// as they are. IDENTITY is different on each host that is up. The N first neighbours are addresses
// of the host itself. A job over cables has one daemon at the launcher's pipes: `reach` lets a
// daemon start one on its neighbour at ADDRESS by the words of SHELL; the bytes of the new daemon
// and its shell then pass in `to`, `from` and `words`, until `shut`, `cut` (at once) or `gone`.
// `lasting` begins a session (session.h), which `reach` continues over another way. A closed pipe
// ends the other side, unless there is a session.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace espalier::launch {

using Fields = std::vector<std::string>;

// Precedes the daemon's first message: a login shell may print text of its own before.
inline constexpr const char* kGreeting =
    "\n\x01"
    "espalier-daemon\x02";

// A daemon stops reading its ranks' output while so many bytes are not printed. The launcher always
// reads a daemon's messages, so that no reader delays news of a rank.
inline constexpr std::size_t kMaxUnprinted = 1u << 20;
// The bytes per rank that a daemon may send beyond that, when the rank has ended.
inline constexpr std::size_t kMaxRest = 4u << 20;

inline constexpr std::uint64_t kNsPerMs = 1'000'000;

// In place of a job's size: the processes join a job that runs. Their ranks are numbers of this
// launcher only, and `go` has no address.
inline constexpr const char* kNewcomers = "new";

// In place of a network: the ranks find each other over the cables.
inline constexpr const char* kOverCables = "cables";

// The fields of a `job` message.
struct Description {
  std::string size;                  // ranks of the whole job, or kNewcomers
  std::vector<std::uint32_t> ranks;  // of this host
  std::string secret, folder;        // of kNewcomers: the job file in place of the secret
  std::vector<int> ignored_signals;
  Fields variables;  // NAME=VALUE
  Fields arguments;  // at least one: the program
};
// Returns nothing if the message is not a `job`, or malformed.
[[nodiscard]] std::optional<Description> read_description(const Fields& message);
[[nodiscard]] Fields to_fields(const Description& description);

// The fields of an `end` message.
struct RankEnd {
  std::uint32_t rank = 0;
  int status = 0;  // 0 to 255; of a signal its negative number, at least -255
};
// Returns nothing if the message is not an `end`, or malformed.
[[nodiscard]] std::optional<RankEnd> read_end(const Fields& message);

// Returns the number, if the text is one and nothing else.
[[nodiscard]] std::optional<std::uint32_t> read_number(const std::string& text);

// Returns the bytes of one message.
[[nodiscard]] std::string encode(const Fields& fields);
// Writes all bytes. Returns false on an error.
[[nodiscard]] bool write_all(int file, const std::string& bytes);
// Writes, and removes, the bytes that the pipe takes without waiting. Returns false on an error.
[[nodiscard]] bool write_some(int pipe, std::string& bytes);

// Collects bytes of a pipe and takes messages out of them.
class Reader {
 public:
  explicit Reader(std::string greeting = {}) : greeting_(std::move(greeting)) {}
  // Reads the available bytes. Returns false at the end of the pipe, or if the bytes are no
  // messages.
  [[nodiscard]] bool fill(int pipe);
  // Adds bytes that were read elsewhere. Returns false if the bytes are no messages.
  [[nodiscard]] bool add(const std::string& bytes);
  // Whether a complete message was available; it is then in `fields`.
  [[nodiscard]] bool take(Fields& fields);

 private:
  std::string greeting_;  // skipped up to its end; empty once it was found
  std::string bytes_;
  bool valid_ = true;
};

}  // namespace espalier::launch
