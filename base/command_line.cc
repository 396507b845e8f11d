#include "base/command_line.h"

#include <algorithm>

namespace espalier {

Result<std::vector<GivenOption>> split_options(std::string_view program,
                                               std::span<const std::string> words,
                                               std::span<const OptionSpec> specs) {
  const auto fail = [&](const std::string& what) {
    return espalier::fail(what + "; see " + std::string(program) + " --help");
  };
  std::vector<GivenOption> given;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i] == "-h" ? "--help" : words[i];
    if (!word.starts_with("--")) return fail("unexpected argument '" + word + "'");
    const std::size_t equals = word.find('=');
    const bool has_equals = equals != std::string::npos;
    const std::string name = word.substr(2, has_equals ? equals - 2 : std::string::npos);
    const auto spec = std::find_if(specs.begin(), specs.end(),
                                   [&name](const OptionSpec& each) { return each.name == name; });
    if (spec == specs.end()) return fail("unknown option --" + name);
    GivenOption& option = given.emplace_back();
    option.name = name;
    if (has_equals) {
      if (!spec->takes_value) return fail("--" + name + " takes no value");
      option.value = word.substr(equals + 1);
    } else if (spec->takes_value) {
      if (i + 1 == words.size()) return fail("no value after --" + name);
      option.value = words[++i];
    }
  }
  return given;
}

std::vector<std::string> words_of(int argc, char** argv) { return {argv + 1, argv + argc}; }

std::string with_node_number(std::string text, std::uint32_t node, std::string_view mark) {
  const std::string number = std::to_string(node);
  for (std::size_t i = text.find(mark); i != std::string::npos; i = text.find(mark, i)) {
    text.replace(i, mark.size(), number);
  }
  return text;
}

}  // namespace espalier
