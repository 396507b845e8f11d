#pragma once
// The schedules of a communicator: for each collective and size the one that the model chooses, or
// that a file holds, proven before it is used. Host only.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/predict/model.h"
#include "espalier/base/result.h"
#include "espalier/collectives/schedule/programs.h"

namespace espalier::communicator {

class ImagePrograms;

// This rank's part of a proven schedule.
struct PlannedProgram {
  OwnedProgram program;
  std::string algorithm;  // "two-tree"
  bool in_place = false;  // input and output may be the same memory on every rank
};

// Which schedule a call needs.
struct ScheduleRequest {
  Collective collective = Collective::kNone;
  std::uint32_t root = 0;
  std::uint64_t bytes = 0;      // of the whole message, or of the largest part
  bool commutes = true;         // the operator
  bool unequal_counts = false;  // a count for each rank
  bool own_counts = false;      // of which each rank knows only its own: direct messages only
  bool operator==(const ScheduleRequest&) const = default;
};

// What join() measures.
using NetworkCost = predict::NetworkCost;

// What messages cost.
struct Costs {
  std::string model = {};  // file of a model; empty: none
  // R, if each host has R successive ranks, which share its memory; otherwise 1.
  std::uint32_t ranks_per_host = 1;
  // Processors of the host on which all ranks are and share memory; 0: they do not. Without effect
  // if there is a model.
  std::uint32_t memory_cores = 0;
  // Without effect if the others are given. Nothing: not known.
  std::optional<NetworkCost> network = {};
  // The network is measured with collectives before the program has any: until measured() is
  // called, fixed algorithms serve all, and no file or image.
  bool is_measuring = false;
};

// All schedules of a communicator, or of several whose ranks and costs are the same. Every rank
// chooses alike: from the number of ranks, the request and the model, by integer arithmetic. Any
// number of threads may call it, except measured().
class Schedules {
 public:
  // `files`: schedule files, which serve their collective and root. `costs`: alike on all ranks.
  // `image`: of this node, or null. Errors: a file that cannot be read, is not a schedule for this
  // number of ranks, or serves what another file or the image serves; a model that cannot be read.
  [[nodiscard]] static Result<std::unique_ptr<Schedules>> make(
      std::uint32_t rank, std::uint32_t ranks, const std::vector<std::string>& files,
      const Costs& costs, std::shared_ptr<const ImagePrograms> image = nullptr);
  virtual ~Schedules() = default;
  // Returns the schedule for a call; it lives as long as this object. Errors: no schedule serves
  // the call; one that was chosen does not verify.
  [[nodiscard]] virtual Result<const PlannedProgram*> obtain(const ScheduleRequest& request) = 0;
  // Whether obtain() finds the schedule at once. Otherwise it chooses and proves, which can take
  // seconds.
  [[nodiscard]] virtual bool is_known(const ScheduleRequest& request) const = 0;
  // Returns the schedule if is_known() and no other thread chooses or proves one; otherwise null.
  [[nodiscard]] virtual const PlannedProgram* find(const ScheduleRequest& request) = 0;
  // Ends the measuring. `cost`: alike on all ranks.
  virtual void measured(const NetworkCost& cost) = 0;
};

}  // namespace espalier::communicator
