// espalier list: the algorithms there are.

#include <algorithm>
#include <cstdio>
#include <memory>

#include "espalier/collectives/algorithms/algorithms.h"
#include "tools/commands/commands.h"
#include "tools/common/json.h"
#include "tools/common/output.h"
#include "tools/select/selection.h"

namespace espalier::tools {
namespace {

void list_embeddings(Format format) {
  auto rows = Json::array();
  for (const std::string& name : topology::known_embeddings()) {
    const auto known = topology::known_embedding(name);
    if (!known) continue;
    const bool stored = known->switching == Switching::kStoreAndForward;
    rows.push_back({{"embedding", name},
                    {"topology", known->topology},
                    {"collective", known->collective},
                    {"algorithm", known->algorithm},
                    {"root", known->node_of.front()},
                    {"run_length", known->run_length},
                    {"switching", stored ? "store-and-forward" : "cut-through"},
                    {"found_by", known->found_by}});
    if (format == Format::kText) std::printf("%s\n", name.c_str());
  }
  if (format == Format::kJson) print_json(rows);
}

void list(Format format) {
  const std::vector<AlgorithmEntry> all = algorithm_entries();
  if (format == Format::kJson) {
    auto rows = Json::array();
    for (const AlgorithmEntry& entry : all) {
      rows.push_back(
          {{"collective", collective_name(entry.collective)},
           {"algorithm", entry.name},
           {"topologies", entry.topologies},
           {"searched", entry.search != nullptr},
           {"routers", entry.generator != nullptr && entry.generator->where == Where::kFatTree},
           {"parameters", entry.parameters},
           {"max_run_length", entry.max_run_length},
           {"max_ranks", entry.generator == nullptr ? 0 : entry.generator->max_ranks},
           {"needs_odd_ranks", entry.generator != nullptr && entry.generator->needs_odd_ranks},
           {"needs_commutative", entry.needs_commutative},
           {"summary", entry.summary}});
    }
    print_json(rows);
    return;
  }
  std::size_t width = 0;
  for (const AlgorithmEntry& entry : all) width = std::max(width, entry.name.size());
  for (const AlgorithmEntry& entry : all) {
    std::string text = entry.summary;
    if (entry.needs_commutative) {
      text += has_root(entry.collective) ? "; for some roots the operator must commute"
                                         : "; the operator must commute";
    }
    for (std::size_t i = 0; i < entry.parameters.size(); ++i) {
      text += (i == 0 ? "; takes " : " and ") + entry.parameters[i];
    }
    if (entry.max_run_length > 0) text += " up to " + std::to_string(entry.max_run_length);
    if (entry.search != nullptr) text += "; searched";
    if (!entry.any_topology) text += "; for " + entry.topologies;
    std::printf("%-14s %-*s  %s\n", collective_name(entry.collective), static_cast<int>(width),
                entry.name.c_str(), text.c_str());
  }
}

}  // namespace

void add_list(Command app) {
  Command command = app.add_command("list", "Lists the algorithms of each collective");
  const auto format = std::make_shared<Format>(Format::kText);
  const auto embeddings = std::make_shared<bool>(false);
  add_format(command, *format);
  command.flag("--embeddings", *embeddings, "List the known embeddings instead");
  command.set_footer(
      "In the summaries p is the number of ranks and N the number of blocks per segment. An\n"
      "algorithm that names no topology is for any topology, over a fabric that routes.\n"
      "Example:\n  espalier list --format json");
  command.set_action(
      [format, embeddings] { *embeddings ? list_embeddings(*format) : list(*format); });
}

}  // namespace espalier::tools
