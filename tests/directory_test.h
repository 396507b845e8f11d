#pragma once
// Test helper: tests that write files.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace espalier {

// Gives each test an empty directory, which is removed after the test.
class DirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "espalier-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr) << name;
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path directory_;
};

}  // namespace espalier
