// espalier compile: topology, collective and algorithm to a schedule file.

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "collectives/schedule/file.h"
#include "tools/commands.h"
#include "tools/output.h"
#include "tools/selection.h"

namespace espalier::tools {
namespace {

struct Arguments {
  Selection selection;
  std::string output;
  Format format = Format::kText;
};

void run_compile(const Arguments& arguments) {
  const Choice choice = choose(arguments.selection);
  const std::vector<std::uint8_t> bytes = compile(choice);
  write_file(arguments.output, bytes);
  const double a_node = static_cast<double>(bytes.size()) / choice.nodes;
  if (arguments.format == Format::kJson) {
    print_json({{"file", arguments.output},
                {"topology", choice.topology->spec()},
                {"topology_digest", hex(choice.topology->digest())},
                {"collective", collective_name(choice.algorithm.collective)},
                {"algorithm", choice.algorithm.name},
                {"ranks", choice.group.ranks},
                {"nodes", choice.nodes},
                {"root", choice.group.root},
                {"bytes", bytes.size()}});
    return;
  }
  std::printf("%s: %s by %s on %s, root %u: %s, %zu bytes (%.1f a node)\n",
              one_line(arguments.output).c_str(), collective_name(choice.algorithm.collective),
              choice.algorithm.name.c_str(), choice.topology->title().c_str(), choice.group.root,
              counted(choice.nodes, "program").c_str(), bytes.size(), a_node);
}

}  // namespace

void add_compile(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("compile", "Compiles a schedule: one descriptor a node, in one file");
  const auto arguments = std::make_shared<Arguments>();
  add_selection(*command, arguments->selection, true);
  add_schedule_window(*command, arguments->selection);
  add_links(*command, arguments->selection);
  command->add_option("-o,--output", arguments->output, "The schedule file to write")->required();
  add_format(*command, arguments->format);
  command->footer(
      "One file serves every message size.\nExamples:\n"
      "  espalier compile --topology complete:16 --collective broadcast --algorithm two-tree -o "
      "b.esp\n"
      "  espalier compile --topology mesh:4x4 --collective reduce --algorithm chain --root 15 -o "
      "r.esp\n"
      "  espalier compile --topology fattree:k=4,h=2,c=1 --collective allgather --algorithm leaf "
      "-o a.esp");
  command->callback([arguments] { run_compile(*arguments); });
}

}  // namespace espalier::tools
