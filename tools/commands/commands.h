#pragma once
// The subcommands, one file each. Each function adds one to the program. A command prints its
// results on stdout; it throws Failure if it cannot do its work or a check fails.

#include "tools/common/command_line.h"

namespace espalier::tools {

void add_topology(Command app);
void add_list(Command app);
void add_compile(Command app);
void add_embed(Command app);
void add_explain(Command app);
void add_verify(Command app);
void add_show(Command app);
void add_draw(Command app);
void add_simulate(Command app);
void add_export(Command app);
void add_import(Command app);
void add_run(Command app);
void add_launch(Command app);
void add_status(Command app);
void add_cables(Command app);
void add_measure(Command app);
void add_update(Command app);
void add_doctor(Command app);

}  // namespace espalier::tools
