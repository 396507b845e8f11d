#pragma once
// The schedules of a communicator: for each collective and size the one that the model chooses, or
// that a file holds, proven before it is used. Host only.
//
// Between a call and its schedule there are three caches:
// - the last operations of a channel (channel.h): a repeated call must allocate nothing;
// - the choices and programs here: communicators of the same ranks choose and prove once;
// - the files of a host (cache/cache_file.h): not every rank of every job chooses and proves.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "collectives/predict/model.h"
#include "collectives/predict/predict.h"
#include "espalier/base/result.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/topology/topology.h"
#include "planner/make/plan.h"

namespace espalier::communicator {

class ImagePrograms;
class RankGraph;
struct FixedAlgorithms;

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
  // The links between the ranks, along which all schedules run hop by hop; null: any two can talk.
  std::shared_ptr<const RankGraph> graph = {};
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
  ~Schedules();
  // Returns the schedule for a call; it lives as long as this object. Errors: no schedule serves
  // the call; one that was chosen does not verify.
  [[nodiscard]] Result<const PlannedProgram*> obtain(const ScheduleRequest& request);
  // Returns the schedule at once; null: obtain() has to choose or prove, which can take seconds.
  [[nodiscard]] const PlannedProgram* find(const ScheduleRequest& request) const;
  // Whether any two ranks can talk. Otherwise no all-to-all can have a count for each part, nor any
  // collective own_counts.
  [[nodiscard]] bool is_direct() const;
  // Ends the measuring. `cost`: alike on all ranks.
  void measured(const NetworkCost& cost);

 private:
  // Where an algorithm comes from. The same one has other blocks if a choice fitted it.
  enum class Source : std::uint8_t { kFile, kFixed, kChosen, kChosenInOrder };
  // A program must not depend on earlier requests: ranks that share it with other communicators
  // have other ones. So the key has all that it depends on: name, source, collective, root. A file
  // has no name there.
  using Key = std::tuple<std::string, Source, Collective::Value, std::uint32_t>;
  struct Planned {
    PlannedProgram program;
    bool takes_unequal_counts = false;  // on every rank
  };
  // Which of the choices serves a request: one per collective. A reduce to another root than 0 has
  // one of its own for operators that do not commute: there, programs of fewer algorithms keep the
  // order of ranks.
  using ChoiceKey = std::pair<Collective::Value, bool>;
  struct Chosen;
  // The algorithm for a request, unless it cannot have unequal counts. `index`: in Chosen, or
  // kFixedChoice.
  struct Choice {
    std::string name;
    std::size_t index = kFixedChoice;
  };
  static constexpr std::size_t kFixedChoice = SIZE_MAX;

  // `model`: that of the costs' file; nothing: there is none. `topology`: all ranks.
  Schedules(std::uint32_t rank, const Costs& costs, std::optional<predict::Model> model,
            std::shared_ptr<const topology::Topology> topology,
            std::shared_ptr<const ImagePrograms> image);
  [[nodiscard]] Result<void> add_file(const std::string& path);
  void set_network(const NetworkCost& cost);
  [[nodiscard]] static Key fixed_key(const std::string& name, const ScheduleRequest& request) {
    return {name, Source::kFixed, request.collective, request.root};
  }
  [[nodiscard]] static ChoiceKey choice_key(const ScheduleRequest& request);
  [[nodiscard]] static Key key_of(const Choice& choice, const ScheduleRequest& request);
  [[nodiscard]] bool has_fixed_choice(const ScheduleRequest& request) const;
  [[nodiscard]] const char* find_star(const ScheduleRequest& request) const;
  [[nodiscard]] const FixedAlgorithms& named(Collective collective) const;
  [[nodiscard]] std::string topology_name() const;
  [[nodiscard]] Result<void> check_links(const std::string& what,
                                         const std::vector<OwnedProgram>& programs) const;
  // These four: with mutex_ or planning_.
  [[nodiscard]] Choice find_choice(const ScheduleRequest& request) const;
  // Finds the program of a file or of the image. kBadArgument: none is for the call. kBadOperator:
  // none of those that are keeps the order of ranks.
  [[nodiscard]] Status find_given(const ScheduleRequest& request,
                                  const PlannedProgram*& found) const;
  [[nodiscard]] const PlannedProgram* known(const Key& key, const ScheduleRequest& request) const;
  // Returns what obtain() returns, if that has not to choose or prove; otherwise null.
  [[nodiscard]] const PlannedProgram* find_planned(const ScheduleRequest& request) const;
  // If is_verbose_, prints the algorithm, the first time for this collective, algorithm and power
  // of two of bytes. With mutex_.
  void print_algorithm(const ScheduleRequest& request, const PlannedProgram& program) const;
  // All below: with planning_.
  [[nodiscard]] Result<Chosen*> choose(const ScheduleRequest& request);
  [[nodiscard]] Result<const PlannedProgram*> serve(const ScheduleRequest& request);
  [[nodiscard]] Result<const PlannedProgram*> plan(planner::PlannedSchedule& schedule,
                                                   const Key& key, const ScheduleRequest& request);
  [[nodiscard]] Result<const PlannedProgram*> plan_chosen(Chosen& chosen, std::size_t index,
                                                          const Key& key,
                                                          const ScheduleRequest& request);
  [[nodiscard]] Result<const PlannedProgram*> plan_on_graph(planner::PlannedSchedule& schedule,
                                                            planner::PlanRequest wanted,
                                                            const Key& key,
                                                            const ScheduleRequest& request);
  [[nodiscard]] Result<const PlannedProgram*> plan_fixed(const std::string& name,
                                                         const ScheduleRequest& request);
  // `algorithm`: empty: the model chooses.
  [[nodiscard]] Result<planner::PlanRequest> request_of(const ScheduleRequest& request,
                                                        const std::string& algorithm) const;

  std::uint32_t rank_, ranks_;
  bool has_hosts_;                          // of several ranks each
  std::shared_ptr<const RankGraph> graph_;  // null: any two ranks can talk
  std::shared_ptr<const topology::Topology> topology_;
  predict::Model model_ = predict::default_model();
  predict::Conditions conditions_;
  NetworkCost network_ = {};                    // a message_ps of 0: not known
  std::shared_ptr<const ImagePrograms> image_;  // null: none
  bool is_measuring_;
  bool is_verbose_;           // on rank 0, if ESPALIER_VERBOSE is set
  std::mutex planning_;       // of a thread that chooses or proves, which may take seconds
  mutable std::mutex mutex_;  // of the maps below; a thread that changes them has planning_, too
  std::map<ChoiceKey, std::unique_ptr<Chosen>> chosen_;
  std::map<Key, Planned> planned_;
  mutable std::set<std::tuple<Collective::Value, std::string, int>> printed_;
};

}  // namespace espalier::communicator
