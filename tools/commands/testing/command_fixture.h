#pragma once
// Test helper: the espalier command, run in an empty directory.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/testing/contains.h"
#include "tests/directory_test.h"
#include "tools/commands/testing/command_process.h"

namespace espalier {

namespace fs = std::filesystem;

// A wrong command line, and words of the message that refuses it.
struct Refusal {
  const char* arguments;
  const char* words;
};

struct CommandResult {
  int status = -1;
  std::string out, err;
};

inline std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// Every test has an empty directory of its own to work in.
class Command : public DirectoryTest {
 protected:
  CommandResult run(const std::string& arguments) {
    return result(run_command(directory_, arguments));
  }
  [[nodiscard]] CommandResult result(int status) const {
    return {status, read(directory_ / ".out"), read(directory_ / ".err")};
  }

  // Expects status 2 (or 1), one line that has `words`, nothing on stdout, and no new file.
  void expect_refused(const std::string& arguments, const std::string& words, int status = 2) {
    const auto before = files();
    const CommandResult result = run(arguments);
    EXPECT_EQ(result.status, status) << arguments;
    EXPECT_EQ(result.err.rfind("espalier: ", 0), 0u) << arguments << ": " << result.err;
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << arguments << ": " << result.err;
    EXPECT_PRED2(contains, result.err, words) << arguments;
    if (status == 2) {
      EXPECT_EQ(result.out, "") << arguments;
    }
    EXPECT_EQ(files(), before) << arguments;
  }

  // The same for each row, whose arguments follow `command`.
  void expect_refused(const std::string& command, std::initializer_list<Refusal> rows) {
    for (const Refusal& row : rows) expect_refused(command + row.arguments, row.words);
  }

  // Expects status 0. Returns what the command printed.
  std::string expect_success(const std::string& arguments) {
    const CommandResult result = run(arguments);
    EXPECT_EQ(result.status, 0) << arguments << ": " << result.err;
    return result.out;
  }

  // The command's results as JSON.
  nlohmann::json json_of(const std::string& arguments) {
    return nlohmann::json::parse(expect_success(arguments + " --format json"));
  }

  // Compiles into `name`.
  void compile(const std::string& name, const std::string& topology,
               const std::string& collective = "broadcast",
               const std::string& algorithm = "two-tree", const std::string& more = "") {
    const CommandResult result =
        run("compile --topology " + topology + " --collective " + collective + " --algorithm " +
            algorithm + " -o " + name + " " + more);
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.err, "");
  }

  std::vector<std::string> files() {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory_)) {
      const std::string name = entry.path().filename().string();
      if (name != ".out" && name != ".err") names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
  }
};

}  // namespace espalier
