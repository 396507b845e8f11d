#include "base/command_line.h"

#include <gtest/gtest.h>

#include "base/testing/results.h"

namespace espalier {
namespace {

constexpr OptionSpec kSpecs[] = {{"device"}, {"check", false}, {"help", false}};

std::string split(const std::vector<std::string>& words, std::vector<GivenOption>& given) {
  const auto split = split_options("program", words, kSpecs);
  given = split.value_or(std::vector<GivenOption>{});
  return message_of(split);
}

TEST(CommandLine, SplitsIntoOptions) {
  std::vector<GivenOption> given;
  ASSERT_EQ(split({"--device", "--check", "--check", "--device=a=b", "--device", ""}, given), "");
  ASSERT_EQ(given.size(), 4u);
  EXPECT_EQ(given[0].value, "--check") << "a value may look like an option";
  EXPECT_EQ(given[1].name, "check");
  EXPECT_EQ(given[2].value, "a=b");
  EXPECT_EQ(given[3].value, "");
  ASSERT_EQ(split({"-h"}, given), "");
  EXPECT_EQ(given[0].name, "help");
}

TEST(CommandLine, SaysWhatIsWrong) {
  std::vector<GivenOption> given;
  EXPECT_EQ(split({"--check", "--device"}, given), "no value after --device; see program --help");
  EXPECT_EQ(split({"--devices", "a"}, given), "unknown option --devices; see program --help");
  EXPECT_EQ(split({"--check=1"}, given), "--check takes no value; see program --help");
  EXPECT_EQ(split({"a"}, given), "unexpected argument 'a'; see program --help");
}

TEST(CommandLine, PutsTheNodeNumberIn) {
  EXPECT_EQ(with_node_number("%r/%n-%r.img", 12), "12/%n-12.img");
  EXPECT_EQ(with_node_number("%", 1), "%");
}

}  // namespace
}  // namespace espalier
