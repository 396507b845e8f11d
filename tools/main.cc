// The espalier command. Exit status: 0 well, 1 the verdict is negative, 2 bad input; then one line
// on stderr.

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <new>

#include "tools/commands/commands.h"
#include "tools/common/failure.h"
#include "tools/common/output.h"

namespace espalier::tools {
namespace {

int complain(int exit_status, const std::string& line) {
  std::fflush(stdout);
  std::fprintf(stderr, "espalier: %s\n", one_line(line).c_str());
  return exit_status;
}

std::string usage_of(const CLI::App& app) {
  std::string name = "espalier";
  for (const CLI::App* command : app.get_subcommands()) name += " " + command->get_name();
  return name;
}

int run(int argc, char** argv) {
  CLI::App app(
      "Collective operations for clusters with custom interconnects, from verified schedules");
  app.name("espalier");
  app.require_subcommand(0, 1);  // none is told below: CLI11 would hide an unknown name
  app.set_version_flag("--version", ESPALIER_VERSION);
  app.footer(
      "'espalier COMMAND --help' says more, with examples.\nExample:\n"
      "  espalier compile --topology complete:16 --collective broadcast --algorithm two-tree -o "
      "b.esp\n"
      "  espalier verify b.esp\n"
      "Exit status: 0 well; 1 the verdict is negative; 2 bad input.");
  add_topology(app);
  add_list(app);
  add_compile(app);
  add_embed(app);
  add_verify(app);
  add_show(app);
  add_draw(app);
  add_simulate(app);
  add_image(app);
  add_trace(app);
#ifdef ESPALIER_WITH_OFI
  add_run(app);
  add_measure(app);
#endif
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return complain(kBadInput, std::string(error.what()) + "; see '" + usage_of(app) + " --help'");
  }
  if (app.get_subcommands().empty()) {
    return complain(kBadInput, "no command; see 'espalier --help'");
  }
  // A full disk or a closed pipe must not look like success.
  if (std::fflush(stdout) != 0 || !std::cout.flush())
    return complain(kBadInput, "cannot write to stdout");
  return 0;
}

}  // namespace
}  // namespace espalier::tools

int main(int argc, char** argv) {
  using espalier::tools::complain;
  try {
    return espalier::tools::run(argc, argv);
  } catch (const espalier::tools::Failure& failure) {
    return complain(failure.exit_status, failure.line);
  } catch (const std::bad_alloc&) {
    return complain(espalier::tools::kBadInput, "this needs more memory than there is");
  } catch (const std::exception& error) {
    return complain(espalier::tools::kBadInput, error.what());
  }
}
