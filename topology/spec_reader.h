#pragma once
// Parses the text of a topology specification from left to right and keeps the first error.

#include <cstdint>
#include <optional>
#include <string_view>

#include "espalier/base/result.h"

namespace espalier::topology {

// Larger topologies are refused: a list of their links or nodes would be of no use.
inline constexpr std::uint64_t kMaxTopologyNodes = 1u << 24;

class SpecReader {
 public:
  // family: "mesh:"; text: the text after it; shape: the correct form, for messages.
  SpecReader(std::string_view family, std::string_view text, std::string_view shape)
      : family_(family), text_(text), shape_(shape) {}

  // Parses a decimal number from 1 to 2^31-1 without sign or leading zero; returns 0 after an
  // error.
  std::uint32_t number(std::string_view what);
  // Requires exactly this text.
  void literal(std::string_view text);
  // Whether this text comes next; if so, consumes it.
  bool take(std::string_view text);
  // Requires the end of the text.
  void end();
  void limit_nodes(std::uint64_t nodes);
  // Records that the topology violates one of its own rules.
  void fail(std::string_view what);
  // Returns the first error, if there was one.
  [[nodiscard]] Result<void> result() const;

 private:
  std::string_view family_, text_, shape_;
  std::size_t at_ = 0;
  std::optional<Error> error_;  // the first
};

}  // namespace espalier::topology
