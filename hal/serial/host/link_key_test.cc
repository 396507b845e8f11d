#include "hal/serial/host/link_key.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/testing/results.h"
#include "tests/directory_test.h"

namespace espalier {
namespace {

class LinkKeyTest : public DirectoryTest {
 protected:
  void write(const std::string& bytes, mode_t mode) {
    std::ofstream(path()) << bytes;
    ASSERT_EQ(chmod(path().c_str(), mode), 0);
  }
  [[nodiscard]] std::filesystem::path path() const { return directory_ / "key"; }
  // The error, after the path.
  [[nodiscard]] std::string refusal() const {
    const std::string begin = "cannot use the link key " + path().string() + ": ";
    const std::string message = message_of(read_link_key(path()));
    return message.starts_with(begin) ? message.substr(begin.size()) : message;
  }
};

TEST_F(LinkKeyTest, AreSixteenBytesOfTheirOwner) {
  write("0123456789abcde\n", 0600);
  const Result<LinkKey> key = read_link_key(path());
  ASSERT_TRUE(key);
  EXPECT_EQ(std::string(key->begin(), key->end()), "0123456789abcde\n");
}

TEST_F(LinkKeyTest, RefusesOtherFiles) {
  EXPECT_EQ(refusal(), "No such file or directory");
  write("0123456789abcde", 0600);
  EXPECT_EQ(refusal(), "it has 15 bytes; expected 16 (openssl rand -out FILE 16)");
  write("0123456789abcdef\n", 0600);
  EXPECT_EQ(refusal(), "it has 17 bytes; expected 16 (openssl rand -out FILE 16)");
  write("0123456789abcdef", 0640);
  EXPECT_EQ(refusal(), "users other than its owner may access it; expected mode 0600 (chmod 600)");
  std::filesystem::remove(path());
  std::filesystem::create_directory(path());
  EXPECT_EQ(refusal(), "it is not a regular file");
}

TEST(Rejections, NameLinkAndReason) {
  SerialRejections rejections{.frames = 1};
  EXPECT_EQ(rejection_text(rejections, "the gateway", "link 2"),
            "the gateway dropped a frame of link 2: its code is wrong; the other end has another "
            "link key, the line has noise, or someone else writes to it");
  rejections.reason = SerialRejections::Reason::kNoKeyHere;
  EXPECT_EQ(rejection_text(rejections, "the gateway", "link 2"),
            "the gateway dropped a frame of link 2: the other end has a link key, and this end has "
            "none; give it the same key");
  rejections.reason = SerialRejections::Reason::kNoKeyThere;
  EXPECT_EQ(rejection_text(rejections, "the gateway", "link 2"),
            "the gateway dropped a frame of link 2: the other end has no link key, and this end "
            "has one; give both the same key");
}

}  // namespace
}  // namespace espalier
