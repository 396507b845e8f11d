#include "tools/options/resolve.h"

#include <limits>

#include "collectives/predict/block_rules.h"
#include "planner/board/board.h"
#include "tools/common/failure.h"
#include "tools/common/numbers.h"
#include "tools/common/output.h"

namespace espalier::tools {

void add_model_options(Command command, ModelOptions& options) {
  command.text("--model", options.model,
               "A model that 'espalier measure -o' wrote: costs of links and nodes; default: "
               "default constants of the links' classes");
  command.text("--board", options.board,
               "A board's description or its folder: the schedule must keep the limits of its "
               "firmware");
  add_ranks_per_host(command, options.ranks_per_host);
}

void add_ranks_per_host(Command command, std::string& text) {
  command.text("--ranks-per-host", text,
               "With a --model that has cores: successive ranks that share a host's processors; "
               "default: R of hosts:HxR, otherwise 1");
}

std::uint32_t ranks_per_host(const std::string& text, const predict::Model& model) {
  if (text.empty()) return 0;
  const auto ranks = static_cast<std::uint32_t>(
      whole_number("--ranks-per-host", text, 1, std::numeric_limits<std::uint32_t>::max()));
  if (model.cores == 0) {
    bad_input(
        "--ranks-per-host is for a model that says how many processors a host has; expected a "
        "--model with cores");
  }
  return ranks;
}

void add_choice_bytes(Command command, ModelOptions& options, OperatorOptions& combining,
                      const std::string& fallback) {
  command
      .text("--bytes", options.bytes,
            std::string("With --algorithm auto, or without --run-length: the message to choose "
                        "for (scatter, gather, allgather, reduce-scatter and all-to-all: one "
                        "rank's part); ") +
                kByteUnits)
      .show_default(fallback);
  add_operator_options(command, combining);
}

predict::Model model_of(const ModelOptions& options) {
  if (!options.model.empty()) return or_bad_input(predict::read_model(options.model));
  if (options.board.empty()) return predict::default_model();
  const board::BoardFile board = or_bad_input(planner::read_board(options.board));
  if (!board.has_timing()) return predict::default_model();
  predict::Model model = predict::line_model(board.timing().alpha(), board.timing().beta());
  model.found_by = "the timing of board " + board.name();
  return model;
}

BoardLimits::BoardLimits(const std::string& path) {
  if (path.empty()) return;
  limits_ =
      std::make_unique<board::BoardFile::Limits>(or_bad_input(planner::read_board(path)).limits());
}

std::string describe_choice(const planner::Choice& choice, const planner::Ranking& ranking) {
  const planner::Estimate& best = ranking.best();
  const std::string& found_by = choice.request().model.found_by;
  return choice.candidates()[best.candidate].name + ", chosen for " +
         counted(ranking.bytes, "byte") +
         (counts_per_rank(choice.schedule(best).algorithm.collective) ? " a rank: " : ": ") +
         seconds_text(static_cast<double>(best.time) * 1e-12) + " predicted" +
         (found_by.empty() ? "" : " from " + one_line(found_by));
}

namespace {

planner::ChoiceRequest request_of(const planner::PlanRequest& plan, const ModelOptions& options,
                                  const BoardLimits& limits) {
  planner::ChoiceRequest request{.plan = plan, .model = model_of(options), .limits = limits.get()};
  request.conditions.ranks_on_host = ranks_per_host(options.ranks_per_host, request.model);
  return request;
}

// Refuses the options that are for a choice.
void check_not_chosen(const planner::PlanRequest& plan, const OperatorOptions& combining,
                      const ModelOptions& options) {
  const char* useless = !options.bytes.empty()    ? "--bytes"
                        : !combining.op.empty()   ? "--op"
                        : !combining.type.empty() ? "--type"
                                                  : nullptr;
  if (useless == nullptr) return;
  bad_input(std::string(useless) + " is for --algorithm auto" +
            (planner::run_length_text(plan).empty() ? "" : " or no --run-length") +
            ", and one schedule serves every message; expected no " + useless);
}

}  // namespace

planner::ChosenSchedules resolve_for_all_sizes(const planner::PlanRequest& plan,
                                               const OperatorOptions& combining,
                                               const ModelOptions& options) {
  const BoardLimits limits(options.board);
  planner::ChoiceRequest request = request_of(plan, options, limits);
  request.op = operator_of(plan.collective, combining);
  return or_bad_input(planner::choose_for_all_sizes(request));
}

Resolved resolve(const planner::PlanRequest& plan, const OperatorOptions& combining,
                 const ModelOptions& options) {
  const BoardLimits limits(options.board);
  planner::ChoiceRequest request = request_of(plan, options, limits);
  if (!planner::is_chosen(plan)) {
    check_not_chosen(plan, combining, options);
    request.op = operator_of(plan.collective, combining);
    const bool fits = options.model.empty() && options.board.empty();
    return {or_bad_input(fits ? planner::make_schedule(plan) : planner::fit_named(request)), ""};
  }
  const std::uint64_t bytes =
      plan.collective == Collective::kBarrier
          ? 0
          : byte_count("--bytes", options.bytes.empty() ? kDefaultChoiceBytes : options.bytes,
                       kMaxMessageBytes);
  request.op = operator_of(plan.collective, combining);
  planner::Choice choice = or_bad_input(planner::Choice::make(std::move(request)));
  const planner::Ranking ranking = or_bad_input(choice.rank(bytes));
  std::string reason = describe_choice(choice, ranking);
  return {choice.take(ranking.best().candidate), std::move(reason)};
}

}  // namespace espalier::tools
