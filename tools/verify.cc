// espalier verify: proves a schedule file, or says why it is wrong.

#include "collectives/verify/verify.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/commands.h"
#include "tools/failure.h"
#include "tools/loaded.h"
#include "tools/output.h"

namespace espalier::tools {
namespace {

struct Arguments {
  std::string file, topology;
  std::int64_t max_blocks = 0;
  Format format = Format::kText;
};

nlohmann::ordered_json to_json(const verify::Counterexample& wrong) {
  nlohmann::ordered_json json = {{"point", verify::point_name(wrong.point)},
                                 {"message", wrong.message}};
  const auto add = [&json](const char* name, std::int64_t value) {
    if (value >= 0) json[name] = value;
  };
  add("blocks", wrong.blocks);
  add("node", wrong.node);
  add("step", wrong.step);
  add("from", wrong.from);
  add("to", wrong.to);
  add("segment", wrong.segment);
  add("block", wrong.block);
  add("action", wrong.action);
  return json;
}

void print_verdict(const LoadedSchedule& loaded, const verify::Verdict& verdict, Format format) {
  const Program& program = loaded.programs.front();
  if (format == Format::kJson) {
    nlohmann::ordered_json json = {{"file", loaded.name},
                                   {"topology", loaded.topology->spec()},
                                   {"algorithm", program.algorithm},
                                   {"valid", verdict.valid},
                                   {"proven_blocks", verdict.proven_blocks},
                                   {"instances", verdict.instances}};
    if (verdict.valid) {
      json["steps_at_one"] = verdict.steps_at_one;
      json["steps_at_most"] = verdict.steps_at_most;
    } else {
      json["counterexample"] = to_json(verdict.counterexample);
    }
    print_json(json);
  } else if (verdict.valid) {
    std::printf(
        "%s: valid: %s on %s, checked for every N from 1 to %lld (%lld to %lld steps, "
        "%llu instances)\n",
        one_line(loaded.name).c_str(), program.algorithm, loaded.topology->spec().c_str(),
        static_cast<long long>(verdict.proven_blocks), static_cast<long long>(verdict.steps_at_one),
        static_cast<long long>(verdict.steps_at_most),
        static_cast<unsigned long long>(verdict.instances));
  }
}

void run_verify(const Arguments& arguments) {
  if (arguments.max_blocks < 0) bad_input("--blocks is negative; expected 1 or more");
  const LoadedSchedule loaded = load_schedule(arguments.file, arguments.topology);
  verify::Options options;
  options.max_blocks = arguments.max_blocks;
  verify::Verdict verdict;
  {
    Progress progress("verifying");
    options.progress = [&progress](double done) { progress.at(done); };
    const auto program = [&loaded](std::uint32_t node) -> const Program& {
      return loaded.programs.at(node);
    };
    verdict = verify::verify(*loaded.topology, program, options);
  }
  print_verdict(loaded, verdict, arguments.format);
  if (!verdict.valid) {
    negative("'" + loaded.name +
             "' is not valid: " + verify::point_name(verdict.counterexample.point) + ": " +
             verdict.counterexample.message);
  }
}

}  // namespace

void add_verify(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("verify", "Proves a schedule file, or says where and why it is wrong");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("file", arguments->file, "The schedule file")->required();
  command->add_option("--topology", arguments->topology, "Refuse the file if it is for another");
  command->add_option("--blocks", arguments->max_blocks,
                      "Check every N up to this; default: the bound stated in verify.h");
  add_format(*command, arguments->format);
  command->footer(
      "Exit status 1: the schedule is wrong; the line says rank, step, link and block.\nExamples:\n"
      "  espalier verify b.esp\n"
      "  espalier verify b.esp --topology complete:16 --format json");
  command->callback([arguments] { run_verify(*arguments); });
}

}  // namespace espalier::tools
