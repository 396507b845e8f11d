#include "tools/common/output.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <vector>

#include "base/testing/child.h"
#include "tests/directory_test.h"

namespace espalier::tools {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};

// A process that writes a file over and over until a signal ends it.
class Writer {
 public:
  explicit Writer(const std::string& path) {
    int pipes[2];
    EXPECT_EQ(pipe(pipes), 0);
    process_ = start_child([&] {
      for (const int number : kSignals) (void)signal(number, SIG_DFL);  // nohup ignores one
      std::vector<std::uint8_t> bytes(1 << 20);
      while (true) {
        write_file(path, bytes);
        (void)!write(pipes[1], "x", 1);  // the parent reads one
      }
    });
    close(pipes[1]);
    char one = 0;
    EXPECT_EQ(read(pipes[0], &one, 1), 1);  // the first file is written
    reader_ = pipes[0];
  }
  // Returns the signal that ended it.
  int end(int number) const {
    int status = 0;
    kill(process_, number);
    EXPECT_EQ(waitpid(process_, &status, 0), process_);
    close(reader_);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }

 private:
  pid_t process_ = -1;
  int reader_ = -1;
};

using WriteFile = DirectoryTest;

TEST_F(WriteFile, ASignalLeavesNoTemporaryFile) {
  const std::string path = directory_ / "file";
  for (int round = 0; round < 20; ++round) {
    for (const int number : kSignals) {
      const Writer writer(path);
      EXPECT_EQ(writer.end(number), number);
    }
  }
  std::vector<std::string> names;
  for (const auto& each : std::filesystem::directory_iterator(directory_)) {
    names.push_back(each.path().filename());
  }
  EXPECT_EQ(names, std::vector<std::string>{"file"});
  EXPECT_EQ(std::filesystem::file_size(path), std::uintmax_t{1} << 20);
}

}  // namespace
}  // namespace espalier::tools
