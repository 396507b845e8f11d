// espalier draw: a schedule on its topology, as a page to play with or as a picture for a document.

#include <cstdio>
#include <map>
#include <optional>
#include <string>

#include "planner/files/schedule_set.h"
#include "planner/make/blocks.h"
#include "tools/commands/commands.h"
#include "tools/common/failure.h"
#include "tools/common/numbers.h"
#include "tools/common/output.h"
#include "tools/common/schedules.h"
#include "tools/draw/drawing.h"
#include "tools/draw/page.h"
#include "tools/draw/picture.h"
#include "tools/options/plan_options.h"
#include "tools/options/workload_options.h"

namespace espalier::tools {
namespace {

struct DrawArguments {
  std::string file, page, svg, blocks, step, trace, topology, schedule;
  std::string show;
};

constexpr std::uint32_t kMaxNodes = 1024;
constexpr std::uint64_t kMaxLinks = 100'000;
constexpr std::uint64_t kMaxDrawnBlocks = 4096;

// Enough to see the period, if there is one.
std::int64_t usual_blocks(const Program& program) {
  const std::int64_t first = planner::allowed_blocks(program, 1);
  const std::int64_t more = planner::allowed_blocks(program, 8);
  return phase_steps(program, first) == phase_steps(program, more) ? first : more;
}

// The first step with the most transfers; 0 if there is none.
std::int64_t busiest_step(const planner::LoadedSchedule& loaded, std::int64_t blocks) {
  std::map<std::int64_t, std::uint64_t> counts;
  for (const Transfer& transfer : transfers(loaded.programs, blocks)) ++counts[transfer.step];
  std::int64_t busiest = 0;
  std::uint64_t most = 0;
  for (const auto& [step, count] : counts) {
    if (count <= most) continue;
    busiest = step;
    most = count;
  }
  return busiest;
}

// Refuses options for an output that is not written.
void check_outputs(const DrawArguments& arguments, View view) {
  if (arguments.svg.empty() && !arguments.show.empty()) {
    bad_input("--show is for a picture, the page shows all; expected --svg as well");
  }
  if (arguments.page.empty() && !arguments.trace.empty()) {
    bad_input("--trace is for a page; expected -o PAGE.html as well");
  }
  if (arguments.page.empty() && view != View::kStep && !arguments.step.empty()) {
    bad_input("--show " + arguments.show + " is of all steps; expected no --step");
  }
  if (arguments.page == arguments.svg) {
    bad_input("-o and --svg both name '" + one_line(arguments.svg) +
              "'; expected one file for the page and another for the picture");
  }
}

void run_draw(const DrawArguments& arguments) {
  if (arguments.page.empty() && arguments.svg.empty()) {
    bad_input("nothing to write; expected -o PAGE.html or --svg PICTURE.svg");
  }
  const View view = arguments.show == "trees"  ? View::kTrees
                    : arguments.show == "load" ? View::kLoad
                                               : View::kStep;
  check_outputs(arguments, view);
  for (const std::string& path : {arguments.page, arguments.svg}) {
    if (!path.empty()) check_writable(path);
  }
  const planner::ScheduleSet set = read_schedules(arguments.file);
  const planner::ScheduleSet::Member& member = need_member(set, arguments.schedule, "a drawing");
  const planner::LoadedSchedule loaded =
      load_schedule(member.name, member.bytes, arguments.topology);
  const topology::Topology& topology = *loaded.topology;
  if (topology.nodes() > kMaxNodes || topology.link_count() > kMaxLinks) {
    bad_input(topology.title() + " has " + counted(topology.nodes(), "node") + " and " +
              counted(topology.link_count(), "link") + "; expected at most " +
              std::to_string(kMaxNodes) + " and " + std::to_string(kMaxLinks));
  }
  const Program& program = loaded.programs.front();
  const std::int64_t blocks = arguments.blocks.empty()
                                  ? usual_blocks(program)
                                  : chosen_blocks(arguments.blocks, kMaxDrawnBlocks, program);
  check_drawable(loaded, blocks);
  const std::int64_t steps = phase_steps(program, blocks);
  if (steps == 0) bad_input("the schedule has no steps; nothing to draw");
  std::int64_t step = 0;
  if (arguments.step.empty()) {
    step = busiest_step(loaded, blocks);
  } else {
    step = static_cast<std::int64_t>(
        whole_number("--step", arguments.step, 0, static_cast<std::uint64_t>(steps - 1)));
  }
  std::optional<std::string> trace;
  if (!arguments.trace.empty()) trace = read_given(arguments.trace, FileKind::kTrace);
  // Both are made before either is written.
  std::string page, svg;
  if (!arguments.page.empty()) page = make_page(loaded, blocks, step + 1, trace);
  if (!arguments.svg.empty()) svg = draw_picture(loaded, view, blocks, step);
  if (!page.empty()) write_text(arguments.page, page);
  if (!svg.empty()) write_text(arguments.svg, svg);
}

}  // namespace

void add_draw(Command app) {
  Command command =
      app.add_command("draw", "Draws a schedule on its topology, as a page to play with");
  auto& arguments = command.bind<DrawArguments>(run_draw);
  command.text("file", arguments.file, "The schedule file").required();
  command.text("-o,--output", arguments.page, "Write a page: one HTML file, no network");
  command.text("--svg", arguments.svg, "Write a picture for a document");
  command.word("--show", {"step", "trees", "load"}, arguments.show,
               "Contents of the picture: step, trees (the pairs that blocks pass) or load (of "
               "the links, in a period); default: step");
  command.text("--blocks", arguments.blocks,
               "N, blocks per segment: one that the schedule has; the page can change it; "
               "default: 8, or 1 if N adds no steps");
  command.text("--step", arguments.step,
               "The step in the picture, and on the page at first; default: the first one with the "
               "most transfers");
  command.text("--trace", arguments.trace,
               "Also put this trace (of 'espalier simulate' or 'espalier run') into the page");
  add_schedule_option(command, arguments.schedule);
  command.text("--topology", arguments.topology, "Refuse the file if it is for another");
  command.set_footer(
      "The page holds the programs and expands them itself. It plays the steps, and shows the\n"
      "blocks that every node holds, the trees, the load of the links, all steps by node and by\n"
      "link, and a trace.\n"
      "Examples:\n"
      "  espalier draw b.esp -o b.html\n"
      "  espalier draw b.esp -o b.html --trace real.json\n"
      "  espalier draw b.esp --svg trees.svg --show trees");
}

}  // namespace espalier::tools
