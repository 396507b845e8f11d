#pragma once
// What `espalier status` sees of a node of `espalier run`: its record, which the node, or the
// gateway of a board, writes in its loop. Without a job it writes nothing. Host only.

#include <cstdint>
#include <memory>
#include <string>

#include "communicator/record/writer.h"
#include "espalier/collectives/machine/machine.h"
#include "firmware/node/boot_options.h"

namespace espalier::node {

// A request of the launcher, as the record shows each of its collectives.
struct RecordedRun {
  Collective collective = Collective::kNone;  // kNone: it is not known
  std::uint32_t root = 0;
  std::string algorithm = {};
  Operator op = {};
  ElementCounts counts = std::uint64_t{0};
  const Program* program = nullptr;  // null: not known; must last until the next run
};

class NodeRecord {
 public:
  // Makes the record of `node`, which starts.
  // Error: a wrong ESPALIER_RECORD.
  [[nodiscard]] Result<void> open(const BootOptions& options, std::uint32_t node);
  // `board`: the board that is the node, and where it is.
  void name_board(const std::string& board);
  void connected();
  // The node ends. `why`: empty: its launcher is gone.
  void ended(const std::string& why);

  // A run of collectives is requested; the cluster has completed `done` before it.
  void begin_run(const RecordedRun& run, std::uint64_t done);
  // A collective of the run begins, and is complete.
  void begin() { recorder_.begin(word_, algorithm_); }
  void end() { recorder_.end(); }
  // How many collectives of the run are complete, and whether the next one runs, as a board tells;
  // or after a failure, with which a node went on.
  void reach(std::uint64_t completed, bool is_running);
  // The collective in progress, or the last one, failed; it waited for this.
  void fail(const Cause& cause, const StallReport& stall, std::uint64_t now_ns);
  // The run ended. Its bytes are counted when nothing else is to be done, at the latest in
  // count_rest(), before its counts are gone.
  void end_run(std::uint64_t completed) { completed_ = completed; }
  void count_rest() { count(completed_); }

  // Notes once in a while that the node lives, what it waits for, and its bytes. Call it a few
  // times per beat (kBeatNs). machine: null: no collective is in progress. completed: of the run.
  void look(std::uint64_t now_ns, const Machine* machine, std::uint64_t completed);
  // The same for a board, which gave its last sign at `sign_ns`. Returns whether a beat was due.
  bool look_at_board(std::uint64_t now_ns, std::uint64_t sign_ns, bool is_running);
  // The collective in progress waits, as the node found, or the board told, at `now_ns`.
  void note_wait(const StallReport& stall, std::uint64_t now_ns);
  // Sets the bytes of a board's link since the start.
  void set_bytes(std::uint32_t node, std::uint64_t sent, std::uint64_t received) {
    recorder_.set_bytes(node, sent, received);
  }
  static constexpr std::uint64_t kBeatNs = 100'000'000;

 private:
  void look_at(const Machine& machine, std::uint64_t now_ns);
  // Returns whether a beat was due.
  bool beat(std::uint64_t now_ns, std::uint64_t sign_ns, bool is_running);
  void find_traffic();
  void count(std::uint64_t completed);

  std::shared_ptr<record::Writer> writer_;
  record::Recorder recorder_;
  RecordedRun run_;
  std::uint64_t word_ = 0;
  std::uint8_t algorithm_ = 0;
  bool is_connected_ = false;
  std::shared_ptr<record::Traffic> traffic_;  // of the run; null: not found yet
  std::uint64_t base_ = 0;                    // collectives before the run
  std::uint64_t completed_ = 0;               // of the run, once it ended
  std::uint64_t counted_ = 0;                 // of the run, whose bytes are in the record
  std::uint64_t beat_ns_ = 0;                 // of the last beat
  std::uint32_t beats_ = 0;
  std::uint64_t beat_call_ = 0;     // that was in progress at the last beat
  std::uint64_t seen_call_ = 0;     // that was last found in progress
  std::uint64_t seen_ns_ = 0;       // when it was found first
  std::uint64_t wait_from_ns_ = 0;  // since when it waits; 0: it has not waited for long
  std::uint64_t note_ns_ = 0;       // when its wait was noted last
};

}  // namespace espalier::node
