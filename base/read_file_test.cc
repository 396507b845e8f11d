#include "base/read_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "tests/directory_test.h"

namespace espalier {
namespace {

class ReadFileTest : public DirectoryTest {
 protected:
  // Writes a file of these bytes and returns its path.
  [[nodiscard]] std::string file(const std::string& bytes) const {
    std::ofstream(directory_ / "file", std::ios::binary) << bytes;
    return directory_ / "file";
  }
};

TEST_F(ReadFileTest, ReturnsAllBytes) {
  EXPECT_EQ(*read_file(file("")), "");
  std::string bytes(100'000, 'x');
  bytes[50'000] = '\0';
  bytes[99'999] = '\n';
  EXPECT_EQ(*read_file(file(bytes)), bytes);
}

TEST_F(ReadFileTest, RefusesAMissingFile) {
  const std::string path = directory_ / "none";
  const auto read = read_file(path);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "cannot read '" + path + "': No such file or directory");
}

TEST_F(ReadFileTest, RefusesAFolder) {
  const auto read = read_file(directory_);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "cannot read '" + directory_.string() + "': Is a directory");
}

TEST_F(ReadFileTest, RefusesMoreThanTheLimit) {
  for (const std::size_t limit : {0u, 1u, 16384u, 20'000u}) {
    EXPECT_EQ(read_file(file(std::string(limit, 'x')), limit)->size(), limit);
    const std::string path = file(std::string(limit + 1, 'x'));
    const auto read = read_file(path, limit);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().message,
              "cannot read '" + path + "': it has more than " + std::to_string(limit) + " bytes");
  }
  EXPECT_FALSE(read_file("/dev/zero", 1 << 20)) << "a file without an end";
  EXPECT_FALSE(read_file("/dev/zero")) << "a file without an end";
}

TEST_F(ReadFileTest, ReadsAPipeWithAWriter) {
  const std::string path = directory_ / "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(path) << std::string(200'000, 'x'); });
  EXPECT_EQ(*read_file(path), std::string(200'000, 'x'));
  writer.join();
}

TEST_F(ReadFileTest, RefusesAPipeWithoutAWriter) {
  const std::string path = directory_ / "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const auto read = read_file(path);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message,
            "cannot read '" + path + "': it is a pipe that no process writes to");
}

}  // namespace
}  // namespace espalier
