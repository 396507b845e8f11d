// espalier verify: proves a schedule file, or says why it is wrong.

#include "collectives/verify/verify.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/commands.h"
#include "tools/failure.h"
#include "tools/loaded.h"
#include "tools/numbers.h"
#include "tools/output.h"

namespace espalier::tools {
namespace {

struct Arguments {
  std::string file, topology, blocks;
  bool links = false;
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

// A verdict, and what the topology's own links would say to a schedule that a fabric routes.
struct Finding {
  verify::Verdict verdict;
  std::string links;  // empty: no link carries more than it can
};

Finding find(const LoadedSchedule& loaded, const Arguments& arguments) {
  const auto program = [&loaded](std::uint32_t node) -> const Program& {
    return loaded.programs.at(node);
  };
  Progress progress("verifying");
  verify::Options options;
  if (!arguments.blocks.empty()) {
    options.max_blocks =
        static_cast<std::int64_t>(whole_number("--blocks", arguments.blocks, 1, 1'000'000));
  }
  options.progress = [&progress](double done) { progress.at(done); };
  Finding finding{verify::verify(*loaded.topology, program, options), ""};
  const verify::Counterexample& wrong = finding.verdict.counterexample;
  if (!finding.verdict.valid && wrong.point == verify::Point::kLinks && !arguments.links) {
    finding.links = wrong.message;
    options.links = false;
    finding.verdict = verify::verify(*loaded.topology, program, options);
  }
  return finding;
}

void print_verdict(const LoadedSchedule& loaded, const Finding& finding, Format format) {
  const verify::Verdict& verdict = finding.verdict;
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
      json["in_place"] = verdict.in_place;
      json["fits_links"] = finding.links.empty();
      if (!finding.links.empty()) json["links"] = finding.links;
    } else {
      json["counterexample"] = to_json(verdict.counterexample);
    }
    print_json(json);
    return;
  }
  if (verdict.valid) {
    std::printf(
        "%s: valid: %s on %s, checked for every N from 1 to %lld (%lld to %lld steps, "
        "%llu instances)\n",
        one_line(loaded.name).c_str(), program.algorithm, loaded.topology->spec().c_str(),
        static_cast<long long>(verdict.proven_blocks), static_cast<long long>(verdict.steps_at_one),
        static_cast<long long>(verdict.steps_at_most),
        static_cast<unsigned long long>(verdict.instances));
    if (!finding.links.empty()) {
      std::printf("  needs a fabric that routes: on the topology's own links, %s\n",
                  finding.links.c_str());
    }
  }
}

void run_verify(const Arguments& arguments) {
  const LoadedSchedule loaded = load_schedule(arguments.file, arguments.topology);
  const Finding finding = find(loaded, arguments);
  print_verdict(loaded, finding, arguments.format);
  if (!finding.verdict.valid) {
    negative("'" + loaded.name + "' is not valid: " + finding.verdict.counterexample.message);
  }
}

}  // namespace

void add_verify(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("verify", "Proves a schedule file, or says where and why it is wrong");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("file", arguments->file, "The schedule file")->required();
  command->add_option("--topology", arguments->topology, "Refuse the file if it is for another");
  command->add_option("--blocks", arguments->blocks,
                      "Check every N up to this; default: the bound stated in verify.h");
  command->add_flag("--links", arguments->links,
                    "Invalid also if the topology's own links cannot carry it along their routes");
  add_format(*command, arguments->format);
  command->footer(
      "Exit status 1: the schedule is wrong; the line says rank, step, link and block.\nExamples:\n"
      "  espalier verify b.esp\n"
      "  espalier verify b.esp --topology complete:16 --format json");
  command->callback([arguments] { run_verify(*arguments); });
}

}  // namespace espalier::tools
