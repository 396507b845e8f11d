#pragma once
// The record that this process keeps while it is in a job: one file, mapped into memory, so that a
// reader needs nothing of the process, and so that it stays after a signal ended the process. Host
// only.
//
// Writer is of the process, Recorder of one channel. A call costs some stores (Recorder::begin(),
// end()); everything else is written by a call that has waited for a while, or by the library's
// thread, ten times a second at most.

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/process/forks.h"
#include "communicator/record/folder.h"
#include "communicator/record/layout.h"
#include "espalier/base/result.h"
#include "espalier/collectives/schedule/program.h"
#include "espalier/hal/endpoint.h"

namespace espalier::record {

// What a record says from its beginning.
struct Origin {
  std::string joining = {};  // the same on all ranks that wait in join(); may be empty
  std::uint32_t rank = 0, size = 0;
  std::string provider = {};
  std::chrono::nanoseconds deadline = {};
  bool has_far_ranks = false;  // on other hosts, as the launcher says
  // Ranks of the schedule, for a node of a run that is named `joining`. 0: a process that calls
  // join().
  std::uint32_t schedule_ranks = 0;
};

// What a rank tells the others beside its address, when they connect.
struct Card {
  std::string host = {};
  std::string job = {};     // the job's name, as this rank would give it
  bool has_joined = false;  // the name is the job's already
};
// Returns `address` with the card at its end.
[[nodiscard]] std::string with_card(const std::string& address, const Card& card);
// Takes the card from the end of `address`. Empty: there is none. What is no name of a host or of a
// job is left out.
[[nodiscard]] Card take_card(std::string& address);

class Writer {
 public:
  // Makes the record of this process, or of one of its nodes, in the folder that ESPALIER_RECORD
  // names, otherwise in this user's folder of this host. Null: no folder or memory has room;
  // ESPALIER_VERBOSE says why.
  // Error: the folder of ESPALIER_RECORD cannot be used.
  [[nodiscard]] static Result<std::shared_ptr<Writer>> make(const Origin& origin);
  // Removes the file, unless ESPALIER_RECORD is set and a failure was noted. In a forked child: no
  // effect.
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  [[nodiscard]] Card card() const;
  // All ranks have come, and have exchanged their cards, one per rank of the job.
  void joined(const std::vector<Card>& cards, std::uint32_t rank);
  void join_failed(const std::string& why);
  // This process waits for the others in accept() or rejoin(), until end_agreement().
  void begin_agreement(Agreement agreement);
  void end_agreement();
  // Notes whether this process of the job is stopped or has ended, if it is on this host.
  void look_at(std::uint32_t rank, std::uint64_t now_ns) noexcept;
  // A node of `espalier run` is connected.
  void connected();
  // It ends for a reason of its own. Empty: because its launcher is gone.
  void ended(const std::string& why);
  void name_board(const std::string& board);
  // Notes that the process lived at this time, of CLOCK_MONOTONIC. Called by the library's thread,
  // or by a node.
  void beat(std::uint64_t now_ns);
  // The folder in which the other ranks of this host have theirs, and those of other hosts do not.
  [[nodiscard]] const std::string& folder() const {
    return run_folder_.empty() ? folder_ : run_folder_;
  }
  [[nodiscard]] std::string job() const;
  [[nodiscard]] std::uint32_t rank() const;
  // How many agreements on the processes of the job have communicators that have not ended.
  [[nodiscard]] std::size_t generations() const;

 private:
  friend class Recorder;
  class Change;
  explicit Writer(std::string folder) : folder_(std::move(folder)) {}
  [[nodiscard]] bool map(const std::string& path);
  // Another process of this host. An empty path: it has no record here.
  struct Neighbour {
    Identity identity = {};
    std::string path = {};
    std::uint64_t search_ns = 0;  // when it is looked for again
  };
  void find_neighbour(const std::string& job, std::uint32_t rank, Neighbour& found) const;
  void note_sight(std::uint32_t rank, Sighted what);
  void name_file(const std::string& job);
  [[nodiscard]] std::string link_path() const;
  void link_file();
  void fail();
  [[nodiscard]] Part* add(std::uint32_t rank, const std::vector<std::uint32_t>& ranks,
                          std::uint32_t generation);
  // The communicator that add() counted has ended.
  void remove(std::uint32_t generation);
  void add_bytes(std::uint32_t rank, std::uint64_t sent, std::uint64_t received);
  [[nodiscard]] Peer& row_of(std::uint32_t rank);

  mutable std::mutex mutex_;  // of all that is not atomic
  Record* record_ = nullptr;
  std::string folder_, name_;
  std::string run_folder_;  // has a link to the file; empty: the file itself is there
  std::string proposal_;    // the job's name, if this rank gives it
  bool is_given_ = false;   // ESPALIER_RECORD is set
  bool is_kept_ = false;
  int file_ = -1;  // holds the lock
  std::map<std::uint32_t, Neighbour> neighbours_;
  // The communicators of one agreement on the processes of the job.
  struct Generation {
    std::uint32_t open = 0;                         // that have not ended here
    std::map<std::uint64_t, std::uint64_t> groups;  // made, by their ranks
  };
  std::map<std::uint32_t, Generation> generations_;  // with open communicators
  std::uint32_t generation_ = process_generation();
};

// The messages of a schedule with one size of message, and how often it was complete.
struct Traffic {
  struct Link {
    std::uint32_t peer = 0;  // rank in the communicator
    std::uint64_t sent = 0, received = 0;
  };
  std::uint64_t digest = 0;  // of the schedule
  std::uint64_t count = 0;   // of elements
  bool is_unequal = false;   // a count for each rank: not shared with other calls
  std::uint32_t element_bytes = 0;
  std::int64_t steps = 0;
  std::vector<Link> links = {};
  std::uint64_t runs = 0;
};
// Finds steps and links, by a look at each message. Without effect if the program refuses these
// counts.
void find_links(const Program& program, ElementCounts counts, Traffic& traffic);

// A channel's part of the record. All functions except beat() are called by the thread that uses
// the channel.
class Recorder {
 public:
  // `ranks`: of the job, by rank in the communicator. `writer`: null: nothing is recorded.
  // `generation`: of the agreement on the processes of the job; the same on all ranks.
  void open(std::shared_ptr<Writer> writer, std::uint32_t rank, std::vector<std::uint32_t> ranks,
            std::uint32_t generation);
  // The channel ends. What failed stays in the record as long as there is room.
  void close();
  [[nodiscard]] const std::shared_ptr<Writer>& writer() const { return writer_; }
  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] std::uint32_t number() const { return number_; }
  // Whether a rank has another number in the job.
  [[nodiscard]] bool is_renumbered() const;
  // " (rank 3 of the job)"; empty: the ranks have the same numbers there.
  [[nodiscard]] std::string job_text(std::uint32_t rank) const;

  // Returns the position of the algorithm's name; allocates nothing.
  [[nodiscard]] std::uint8_t position_of(const std::string& algorithm);
  // Returns the traffic of a call, which is counted once per run.
  [[nodiscard]] std::shared_ptr<Traffic> traffic_of(const Program& program, ElementCounts counts,
                                                    std::uint32_t element_bytes);

  void begin(std::uint64_t word, std::uint8_t algorithm) {
    const std::uint64_t call = part_->begun.load(std::memory_order_relaxed) + 1;
    Call& kept = part_->calls[call % kCalls];
    kept.word.store(word, std::memory_order_relaxed);
    kept.begun.store(part_->clock_ns.load(std::memory_order_relaxed) | algorithm,
                     std::memory_order_relaxed);
    part_->begun.store(call, std::memory_order_release);
  }
  // The call that began last did not start.
  void drop() {
    part_->begun.store(part_->begun.load(std::memory_order_relaxed) - 1, std::memory_order_release);
  }
  // The call that began last is done.
  void end() {
    part_->done.store(part_->begun.load(std::memory_order_relaxed), std::memory_order_release);
  }
  [[nodiscard]] std::uint64_t call() const {
    return is_open() ? part_->begun.load(std::memory_order_relaxed) : 0;
  }

  // The call in progress waits. `wait`: without `call` and `peer_in_job`.
  void note_wait(Wait wait);
  void note_failure(const Cause& cause, const std::string& text);
  // The program makes a call after a failure that no call was in. Only the first one counts.
  void note_late_call(std::uint64_t word, const std::string& text);
  // Calls up to this number are done. Those among them that did not begin here get this word.
  void skip_to(std::uint64_t call, std::uint64_t word, std::uint8_t algorithm);
  // Sets the bytes to and from a rank of the communicator, which no traffic counts.
  void set_bytes(std::uint32_t rank, std::uint64_t sent, std::uint64_t received);
  // Adds the bytes of all runs to the record.
  void count_bytes();
  // `is_inside`: the program has been in one call since the last beat.
  void beat(std::uint64_t now_ns, bool is_inside);

 private:
  [[nodiscard]] bool is_open() const { return part_ != &kNowhere; }
  [[nodiscard]] std::uint32_t in_job(std::uint32_t rank) const {
    return rank < ranks_.size() ? ranks_[rank] : rank;
  }

  static Part kNowhere;  // calls that are not recorded are written here, and never read

  std::shared_ptr<Writer> writer_;
  Part* part_ = &kNowhere;
  std::uint64_t id_ = 0;
  std::uint32_t number_ = 0;
  std::uint32_t generation_ = 0;
  std::vector<std::uint32_t> ranks_;
  std::vector<std::shared_ptr<Traffic>> traffic_;
  std::uint64_t seen_begun_ = 0, seen_done_ = 0;  // of beat()
};

}  // namespace espalier::record
