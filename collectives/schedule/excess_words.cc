#include "collectives/schedule/excess_words.h"

namespace espalier {
namespace {

// Whether hosts have room for more rows of the table than boards.
bool is_longer_on_hosts(const std::string& table) { return table == "terms" || table == "indices"; }

}  // namespace

std::string excess_words(const TableExcess& excess) {
  const std::string table = excess.table;
  const bool longer = is_longer_on_hosts(table);
  return "its program needs " + std::to_string(excess.rows) + " " + table + ", and " +
         (!longer               ? "nodes have"
          : excess.is_for_hosts ? "hosts have"
                                : "boards have") +
         " room for " + std::to_string(excess.limit) +
         (longer && !excess.is_for_hosts ? " (hosts for more: --limits host)" : "");
}

}  // namespace espalier
