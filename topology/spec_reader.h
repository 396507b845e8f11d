#pragma once
// Reads the text of a topology specification from left to right and keeps the first error.

#include <cstdint>
#include <string>
#include <string_view>

namespace espalier::topology {

// More nodes than this are refused: beyond it no list of links or nodes is of use to anybody.
inline constexpr std::uint64_t kMaxTopologyNodes = 1u << 24;

class SpecReader {
 public:
  // family: "mesh:"; text: what follows it; shape: what a right one looks like, for messages.
  SpecReader(std::string_view family, std::string_view text, std::string_view shape)
      : family_(family), text_(text), shape_(shape) {}

  // A decimal number from 1 to 2^31-1 without sign or leading zero; 0 after an error.
  std::uint32_t number(std::string_view what);
  // Exactly this text.
  void literal(std::string_view text);
  // Whether this text comes next; takes it if so.
  bool take(std::string_view text);
  // The end of the text.
  void end();
  void limit_nodes(std::uint64_t nodes);
  // A rule of the topology itself does not hold.
  void fail(std::string_view what);
  // Whether anything went wrong; writes the line that says what.
  bool failed(std::string& error) const;

 private:
  std::string_view family_, text_, shape_;
  std::size_t at_ = 0;
  std::string error_;
};

}  // namespace espalier::topology
