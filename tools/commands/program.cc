#include "tools/commands/program.h"

#include <cerrno>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <system_error>

#include "base/process/file_limit.h"
#include "base/process/system_error.h"
#include "base/version.h"
#include "tools/commands/commands.h"
#include "tools/common/command_line.h"
#include "tools/common/failure.h"
#include "tools/common/output.h"
#include "tools/image/image.h"
#ifdef ESPALIER_WITH_OFI
#include "tools/launch/daemon.h"
#include "tools/launch/launcher_link.h"
#include "tools/status/gather.h"
#endif

namespace espalier::tools {
namespace {

int complain(int exit_status, const std::string& line) {
  std::fflush(stdout);
  std::fprintf(stderr, "espalier: %s\n", one_line(line).c_str());
  return exit_status;
}

int run(int argc, char** argv) {
  CommandLine line(
      "espalier",
      "Collective operations for clusters with custom interconnects, from verified schedules",
      kVersion);
  Command program = line.program();
  program.set_footer(
      "'espalier COMMAND --help' describes a command, with examples.\nExample:\n"
      "  espalier compile --topology complete:16 --collective broadcast --algorithm two-tree -o "
      "b.esp\n"
      "  espalier verify b.esp\n"
      "Exit status: 0 success; 1 a check failed (invalid schedule, wrong result); 2 bad input.");
  add_topology(program);
  add_list(program);
  add_compile(program);
  add_embed(program);
  add_explain(program);
  add_verify(program);
  add_show(program);
  add_draw(program);
  add_simulate(program);
  add_image(program);
  add_export(program);
  add_import(program);
#ifdef ESPALIER_WITH_OFI
  add_run(program);
  add_launch(program);
  add_status(program);
  add_cables(program);
  add_measure(program);
  add_update(program);
  add_doctor(program);
#endif
  if (argc > 1 && std::string(argv[1]) == "tune") {
    bad_input("unknown command 'tune'; it is 'espalier measure --candidates TOPOLOGY' now");
  }
  line.run(argc, argv);
  // A full disk or a closed pipe must not look like success.
  if (std::fflush(stdout) != 0 || !std::cout.flush())
    return complain(kBadInput, "cannot write to stdout");
  return 0;
}

}  // namespace

int run_program(int argc, char** argv) {
  fail_beyond_file_limit();
#ifdef ESPALIER_WITH_OFI
  // Only other commands start these two, therefore no help names them.
  if (argc == 2 && std::string(argv[1]) == "launch-daemon") return launch::serve_launcher();
  if (argc == 3 && std::string(argv[1]) == "launch-daemon") return launch::pass_on(argv[2]);
  if (argc == 2 && std::string(argv[1]) == "status-records") return status::serve_records();
#endif
  try {
    return run(argc, argv);
  } catch (const Failure& failure) {
    return complain(failure.exit_status, failure.line);
  } catch (const std::bad_alloc&) {
    return complain(kBadInput, "this needs more memory than there is" + limit_suffix(ENOMEM));
  } catch (const std::system_error& error) {  // also a thread that cannot be made
    return complain(kBadInput, system_error_text(error.code().value()));
  } catch (const std::exception& error) {
    return complain(kBadInput, error.what());
  }
}

}  // namespace espalier::tools
