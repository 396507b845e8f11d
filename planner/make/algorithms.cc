#include "planner/make/algorithms.h"

#include <algorithm>

#include "base/counted.h"
#include "base/one_line.h"

namespace espalier::planner {
namespace {

std::vector<std::string> parameters_of(bool run_length, bool radix, bool lambda, bool ratio) {
  std::vector<std::string> taken;
  if (run_length) taken.emplace_back("--run-length");
  if (radix) taken.emplace_back("--radix");
  if (lambda) taken.emplace_back("--lambda");
  if (ratio) taken.emplace_back("--ratio");
  return taken;
}

std::vector<AlgorithmEntry> list_entries() {
  std::vector<AlgorithmEntry> all;
  for (const Algorithm& one : algorithms()) {
    const char* topologies = one.where == Where::kFatTree
                                 ? "fat trees, whose routers run programs too"
                             : one.where == Where::kHosts ? "hosts:HxR"
                             : one.where == Where::kGrid  ? "meshes, tori and rings"
                             : one.where == Where::kTorus ? "tori and rings"
                                                          : "any topology";
    all.push_back(
        {one.name, one.collective, one.needs_commutative, one.summary, topologies,
         one.where == Where::kAnywhere, one.is_chain, false,
         parameters_of(one.max_run_length > 0, one.takes_radix, one.takes_lambda, one.takes_ratio),
         one.max_run_length, &one, nullptr});
  }
  for (const searched::SearchedAlgorithm& one : searched::searched_algorithms()) {
    all.push_back({one.name, one.collective, one.needs_commutative, one.summary, one.topologies,
                   one.any_topology, false, one.has_groups,
                   parameters_of(one.max_run_length > 0, false, false, false), one.max_run_length,
                   nullptr, &one});
  }
  std::stable_sort(all.begin(), all.end(), [](const AlgorithmEntry& a, const AlgorithmEntry& b) {
    return a.collective < b.collective;
  });
  return all;
}

}  // namespace

const std::vector<AlgorithmEntry>& algorithm_entries() {
  static const std::vector<AlgorithmEntry> all = list_entries();
  return all;
}

Result<const AlgorithmEntry*> find_entry(Collective collective, const std::string& name) {
  std::vector<std::string> names;
  bool known = false;
  for (const AlgorithmEntry& entry : algorithm_entries()) {
    known = known || entry.name == name;
    if (entry.collective != collective) continue;
    if (entry.name == name) return &entry;
    names.push_back(entry.name);
  }
  const std::string wanted = collective_name(collective);
  const std::string expected = "; expected " + either(names);
  if (known) return fail("algorithm '" + name + "' cannot do " + wanted + expected);
  return fail("unknown algorithm '" + one_line(name) + "' for " + wanted + expected);
}

bool takes(const AlgorithmEntry& entry, const std::string& option) {
  return std::find(entry.parameters.begin(), entry.parameters.end(), option) !=
         entry.parameters.end();
}

}  // namespace espalier::planner
