#include "firmware/node/boot_options.h"

#include <gtest/gtest.h>

#include "base/testing/results.h"

namespace espalier::node {
namespace {

std::string parse(const std::vector<std::string>& words, BootOptions& options) {
  const auto parsed = parse_options(words);
  options = parsed.value_or(BootOptions{});
  return message_of(parsed);
}

TEST(NodeOptions, AreTaken) {
  BootOptions options;
  ASSERT_EQ(parse({"--schedule", "a", "--schedule=b", "--node", "7", "--control", "5", "--provider",
                   "net", "--deadline", "250", "--window", "2", "--address", "10.0.0.1"},
                  options),
            "");
  EXPECT_EQ(options.schedules, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(options.nodes, (std::vector<std::uint32_t>{7}));
  EXPECT_EQ(options.controls, (std::vector<int>{5}));
  EXPECT_EQ(options.deadline_ns, 250'000'000u);
  EXPECT_EQ(options.window, 2u);
  EXPECT_EQ(options.provider, "net");
  EXPECT_EQ(options.address, "10.0.0.1");
  ASSERT_EQ(
      parse({"--schedule", "a", "--node", "7", "--control", "5", "--address", "[::1]"}, options),
      "");
  EXPECT_EQ(options.address, "::1");
  ASSERT_EQ(
      parse({"--schedule", "a", "--node", "7", "--control", "5", "--node", "8", "--control", "6"},
            options),
      "");
  EXPECT_EQ(options.nodes, (std::vector<std::uint32_t>{7, 8}));
  EXPECT_EQ(options.controls, (std::vector<int>{5, 6}));
}

TEST(NodeOptions, NameTheRun) {
  const std::vector<std::string> good = {"--schedule", "a", "--node", "0", "--control", "5"};
  const auto with_job = [&](const std::string& job, BootOptions& options) {
    std::vector<std::string> all = good;
    all.insert(all.end(), {"--job", job});
    return parse(all, options);
  };
  BootOptions options;
  ASSERT_EQ(with_job("0123456789ab:6:4", options), "");
  EXPECT_EQ(options.job.name, "0123456789ab");
  EXPECT_EQ(options.job.nodes, 6u);
  EXPECT_EQ(options.job.ranks, 4u);
  for (const char* const bad : {"", "ab", "ab:4", "ab:4:5", "ab:4:0", ":4:4", "a/b:4:4", "ab:4:4:4",
                                "0123456789abcdef01234:4:4", "ab:x:4", "ab:4294967295:4"}) {
    EXPECT_NE(with_job(bad, options), "") << bad;
  }
}

// Each lane has an interface, or the fabric chooses for all.
TEST(NodeOptions, LinksNameInterfaces) {
  BootOptions options;
  const auto links = [&options](const std::string& list, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"--schedule", "a", "--node",  "0",
                                      "--control",  "5", "--links", list};
    words.insert(words.end(), more.begin(), more.end());
    return parse(words, options);
  };
  ASSERT_EQ(links("1:2:1:eth0/9000:eth1,4:0:1:enp1s0f0.7"), "");
  ASSERT_EQ(options.links.size(), 1u);
  ASSERT_EQ(options.links[0].size(), 2u);
  const Link& first = options.links[0][0];
  ASSERT_EQ(first.interfaces.size(), 2u);
  EXPECT_EQ(first.interfaces[0].name, "eth0");
  EXPECT_EQ(first.interfaces[0].mtu, 9000u);
  EXPECT_EQ(first.interfaces[1].name, "eth1");
  EXPECT_EQ(first.interfaces[1].mtu, 0u);
  EXPECT_EQ(options.links[0][1].interfaces[0].name, "enp1s0f0.7");
  for (const char* list : {"1:2:1:eth0", "1:1:1:a:b", "1:1:1:", "1:1:1:/9", "1:1:1:a/", "1:1:1:a/x",
                           "1:1:1:a/0", "1:2:1:a:"}) {
    EXPECT_TRUE(links(list).starts_with("bad value for --links")) << list;
  }
  EXPECT_EQ(links("1:1:1:a,2:1:1"),
            "--links has interfaces for 1 link of 2; expected them for all or for none");
  EXPECT_EQ(links("1:1:1:a", {"--provider", "mem"}),
            "--links names interfaces, and mem binds no IP; expected --provider tcp");
  EXPECT_EQ(links("1:1:1:a", {"--address", "127.0.0.1"}),
            "--links names interfaces, whose addresses are bound; expected no --address");
}

TEST(NodeOptions, AreRefusedWithOneLine) {
  BootOptions options;
  const std::vector<std::string> good = {"--schedule", "a", "--node", "0", "--control", "5"};
  ASSERT_EQ(parse(good, options), "");
  const std::vector<std::vector<std::string>> bad = {{"--node", "x"},
                                                     {"--node", "-1"},
                                                     {"--node"},
                                                     {"--nodes", "2"},
                                                     {"--window", "0"},
                                                     {"--deadline", "0"},
                                                     {"--deadline", "1s"},
                                                     {"surplus"},
                                                     {"--control", ""},
                                                     {"--control", "-1"},
                                                     {"--window", "1000"},
                                                     {"--node", "1"},
                                                     {"--unsigned"},
                                                     {"--public-key", "k"},
                                                     {"--board", "b"},
                                                     {"--counter", "1"},
                                                     {"--provider", "mem", "--address", "10.0.0.1"},
                                                     {"--address", "10.0.0"},
                                                     {"--address", "fe80::1"},
                                                     {"--address", "::1%lo"},
                                                     {"--address", "[::1"},
                                                     {"--provider", "mem", "--authenticate-data"},
                                                     {"--provider", "mem+tcp"},
                                                     {"--provider", "shm"},
                                                     {"--image", "i"},
                                                     {"--log=yes"},
                                                     {"-n", "1"}};
  for (const std::vector<std::string>& words : bad) {
    std::vector<std::string> all = good;
    all.insert(all.end(), words.begin(), words.end());
    const std::string error = parse(all, options);
    EXPECT_NE(error, "") << words[0];
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
  EXPECT_NE(parse({"--node", "0", "--control", "5"}, options), "");
  EXPECT_NE(parse({"--schedule", "a", "--control", "5"}, options), "");
  EXPECT_NE(parse({"--schedule", "a", "--node", "0"}, options), "");
}

TEST(NodeOptions, WithoutEffectAreRefused) {
  BootOptions options;
  const std::vector<std::string> check = {"--schedule", "a", "--node", "0", "--check"};
  ASSERT_EQ(parse(check, options), "");
  ASSERT_EQ(parse({"--provider", "tcp", "--check"}, options), "");
  const std::vector<std::vector<std::string>> without_effect = {{"--control", "5"},
                                                                {"--links", "1:1:1"},
                                                                {"--address", "10.0.0.1"},
                                                                {"--window", "2"},
                                                                {"--deadline", "9"},
                                                                {"--check-blocks"},
                                                                {"--log"},
                                                                {"--comes-back"},
                                                                {"--board", "b"},
                                                                {"--unsigned"},
                                                                {"--flash-shape", "98304,4096,16"}};
  for (const std::vector<std::string>& words : without_effect) {
    for (std::vector<std::string> all : {check, {"--provider", "tcp", "--check"}}) {
      all.insert(all.end(), words.begin(), words.end());
      EXPECT_TRUE(parse(all, options).starts_with(words[0] + " ")) << words[0];
    }
  }
  EXPECT_NE(parse({"--check", "--topology", "mesh:2x2"}, options), "");
  ASSERT_EQ(parse({"--providers"}, options), "");
  EXPECT_TRUE(options.lists_providers);
  EXPECT_NE(parse({"--providers", "--check"}, options), "");
  EXPECT_NE(parse({"--provider", "tcp", "--providers"}, options), "");
  const std::vector<std::string> image = {"--unsigned", "--node", "0", "--check", "--flash-shape"};
  const auto shaped = [&](const std::string& source, const std::string& shape) {
    std::vector<std::string> words = image;
    words.insert(words.end(), {shape, source, "f"});
    return parse(words, options);
  };
  EXPECT_EQ(shaped("--image", "98304,4096,16"), "--flash-shape applies only to --flash");
  ASSERT_EQ(shaped("--flash", "98304,4096,32"), "");
  EXPECT_EQ(options.flash_shape.bytes, 98304u);
  EXPECT_EQ(options.flash_shape.block_bytes, 4096u);
  EXPECT_EQ(options.flash_shape.unit_bytes, 32u);
  for (const char* shape :
       {"98304", "98304,4096", "98304,4096,0", "98304,4096,65", "98304,4096,3", "98305,4096,16",
        "20480,4096,16", "98304,4096,16,1", "98304,4096,", ""}) {
    EXPECT_TRUE(shaped("--flash", shape).starts_with("bad value for --flash-shape")) << shape;
  }
  const std::vector<std::string> back = {"--comes-back", "--control", "5"};
  const auto comes_back = [&](std::vector<std::string> words) {
    words.insert(words.end(), back.begin(), back.end());
    return parse(words, options);
  };
  EXPECT_EQ(comes_back({"--image", "i", "--unsigned", "--node", "0"}), "");
  EXPECT_TRUE(options.comes_back);
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"--schedule", "a", "--node", "0"},
           {"--flash", "f", "--unsigned", "--node", "0", "--settle"},
           {"--image", "i", "--unsigned", "--node", "0", "--node", "1", "--control", "6"}}) {
    EXPECT_TRUE(comes_back(words).starts_with("--comes-back is for one node")) << words[0];
  }
  EXPECT_EQ(
      parse({"--schedule", "a", "--node", "3", "--node", "4", "--node", "3", "--check"}, options),
      "the same --node is given twice; expected each node once");
}

}  // namespace
}  // namespace espalier::node
