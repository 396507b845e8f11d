#include "firmware/boot/file_flash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/testing/results.h"
#include "firmware/boot/file_bits.h"
#include "tests/directory_test.h"

namespace espalier {
namespace {

class FileFlashTest : public DirectoryTest {
 protected:
  void SetUp() override {
    DirectoryTest::SetUp();
    path_ = directory_ / "flash";
    ASSERT_EQ(message_of(flash_.open(path_, FlashShape{}, true)), "");
  }
  // The unit at `offset` of the file.
  [[nodiscard]] std::string unit(std::uint32_t offset) const {
    std::string bytes(16, '?');
    std::ifstream file(path_, std::ios::binary);
    file.seekg(offset);
    file.read(bytes.data(), 16);
    return bytes;
  }
  [[nodiscard]] bool has(std::uint32_t offset, std::uint8_t byte) const {
    const std::uint8_t* bytes = flash_.memory() + offset;
    return std::all_of(bytes, bytes + 16, [byte](std::uint8_t each) { return each == byte; });
  }
  [[nodiscard]] Status write(std::uint32_t offset, std::uint8_t byte) {
    const std::vector<std::uint8_t> bytes(16, byte);
    return flash_.write(offset, bytes.data(), 16);
  }

  std::filesystem::path path_;
  FileFlash flash_;
};

TEST_F(FileFlashTest, WritesAndErases) {
  EXPECT_EQ(write(4096, 7), Status::kOk);
  EXPECT_TRUE(has(4096, 7));
  EXPECT_EQ(unit(4096), std::string(16, 7));
  EXPECT_EQ(write(4096, 8), Status::kBackEnd) << "not erased";
  EXPECT_EQ(flash_.erase(4096), Status::kOk);
  EXPECT_TRUE(has(4096, 0xff));
  EXPECT_EQ(unit(4096), std::string(16, '\xff'));
}

TEST_F(FileFlashTest, KeepsWhatItReadIfTheFileIsRewritten) {
  ASSERT_EQ(write(4096, 7), Status::kOk);
  std::ofstream(path_, std::ios::binary | std::ios::in).seekp(4096) << std::string(16, 9);
  EXPECT_TRUE(has(4096, 7));
  EXPECT_EQ(write(8192, 1), Status::kBackEnd) << "a mark in a flash that nobody checked";
  EXPECT_EQ(flash_.erase(8192), Status::kBackEnd);
  EXPECT_EQ(unit(8192), std::string(16, '\xff'));
}

TEST_F(FileFlashTest, KeepsWhatItReadIfTheFileIsTruncated) {
  ASSERT_EQ(write(4096, 7), Status::kOk);
  std::filesystem::resize_file(path_, 0);
  EXPECT_TRUE(has(4096, 7));
  EXPECT_EQ(write(8192, 1), Status::kBackEnd);
  EXPECT_EQ(std::filesystem::file_size(path_), 0u);
}

using FileBitsTest = DirectoryTest;

TEST_F(FileBitsTest, SetsBitsAndKeepsThem) {
  const std::filesystem::path path = directory_ / "otp";
  std::ofstream(path) << std::string(3, '\0');
  for (std::uint32_t value = 0; value < 24; ++value) {
    FileBits bits;
    ASSERT_EQ(message_of(bits.open(path)), "");
    OneTimeCounter counter(bits);
    std::uint32_t stored = 99;
    ASSERT_EQ(counter.read(stored), Status::kOk);
    EXPECT_EQ(stored, value);
    EXPECT_EQ(counter.max(), 24u);
    ASSERT_EQ(counter.raise(value + 1), Status::kOk);
    ASSERT_EQ(bits.burn(0), Status::kOk) << "again";
  }
  EXPECT_EQ(std::filesystem::file_size(path), 3u);
}

TEST_F(FileBitsTest, RefusesOtherFiles) {
  const std::filesystem::path path = directory_ / "otp";
  const auto refusal = [&] {
    FileBits bits;
    return message_of(bits.open(path))
        .substr(("cannot use the one-time bits " + path.string()).size());
  };
  EXPECT_EQ(refusal(), ": No such file or directory");
  std::ofstream(path) << "";
  EXPECT_EQ(refusal(), ": it has 0 bytes; expected 1 to 4096");
  std::filesystem::resize_file(path, 4097);
  EXPECT_EQ(refusal(), ": it has 4097 bytes; expected 1 to 4096");
}

TEST_F(FileBitsTest, FailsIfTheFileIsTruncated) {
  const std::filesystem::path path = directory_ / "otp";
  std::ofstream(path) << std::string(3, '\0');
  FileBits bits;
  ASSERT_EQ(message_of(bits.open(path)), "");
  std::filesystem::resize_file(path, 1);
  OneTimeCounter counter(bits);
  std::uint32_t value = 0;
  EXPECT_EQ(counter.read(value), Status::kBackEnd);
  EXPECT_EQ(counter.raise(20), Status::kBackEnd);
}

}  // namespace
}  // namespace espalier
