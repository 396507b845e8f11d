#pragma once
// How a node continues without a host after the loss of a link or of a node. It chooses the spare
// programs by the cause that all survivors hold, re-opens the machine over other links, and agrees
// with the others there. A lost node that comes back is taken in again. Freestanding;
// docs/spares.md.

#include <cstdint>

#include "base/loss.h"
#include "collectives/machine/open_links.h"
#include "espalier/collectives/machine/machine.h"
#include "espalier/collectives/schedule/program.h"
#include "espalier/hal/endpoint.h"
#include "espalier/internal/base/little_endian.h"

namespace espalier {

// The losses for which a node has spare programs, the same on all nodes of a cluster: kLinks: of
// every single link; kNodes: of every single node; kBoth.
enum class SpareKinds : std::uint8_t { kLinks = 1, kNodes = 2, kBoth = 3 };

// What a node has for the time after a failure. Its owner implements it.
class Spares {
 public:
  // Returns the losses that it has programs for.
  [[nodiscard]] virtual SpareKinds kinds() const = 0;
  // Makes the programs for this loss those of the node, and returns their agreement: an allreduce.
  // Null: there are none. The node's former programs are not used any more. Without a loss: the
  // main programs, and an agreement of all nodes.
  [[nodiscard]] virtual const Program* load(const Loss& loss) = 0;
  // Returns the number of sets of links, the same on all nodes.
  [[nodiscard]] virtual std::uint32_t generations() const = 0;
  // Opens the links of this generation, which carry nothing of earlier ones. Generation 0 is the
  // one at the start. Null: there is none.
  [[nodiscard]] virtual Endpoint* open(std::uint32_t generation) = 0;

 protected:
  ~Spares() = default;
};

// How far a node came, in collectives counted from 0 since the start. Collectives that were lost
// count as completed.
struct RecoveryProgress {
  // All collectives below this number are complete here.
  std::uint32_t completed = 0;
  // The collective with this number, and all later ones, can be run here again, or for the first
  // time: their inputs are untouched.
  std::uint32_t repeatable = 0;
};

// Where all survivors continue.
struct RecoveryPoint {
  std::uint32_t completed = 0;  // all collectives below this number are complete on all nodes
  // The collective that all nodes run next. Those from `completed` up to it are lost: at least one
  // node has not completed them, and at least one cannot repeat them. Their outputs are undefined.
  std::uint32_t next = 0;
};

// A node's way from a failure to its spare programs.
class Recovery {
 public:
  // Elements of the agreement: an allreduce of the minimum of u32.
  static constexpr std::uint32_t kElements = 4;
  // Scratch that an agreement may need, in slots of kElements.
  static constexpr std::uint32_t kScratchSlots = 64;
  // Sets of links that a node may need: the first, and one for each attempt.
  static constexpr std::uint32_t kGenerations = 3;
  // More sets of links for each node that comes back: the set on which the node is taken in, and a
  // set for each later attempt.
  static constexpr std::uint32_t kGenerationsPerReturn = 3;
  // How often nodes can come back to a cluster of boards or espalier-nodes.
  static constexpr std::uint32_t kReturns = 2;
  // The sets of links of their nodes.
  static constexpr std::uint32_t kAllGenerations = kGenerations + kReturns * kGenerationsPerReturn;

  // `machine` uses the endpoint of generation 0. All must outlive the recovery. deadline_ns: D, as
  // the machine's.
  Recovery(Machine& machine, Endpoint& endpoint, Spares& spares, std::uint64_t deadline_ns);
  Recovery(const Recovery&) = delete;
  Recovery& operator=(const Recovery&) = delete;

  // Begins after the machine's poll() returned a failure. kBusy: call poll(). Otherwise the
  // failure, which is final: another cause than a dead link, no spare for it, this node is the one
  // to go, or the cluster has a spare in use already.
  [[nodiscard]] Status begin(const RecoveryProgress& progress);
  // Call until it does not return kBusy; it polls the machine. kOk: all survivors have agreed, and
  // the machine is idle: continue at point(), with the programs of the spare. Otherwise the
  // failure, which is final: cause() names it.
  [[nodiscard]] Status poll();
  // Asks all survivors whether the lost node asks to be taken in again. All call it between the
  // same two collectives, also after a recovery; `number` is the number of the next collective.
  // kOk: no node is lost, so nothing was done. kBusy: call poll(). After its kOk load the programs
  // of loss() again: the same, or the main ones if the node is taken in. Otherwise the failure,
  // which is final.
  [[nodiscard]] Status look(std::uint32_t number);
  // Begins, in place of the first collective, on a node that the others left out and that started
  // anew. kBusy: call poll(), until all have taken it in. The node asks until then, over the links
  // of one generation after the other. kUnsupported: no one answered; start the node anew, with
  // another session of its links, and ask again. kTooLarge: the others have too few sets of links
  // left to take it in. Otherwise another failure. All but kUnsupported are final. After any
  // failure do not poll the machine: it would answer the others' probes.
  [[nodiscard]] Status come_back();
  // Returns the endpoint time at which poll() has work even if nothing arrives.
  [[nodiscard]] std::uint64_t next_deadline() const;

  // Returns the loss that the spare in use, or the last attempt, is for. None: the main programs.
  [[nodiscard]] const Loss& loss() const { return loss_; }
  // Returns where all continue. Valid once poll() has returned kOk.
  [[nodiscard]] const RecoveryPoint& point() const { return point_; }
  // Returns the cause of the newest failure, by the numbers that nodes had at the start.
  [[nodiscard]] const Cause& cause() const { return cause_; }
  // Whether this node is the one that the others leave out: it sends nothing any more.
  [[nodiscard]] bool expelled() const { return expelled_; }
  // Returns the number of the set of links that the machine uses.
  [[nodiscard]] std::uint32_t generation() const { return generation_; }

 private:
  enum class State : std::uint8_t { kRuns, kWaits, kAgrees, kLooks, kAsks, kEnded };

  void note_cause();
  [[nodiscard]] bool choose(const Cause& cause);
  [[nodiscard]] Status wait_for_others();
  [[nodiscard]] Status agree();
  [[nodiscard]] Status start(State state, const Program& program, std::uint32_t first,
                             std::uint32_t second);
  [[nodiscard]] Status take_in();
  [[nodiscard]] Status ask_in(std::uint32_t generation);
  [[nodiscard]] Status ask();
  [[nodiscard]] Status end(Status status);

  Machine* machine_;
  Endpoint* endpoint_;
  Spares* spares_;
  std::uint64_t quiet_ns_;
  std::uint64_t open_at_ = 0;   // kWaits: the end of the quiet
  std::uint64_t ask_at_ = 0;    // kAsks: the time of the next request
  std::uint64_t leave_at_ = 0;  // kAsks: when to try other links
  bool answered_ = false;       // kAsks: on these links
  std::uint32_t generation_ = 0;
  State state_ = State::kRuns;
  Status status_ = Status::kOk;
  bool expelled_ = false;
  Loss loss_;
  Cause cause_;
  RecoveryProgress progress_;
  RecoveryPoint point_;
  OpenLinks links_;
  Little<std::uint32_t> given_[kElements] = {};
  Little<std::uint32_t> agreed_[kElements] = {};
  alignas(16) std::uint8_t scratch_[kScratchSlots * kElements * 4] = {};
};

}  // namespace espalier
