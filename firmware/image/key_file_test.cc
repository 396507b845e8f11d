#include "firmware/image/key_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "base/testing/results.h"
#include "tests/directory_test.h"

namespace espalier {
namespace {

// RFC 8032, section 7.1, test 1: a message of no bytes.
constexpr Key kSeed = {0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a,
                       0xf4, 0x92, 0xec, 0x2c, 0xc4, 0x44, 0x49, 0xc5, 0x69, 0x7b, 0x32,
                       0x69, 0x19, 0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae, 0x7f, 0x60};
constexpr Key kPublicKey = {0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a, 0xb7, 0xd5, 0x4b, 0xfe,
                            0xd3, 0xc9, 0x64, 0x07, 0x3a, 0x0e, 0xe1, 0x72, 0xf3, 0xda, 0xa6,
                            0x23, 0x25, 0xaf, 0x02, 0x1a, 0x68, 0xf7, 0x07, 0x51, 0x1a};
// RFC 8410, section 10: a public and a private key (without its attributes).
constexpr char kPublicPem[] =
    "-----BEGIN PUBLIC KEY-----\n"
    "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n"
    "-----END PUBLIC KEY-----\n";
constexpr char kPrivatePem[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n"
    "-----END PRIVATE KEY-----\n";

class KeyFiles : public DirectoryTest {
 protected:
  std::string write(const std::string& text, unsigned mode = 0600) {
    std::string path = (directory_ / "key").string();
    std::ofstream(path, std::ios::binary) << text;
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }

  // Reads with one of the two functions: the key, or the error.
  bool take(const Result<Key>& read) {
    if (read) key_ = *read;
    error_ = message_of(read);
    return read.has_value();
  }

  Key key_{};
  std::string error_;
};

TEST_F(KeyFiles, SignsAsTheStandardDoes) {
  EXPECT_EQ(public_key_of(kSeed), kPublicKey);
  const auto signature = sign(kSeed, nullptr, 0);
  EXPECT_EQ(signature[0], 0xe5);
  EXPECT_EQ(signature[1], 0x56);
  EXPECT_EQ(signature[62], 0x10);
  EXPECT_EQ(signature[63], 0x0b);
}

TEST_F(KeyFiles, ReadsWhatTheStandardShows) {
  ASSERT_TRUE(take(read_private_key(write(kPrivatePem)))) << error_;
  EXPECT_EQ(private_pem(key_), kPrivatePem);
  const Key seed = key_;
  ASSERT_TRUE(take(read_public_key(write(kPublicPem)))) << error_;
  EXPECT_EQ(public_pem(key_), kPublicPem);
  EXPECT_EQ(key_, public_key_of(seed));
  ASSERT_TRUE(take(read_public_key(write("a comment\n" + std::string(kPublicPem)))));
  ASSERT_TRUE(take(read_public_key(write(std::string(key_.begin(), key_.end())))));
  EXPECT_EQ(public_pem(key_), kPublicPem);
}

TEST_F(KeyFiles, RefusesWhatIsNoKey) {
  const auto refused = [&](const std::string& text, const char* words) {
    EXPECT_FALSE(take(read_public_key(write(text))));
    EXPECT_NE(error_.find(words), std::string::npos) << error_;
    EXPECT_EQ(error_.find('\n'), std::string::npos) << error_;
  };
  refused("", "not an Ed25519 public key");
  refused(kPrivatePem, "not an Ed25519 public key");
  refused(std::string(31, 'k'), "32 bytes");
  std::string text = kPublicPem;
  text.replace(text.find("MCow"), 4, "MCox");
  refused(text, "not an Ed25519 public key");
  text = kPublicPem;
  text.erase(text.find("ZuE="), 4);
  refused(text, "not an Ed25519 public key");
  EXPECT_FALSE(take(read_public_key((directory_ / "nothing").string())));
  EXPECT_NE(error_.find("No such file"), std::string::npos) << error_;
  EXPECT_FALSE(take(read_public_key(directory_.string())));
  EXPECT_NE(error_.find("Is a directory"), std::string::npos) << error_;
}

// 32 bytes are a private key or a public one. One private key in 16 can also be a public key.
TEST_F(KeyFiles, RefusesBytesThatNoPrivateKeyHasAsItsPublicKey) {
  int taken = 0;
  for (std::uint8_t first = 0; first < 160; ++first) {
    Key seed = kSeed;
    seed[0] = first;
    const Key key = public_key_of(seed);
    EXPECT_TRUE(take(read_public_key(write(std::string(key.begin(), key.end()))))) << error_;
    if (take(read_public_key(write(std::string(seed.begin(), seed.end()))))) {
      ++taken;
    } else {
      EXPECT_NE(error_.find("no private key belongs to it"), std::string::npos) << error_;
    }
  }
  EXPECT_LT(taken, 160 / 6) << "about one in 16";
  EXPECT_FALSE(take(read_public_key(write(public_pem(kSeed))))) << "PEM, the same rule";
}

TEST_F(KeyFiles, APrivateKeyIsForItsOwnerAlone) {
  for (const unsigned mode : {0640u, 0604u, 0644u, 0620u}) {
    EXPECT_FALSE(take(read_private_key(write(kPrivatePem, mode))));
    EXPECT_NE(error_.find("0600"), std::string::npos) << error_;
  }
  EXPECT_TRUE(take(read_private_key(write(kPrivatePem, 0400))));
}

}  // namespace
}  // namespace espalier
