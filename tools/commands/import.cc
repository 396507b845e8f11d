// espalier import: a schedule from a format of another library, proven or refused.

#include <cstdio>
#include <string>

#include "planner/make/plan.h"
#include "tools/commands/commands.h"
#include "tools/common/failure.h"
#include "tools/common/numbers.h"
#include "tools/common/output.h"
#include "tools/formats/msccl_import.h"
#include "tools/options/plan_options.h"

namespace espalier::tools {
namespace {

struct ImportArguments {
  std::string file, output, root, topology, limits;
};

void run_import_msccl(const ImportArguments& arguments) {
  check_writable(arguments.output);
  const formats::MscclFile file =
      formats::read_msccl(arguments.file, read_given(arguments.file, FileKind::kXml));
  const std::string ranks = std::to_string(file.gpus.size());
  const auto topology =
      parse_topology(arguments.topology.empty() ? "complete:" + ranks : arguments.topology);
  if (topology->ranks() != file.gpus.size()) {
    bad_input("'" + one_line(arguments.file) + "' is for " + counted(file.gpus.size(), "rank") +
              ", and " + topology->title() + " has " + std::to_string(topology->ranks()));
  }
  std::int64_t root = -1;
  if (!arguments.root.empty()) {
    root = static_cast<std::int64_t>(whole_number("--root", arguments.root, 0, kMaxNodes - 1));
  }
  const formats::ImportedMsccl imported =
      formats::import_msccl(arguments.file, file, *topology, {root, arguments.limits == "host"});
  write_file(arguments.output, imported.bytes);
  if (!file.ignored.empty()) {
    std::fprintf(stderr, "%s: ignored, as MSCCL's readers do: %s\n",
                 one_line(arguments.file).c_str(), one_line(file.ignored).c_str());
  }
  std::printf("%s: %s of %s on %s, %s per round\nproven for %s\n",
              one_line(arguments.output).c_str(), collective_name(file.collective),
              counted(static_cast<std::uint64_t>(file.chunks), "chunk").c_str(),
              topology->title().c_str(),
              counted(static_cast<std::uint64_t>(imported.messages), "message").c_str(),
              imported.proven_for.c_str());
}

void add_import_msccl(Command importer) {
  Command command = importer.add_command("msccl", "Reads MSCCL XML, an algorithm file of msccl");
  auto& arguments = command.bind<ImportArguments>(run_import_msccl);
  command.text("file", arguments.file, "The XML file").required();
  command.text("-o,--output", arguments.output, "The schedule file to write").required();
  command.text("--root", arguments.root,
               "Root of a rooted collective; default: the only rank with chunks for its message");
  command.text("--topology", arguments.topology, "Default: complete:N for N gpus");
  add_limits(command, arguments.limits);
  command.set_footer(
      "Each chunk becomes N blocks. The schedule is written if it is proven; otherwise a line "
      "names\n"
      "the fault, and the exit status is 1.\n"
      "Example:\n"
      "  espalier import msccl b.xml -o b.esp");
}

}  // namespace

void add_import(Command app) {
  Command command =
      app.add_command("import", "Reads a schedule in a format of another library, and proves it");
  add_import_msccl(command);
  command.set_footer(
      "docs/formats.md describes what is read.\n"
      "Example:\n"
      "  espalier import msccl b.xml -o b.esp");
}

}  // namespace espalier::tools
