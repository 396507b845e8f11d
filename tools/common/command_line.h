#pragma once
// The command line: commands and their options, which are read into variables. Every option that is
// given takes effect or is refused. Only command_line.cc includes the parser (CLI11), which takes
// seconds to compile. Host only.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's
class App;
class Option;
}  // namespace CLI

namespace espalier::tools {

struct CommandLineState;

// One option or positional argument of a command.
class Option {
 public:
  Option(CommandLineState& state, CLI::Option* option) : state_(&state), option_(option) {}
  Option& required(bool required = true);
  // The help shows `value` as the default.
  Option& show_default(const std::string& value);
  // The help does not name the option: a test aid.
  void hide();
  // Replaces the help text.
  void describe(const std::string& help);
  // The two are refused together.
  Option& excludes(const Option& other);
  [[nodiscard]] bool is_given() const;

 private:
  CommandLineState* state_;
  CLI::Option* option_;
};

// A command, or the program itself. `names` of an option: "--type", "-o,--output"; of a positional
// argument its name alone. Each option may be given once, and its value may not be empty.
class Command {
 public:
  Command(CommandLineState& state, CLI::App* app) : state_(&state), app_(app) {}

  Command add_command(const std::string& name, const std::string& help);
  Option text(const std::string& names, std::string& value, const std::string& help);
  // One of `words`; `store` gets its index.
  Option word(const std::string& names, const std::vector<std::string>& words,
              std::function<void(std::size_t index)> store, const std::string& help);
  // The same; `value` gets the word, or the value of an enum whose values are 0, 1, ...
  Option word(const std::string& names, const std::vector<std::string>& words, std::string& value,
              const std::string& help);
  template <typename Enum>
  requires std::is_enum_v<Enum> Option word(const std::string& names,
                                            const std::vector<std::string>& words, Enum& value,
                                            const std::string& help) {
    const auto store = [&value](std::size_t index) { value = static_cast<Enum>(index); };
    return word(names, words, store, help).show_default(words[static_cast<std::size_t>(value)]);
  }
  // May be given several times; each adds one value.
  Option texts(const std::string& names, std::vector<std::string>& values, const std::string& help);
  // Given once, its values separated by commas.
  Option list(const std::string& names, std::vector<std::string>& values, const std::string& help);
  // Positional arguments, one or more.
  Option arguments(const std::string& name, std::vector<std::string>& values,
                   const std::string& help);
  // All words from the first one that is neither an option of the command nor its value: another
  // program's command line.
  void rest(std::vector<std::string>& values);
  // A whole number, and a number, from `least` to `most`; the help shows the default.
  Option number(const std::string& names, std::uint32_t& value, std::uint64_t least,
                std::uint64_t most, const std::string& help);
  Option real(const std::string& names, double& value, double least, double most,
              const std::string& help);
  Option flag(const std::string& names, bool& value, const std::string& help);

  // The option of this name, which must exist.
  [[nodiscard]] Option option(const std::string& name) const;
  // Text behind the options in the command's help.
  void set_footer(const std::string& text);
  // Sets the function that CommandLine::run() calls for this command.
  void set_action(std::function<void()> action);
  // The same for run(arguments). Returns the arguments, for the command's options.
  template <typename Arguments, typename Run>
  Arguments& bind(Run run) {
    const auto arguments = std::make_shared<Arguments>();
    set_action([arguments, run] { run(*arguments); });
    return *arguments;
  }

 private:
  CommandLineState* state_;
  CLI::App* app_;
};

// The program's command line.
class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& help, const std::string& version);
  ~CommandLine();
  [[nodiscard]] Command program();
  // Parses the arguments and runs the chosen command. Prints the help or the version if they are
  // asked for. Throws Failure (bad input) for an unknown command or option, with the nearest known
  // one; for a missing, repeated, empty or excluded option; and any Failure of the command.
  void run(int argc, char** argv);

 private:
  std::unique_ptr<CommandLineState> state_;
};

}  // namespace espalier::tools
