#include "communicator/chosen_cache.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "communicator/cache_file.h"

namespace espalier::communicator {
namespace {

using Json = nlohmann::json;

// The fields of a selection that candidates differ in.
constexpr std::string tools::Selection::*kFields[] = {
    &tools::Selection::topology, &tools::Selection::collective, &tools::Selection::algorithm,
    &tools::Selection::root,     &tools::Selection::run_length, &tools::Selection::radix,
    &tools::Selection::lambda,   &tools::Selection::ratio,      &tools::Selection::embedding,
    &tools::Selection::window};

std::string text_of(const KeptChoice& choice) {
  Json origins = Json::array();
  for (const tools::ChosenOrigin& origin : choice.origins) {
    Json one = {origin.in_order};
    for (const auto field : kFields) one.push_back(origin.selection.*field);
    origins.push_back(std::move(one));
  }
  Json rows = Json::array();
  for (const SelectionRow& row : choice.rows) {
    rows.push_back({row.from_bytes, row.needs_commutative, row.program});
  }
  return Json{{"origins", origins}, {"rows", rows}}.dump() + "\n";
}

// Nothing: the text is not that of a choice, for instance because a process was killed while it
// wrote.
std::optional<KeptChoice> parse(const std::string& text) {
  try {
    const Json all = Json::parse(text);
    KeptChoice choice;
    for (const Json& one : all.at("origins")) {
      tools::ChosenOrigin origin;
      origin.in_order = one.at(0).get<bool>();
      for (std::size_t i = 0; i < std::size(kFields); ++i) {
        origin.selection.*kFields[i] = one.at(i + 1).get<std::string>();
      }
      choice.origins.push_back(std::move(origin));
    }
    for (const Json& one : all.at("rows")) {
      SelectionRow row = {};
      // get() would cut larger numbers and fractions down.
      if (!one.at(0).is_number_unsigned() || !one.at(2).is_number_unsigned()) return {};
      const auto program = one.at(2).get<std::uint64_t>();
      if (program >= choice.origins.size() || program > UINT8_MAX) return {};
      row.from_bytes = one.at(0).get<std::uint64_t>();
      row.needs_commutative = one.at(1).get<bool>();
      row.program = static_cast<std::uint8_t>(program);
      choice.rows.push_back(row);
    }
    const bool is_one = choice.origins.size() == 1;
    if (choice.origins.empty() || choice.rows.empty() != is_one ||
        choice.rows.size() > kMaxSelectionRows) {
      return {};
    }
    return choice;
  } catch (const Json::exception&) {
    return {};
  }
}

}  // namespace

KeptChoice obtain_choice(const std::string& name,
                         const std::function<bool(const KeptChoice&)>& is_good,
                         const std::function<KeptChoice()>& choose) {
  const CacheFile file(cache_path(name));
  if (!file.is_open()) return choose();
  if (auto kept = parse(file.read()); kept && is_good(*kept)) return *std::move(kept);
  KeptChoice choice = choose();
  file.replace(text_of(choice));
  return choice;
}

}  // namespace espalier::communicator
