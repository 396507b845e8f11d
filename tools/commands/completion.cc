// espalier completion: a script that completes commands, options and their values in a shell. It is
// made from the command line itself, so that it has every option. Algorithms and embeddings are
// read from `espalier list` when the user asks for them.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/collectives/machine/operators.h"
#include "espalier/collectives/schedule/program.h"
#include "espalier/internal/base/assert.h"
#include "espalier/internal/collectives/schedule/enumerations.h"
#include "tools/commands/commands.h"

namespace espalier::tools {
namespace {

using Words = std::vector<std::string>;

// The values that are offered for an option of type TEXT: bash words, which may run functions.
struct OfferedValues {
  std::string_view option;
  Words words;
};

std::vector<OfferedValues> offered_values() {
  Words collectives, operators, types;
  for (const Collective collective : kAllCollectives) {
    collectives.emplace_back(collective_name(collective));
  }
  for (const Op op : {Op::kSum, Op::kProduct, Op::kMin, Op::kMax, Op::kAnd, Op::kOr, Op::kXor}) {
    operators.emplace_back(op_name(op));
  }
  operators.emplace_back("affine");
  for (const Type type :
       {Type::kI8, Type::kU8, Type::kI16, Type::kU16, Type::kI32, Type::kU32, Type::kI64,
        Type::kU64, Type::kF16, Type::kBf16, Type::kF32, Type::kF64}) {
    types.emplace_back(type_name(type));
  }
  return {
      {"--collective", collectives},
      {"--algorithm", {"auto", "$(_espalier_algorithms)"}},
      {"--embedding", {"none", "snake", "z-order", "$(_espalier_embeddings)"}},
      {"--op", operators},
      {"--type", types},
      {"--links", {"routed", "hop-by-hop"}},
      {"--ports", {"multiport", "single-send"}},
      {"--topology",
       {"complete:", "mesh:", "torus:", "ring:", "hypercube:", "hyperx:", "dragonfly:", "crossbar:",
        "hosts:", "fattree:", "file:"}},
#ifdef ESPALIER_WITH_OFI
      {"--provider", {"tcp", "mem"}},
#endif
  };
}

std::string joined(const Words& words, const char* between) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : between) + word;
  return all;
}

bool has_name(const OptionSummary& option, std::string_view name) {
  return std::find(option.names.begin(), option.names.end(), name) != option.names.end();
}

// The values offered for an option, as bash words; nothing: files are offered.
std::string values_of(const OptionSummary& option, const std::vector<OfferedValues>& offers) {
  if (option.value.find('|') != std::string::npos) {
    std::string words = option.value;
    std::replace(words.begin(), words.end(), '|', ' ');
    return words;
  }
  for (const OfferedValues& offer : offers) {
    if (has_name(option, offer.option)) return joined(offer.words, " ");
  }
  return "";
}

// The case of one command in the script: what may follow it, and the values of its options.
std::string case_of_command(const CommandSummary& command,
                            const std::vector<OfferedValues>& offers) {
  Words names;
  std::string values;
  for (const OptionSummary& option : command.options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
    if (option.value.empty()) continue;
    const bool is_number = option.value == "NUMBER";
    const std::string words = values_of(option, offers);
    values += "        " + joined(option.names, "|") + ") kind=" +
              (is_number       ? "number"
               : words.empty() ? "file"
                               : "words") +
              (words.empty() ? "" : " words=\"" + words + "\"") + " ;;\n";
  }
  std::string text = "    '" + command.path + "')\n      names=\"" + joined(command.commands, " ") +
                     "\" options=\"" + joined(names, " ") + "\"\n";
  if (!values.empty()) text += "      case $option in\n" + values + "      esac\n";
  return text + "      ;;\n";
}

constexpr std::string_view kBefore =
    R"bash(# bash completion for espalier, printed by `espalier completion bash`.

# The algorithms of --collective, or of all collectives.
_espalier_algorithms() {
  local i collective=
  for ((i = 1; i + 1 < ${#COMP_WORDS[@]}; ++i)); do
    [ "${COMP_WORDS[i]}" = --collective ] || continue
    collective=${COMP_WORDS[i + 1]}
    [ "$collective" != = ] || collective=${COMP_WORDS[i + 2]-}
  done
  "${COMP_WORDS[0]}" list 2>/dev/null | awk -v of="$collective" 'of == "" || $1 == of { print $2 }'
}

_espalier_embeddings() {
  "${COMP_WORDS[0]}" list --embeddings 2>/dev/null | awk '{ print $1 }'
}

_espalier() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} option='' path=espalier
  local i names='' options='' kind='' words='' first=''
  COMPREPLY=()
  # Readline makes words of their own from = and : inside of words.
  if [ "$word" = = ]; then
    option=$before word=''
  elif [ "$before" = = ] && [ "$COMP_CWORD" -ge 2 ]; then
    option=${COMP_WORDS[COMP_CWORD - 2]}
  elif [ "$word" = : ] || [ "$before" = : ]; then
    # The rest of a topology; only that of file:PATH can be completed.
    first=${COMP_WORDS[COMP_CWORD - 1]}
    [ "$before" != : ] || first=${COMP_WORDS[COMP_CWORD - 2]}
    [ "$word" != : ] || word=''
    [ "$first" != file ] || mapfile -t COMPREPLY < <(compgen -f -- "$word")
    return
  else
    option=$before
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$path ${COMP_WORDS[i]}" in
)bash";

constexpr std::string_view kAfter = R"bash(  esac
  case $kind in
    file) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    number) ;;
    words)
      # Values between commas: the last one is completed.
      case $word in *,*) first=${word%,*}, ;; esac
      mapfile -t COMPREPLY < <(compgen -P "$first" -W "$words" -- "${word##*,}")
      case "${COMPREPLY[*]}" in *:) compopt -o nospace 2>/dev/null ;; esac
      ;;
    *)
      case $word in
        -*) mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word") ;;
        *)
          mapfile -t COMPREPLY < <(compgen -W "$names" -- "$word")
          [ -n "$names" ] || mapfile -t COMPREPLY < <(compgen -f -- "$word")
          ;;
      esac
      ;;
  esac
}

# The options of the other programs, from their help; otherwise files.
_espalier_program() {
  local word=${COMP_WORDS[COMP_CWORD]}
  case $word in
    -*)
      mapfile -t COMPREPLY < <(compgen -W "$("$1" --help 2>/dev/null |
        grep -o -- '--[a-z][a-z-]*' | sort -u)" -- "$word")
      ;;
    *) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
  esac
}

complete -o filenames -F _espalier espalier
complete -o filenames -F _espalier_program espalier-node espalier-gateway espalier-bench
)bash";

void print_bash(const std::vector<CommandSummary>& commands) {
  const std::vector<OfferedValues> offers = offered_values();
  for (const OfferedValues& offer : offers) {
    const auto has_it = [&offer](const CommandSummary& command) {
      return std::any_of(
          command.options.begin(), command.options.end(),
          [&offer](const OptionSummary& option) { return has_name(option, offer.option); });
    };
    ESPALIER_ASSERT(std::any_of(commands.begin(), commands.end(), has_it));
  }
  std::string script(kBefore);
  Words paths;
  for (const CommandSummary& command : commands) {
    if (command.path != commands.front().path) paths.push_back("'" + command.path + "'");
  }
  script += "      " + joined(paths, " | ") + ") path+=\" ${COMP_WORDS[i]}\" ;;\n";
  script += "      *) break ;;\n    esac\n  done\n  case $path in\n";
  for (const CommandSummary& command : commands) script += case_of_command(command, offers);
  script += kAfter;
  std::fwrite(script.data(), 1, script.size(), stdout);
}

}  // namespace

void add_completion(Command app, const CommandLine& line) {
  Command command = app.add_command("completion", "Prints a script that completes command lines");
  command.set_footer(
      "bash: completes commands, options, and their values. `meson install` and the Debian "
      "package\n"
      "install it.\n"
      "Example:\n  source <(espalier completion bash)");
  Command bash = command.add_command("bash", "For bash");
  bash.set_footer("Example:\n  source <(espalier completion bash)");
  bash.set_action([&line] { print_bash(line.commands()); });
}

}  // namespace espalier::tools
