// espalier compile: topology, collective and algorithm to a schedule file.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "espalier/collectives/schedule/file.h"
#include "tools/choose/resolve.h"
#include "tools/commands/commands.h"
#include "tools/common/json.h"
#include "tools/common/output.h"
#include "tools/select/embedding.h"
#include "tools/select/prove.h"
#include "tools/select/selection.h"

namespace espalier::tools {
namespace {

struct CompileArguments {
  Selection selection;
  std::string output;
  bool unverified = false;
  OperatorOptions combining;
  ModelOptions model;
  Format format = Format::kText;
};

// The minimum and maximum blocks of scratch over all nodes.
std::pair<std::uint32_t, std::uint32_t> scratch_of(const SelectedAlgorithm& selected) {
  std::uint32_t least = selected.found.at(0).scratch_blocks, most = least;
  for (const Program& program : selected.found) {
    least = std::min(least, program.scratch_blocks);
    most = std::max(most, program.scratch_blocks);
  }
  return {least, most};
}

Json to_json(const SelectedAlgorithm& selected) {
  const lower::Report& report = selected.report;
  return {{"period", report.period},
          {"period_blocks", report.blocks},
          {"routed_period", report.routed_period},
          {"first_steps", report.first_steps},
          {"messages", report.messages},
          {"hops", report.hops},
          {"busiest", {report.from, report.to}},
          {"busiest_load", report.load},
          {"busiest_lanes", report.lanes},
          {"most_scratch_blocks", scratch_of(selected).second}};
}

void run_compile(const CompileArguments& arguments) {
  check_writable(arguments.output);
  const Resolved resolved = resolve(arguments.selection, arguments.combining, arguments.model);
  const SelectedAlgorithm& selected = resolved.selected;
  std::vector<std::uint8_t> bytes = compile(selected);
  const bool hop_by_hop = arguments.selection.links == "hop-by-hop";
  const std::string proven =
      arguments.unverified ? "" : prove_compiled(arguments.output, bytes, hop_by_hop);
  write_file(arguments.output, bytes);
  const double a_node = static_cast<double>(bytes.size()) / selected.nodes;
  if (arguments.format == Format::kJson) {
    Json json = {{"file", arguments.output},
                 {"topology", selected.topology->spec()},
                 {"topology_digest", hex(selected.topology->digest())},
                 {"collective", collective_name(selected.algorithm.collective)},
                 {"algorithm", selected.algorithm.name},
                 {"ranks", selected.parameters.ranks},
                 {"nodes", selected.nodes},
                 {"embedding", selected.embedding ? selected.embedding->name : "none"},
                 {"bytes", bytes.size()},
                 {"verified", !arguments.unverified}};
    if (!resolved.reason.empty()) json["chosen"] = resolved.reason;
    if (has_root(selected.algorithm.collective)) json["root"] = selected.parameters.root;
    if (!arguments.unverified) json["proven_for"] = proven;
    if (selected.report.changed) json["lowered"] = to_json(selected);
    print_json(json);
    return;
  }
  const bool rooted = has_root(selected.algorithm.collective);
  const std::string root = rooted ? ", root " + std::to_string(selected.parameters.root) : "";
  std::printf("%s: %s by %s on %s%s: %s, %zu bytes (%.1f a node)\n",
              one_line(arguments.output).c_str(), collective_name(selected.algorithm.collective),
              selected.algorithm.name.c_str(), selected.topology->title().c_str(), root.c_str(),
              counted(selected.nodes, "program").c_str(), bytes.size(), a_node);
  if (!resolved.reason.empty()) std::printf("auto: %s\n", resolved.reason.c_str());
  std::printf("%s\n", arguments.unverified ? "not verified" : ("proven for " + proven).c_str());
  if (selected.embedding) {
    std::printf("ranks are placed by embedding %s\n", quoted_name(*selected.embedding).c_str());
  }
  if (!hop_by_hop) return;
  std::fputs(lower::describe(*selected.topology, selected.report).c_str(), stdout);
  const auto [least, most] = scratch_of(selected);
  std::printf("scratch %u to %u blocks a node, window %u\n", least, most,
              selected.found.front().window);
}

}  // namespace

void add_compile(Command app) {
  Command command =
      app.add_command("compile", "Compiles a schedule: one descriptor per node, in one file");
  const auto arguments = std::make_shared<CompileArguments>();
  add_selection(command, arguments->selection, true);
  add_schedule_window(command, arguments->selection);
  add_links(command, arguments->selection);
  add_model_options(command, arguments->model);
  add_choice_bytes(command, arguments->model, arguments->combining);
  command.text("-o,--output", arguments->output, "The schedule file to write").required();
  command.flag("--no-verify", arguments->unverified,
               "Write it without a proof: for schedules that are too large to verify");
  add_format(command, arguments->format);
  command.set_footer(
      "One file serves every message size. It is verified before it is written.\nExamples:\n"
      "  espalier compile --topology complete:16 --collective broadcast -o b.esp\n"
      "  espalier compile --topology mesh:4x4 --collective reduce --algorithm chain --root 15 -o "
      "r.esp\n"
      "  espalier compile --topology fattree:k=4,h=2,c=1 --collective allgather --algorithm leaf "
      "-o a.esp\n"
      "  espalier compile --topology mesh:4x4 --collective broadcast --algorithm two-tree --links "
      "hop-by-hop -o m.esp");
  command.set_action([arguments] { run_compile(*arguments); });
}

}  // namespace espalier::tools
