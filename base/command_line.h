#pragma once
// Splits the command lines of espalier-node, espalier-gateway and espalier-bare-hosted into
// options. Host only. Not CLI11: a file that includes it takes eleven seconds to compile, and
// builds of the node alone (cross builds, -Dtools=false) need none of the tools' libraries.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/base/result.h"

namespace espalier {

struct OptionSpec {
  std::string_view name;  // without the dashes
  bool takes_value = true;
};

// One option of a command line. Options may be repeated: each use is one of these.
struct GivenOption {
  std::string name;   // without the dashes
  std::string value;  // may be empty: --name ''
};

// Splits `words`, which begin after the program's name, into options, in their order. An option is
// --NAME VALUE or --NAME=VALUE, or --NAME alone if it takes no value. -h is --help.
// Errors, which name `program`: an unknown option, a missing or surplus value, or a word that
// belongs to no option.
[[nodiscard]] Result<std::vector<GivenOption>> split_options(std::string_view program,
                                                             std::span<const std::string> words,
                                                             std::span<const OptionSpec> specs);

// The words of main()'s arguments, without the program's name.
[[nodiscard]] std::vector<std::string> words_of(int argc, char** argv);

// Replaces every mark of `text` by the number of `node`.
[[nodiscard]] std::string with_node_number(std::string text, std::uint32_t node,
                                           std::string_view mark = "%r");

}  // namespace espalier
