// espalier verify: proves a schedule, from a file or of a generator, or says why it is wrong.

#include "espalier/collectives/verify/verify.h"

#include <algorithm>
#include <cstdio>

#include "collectives/verify/report/picture.h"
#include "planner/files/schedule_set.h"
#include "planner/make/blocks.h"
#include "tools/commands/commands.h"
#include "tools/common/failure.h"
#include "tools/common/json.h"
#include "tools/common/numbers.h"
#include "tools/common/output.h"
#include "tools/common/schedules.h"
#include "tools/options/plan_options.h"
#include "tools/options/resolve.h"
#include "tools/report/selection_report.h"
#include "tools/report/verify_report.h"
#include "tools/report/verify_source.h"

namespace espalier::tools {
namespace {

constexpr std::int64_t kPictureBlocks = 4;  // N of a valid schedule's picture, if that can occur

struct VerifyArguments {
  std::string file, blocks, picture, schedule;
  PlanOptions plan{"", "", ""};  // empty: kAuto
  ModelOptions model;
  OperatorOptions combining;
  bool root_given = false, loads = false, explain = false;
  Format format = Format::kText;
};

// Refuses options of a schedule that is compiled here, if a file is given; and the other way round.
void check_source(const VerifyArguments& arguments) {
  const PlanOptions& plan = arguments.plan;
  const bool selects = !plan.collective.empty() || !plan.algorithm.empty() ||
                       !plan.run_length.empty() || !plan.radix.empty() || !plan.lambda.empty() ||
                       !plan.ratio.empty() || !plan.window.empty() || !plan.links.empty() ||
                       !plan.ports.empty() || !plan.limits.empty() || !plan.embedding.empty() ||
                       !arguments.model.model.empty() || !arguments.model.board.empty() ||
                       !arguments.model.bytes.empty() || !arguments.model.ranks_per_host.empty() ||
                       !arguments.combining.op.empty() || !arguments.combining.type.empty();
  if (!arguments.file.empty()) {
    if (selects || arguments.root_given) {
      bad_input("'" + one_line(arguments.file) +
                "' names its own collective; expected no --collective, --algorithm, --root or "
                "parameters of one");
    }
    return;
  }
  if (plan.topology.empty() || plan.collective.empty()) {
    bad_input("nothing to verify; expected a schedule file, or --topology and --collective");
  }
  if (!arguments.schedule.empty()) {
    bad_input("--schedule is for the file of a selection; expected no --schedule");
  }
}

Source generated(const VerifyArguments& arguments) {
  PlanOptions wanted = arguments.plan;
  if (wanted.algorithm.empty()) wanted.algorithm = kAuto;
  return Source(resolve(plan_request(wanted), arguments.combining, arguments.model).schedule);
}

// Proves the schedule. If the topology's own links alone cannot carry it, and the user did not ask
// for them, also proves it over routes.
Proof prove(Source& source, const VerifyArguments& arguments) {
  const auto program = [&source](std::uint32_t node) -> const Program& {
    return source.program(node);
  };
  Progress progress("verifying");
  verify::VerifyOptions options;
  if (!arguments.blocks.empty()) {
    options.max_blocks =
        static_cast<std::int64_t>(whole_number("--blocks", arguments.blocks, 1, 1'000'000));
    const std::int64_t first = planner::allowed_blocks(source.program(0), 1);
    if (options.max_blocks < first) {
      bad_input("--blocks " + std::to_string(options.max_blocks) +
                ": the schedule has no N up to that; expected " + std::to_string(first) +
                ", its smallest, or more");
    }
  }
  options.progress = progress.function();
  Proof proof{.verdict = verify::verify(source.topology(), program, options), .links = ""};
  const verify::Counterexample& wrong = proof.verdict.counterexample;
  if (!proof.verdict.valid && wrong.property == verify::Property::kLinks && !arguments.loads) {
    proof.links = wrong.message;
    options.links = false;
    proof.verdict = verify::verify(source.topology(), program, options);
  }
  return proof;
}

void measure(Source& source, Proof& proof) {
  Progress progress("measuring");
  const std::uint32_t nodes = program_nodes(source.program(0));
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const Program& program = source.program(node);
    const std::uint32_t scratch = program.scratch_blocks;
    proof.least_scratch = node == 0 ? scratch : std::min(proof.least_scratch, scratch);
    proof.max_scratch = std::max(proof.max_scratch, scratch);
    proof.max_links = std::max<std::uint32_t>(proof.max_links, links_count(program));
    progress.show(static_cast<double>(node) / nodes);
  }
}

// N of the picture of a valid schedule: the smallest possible N that is at least kPictureBlocks, or
// the largest proven.
std::int64_t picture_blocks(const Program& program, const verify::Verdict& verdict) {
  return std::min(verdict.proven_blocks, planner::allowed_blocks(program, kPictureBlocks));
}

void draw(Source& source, const Proof& proof, const std::string& path) {
  const auto program = [&source](std::uint32_t node) -> const Program& {
    return source.program(node);
  };
  const verify::Verdict& verdict = proof.verdict;
  const std::int64_t blocks =
      verdict.valid ? picture_blocks(source.program(0), verdict) : verdict.counterexample.blocks;
  write_file(path, verify::draw_svg(source.topology(), program, blocks,
                                    verdict.valid ? nullptr : &verdict.counterexample));
}

// Proves one schedule. What is to be printed is appended to `text`, or written to `json`. Returns
// why it is not valid; empty: it is.
std::string verify_one(Source& source, const VerifyArguments& arguments, std::string& text,
                       Json& json) {
  Proof proof = prove(source, arguments);
  if (proof.verdict.counterexample.too_large) {
    bad_input("'" + source.name() +
              "' cannot be verified: " + proof.verdict.counterexample.message);
  }
  const bool valid = proof.verdict.valid;
  if (valid && (arguments.explain || arguments.format == Format::kJson)) measure(source, proof);
  if (!arguments.picture.empty()) draw(source, proof, arguments.picture);
  if (arguments.format == Format::kJson) {
    json = to_json(source, proof);
  } else if (valid) {
    text += summary(source, proof);
    if (arguments.explain) text += explanation(source, proof);
  } else if (arguments.explain) {
    for (const std::string& wait : proof.verdict.counterexample.cycle) text += wait + "\n";
  }
  if (valid) return "";
  return "'" + source.name() + "' is not valid: " + proof.verdict.counterexample.message;
}

// A selection: every schedule of it. Reading it has checked the table with every program.
void verify_all(planner::ScheduleSet& set, const VerifyArguments& arguments) {
  if (!arguments.picture.empty()) (void)need_member(set, "", "--picture");
  Json json = {{"file", set.name}, {"selection", selection_json(set)}};
  json["schedules"] = Json::array();
  std::string text, wrong;
  for (planner::ScheduleSet::Member& member : set.members) {
    Source source(member.name, std::move(member.bytes), arguments.plan.topology);
    Json one;
    wrong = verify_one(source, arguments, text, one);
    json["schedules"].push_back(std::move(one));
    if (!wrong.empty()) break;
  }
  json["valid"] = wrong.empty();
  if (arguments.format == Format::kJson) print_json(json);
  std::fputs(text.c_str(), stdout);
  if (arguments.format == Format::kText && wrong.empty()) {
    std::printf(
        "%s: valid: %s; every node's programs are of this table, which has a schedule for "
        "every size and %s\n%s",
        one_line(set.name).c_str(), selection_text(set).c_str(),
        planner::serves_all(set) ? "operator" : "operator that commutes", rows_text(set).c_str());
  }
  if (!wrong.empty()) negative(wrong);
}

void run_verify(const VerifyArguments& arguments) {
  if (arguments.explain && arguments.format == Format::kJson) {
    bad_input("--explain is for text, and JSON has all that it prints; expected one of them");
  }
  check_source(arguments);
  if (!arguments.picture.empty()) check_writable(arguments.picture);
  Json json;
  std::string text, wrong;
  if (arguments.file.empty()) {
    Source source = generated(arguments);
    wrong = verify_one(source, arguments, text, json);
  } else {
    planner::ScheduleSet set = read_schedules(arguments.file);
    const auto chosen = given_member(set, arguments.schedule);
    if (!chosen) return verify_all(set, arguments);
    planner::ScheduleSet::Member& member = set.members[*chosen];
    Source source(member.name, std::move(member.bytes), arguments.plan.topology);
    wrong = verify_one(source, arguments, text, json);
  }
  if (arguments.format == Format::kJson) print_json(json);
  std::fputs(text.c_str(), stdout);
  if (!wrong.empty()) negative(wrong);
}

}  // namespace

void add_verify(Command app) {
  Command command =
      app.add_command("verify", "Proves a schedule, or says where and why it is wrong");
  const auto arguments = std::make_shared<VerifyArguments>();
  command.text("file", arguments->file, "The schedule file; without, --topology and --collective");
  add_plan_options(command, arguments->plan, false);
  add_schedule_window(command, arguments->plan);
  add_links(command, arguments->plan);
  add_limits(command, arguments->plan.limits);
  command.option("--algorithm").show_default(kAuto);
  add_model_options(command, arguments->model);
  add_choice_bytes(command, arguments->model, arguments->combining);
  add_schedule_option(command, arguments->schedule);
  command.text("--blocks", arguments->blocks,
               "Check only N up to this, one by one; default: every N");
  command.flag("--loads", arguments->loads,
               "Invalid also if the topology's own links cannot carry it along their routes");
  command.flag("--explain", arguments->explain, "Print what was proven, property by property");
  command.text("--picture", arguments->picture, "Draw its steps, or the fault, into this SVG file");
  add_format(command, arguments->format);
  command.set_footer(
      "With a file, --topology refuses a schedule for another topology. Without a file, each\n"
      "program is generated whenever it is needed, so very many ranks fit.\n"
      "Exit status: 0 valid; 1 invalid, and one line names rank, step, link and block;\n"
      "2 no schedule, or one too large.\n"
      "Examples:\n"
      "  espalier verify b.esp --explain\n"
      "  espalier verify b.esp --topology complete:16 --picture b.svg\n"
      "  espalier verify --topology complete:100000 --collective broadcast --algorithm two-tree");
  command.set_action([arguments, command] {
    arguments->root_given = command.option("--root").is_given();
    run_verify(*arguments);
  });
}

}  // namespace espalier::tools
