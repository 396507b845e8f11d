#pragma once
// The environment variables that libraries and programs read. Every read is here. Host only.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "espalier/base/result.h"

namespace espalier {

// In the order of variables().
enum class Variable : std::uint8_t {
  kEspalierRank,
  kRank,
  kEspalierSize,
  kWorldSize,
  kEspalierAddress,
  kMasterAddr,
  kMasterPort,
  kSecretFile,
  kServer,
  kCables,
  kInterface,
  kPorts,
  kPatience,
  kJobFile,
  kJoin,
  kPmiFd,
  kPmiRank,
  kPmiSize,
  kMpiLocalRanks,
  kSlurmNodes,
  kPmixNamespace,
  kFiProvider,
  kVerbose,
  kMpiCounts,
  kTestFaults,
  kRecord,
  kCacheHome,
  kHome,
  kRuntimeDir,
  kPath,
  kSshConnection,
  kCount,
};

enum class VariableKind : std::uint8_t {
  kNumber,  // digits
  kText,    // at least one character, and no control characters
  kFlag,    // set or not; the value does not matter
  kSystem,  // of the system; a value that cannot be used counts as none
};

struct VariableRow {
  const char* name;
  VariableKind kind;
  const char* expected;  // of a text: the right values
};

// Returns one row per variable.
[[nodiscard]] std::span<const VariableRow> variables();
[[nodiscard]] const VariableRow& row_of(Variable variable);

// Returns the value as it is; null: not set. For a flag or a variable of the system.
[[nodiscard]] const char* raw_value(Variable variable);
// The same of a variable that the user names.
[[nodiscard]] const char* raw_value(const std::string& name);
[[nodiscard]] bool is_set(Variable variable);

// Returns the value of a text; nothing: not set.
// Error, "NAME='VALUE'; expected ...": an empty value, or one with a control character.
[[nodiscard]] Result<std::optional<std::string>> read_text(Variable variable);
// Returns the value of a number; nothing: not set.
// Error, "NAME='VALUE'; expected a whole number from MIN to MAX".
[[nodiscard]] Result<std::optional<std::uint32_t>> read_number(Variable variable, std::uint32_t min,
                                                               std::uint32_t max);
// Returns "NAME='VALUE'; expected ...", one line.
[[nodiscard]] Error wrong_value(Variable variable, const std::string& expected);

}  // namespace espalier
