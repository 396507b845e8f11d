// espalier trace: what happened in a simulated or a real run, for Perfetto and chrome://tracing.

#include <memory>

#include "tools/commands/commands.h"
#include "tools/commands/simulate.h"
#include "tools/select/schedule_set.h"
#ifdef ESPALIER_WITH_OFI
#include "tools/commands/run.h"
#endif

namespace espalier::tools {
namespace {

#ifdef ESPALIER_WITH_OFI
void run_real(const Command& command, const SimulateOptions& given, const std::string& provider) {
  if (!given.topology.empty()) {
    for (const ScheduleSet::Member& member : read_schedules(given.file).members) {
      (void)open_schedule(member.name, member.bytes, given.topology);
    }
  }
  run_command::RunOptions options;
  options.file = given.file;
  if (!given.bytes.empty()) options.sizes = {given.bytes};
  options.counts = given.counts;
  options.combining = given.combining;
  options.alpha_given = command.option("--alpha").is_given();
  options.beta_given = command.option("--beta").is_given();
  if (options.alpha_given) options.alpha = given.alpha;
  if (options.beta_given) options.beta = given.beta;
  options.model = given.model;
  options.trace = given.trace;
  options.format = given.format;
  options.launch.provider = provider;
  // The first collective of a cluster also touches its memory for the first time.
  options.warmup = 1;
  run_collective(options);
}
#endif

}  // namespace

void add_trace(Command app) {
  Command command =
      app.add_command("trace", "Writes the events of every node with their times, for Perfetto");
  const auto options = std::make_shared<SimulateOptions>();
  const auto provider = std::make_shared<std::string>();
  add_simulate_options(command, *options);
  command.text("-o,--output", options->trace, "The file to write (JSON)").required();
#ifdef ESPALIER_WITH_OFI
  Option real = command.text(
      "--provider", *provider,
      "tcp, mem or another: trace a real run, one process per node; default: a simulated one");
  for (const char* name : {"--jitter", "--link-jitter", "--node-jitter", "--seed", "--switching"}) {
    real.excludes(command.option(name));
  }
#endif
  command.set_footer(
      "Writes the Trace Event Format, which ui.perfetto.dev, chrome://tracing and the page of\n"
      "'espalier draw --trace' open. A node is a process in it, with a track per link and\n"
      "direction, one for combines and copies, and one for steps. A message has a slice at each\n"
      "end, and an arrow from its send to its receive. Every result is checked, as by\n"
      "'espalier simulate' and 'espalier run'.\n"
      "Examples:\n"
      "  espalier trace b.esp --bytes 64KiB -o simulated.json\n"
      "  espalier trace b.esp --bytes 64KiB --provider mem -o real.json");
  command.set_action([options, provider, command] {
#ifdef ESPALIER_WITH_OFI
    if (!provider->empty()) return run_real(command, *options, *provider);
#endif
    run_simulate(*options);
  });
}

}  // namespace espalier::tools
