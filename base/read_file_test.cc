#include "base/read_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <set>
#include <thread>

#include "base/testing/results.h"
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
  EXPECT_EQ(*read_file(file(""), FileKind::kSchedule), "");
  std::string bytes(100'000, 'x');
  bytes[50'000] = '\0';
  bytes[99'999] = '\n';
  EXPECT_EQ(*read_file(file(bytes), FileKind::kSchedule), bytes);
}

TEST_F(ReadFileTest, RefusesAMissingFile) {
  const std::string path = directory_ / "none";
  const auto read = read_file(path, FileKind::kSchedule);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "cannot read '" + path + "': No such file or directory");
}

TEST_F(ReadFileTest, RefusesAFolder) {
  const auto read = read_file(directory_, FileKind::kSchedule);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "cannot read '" + directory_.string() + "': Is a directory");
}

TEST_F(ReadFileTest, RefusesMoreThanTheLimitOfEachKind) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < file_limits().size(); ++i) {
    const auto kind = static_cast<FileKind>(i);
    const FileLimit& limit = limit_of(kind);
    names.insert(limit.name);
    const std::string text = limit.max_bytes >= 1 << 20
                                 ? std::to_string(limit.max_bytes >> 20) + " MiB"
                                 : std::to_string(limit.max_bytes >> 10) + " KiB";
    const std::string expected = ": it has more than " + text + ", the limit of " + limit.name;
    const std::string path = file("");
    std::filesystem::resize_file(path, limit.max_bytes + 1);  // nothing is written, nor read
    EXPECT_EQ(message_of(read_file(path, kind)), "cannot read '" + path + "'" + expected);
    if (limit.max_bytes > 16 << 20) continue;  // larger ones take the same way
    std::filesystem::resize_file(path, limit.max_bytes);
    EXPECT_EQ(or_throw(read_file(path, kind)).size(), limit.max_bytes);
  }
  EXPECT_EQ(names.size(), file_limits().size()) << "each kind has its name";
}

TEST_F(ReadFileTest, ItsErrorIsOneLine) {
  EXPECT_EQ(message_of(read_file("no\nsuch", FileKind::kKey)),
            "cannot read 'no\\x0asuch': No such file or directory");
}

TEST_F(ReadFileTest, ReadsAPipeWithAWriter) {
  const std::string path = directory_ / "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(path) << std::string(200'000, 'x'); });
  EXPECT_EQ(*read_file(path, FileKind::kSchedule), std::string(200'000, 'x'));
  writer.join();
}

TEST_F(ReadFileTest, RefusesMoreThanTheLimitFromAPipe) {
  const std::string path = directory_ / "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const std::size_t size = limit_of(FileKind::kKey).max_bytes + 1;
  std::thread writer([&] { std::ofstream(path) << std::string(size, 'x'); });
  EXPECT_EQ(message_of(read_file(path, FileKind::kKey)),
            "cannot read '" + path + "': it has more than 64 KiB, the limit of a key");
  writer.join();
}

TEST_F(ReadFileTest, RefusesDevices) {
  for (const std::string path : {"/dev/zero", "/dev/null", "/dev/full"}) {
    EXPECT_EQ(message_of(read_file(path, FileKind::kSchedule)),
              "cannot read '" + path + "': it is a device; expected a file or a pipe");
  }
}

TEST_F(ReadFileTest, RefusesAPipeWithoutAWriter) {
  const std::string path = directory_ / "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const auto read = read_file(path, FileKind::kSchedule);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message,
            "cannot read '" + path + "': it is a pipe that no process writes to");
}

}  // namespace
}  // namespace espalier
