// espalier list: the algorithms there are.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "collectives/algorithms/algorithms.h"
#include "tools/commands.h"
#include "tools/output.h"

namespace espalier::tools {
namespace {

void list(Format format) {
  std::uint32_t count = 0;
  const Algorithm* all = algorithms(count);
  if (format == Format::kJson) {
    auto rows = nlohmann::ordered_json::array();
    for (std::uint32_t at = 0; at < count; ++at) {
      rows.push_back({{"collective", collective_name(all[at].collective)},
                      {"algorithm", all[at].name},
                      {"needs_commutative", all[at].needs_commutative},
                      {"summary", all[at].summary}});
    }
    print_json(rows);
    return;
  }
  std::size_t width = 0;
  for (std::uint32_t at = 0; at < count; ++at) width = std::max(width, std::strlen(all[at].name));
  for (std::uint32_t at = 0; at < count; ++at) {
    std::printf("%-10s %-*s  %s%s\n", collective_name(all[at].collective), static_cast<int>(width),
                all[at].name, all[at].summary,
                all[at].needs_commutative ? "; for some roots the operator must commute" : "");
  }
}

}  // namespace

void add_list(CLI::App& app) {
  CLI::App* command = app.add_subcommand("list", "Lists the algorithms of each collective");
  const auto format = std::make_shared<Format>(Format::kText);
  add_format(*command, *format);
  command->footer(
      "In the summaries p is the number of ranks and N the number of blocks a segment.\n"
      "Example:\n  espalier list --format json");
  command->callback([format] { list(*format); });
}

}  // namespace espalier::tools
