#pragma once
// The record of a process, as it is in memory and in its file: a fixed size, all numbers in the
// byte order of the host. Host only.
//
// A reader copies the file three times (view.h). What one thread writes often is atomic words; the
// rest is in parts with a sequence number, odd while the part changes. So no writer waits for a
// reader, and a reader finds out that it has read half of a change.

#include <atomic>
#include <cstdint>

namespace espalier::record {

inline constexpr char kMagic[8] = {'E', 'S', 'P', 'R', 'E', 'C', '\n', '\0'};
inline constexpr std::uint32_t kVersion = 2;  // another one: another meaning of any byte
inline constexpr std::uint32_t kMaxBytes = 65536;

inline constexpr std::uint32_t kCalls = 64;          // that a communicator keeps
inline constexpr std::uint32_t kCommunicators = 24;  // that are kept at once
inline constexpr std::uint32_t kAlgorithms = 24;     // names per communicator
inline constexpr std::uint32_t kPeers = 128;         // with a row of bytes

using Word = std::atomic<std::uint64_t>;
static_assert(Word::is_always_lock_free && sizeof(Word) == 8);

// One call: its word (communicator/record/call_word.h), and when it began. `begun`: ns of
// CLOCK_MONOTONIC, as of the last heartbeat before it; the lowest 8 bits are the position of its
// algorithm's name.
struct Call {
  Word word, begun;
};
inline constexpr std::uint64_t kAlgorithmBits = 0xff;

enum class ProcessState : std::uint32_t { kJoining = 1, kJoined, kJoinFailed };

// What a process saw of another one of its host. The first sight stays: who stops may be killed
// later.
enum class Sighted : std::uint32_t { kNothing, kStopped, kEnded };
struct Sight {
  std::uint64_t at_wall = 0;
  std::uint32_t rank = 0;  // in the job
  Sighted what = Sighted::kNothing;
};

// What the process does outside of calls, together with the other ranks of a communicator.
enum class AgreementKind : std::uint32_t { kNone, kAccept, kRejoin };
struct Agreement {
  std::uint64_t communicator = 0;  // Details::id
  std::uint64_t since_ns = 0;
  AgreementKind kind = AgreementKind::kNone;
  std::uint32_t newcomers = 0;  // that accept() waits for
};

// About the process. Texts end with a zero.
struct Process {
  char library[24];  // its version
  char provider[48];
  char job[24];      // the same on all ranks; empty: this process has not joined
  char joining[24];  // the same on all ranks that wait in join(), as far as it is known
  char host[72];
  std::uint32_t rank, size;
  std::uint32_t pid;
  ProcessState state;
  std::uint64_t pid_space;             // inode of the namespace of processes; 0: not known
  std::uint64_t start_ticks;           // of the process, /proc/PID/stat
  std::uint64_t since_ns, since_wall;  // of the state: CLOCK_MONOTONIC, CLOCK_REALTIME
  std::uint64_t joining_ns;            // when join() began
  std::uint64_t end_wall;              // when the process left a record that stays; 0: it has not
  std::uint32_t is_locked;             // the process holds a lock on the file as long as it lives
  std::uint32_t has_far_ranks;         // the launcher said that the job has ranks on other hosts
  Agreement agreement;
  Sight sight;
  std::uint32_t communicators;   // made so far
  std::uint32_t unrecorded;      // of these, without a part here
  std::uint32_t failures;        // of communicators
  std::uint32_t deadline_ms;     // JoinOptions::deadline
  std::uint32_t schedule_ranks;  // of `espalier run`: nodes from here on are routers; 0: a
                                 // job of communicators
  char board[72];                // the board behind this gateway; empty: there is none
  char text[320];                // why join() failed, or the node ended
  char hosts[4096];              // of all ranks in order, "a*4 b*4"; "..." : the rest is cut
};

// What a call waits for. `call` is its number; another number than the last call's: none waits.
struct Wait {
  std::uint64_t call = 0;
  std::uint64_t call_since_ns = 0;   // when the call began to wait
  std::uint64_t since_ns = 0;        // when the wait for this message began; 0: for no message
  std::uint64_t noted_ns = 0;        // when the process saw this
  std::int64_t step = 0, steps = 0;  // of the schedule
  std::uint32_t peer = 0;            // rank in the communicator
  std::uint32_t peer_in_job = 0;
  std::uint32_t is_sending = 0, is_for_peer = 0;
};

struct Failure {
  std::uint64_t call = 0;  // the failed call: in progress then, or begun afterwards; 0: none
  std::uint64_t at_ns = 0, at_wall = 0;
  std::uint32_t status = 0;              // espalier::Status; 0: no failure
  std::uint32_t detector = 0, peer = 0;  // ranks in the communicator
  std::uint32_t detector_in_job = 0, peer_in_job = 0;
  char text[360] = {};
};

struct Details {
  std::uint64_t id = 0;              // the same on all its ranks; 0: no communicator is here
  std::uint32_t number = 0;          // counted by this process; 0: the communicator of the job
  std::uint32_t rank = 0, size = 0;  // in the communicator
  std::uint32_t has_left = 0;
  char algorithms[kAlgorithms][20] = {};
  Wait wait;
  Failure failure;
};

struct Part {
  Word begun, done;    // numbers of the last call that began, and of the last one that is done
  Word clock_ns;       // of the last heartbeat, without the lowest 8 bits
  Word changed_ns;     // the first heartbeat that saw these values of begun and done
  Word inside_ns;      // the first heartbeat in the call that the program is in; 0: it is in none
  Word sequence;       // of `details`
  Call calls[kCalls];  // call n is calls[n % kCalls]
  Details details;
};

// Bytes of complete calls, to and from another rank of the job.
struct Peer {
  Word rank;  // in the job, + 1; 0: a free row
  Word sent, received;
};

struct Record {
  char magic[8];
  std::uint32_t version, bytes;
  Word heartbeat_ns, heartbeat_wall;
  Word sequence;  // of `process`
  Process process;
  Peer peers[kPeers];
  Peer other_peers;  // all that have no row
  Part communicators[kCommunicators];
};
static_assert(sizeof(Record) <= kMaxBytes);

}  // namespace espalier::record
