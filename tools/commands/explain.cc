// espalier explain: the candidates for a collective, ranked by predictions, and why each lost.

#include <algorithm>
#include <iostream>

#include "tools/commands/commands.h"
#include "tools/common/failure.h"
#include "tools/common/numbers.h"
#include "tools/common/output.h"
#include "tools/options/plan_options.h"
#include "tools/options/resolve.h"
#include "tools/options/workload_options.h"
#include "tools/report/explain_report.h"

namespace espalier::tools {
namespace {

struct ExplainArguments {
  PlanOptions plan;
  OperatorOptions combining;
  ModelOptions model;
  std::vector<std::string> sizes;
  std::string plot;
  PortModel node_ports = PortModel::kMultiport;
  Switching switching = Switching::kCutThrough;
  bool all = false;
  Format format = Format::kText;
};

// Sizes of a picture: powers of two from the least to the greatest that was asked for, at most.
constexpr std::uint32_t kPlotPowers = 30;

std::vector<std::uint64_t> sizes_of(const ExplainArguments& arguments) {
  if (arguments.plan.collective == collective_name(Collective::kBarrier)) {
    if (!arguments.sizes.empty()) bad_input("a barrier has no bytes; expected no --bytes");
    return {0};
  }
  std::vector<std::string> texts = arguments.sizes;
  if (texts.empty()) texts = {"8", "4KiB", "64KiB", "1MiB", "64MiB"};
  std::vector<std::uint64_t> sizes;
  sizes.reserve(texts.size());
  for (const std::string& text : texts) {
    sizes.push_back(byte_count("--bytes", text, kMaxMessageBytes));
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

std::string draw_plot(const planner::Choice& choice, const std::string& topology,
                      const std::vector<std::uint64_t>& sizes) {
  std::vector<planner::Ranking> rankings;
  Progress progress("predicting");
  std::uint64_t size = std::max<std::uint64_t>(8, sizes.front());
  for (std::uint32_t power = 0; power <= kPlotPowers; ++power, size *= 2) {
    if (size > sizes.back() && !rankings.empty()) break;
    rankings.push_back(or_bad_input(choice.rank(size, true)));
    progress.show(static_cast<double>(power) / kPlotPowers);
  }
  return explain_svg(choice, topology, rankings);
}

void run_explain(const ExplainArguments& arguments) {
  if (!arguments.plot.empty()) check_writable(arguments.plot);
  const std::vector<std::uint64_t> sizes = sizes_of(arguments);
  const BoardLimits limits(arguments.model.board);
  planner::ChoiceRequest request{.plan = plan_request(arguments.plan)};
  request.op = operator_of(request.plan.collective, arguments.combining);
  request.model = model_of(arguments.model);
  request.conditions.switching = arguments.switching;
  request.conditions.ranks_on_host = ranks_per_host(arguments.model.ranks_per_host, request.model);
  request.limits = limits.get();
  request.ports = arguments.node_ports;
  const planner::Choice choice = or_bad_input(planner::Choice::make(std::move(request)));
  const std::string& topology = arguments.plan.topology;
  std::vector<planner::Ranking> rankings;
  rankings.reserve(sizes.size());
  for (const std::uint64_t size : sizes) {
    rankings.push_back(or_bad_input(choice.rank(size, arguments.all)));
  }
  if (!arguments.plot.empty()) write_file(arguments.plot, draw_plot(choice, topology, sizes));
  std::cout << (arguments.format == Format::kJson ? explain_json(choice, topology, rankings)
                                                  : explain_text(choice, topology, rankings))
            << std::flush;
}

}  // namespace

void add_explain(Command app) {
  Command command = app.add_command(
      "explain", "Ranks the algorithms for a collective, and says why each was taken or not");
  auto& arguments = command.bind<ExplainArguments>(run_explain);
  PlanOptions& plan = arguments.plan;
  add_plan_options(command, plan, true);
  command.option("--algorithm")
      .describe("auto: all of them; a name: that one, with every parameter that it may have");
  add_schedule_window(command, plan);
  add_links(command, plan);
  command.list("--bytes", arguments.sizes, std::string("Message sizes (") + kByteUnits + ")")
      .show_default("8,4KiB,64KiB,1MiB,64MiB");
  add_operator_options(command, arguments.combining);
  add_model_options(command, arguments.model);
  command
      .word(
          "--node-ports", {"simplex", "one-port", "single-send", "multiport"},
          [&arguments](std::size_t index) {
            constexpr PortModel kPorts[] = {PortModel::kSimplex, PortModel::kOnePortDuplex,
                                            PortModel::kSingleSend, PortModel::kMultiport};
            arguments.node_ports = kPorts[index];
          },
          "Ports of the nodes; schedules that need more are dropped")
      .show_default("multiport");
  command.word("--switching", {"cut-through", "store-and-forward"}, arguments.switching,
               "as for 'espalier simulate'");
  command.flag("--all", arguments.all,
               "Also replay the candidates whose steps alone take twice as long as the best");
  command.text("--plot", arguments.plot,
               "Draw the time of all candidates by size, and the crossovers, into this SVG file");
  add_format(command, arguments.format);
  command.set_footer(
      "The bound is the least time that any schedule with blocks of equal length can take. A\n"
      "candidate's time is that of nodes that run freely, over the topology's links.\n"
      "Examples:\n"
      "  espalier explain --topology complete:16 --collective broadcast\n"
      "  espalier explain --topology mesh:4x4 --collective allreduce --bytes 8,1MiB --op affine\n"
      "  espalier explain --topology complete:8 --collective broadcast --board boards/mps2-an385\n"
      "  espalier explain --topology complete:8 --collective allgather --model tcp.textproto \\\n"
      "      --plot allgather.svg");
}

}  // namespace espalier::tools
