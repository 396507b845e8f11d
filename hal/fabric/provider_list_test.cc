// The choice of a provider by FI_PROVIDER, and the text of a list. No libfabric.

#include "hal/fabric/provider_list.h"

#include <gtest/gtest.h>

namespace espalier::ofi {
namespace {

std::string chosen(const std::string& given, const char* filter) {
  const auto name = choose_provider(given, filter);
  return name ? *name : "refused: " + name.error().message;
}

TEST(ChooseProvider, TakesTheNamedOneOtherwiseFiProviderOtherwiseTcp) {
  EXPECT_EQ(chosen("", nullptr), "tcp");
  EXPECT_EQ(chosen("", ""), "tcp");
  EXPECT_EQ(chosen("", ","), "tcp");
  EXPECT_EQ(chosen("verbs", nullptr), "verbs");
  EXPECT_EQ(chosen("verbs", ""), "verbs");
  EXPECT_EQ(chosen("", "verbs"), "verbs");
  EXPECT_EQ(chosen("", "verbs;ofi_rxm"), "verbs;ofi_rxm");
  EXPECT_EQ(chosen("", "none such"), "none such");
  EXPECT_EQ(chosen("", "shm,tcp"), "tcp");
  EXPECT_EQ(chosen("", "net,verbs"), "tcp");
  EXPECT_EQ(chosen("", "verbs,efa"), "verbs");
  EXPECT_EQ(chosen("", "^udp,shm"), "tcp");
}

TEST(ChooseProvider, TakesNamesThatFiProviderShows) {
  EXPECT_EQ(chosen("verbs", "verbs"), "verbs");
  EXPECT_EQ(chosen("VERBS", "verbs"), "VERBS");
  EXPECT_EQ(chosen("verbs", "tcp,verbs"), "verbs");
  EXPECT_EQ(chosen("verbs;ofi_rxm", "verbs"), "verbs;ofi_rxm");
  EXPECT_EQ(chosen("tcp", "tcp;ofi_rxm"), "tcp");
  EXPECT_EQ(chosen("tcp", "net"), "tcp");
  EXPECT_EQ(chosen("verbs", "^tcp"), "verbs");
}

TEST(ChooseProvider, NothingHidesMem) {
  EXPECT_EQ(chosen("mem", "tcp"), "mem");
  EXPECT_EQ(chosen("mem", "^mem"), "mem");
  EXPECT_EQ(chosen("", "mem"), "mem");
}

// libfabric's shared memory: mem has its place, whatever FI_PROVIDER says.
TEST(ChooseProvider, RefusesShmAndNamesMem) {
  constexpr char kExpected[] =
      ": a peer that is stopped or killed can block all processes that share its memory; expected "
      "mem, which joins the processes of one host";
  for (const char* filter : {static_cast<const char*>(nullptr), "shm", "tcp", "^shm"}) {
    EXPECT_EQ(chosen("shm", filter), std::string("refused: provider \"shm\"") + kExpected);
  }
  EXPECT_EQ(chosen("SHM", nullptr), std::string("refused: provider \"SHM\"") + kExpected);
  EXPECT_EQ(chosen("mem+shm", nullptr), std::string("refused: provider \"mem+shm\"") + kExpected);
  EXPECT_EQ(chosen("", "shm"),
            std::string("refused: FI_PROVIDER=shm: provider \"shm\"") + kExpected);
  EXPECT_EQ(chosen("", "shm,verbs"),
            std::string("refused: FI_PROVIDER=shm,verbs: provider \"shm\"") + kExpected);
}

TEST(ChooseProvider, RefusesProvidersThatAreKnownToFail) {
  for (const char* name : {"sockets", "udp;ofi_rxd", "tcp;ofi_rxm", "net;ofi_rxm", "lnx"}) {
    EXPECT_TRUE(chosen(name, nullptr).starts_with(std::string("refused: provider \"") + name))
        << name;
  }
}

TEST(Provider, OnlyMemBindsNoAddress) {
  EXPECT_TRUE(binds_address("tcp"));
  EXPECT_TRUE(binds_address("verbs"));
  EXPECT_FALSE(binds_address("mem"));
}

TEST(Provider, OnlyMemAuthenticatesNoData) {
  EXPECT_TRUE(authenticates_data("tcp"));
  EXPECT_FALSE(authenticates_data("mem"));
}

TEST(FilterWithNet, ShowsNetBesideTcpOnly) {
  EXPECT_EQ(filter_with_net("tcp"), "tcp,net");
  EXPECT_EQ(filter_with_net("shm,TCP"), "shm,TCP,net");
  for (const char* same : {"", "net,tcp", "shm", "^tcp", "^shm", "tcp;ofi_rxm"}) {
    EXPECT_EQ(filter_with_net(same), same);
  }
}

TEST(ChooseProvider, RefusesContradictions) {
  EXPECT_EQ(chosen("verbs", "tcp"),
            "refused: FI_PROVIDER=tcp hides the provider \"verbs\" from libfabric; expected "
            "provider \"tcp\", or FI_PROVIDER unset");
  EXPECT_EQ(chosen("", "^tcp"),
            "refused: FI_PROVIDER=^tcp hides the provider \"tcp\", the default, from libfabric; "
            "expected another provider, or FI_PROVIDER unset");
  EXPECT_TRUE(chosen("verbs", "^tcp,verbs").starts_with("refused: "));
  EXPECT_TRUE(chosen("net", "tcp").starts_with("refused: "));
  EXPECT_TRUE(hides_provider("tcp", "verbs"));
  EXPECT_FALSE(hides_provider("tcp", "tcp;ofi_rxm"));
  EXPECT_FALSE(hides_provider(nullptr, "verbs"));
}

TEST(ChooseProvider, MemoryGoesWithAProviderBetweenHosts) {
  EXPECT_EQ(with_memory("tcp"), "mem+tcp");
  EXPECT_EQ(with_memory("mem"), "mem");
  EXPECT_EQ(fabric_provider("mem+tcp"), "tcp");
  EXPECT_EQ(fabric_provider("mem"), "mem");
  EXPECT_TRUE(has_fixed_links("mem") && has_fixed_links("tcp") && !has_fixed_links("mem+tcp"));
  EXPECT_EQ(chosen("mem+tcp", "tcp"), "mem+tcp");
  EXPECT_TRUE(chosen("mem+tcp", "verbs").starts_with("refused: FI_PROVIDER=verbs hides"));
}

TEST(ProviderList, TextRoundTrips) {
  const ProviderList list{"1.17.0",
                          {{"tcp", "117.0", "net", "", "", "reliable datagrams"},
                           {"verbs", "117.0", "", "no device", "load its driver", ""}}};
  const std::string text = provider_list_text(list);
  const auto read = parse_provider_list(text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(provider_list_text(*read), text);
  ASSERT_EQ(read->providers.size(), 2U);
  EXPECT_EQ(read->providers[1].remedy, "load its driver");
}

TEST(ProviderList, OtherTextIsRefused) {
  for (const char* text : {"", "libfabric\n", "provider\ttcp\n", "libfabric\t1\nnoise\n",
                           "libfabric\t1\nprovider\ta\tb\tc\td\te\n"}) {
    EXPECT_FALSE(parse_provider_list(text)) << text;
  }
}

}  // namespace
}  // namespace espalier::ofi
