// The espalier command.

#include "base/process/inherited.h"
#include "tools/commands/program.h"

int main(int argc, char** argv) {
  espalier::repair_inherited();
  return espalier::tools::run_program(argc, argv);
}
