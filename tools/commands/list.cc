// espalier list: the algorithms there are.

#include <algorithm>
#include <cstdio>
#include <memory>

#include "collectives/algorithms/algorithms.h"
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
    const bool stored = known->hops == topology::Hops::kStoreAndForward;
    rows.push_back({{"embedding", name},
                    {"topology", known->topology},
                    {"collective", known->collective},
                    {"algorithm", known->algorithm},
                    {"root", known->node_of.front()},
                    {"run", known->run},
                    {"hops", stored ? "store-and-forward" : "cut-through"},
                    {"found_by", known->found_by}});
    if (format == Format::kText) std::printf("%s\n", name.c_str());
  }
  if (format == Format::kJson) print_json(rows);
}

void list(Format format) {
  const std::vector<Offer> all = offers();
  if (format == Format::kJson) {
    auto rows = Json::array();
    for (const Offer& offer : all) {
      rows.push_back(
          {{"collective", collective_name(offer.collective)},
           {"algorithm", offer.name},
           {"topologies", offer.topologies},
           {"searched", offer.search != nullptr},
           {"routers", offer.generator != nullptr && offer.generator->where == Where::kFatTree},
           {"parameter", offer.parameter},
           {"max_run", offer.max_run},
           {"needs_commutative", offer.needs_commutative},
           {"summary", offer.summary}});
    }
    print_json(rows);
    return;
  }
  std::size_t width = 0;
  for (const Offer& offer : all) width = std::max(width, offer.name.size());
  for (const Offer& offer : all) {
    std::string text = offer.summary;
    if (offer.needs_commutative) {
      text += has_root(offer.collective) ? "; for some roots the operator must commute"
                                         : "; the operator must commute";
    }
    if (!offer.parameter.empty()) text += "; takes " + offer.parameter;
    if (offer.max_run > 0) text += " up to " + std::to_string(offer.max_run);
    if (offer.search != nullptr) text += "; searched";
    if (offer.topologies != "any topology") text += "; for " + offer.topologies;
    std::printf("%-14s %-*s  %s\n", collective_name(offer.collective), static_cast<int>(width),
                offer.name.c_str(), text.c_str());
  }
}

}  // namespace

void add_list(Command app) {
  Command command = app.add_command("list", "Lists the algorithms of each collective");
  const auto format = std::make_shared<Format>(Format::kText);
  const auto embeddings = std::make_shared<bool>(false);
  add_format(command, *format);
  command.flag("--embeddings", *embeddings, "List the embeddings that are known instead");
  command.set_footer(
      "In the summaries p is the number of ranks and N the number of blocks a segment. Where no\n"
      "topology is named an algorithm is for any, over a fabric that routes.\n"
      "Example:\n  espalier list --format json");
  command.set_action(
      [format, embeddings] { *embeddings ? list_embeddings(*format) : list(*format); });
}

}  // namespace espalier::tools
