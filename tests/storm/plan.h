#pragma once
// A plan: one cluster, its collectives and its faults. It is drawn from a seed, and it is a text
// that a command takes: a shorter plan that fails the same way is written that way.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/machine/operators.h"

namespace espalier::storm {

enum class Kind : std::uint8_t {
  // Faults of one message, by its number on the link, from `node` to `peer`.
  kDrop,
  kDuplicate,
  kReorder,
  kCorrupt,
  kDelay,
  // Faults of a node.
  kKill,    // at a time, or at an operation of its endpoint
  kPause,   // it does nothing for `ns`
  kHiccup,  // it pauses `times` times, for `ns` in every `every`
  kDeaf,    // it receives nothing any more
  kDrift,   // its clock runs faster or slower
  kTick,    // its clock shows multiples of `ns`
  // Faults of links.
  kOneWay,     // nothing from `node` reaches `peer` any more
  kPartition,  // nodes below `node` and the others do not reach each other any more
  kOutage,     // what `node` sends to `peer` arrives only after `ns`, then all of it
  // Everywhere: every message may be dropped, duplicated, overtaken or corrupted.
  kNoise,
  // A restart: the node is killed, and boots `ns` later. On framed links it then begins with the
  // first collective; over libfabric its peers have the address that it had, so it cannot connect.
  kRestart,
};
inline constexpr std::uint32_t kKinds = 16;
inline constexpr std::uint32_t kMessageKinds = 5;  // the first ones
[[nodiscard]] const char* kind_name(Kind kind);
[[nodiscard]] constexpr bool is_of_message(Kind kind) { return kind <= Kind::kDelay; }
// Whether the fault needs a link from `node` to `peer`.
[[nodiscard]] constexpr bool is_of_link(Kind kind) {
  return is_of_message(kind) || kind == Kind::kOneWay || kind == Kind::kOutage;
}

inline constexpr std::uint64_t kNever = UINT64_MAX;

// A fault. Each kind uses the fields that its text has (plan_text.cc).
struct Fault {
  Kind kind = Kind::kDrop;
  std::uint32_t node = 0, peer = 0;
  std::uint64_t message = 0;
  std::uint64_t bit = 0;
  std::uint64_t at_ns = 0;           // virtual time
  std::uint64_t operation = kNever;  // instead of a time: posts and completions of the endpoint
  std::uint64_t ns = 0;
  std::uint64_t every_ns = 0;
  std::uint64_t times = 0;
  std::uint64_t ppm = 1'000'000;  // kDrift: speed of the clock; kNoise: probability
};

// What carries the messages: the simulated network, framed links over intact frames or over bytes
// that a line may damage (virtual time), or libfabric or mem (real time).
enum class Over : std::uint8_t { kNetwork, kFrames, kBytes, kTcp, kMem, kMixed };
[[nodiscard]] constexpr bool is_framed(Over over) {
  return over == Over::kFrames || over == Over::kBytes;
}
[[nodiscard]] constexpr bool is_real(Over over) { return over >= Over::kTcp; }

[[nodiscard]] const char* over_name(Over over);
[[nodiscard]] bool parse_over(const std::string& text, Over& over);
// Whether a plan over this carrier may have faults of this kind.
[[nodiscard]] bool is_possible(Kind kind, Over over);

// How messages reach nodes that are not neighbours.
enum class Links : std::uint8_t { kRouted, kMultiport, kSingleSend };

// What determines the programs of a schedule.
struct ScheduleSpec {
  std::string topology = "complete:2";
  Collective collective = Collective::kBroadcast;
  std::string algorithm = "chain";
  Links links = Links::kRouted;
  std::uint32_t root = 0;
  std::uint32_t window = 8;
  std::uint32_t block_bytes = 64;
  std::uint32_t run_length = 0, radix = 0;
  std::uint32_t send_ticks = 1, latency_ticks = 1;
  std::uint32_t ratio_numerator = 0, ratio_denominator = 0;

  bool operator==(const ScheduleSpec&) const = default;
};

struct Plan {
  ScheduleSpec schedule;
  Over over = Over::kNetwork;
  // The collectives, one after the other without a pause.
  std::uint32_t rounds = 1;
  std::uint64_t blocks = 1, missing = 0;  // N, and by how many elements the message is shorter
  Op op = Op::kSum;
  Type type = Type::kI32;
  bool in_place = false, unequal = false;
  // The machines and the network.
  std::uint32_t machine_window = 16, endpoint_window = 16;
  bool check_blocks = true;
  std::uint64_t deadline_ns = 20'000'000;
  std::uint64_t eager_bytes = 64;
  bool eager_copies = true, poison = false;
  std::uint32_t jitter = 0, link_jitter = 0;  // percent
  std::uint64_t pace_ns = 0;                  // the longest delay until a node polls
  // Framed links: the longest frame, and how many frames (bytes) in a million the line loses, and
  // duplicates, and damages.
  std::uint32_t mtu = 1498, line_ppm = 0;
  bool keyed = false;      // framed links and libfabric: what is sent is authenticated
  std::uint64_t seed = 1;  // of data and jitter
  std::vector<Fault> faults;
};

// The arguments of the command that runs the plan: fields that have their usual value are left out.
[[nodiscard]] std::string plan_text(const Plan& plan);
// Reads them. The error names the argument and the correct form, or a value that the plan's carrier
// does not use.
[[nodiscard]] Result<Plan> parse_plan(std::span<const std::string> arguments);

}  // namespace espalier::storm
