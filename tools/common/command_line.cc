#include "tools/common/command_line.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <map>
#include <numeric>

#include "tools/common/failure.h"
#include "tools/common/numbers.h"
#include "tools/common/output.h"

namespace espalier::tools {

using Values = std::vector<std::string>;

struct CommandLineState {
  // Stores an option's values once the whole command line has been checked.
  struct Binding {
    CLI::Option* option;
    bool repeats;
    std::function<void(const std::string& name, const Values& values)> store;
  };

  explicit CommandLineState(const std::string& help) : app(help) {}

  CLI::App app;
  std::vector<Binding> bindings;
  std::vector<std::pair<CLI::Option*, CLI::Option*>> exclusions;
  std::map<CLI::App*, std::function<void()>> actions;
  std::map<CLI::App*, Values*> rests;  // for Command::rest()
};

namespace {

// The least number of letters to add, leave out or change that makes one word of the other.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

// "; the nearest is 'verify'", or nothing if no word is near.
std::string nearest(const std::string& word, const Values& known) {
  const auto best = std::min_element(known.begin(), known.end(),
                                     [&word](const std::string& a, const std::string& b) {
                                       return distance(word, a) < distance(word, b);
                                     });
  if (best == known.end() || distance(word, *best) > std::max<std::size_t>(2, word.size() / 3)) {
    return "";
  }
  return "; the nearest is '" + *best + "'";
}

// "espalier image check"
std::string path_of(const CLI::App& app) {
  std::string path = app.get_name();
  for (const CLI::App* command : app.get_subcommands()) path += " " + path_of(*command);
  return path;
}

CLI::App& deepest(CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : deepest(*chosen.front());
}

// Refuses an unknown command's name.
void check_command_names(CLI::App& app, const Values& words) {
  CLI::App* level = &app;
  std::string path = app.get_name();
  for (const std::string& word : words) {
    const auto commands = level->get_subcommands([](CLI::App*) { return true; });
    if (commands.empty() || word.starts_with('-')) return;
    Values names;
    for (const CLI::App* command : commands) names.push_back(command->get_name());
    const auto found = std::find(names.begin(), names.end(), word);
    if (found == names.end()) {
      bad_input("unknown command '" + one_line(word) + "'" + nearest(word, names) + "; '" + path +
                " --help' lists the commands");
    }
    level = commands[static_cast<std::size_t>(found - names.begin())];
    path += " " + word;
  }
}

std::string help_hint(const CLI::App& app) { return "; see '" + path_of(app) + " --help'"; }

[[noreturn]] void refuse_extra(CLI::App& app) {
  const std::string word = app.remaining(true).front();
  Values names;
  for (const CLI::Option* option : deepest(app).get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  const bool is_option = word.starts_with('-');
  bad_input(std::string(is_option ? "unknown option '" : "unexpected argument '") + one_line(word) +
            "'" + (is_option ? nearest(word, names) : "") + help_hint(app));
}

void store_values(const CommandLineState& state) {
  const auto given = [](const CLI::Option* option) { return option->count() > 0; };
  for (const auto& [one, other] : state.exclusions) {
    if (!given(one) || !given(other)) continue;
    bad_input(one->get_name() + " excludes " + other->get_name() + "; expected one of them" +
              help_hint(state.app));
  }
  for (const CommandLineState::Binding& binding : state.bindings) {
    if (!given(binding.option)) continue;
    const std::string name = binding.option->get_name();
    const Values& values = binding.option->results();
    if (!binding.repeats && values.size() > 1) {
      bad_input(name + " is given " + std::to_string(values.size()) + " times; expected it once" +
                help_hint(state.app));
    }
    for (const std::string& value : values) {
      if (value.empty()) bad_input(name + " is empty; expected a value" + help_hint(state.app));
    }
    binding.store(name, values);
  }
}

// Adds an option that takes one value each time it is given.
CLI::Option* add(CommandLineState& state, CLI::App& app, const std::string& names,
                 const std::string& help, const char* type, bool repeats,
                 std::function<void(const std::string&, const Values&)> store) {
  CLI::Option* option = app.add_option(
      names, [](const CLI::results_t&) { return true; }, help);
  option->type_name(type)->type_size(1)->expected(1)->multi_option_policy(
      CLI::MultiOptionPolicy::TakeAll);
  state.bindings.push_back({option, repeats, std::move(store)});
  return option;
}

}  // namespace

Option& Option::required(bool required) {
  option_->required(required);
  return *this;
}

Option& Option::show_default(const std::string& value) {
  option_->default_str(value);
  return *this;
}

void Option::hide() { option_->group(""); }

void Option::describe(const std::string& help) { option_->description(help); }

bool Option::is_given() const { return option_->count() > 0; }

Command Command::add_command(const std::string& name, const std::string& help) {
  return Command(*state_, app_->add_subcommand(name, help));
}

Option Command::text(const std::string& names, std::string& value, const std::string& help) {
  return Option(*state_,
                add(*state_, *app_, names, help, "TEXT", false,
                    [&value](const std::string&, const Values& given) { value = given.front(); }));
}

Option Command::word(const std::string& names, const std::vector<std::string>& words,
                     std::function<void(std::size_t index)> store, const std::string& help) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : "|") + word;
  const auto find = [words, store = std::move(store)](const std::string& name,
                                                      const Values& given) {
    const auto found = std::find(words.begin(), words.end(), given.front());
    if (found == words.end()) {
      bad_input("unknown " + name + " '" + one_line(given.front()) + "'; expected " +
                either(words));
    }
    store(static_cast<std::size_t>(found - words.begin()));
  };
  return Option(*state_, add(*state_, *app_, names, help, all.c_str(), false, find));
}

Option Command::word(const std::string& names, const std::vector<std::string>& words,
                     std::string& value, const std::string& help) {
  return word(
      names, words, [&value, words](std::size_t index) { value = words[index]; }, help);
}

Option Command::texts(const std::string& names, std::vector<std::string>& values,
                      const std::string& help) {
  return Option(*state_,
                add(*state_, *app_, names, help, "TEXT", true,
                    [&values](const std::string&, const Values& given) { values = given; }));
}

Option Command::list(const std::string& names, std::vector<std::string>& values,
                     const std::string& help) {
  return Option(*state_, add(*state_, *app_, names, help, "TEXT,...", false,
                             [&values](const std::string& name, const Values& given) {
                               values.clear();
                               std::string rest = given.front() + ",";
                               while (!rest.empty()) {
                                 const std::size_t comma = rest.find(',');
                                 values.push_back(rest.substr(0, comma));
                                 rest.erase(0, comma + 1);
                                 if (!values.back().empty()) continue;
                                 bad_input(name + " '" + one_line(given.front()) +
                                           "' has an empty entry; expected values between commas");
                               }
                             }));
}

Option Command::arguments(const std::string& name, std::vector<std::string>& values,
                          const std::string& help) {
  CLI::Option* option = add(*state_, *app_, name, help, "TEXT ...", true,
                            [&values](const std::string&, const Values& given) { values = given; });
  option->expected(-1);
  return Option(*state_, option);
}

void Command::rest(std::vector<std::string>& values) {
  app_->prefix_command();
  state_->rests[app_] = &values;
}

Option Command::number(const std::string& names, std::uint32_t& value, std::uint64_t least,
                       std::uint64_t most, const std::string& help) {
  Option option(*state_, add(*state_, *app_, names, help, "NUMBER", false,
                             [&value, least, most](const std::string& name, const Values& given) {
                               value = static_cast<std::uint32_t>(
                                   whole_number(name, given.front(), least, most));
                             }));
  return option.show_default(std::to_string(value));
}

Option Command::real(const std::string& names, double& value, double least, double most,
                     const std::string& help) {
  Option option(*state_, add(*state_, *app_, names, help, "NUMBER", false,
                             [&value, least, most](const std::string& name, const Values& given) {
                               value = real_number(name, given.front(), least, most);
                             }));
  return option.show_default(real_text(value));
}

Option Command::flag(const std::string& names, bool& value, const std::string& help) {
  CLI::Option* option = app_->add_flag(names, help);
  option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  const auto store = [&value](const std::string& name, const Values& given) {
    if (given.front() != "true") bad_input(name + " is a flag; expected no value");
    value = true;
  };
  state_->bindings.push_back({option, false, store});
  return Option(*state_, option);
}

Option Command::option(const std::string& name) const {
  return Option(*state_, app_->get_option(name));
}

void Command::set_footer(const std::string& text) { app_->footer(text + "\n"); }

void Command::set_action(std::function<void()> action) {
  state_->actions[app_] = std::move(action);
}

Option& Option::excludes(const Option& other) {
  state_->exclusions.emplace_back(option_, other.option_);
  return *this;
}

CommandLine::CommandLine(const std::string& name, const std::string& help,
                         const std::string& version)
    : state_(std::make_unique<CommandLineState>(help)) {
  state_->app.name(name);
  state_->app.set_version_flag("--version", version);
}

CommandLine::~CommandLine() = default;

Command CommandLine::program() { return Command(*state_, &state_->app); }

void CommandLine::run(int argc, char** argv) {
  CLI::App& app = state_->app;
  const Values words(argv + std::min(argc, 1), argv + argc);
  check_command_names(app, words);
  if (words.size() > 1 && words.front() == "--version") {  // CLI11 would ignore the rest
    bad_input("unexpected argument '" + one_line(words[1]) + "' after --version" + help_hint(app));
  }
  // Another program's command line may begin with --, which CLI11 would take for its own.
  int own = argc;
  const auto takes_rest = [this](const std::string& word) {
    for (const auto& [command, values] : state_->rests) {
      if (command->check_name(word)) return true;
    }
    return false;
  };
  if (!words.empty() && takes_rest(words.front())) {
    own = static_cast<int>(std::find(argv, argv + argc, std::string("--")) - argv);
  }
  try {
    app.parse(own, argv);
  } catch (const CLI::ExtrasError&) {
    refuse_extra(app);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      app.exit(error);
      return;
    }
    bad_input(error.what() + help_hint(app));
  }
  CLI::App& command = deepest(app);
  const auto action = state_->actions.find(&command);
  if (action == state_->actions.end()) bad_input("no command" + help_hint(app));
  store_values(*state_);
  if (const auto rest = state_->rests.find(&command); rest != state_->rests.end()) {
    *rest->second = command.remaining();
    const bool is_separator = rest->second->empty();
    for (int i = is_separator ? own + 1 : own; i < argc; ++i) rest->second->emplace_back(argv[i]);
  }
  action->second();
}

}  // namespace espalier::tools
