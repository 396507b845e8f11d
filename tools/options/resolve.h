#pragma once
// From options to a schedule: by name, or chosen by the model if the algorithm is kAuto. Host only.

#include <memory>
#include <string>

#include "planner/choose/choice.h"
#include "planner/choose/chosen_schedules.h"
#include "tools/common/command_line.h"
#include "tools/options/workload_options.h"

namespace espalier::tools {

// The message that one schedule is chosen for if none is named.
inline constexpr const char* kDefaultChoiceBytes = "1MiB";

// As typed; empty: not given.
struct ModelOptions {
  std::string model;                // file of a model
  std::string board;                // description or folder of a board
  std::string ranks_per_host = {};  // that share its processors
  std::string bytes = {};           // the message to choose for
};
// Adds --model, --board and --ranks-per-host.
void add_model_options(Command command, ModelOptions& options);
// Adds --bytes, and --op and --type. `fallback`: what is chosen for without --bytes.
void add_choice_bytes(Command command, ModelOptions& options, OperatorOptions& combining,
                      const std::string& fallback = kDefaultChoiceBytes);

// The model that --model names, otherwise the default one. Throws Failure (bad input).
[[nodiscard]] predict::Model model_of(const ModelOptions& options);

void add_ranks_per_host(Command command, std::string& text);
// The value of --ranks-per-host; empty: 0, as the topology says. Throws Failure (bad input), also
// if nothing that the model knows depends on it.
[[nodiscard]] std::uint32_t ranks_per_host(const std::string& text, const predict::Model& model);

// A request made into a schedule, and why.
struct Resolved {
  planner::PlannedSchedule schedule;
  std::string reason;  // one line for the user; empty: the request named the algorithm
};
// Chooses for a message of `bytes` if is_chosen(), otherwise makes the schedule that the request
// names. With a model (--model) or a board, a named schedule gets their block table, too. Throws
// Failure (bad input).
[[nodiscard]] Resolved resolve(const planner::PlanRequest& plan, const OperatorOptions& combining,
                               const ModelOptions& options);
// Chooses for messages of all sizes. Throws Failure (bad input).
[[nodiscard]] planner::ChosenSchedules resolve_for_all_sizes(const planner::PlanRequest& plan,
                                                             const OperatorOptions& combining,
                                                             const ModelOptions& options);

// A board's limits, kept for as long as a request refers to them.
class BoardLimits {
 public:
  // `path` may be empty: no limits. Throws Failure (bad input).
  explicit BoardLimits(const std::string& path);
  // Null without a board.
  [[nodiscard]] const board::BoardFile::Limits* get() const { return limits_.get(); }

 private:
  std::unique_ptr<board::BoardFile::Limits> limits_;
};

// "two-tree, chosen for 1048576 bytes: 1.2 ms predicted from default constants"
[[nodiscard]] std::string describe_choice(const planner::Choice& choice,
                                          const planner::Ranking& ranking);

}  // namespace espalier::tools
