// espalier export: a schedule in formats of other libraries and simulators.

#include <cstdio>
#include <memory>
#include <string>

#include "tools/commands/commands.h"
#include "tools/common/failure.h"
#include "tools/common/numbers.h"
#include "tools/common/output.h"
#include "tools/formats/msccl.h"
#include "tools/formats/mscclpp.h"
#include "tools/select/blocks.h"
#include "tools/select/schedule_set.h"

namespace espalier::tools {
namespace {

struct ExportArguments {
  std::string file, output, blocks, schedule, topology;
};

constexpr std::uint64_t kMaxExportedBlocks = 1'000'000;

LoadedSchedule load(const ExportArguments& arguments) {
  const ScheduleSet set = read_schedules(arguments.file);
  const ScheduleSet::Member& member = need_member(set, arguments.schedule, "an export");
  LoadedSchedule loaded = load_schedule(member.name, member.bytes, arguments.topology);
  formats::prove(loaded);
  return loaded;
}

std::int64_t blocks_of(const ExportArguments& arguments, const Program& program) {
  if (arguments.blocks.empty()) return allowed_blocks(program, 1);
  return chosen_blocks(arguments.blocks, kMaxExportedBlocks, program);
}

void add_file_options(Command command, ExportArguments& arguments) {
  command.text("file", arguments.file, "The schedule file").required();
  command.text("-o,--output", arguments.output, "The file to write").required();
  add_schedule_option(command, arguments.schedule);
  command.text("--topology", arguments.topology, "Refuse the file if it is for another");
}

void add_blocks_option(Command command, ExportArguments& arguments) {
  command.text("--blocks", arguments.blocks,
               "N, blocks per segment: one that the schedule has; a block is a chunk; default: the "
               "smallest");
}

// A format of chunks.
void add_chunk_format(Command exporter, const std::string& name, const std::string& help,
                      const std::string& example,
                      std::string (*write)(const LoadedSchedule& loaded, std::int64_t blocks)) {
  Command command = exporter.add_command(name, help);
  const auto arguments = std::make_shared<ExportArguments>();
  add_file_options(command, *arguments);
  add_blocks_option(command, *arguments);
  command.set_footer("Example:\n  espalier export " + example);
  command.set_action([arguments, write] {
    check_writable(arguments->output);
    const LoadedSchedule loaded = load(*arguments);
    const std::int64_t blocks = blocks_of(*arguments, loaded.programs.front());
    write_text(arguments->output, write(loaded, blocks));
  });
}

}  // namespace

void add_export(Command app) {
  Command command =
      app.add_command("export", "Writes a schedule in a format of another library or simulator");
  add_chunk_format(command, "msccl", "Writes MSCCL XML, an algorithm file for msccl and RCCL",
                   "msccl b.esp --blocks 8 -o b.xml", &formats::write_msccl);
  add_chunk_format(command, "mscclpp", "Writes an execution plan for MSCCL++, JSON",
                   "mscclpp b.esp --blocks 8 -o b.json", &formats::write_mscclpp);
  command.set_footer(
      "The schedule is proven first. A schedule that a format cannot express is refused with the\n"
      "reason. docs/formats.md describes what each format gets.\n"
      "Example:\n"
      "  espalier export msccl b.esp --blocks 8 -o b.xml");
}

}  // namespace espalier::tools
