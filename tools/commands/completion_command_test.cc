// `espalier completion bash`: what bash then offers.

#include "tools/commands/testing/command_fixture.h"

namespace espalier {
namespace {

class CompletionCommand : public Command {
 protected:
  // What is offered for the last of `words`, which are quoted for bash, one per line.
  std::string offered(const std::string& words) {
    const std::string script = "source script; COMP_WORDS=(" + words +
                               "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _espalier espalier; "
                               "printf '%s\\n' \"${COMPREPLY[@]}\"";
    write(directory_ / "ask", script);
    const std::string command = "cd '" + directory_.string() + "' && '" + ESPALIER_BINARY +
                                "' completion bash > script && ln -sf '" + ESPALIER_BINARY +
                                "' espalier && PATH=$PWD:$PATH bash ask > answer 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0) << words;
    return "\n" + read(directory_ / "answer");
  }
  void expect_offered(const std::string& words, const std::string& value, bool is_offered = true) {
    const std::string all = offered(words);
    EXPECT_EQ(all.find("\n" + value + "\n") != std::string::npos, is_offered)
        << words << " offers " << all;
  }
};

TEST_F(CompletionCommand, OffersCommandsOptionsAndValues) {
  expect_offered("espalier com", "compile");
  expect_offered("espalier com", "verify", false);
  expect_offered("espalier image ''", "keygen");
  expect_offered("espalier image build --re", "--release");
  expect_offered("espalier compile --", "--topology");
  expect_offered("espalier compile --format ''", "json");
  expect_offered("espalier compile --format =", "json");
  expect_offered("espalier compile --format = j", "json");
  expect_offered("espalier compile --collective all", "allreduce");
  expect_offered("espalier compile --collective all", "broadcast", false);
  expect_offered("espalier compile --topology c", "complete:");
  expect_offered("espalier compile --op ''", "affine");
  write(directory_ / "b.esp", "");
  expect_offered("espalier verify b", "b.esp");
  expect_offered("espalier compile --topology file : b", "b.esp");
  expect_offered("espalier compile --topology mesh : b", "b.esp", false);
  expect_offered("espalier compile --output b", "b.esp");
  expect_offered("espalier verify --random 1", "b.esp", false);
}

TEST_F(CompletionCommand, OffersWhatListNames) {
  expect_offered("espalier compile --algorithm ''", "auto");
  expect_offered("espalier compile --algorithm ''", "two-tree");
  expect_offered("espalier compile --collective barrier --algorithm ''", "dissemination");
  expect_offered("espalier compile --collective barrier --algorithm ''", "two-tree", false);
  expect_offered("espalier compile --collective = barrier --algorithm ''", "two-tree", false);
  expect_offered("espalier compile --embedding sn", "snake");
}

#ifdef ESPALIER_WITH_OFI
TEST_F(CompletionCommand, CompletesTheLastOfAList) {
  expect_offered("espalier tune --collective broadcast,all", "broadcast,allreduce");
}
#endif

// Every option of every help text. CLI11 2.6 writes headings in capitals, and "-h,     --help".
TEST_F(CompletionCommand, OffersEveryOptionOfTheHelp) {
  const std::string script =
      "source script\n"
      "for command in $(espalier --help | awk 'tolower($0) ~ /^subcommands:/ { on = 1; next } "
      "/^$/ { on = 0 } on && /^  [a-z]/ { print $1 }'); do\n"
      "  COMP_WORDS=(espalier $command -) COMP_CWORD=2; _espalier espalier\n"
      "  for option in $(espalier $command --help | awk '/^(  |          )-/ { gsub(\",\", \" \"); "
      "for (i = 1; i <= NF && $i ~ /^-/; ++i) print $i }'); do\n"
      "    case \" ${COMPREPLY[*]} \" in *\" $option \"*) echo found ;; *) echo missing $command "
      "$option ;; esac\n"
      "  done\n"
      "done\n";
  (void)offered("espalier ''");
  write(directory_ / "ask", script);
  ASSERT_EQ(
      std::system(
          ("cd '" + directory_.string() + "' && PATH=$PWD:$PATH bash ask > answer 2>&1").c_str()),
      0);
  const std::string answer = read(directory_ / "answer");
  EXPECT_EQ(answer.find("missing"), std::string::npos) << answer;
  EXPECT_GT(std::count(answer.begin(), answer.end(), '\n'), 100);
}

TEST_F(CompletionCommand, RefusesOtherShells) {
  expect_refused("completion zsh", "unknown command 'zsh'");
  expect_refused("completion", "no command");
  expect_refused("completion bash more", "unexpected argument 'more'");
}

}  // namespace
}  // namespace espalier
