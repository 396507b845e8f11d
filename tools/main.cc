// The espalier command.

#include "tools/commands/program.h"

int main(int argc, char** argv) { return espalier::tools::run_program(argc, argv); }
