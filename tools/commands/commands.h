#pragma once
// The subcommands, a file each. Each adds itself to the application; main.cc runs the one chosen,
// which prints its results on stdout and throws Failure where it cannot or the verdict is negative.

#include <CLI/App.hpp>

namespace espalier::tools {

void add_topology(CLI::App& app);
void add_list(CLI::App& app);
void add_compile(CLI::App& app);
void add_embed(CLI::App& app);
void add_verify(CLI::App& app);
void add_show(CLI::App& app);
void add_draw(CLI::App& app);
void add_simulate(CLI::App& app);
void add_image(CLI::App& app);
void add_trace(CLI::App& app);
void add_run(CLI::App& app);
void add_measure(CLI::App& app);

}  // namespace espalier::tools
