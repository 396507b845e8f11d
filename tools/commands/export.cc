// espalier export: a schedule in formats of other libraries and simulators.

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "planner/files/schedule_set.h"
#include "planner/make/blocks.h"
#include "tools/commands/commands.h"
#include "tools/common/failure.h"
#include "tools/common/numbers.h"
#include "tools/common/output.h"
#include "tools/common/schedules.h"
#include "tools/formats/chakra.h"
#include "tools/formats/goal.h"
#include "tools/formats/msccl.h"
#include "tools/formats/mscclpp.h"
#include "tools/formats/ompi_rules.h"
#include "tools/options/plan_options.h"
#include "tools/options/resolve.h"
#include "tools/options/workload_options.h"

namespace espalier::tools {
namespace {

struct ExportArguments {
  std::string file, output, blocks, bytes, schedule, topology;
  const formats::MscclReader* reader = formats::kMscclReaders;
  ModelOptions model;
};

constexpr std::uint64_t kMaxExportedBlocks = 1'000'000;

planner::LoadedSchedule load(const ExportArguments& arguments) {
  const planner::ScheduleSet set = read_schedules(arguments.file);
  const planner::ScheduleSet::Member& member = need_member(set, arguments.schedule, "an export");
  planner::LoadedSchedule loaded = load_schedule(member.name, member.bytes, arguments.topology);
  formats::prove(loaded);
  return loaded;
}

std::int64_t blocks_of(const ExportArguments& arguments, const Program& program) {
  if (arguments.blocks.empty()) return planner::allowed_blocks(program, 1);
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

void add_mscclpp(Command exporter) {
  Command command = exporter.add_command("mscclpp", "Writes an execution plan for MSCCL++, JSON");
  const auto arguments = std::make_shared<ExportArguments>();
  add_file_options(command, *arguments);
  add_blocks_option(command, *arguments);
  command.set_footer("Example:\n  espalier export mscclpp b.esp --blocks 8 -o b.json");
  command.set_action([arguments] {
    check_writable(arguments->output);
    const planner::LoadedSchedule loaded = load(*arguments);
    const std::int64_t blocks = blocks_of(*arguments, loaded.programs.front());
    write_text(arguments->output, formats::write_mscclpp(loaded, blocks));
  });
}

// The options of formats for simulators, which need sizes.
void add_size_options(Command command, ExportArguments& arguments) {
  command.text("--bytes", arguments.bytes,
               std::string("Message size (of one rank's part, where counts are per rank): ") +
                   kByteUnits + "; not for a barrier");
  command.text("--model", arguments.model.model,
               "A model, of 'espalier measure', whose times combines and copies take; default: "
               "they take none");
}

formats::SizedOperations load_sized(const ExportArguments& arguments,
                                    planner::LoadedSchedule& loaded) {
  loaded = load(arguments);
  const bool is_barrier = loaded.programs.front().collective == Collective::kBarrier;
  if (is_barrier != arguments.bytes.empty()) {
    bad_input(is_barrier ? "a barrier has no bytes; expected no --bytes"
                         : "no --bytes; expected the size of the message");
  }
  const std::uint64_t bytes =
      is_barrier ? 0 : byte_count("--bytes", arguments.bytes, kMaxMessageBytes);
  return formats::size_operations(loaded, bytes, model_of(arguments.model));
}

void add_msccl(Command exporter) {
  Command command =
      exporter.add_command("msccl", "Writes MSCCL XML, an algorithm file for RCCL and msccl");
  const auto arguments = std::make_shared<ExportArguments>();
  add_file_options(command, *arguments);
  add_blocks_option(command, *arguments);
  std::vector<std::string> readers;
  for (const formats::MscclReader& reader : formats::kMscclReaders) {
    readers.emplace_back(reader.name);
  }
  command
      .word(
          "--reader", readers,
          [arguments](std::size_t index) { arguments->reader = &formats::kMscclReaders[index]; },
          "The program whose limits the file keeps: RCCL, Azure's msccl-executor or "
          "microsoft/msccl")
      .show_default(readers.front());
  command.set_footer("Example:\n  espalier export msccl b.esp --blocks 8 -o b.xml");
  command.set_action([arguments] {
    check_writable(arguments->output);
    const planner::LoadedSchedule loaded = load(*arguments);
    const std::int64_t blocks = blocks_of(*arguments, loaded.programs.front());
    write_text(arguments->output, formats::write_msccl(loaded, blocks, *arguments->reader));
  });
}

void add_goal(Command exporter) {
  Command command = exporter.add_command("goal", "Writes GOAL, the text input of LogGOPSim");
  const auto arguments = std::make_shared<ExportArguments>();
  add_file_options(command, *arguments);
  add_size_options(command, *arguments);
  command.set_footer(
      "Nodes are ranks: first the ranks, then routers with programs.\n"
      "Example:\n  espalier export goal b.esp --bytes 1MiB -o b.goal");
  command.set_action([arguments] {
    check_writable(arguments->output);
    planner::LoadedSchedule loaded;
    write_text(arguments->output, formats::write_goal(load_sized(*arguments, loaded)));
  });
}

// Refuses a folder or a device: files would appear beside it.
void check_prefix(const std::string& prefix) {
  struct stat about {};
  const bool is_folder =
      prefix.ends_with('/') || (stat(prefix.c_str(), &about) == 0 && S_ISDIR(about.st_mode));
  const bool is_other = !is_folder && stat(prefix.c_str(), &about) == 0 && !S_ISREG(about.st_mode);
  if (!is_folder && !is_other) return;
  bad_input("-o '" + one_line(prefix) + "' is " + (is_folder ? "a folder" : "a device or a pipe") +
            "; expected the beginning of the names of files, e.g. traces/b");
}

void add_chakra(Command exporter) {
  Command command = exporter.add_command(
      "chakra", "Writes Chakra execution traces for astra-sim, a file per node");
  const auto arguments = std::make_shared<ExportArguments>();
  add_file_options(command, *arguments);
  command.option("--output").describe("PREFIX: node 3's file is PREFIX.3.et");
  add_size_options(command, *arguments);
  command.set_footer("Example:\n  espalier export chakra b.esp --bytes 1MiB -o traces/b");
  command.set_action([arguments] {
    const auto path = [&](std::size_t node) {
      return arguments->output + "." + std::to_string(node) + ".et";
    };
    check_prefix(arguments->output);
    check_writable(path(0));
    planner::LoadedSchedule loaded;
    const formats::SizedOperations sized = load_sized(*arguments, loaded);
    for (std::uint32_t node = 1; node < sized.bytes.size(); ++node) check_writable(path(node));
    const char* const collective = collective_name(loaded.programs.front().collective);
    for (std::uint32_t node = 0; node < sized.bytes.size(); ++node) {
      write_file(path(node), formats::write_chakra(sized, node, collective));
    }
    std::printf("%s.0.et and the next: %s\n", one_line(arguments->output).c_str(),
                counted(sized.bytes.size(), "file").c_str());
  });
}

struct OmpiArguments {
  std::string topology;
  std::vector<std::string> collectives;
  ModelOptions model;
  std::string output;
};

void run_ompi(const OmpiArguments& arguments) {
  check_writable(arguments.output);
  const std::vector<Collective> known = formats::ompi_collectives();
  std::vector<Collective> wanted;
  std::vector<std::string> names;
  for (const Collective collective : known) names.emplace_back(collective_name(collective));
  for (const std::string& name : arguments.collectives) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      bad_input("Open MPI has no rules for '" + one_line(name) + "'; expected " + either(names));
    }
    wanted.push_back(known[static_cast<std::size_t>(found - names.begin())]);
  }
  planner::ChoiceRequest request{.plan = {.topology = parse_topology(arguments.topology)},
                                 .model = model_of(arguments.model)};
  write_text(arguments.output, formats::write_ompi_rules(request, wanted.empty() ? known : wanted));
}

void add_ompi(Command exporter) {
  Command command = exporter.add_command(
      "ompi", "Writes dynamic rules for Open MPI's collectives, from the predictions of auto");
  auto& arguments = command.bind<OmpiArguments>(run_ompi);
  command.text("--topology", arguments.topology, "The topology").required();
  command.list("--collective", arguments.collectives,
               "Only these, separated by commas; default: all that both libraries have");
  command.text("--model", arguments.model.model,
               "A model, of 'espalier measure'; default: constants");
  command.text("-o,--output", arguments.output, "The file to write").required();
  command.set_footer(
      "For each size the rule names the algorithm that is predicted to be the fastest of those "
      "that\n"
      "Open MPI has, too. It is used with\n"
      "  mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename FILE\n"
      "Example:\n  espalier export ompi --topology complete:16 -o rules.conf");
}

}  // namespace

void add_export(Command app) {
  Command command =
      app.add_command("export", "Writes a schedule in a format of another library or simulator");
  add_msccl(command);
  add_mscclpp(command);
  add_goal(command);
  add_chakra(command);
  add_ompi(command);
  command.set_footer(
      "The schedule is proven first. A schedule that a format cannot express is refused with the\n"
      "reason. docs/formats.md describes what each format gets.\n"
      "Example:\n"
      "  espalier export msccl b.esp --blocks 8 -o b.xml");
}

}  // namespace espalier::tools
