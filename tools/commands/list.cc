// espalier list: the algorithms there are.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>
#include <utility>

#include "espalier/collectives/algorithms/algorithms.h"
#include "planner/make/plan.h"
#include "tools/commands/commands.h"
#include "tools/common/json.h"
#include "tools/common/output.h"

namespace espalier::tools {
namespace {

// The rows and columns of a mesh.
using Mesh = std::pair<std::uint32_t, std::uint32_t>;

// "mesh-RxC-broadcast-two-tree" for one of the families, which have an embedding of each mesh from
// its corner; otherwise the embedding's name.
std::string pattern_of(const topology::Embedding& embedding, const Mesh& mesh) {
  const std::string size = std::to_string(mesh.first) + "x" + std::to_string(mesh.second);
  const std::string begin = "mesh-" + size + "-";
  const bool is_of_family = embedding.groups.empty() && embedding.name.starts_with(begin) &&
                            embedding.switching == Switching::kCutThrough;
  if (!is_of_family) return embedding.name;
  return "mesh-RxC-" + embedding.name.substr(begin.size());
}

// "9 RxC: 1x2 2x1, and 2x2 to 4x4 except 2x4 4x2"
std::string text_of(const std::set<Mesh>& meshes) {
  const auto words = [](const std::set<Mesh>& some) {
    std::string text;
    for (const auto& [rows, columns] : some) {
      text += " " + std::to_string(rows) + "x" + std::to_string(columns);
    }
    return text;
  };
  std::uint32_t most = 2;
  for (const auto& [rows, columns] : meshes) most = std::max({most, rows, columns});
  std::set<Mesh> narrow, missing;
  for (const Mesh& mesh : meshes) {
    if (std::min(mesh.first, mesh.second) < 2) narrow.insert(mesh);
  }
  for (std::uint32_t rows = 2; rows <= most; ++rows) {
    for (std::uint32_t columns = 2; columns <= most; ++columns) {
      if (!meshes.contains({rows, columns})) missing.insert({rows, columns});
    }
  }
  const std::string count = std::to_string(meshes.size()) + " RxC:";
  if (missing.size() > meshes.size()) return count + words(meshes);
  const std::string all = std::to_string(most) + "x" + std::to_string(most);
  return count + words(narrow) + (narrow.empty() ? "" : ", and") + " 2x2 to " + all +
         (missing.empty() ? "" : " except") + words(missing);
}

// Prints one row per embedding, or per embeddings of many meshes.
void print_embeddings(const std::vector<topology::Embedding>& all) {
  struct Row {
    std::string pattern, grade, where;
    std::set<Mesh> meshes;
  };
  std::vector<Row> rows;
  std::size_t width = 0;
  for (const topology::Embedding& embedding : all) {
    const auto topology = or_bad_input(topology::parse(embedding.topology));
    const Mesh mesh{topology->shape().rows, topology->shape().columns};
    const std::string pattern = pattern_of(embedding, mesh);
    auto row = std::find_if(rows.begin(), rows.end(),
                            [&](const Row& other) { return other.pattern == pattern; });
    if (row == rows.end()) {
      const bool stored = embedding.switching == Switching::kStoreAndForward;
      row = rows.insert(row, {pattern, stored ? "period" : "SLOT", topology->title(), {}});
    }
    row->meshes.insert(mesh);
    width = std::max(width, pattern.size());
  }
  for (const Row& row : rows) {
    std::printf("%-*s  %-6s  %s\n", static_cast<int>(width), row.pattern.c_str(), row.grade.c_str(),
                (row.pattern.starts_with("mesh-RxC-") ? text_of(row.meshes) : row.where).c_str());
  }
}

void list_embeddings(Format format) {
  std::vector<topology::Embedding> all;
  for (const std::string& name : topology::known_embeddings()) {
    if (auto known = topology::known_embedding(name)) all.push_back(*std::move(known));
  }
  if (format == Format::kText) {
    print_embeddings(all);
    return;
  }
  auto rows = Json::array();
  for (const topology::Embedding& known : all) {
    const bool stored = known.switching == Switching::kStoreAndForward;
    rows.push_back({{"embedding", known.name},
                    {"topology", known.topology},
                    {"collective", known.collective},
                    {"algorithm", known.algorithm},
                    {"root", known.node_of.front()},
                    {"run_length", known.run_length},
                    {"switching", stored ? "store-and-forward" : "cut-through"},
                    {"found_by", known.found_by}});
  }
  print_json(rows);
}

// Why the algorithm cannot run here; null if it can.
const char* missing(const planner::AlgorithmEntry& entry) {
  const bool may_miss = entry.search != nullptr && entry.search->missing != nullptr;
  return may_miss ? entry.search->missing() : nullptr;
}

void list(Format format) {
  const std::vector<planner::AlgorithmEntry>& all = planner::algorithm_entries();
  if (format == Format::kJson) {
    auto rows = Json::array();
    for (const planner::AlgorithmEntry& entry : all) {
      rows.push_back(
          {{"collective", collective_name(entry.collective)},
           {"algorithm", entry.name},
           {"topologies", entry.topologies},
           {"searched", entry.search != nullptr},
           {"routers", entry.search != nullptr ? entry.search->has_routers
                                               : entry.generator->where == Where::kFatTree},
           {"parameters", entry.parameters},
           {"max_run_length", entry.max_run_length},
           {"max_ranks", entry.generator == nullptr ? 0 : entry.generator->max_ranks},
           {"needs_odd_ranks", entry.generator != nullptr && entry.generator->needs_odd_ranks},
           {"needs_commutative", entry.needs_commutative},
           {"missing", missing(entry) == nullptr ? "" : missing(entry)},
           {"summary", entry.summary}});
    }
    print_json(rows);
    return;
  }
  std::size_t width = 0;
  for (const planner::AlgorithmEntry& entry : all) width = std::max(width, entry.name.size());
  for (const planner::AlgorithmEntry& entry : all) {
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
    if (const char* why = missing(entry)) text += std::string("; not here: ") + why;
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
  command.flag("--embeddings", *embeddings,
               "List the known embeddings instead; mesh-RxC-...: one for each mesh (see below)");
  command.set_footer(
      "In the summaries p is the number of ranks and N the number of blocks per segment. An\n"
      "algorithm that names no topology is for any topology, over a fabric that routes.\n"
      "Embeddings have a grade. SLOT: no link carries two blocks in a step. period: no link "
      "carries\n"
      "more blocks in a period than it has steps (--links hop-by-hop).\n"
      "Example:\n  espalier list --format json");
  command.set_action(
      [format, embeddings] { *embeddings ? list_embeddings(*format) : list(*format); });
}

}  // namespace espalier::tools
