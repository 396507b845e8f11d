// The choice of a provider by FI_PROVIDER, and the text of a list. No libfabric.

#include "espalier/hal/ofi/provider_list.h"

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
  EXPECT_EQ(chosen("shm", nullptr), "shm");
  EXPECT_EQ(chosen("shm", ""), "shm");
  EXPECT_EQ(chosen("", "shm"), "shm");
  EXPECT_EQ(chosen("", "tcp;ofi_rxm"), "tcp;ofi_rxm");
  EXPECT_EQ(chosen("", "none such"), "none such");
  EXPECT_EQ(chosen("", "shm,tcp"), "tcp");
  EXPECT_EQ(chosen("", "net,shm"), "tcp");
  EXPECT_EQ(chosen("", "shm,verbs"), "shm");
  EXPECT_EQ(chosen("", "^udp,shm"), "tcp");
}

TEST(ChooseProvider, TakesNamesThatFiProviderShows) {
  EXPECT_EQ(chosen("shm", "shm"), "shm");
  EXPECT_EQ(chosen("SHM", "shm"), "SHM");
  EXPECT_EQ(chosen("shm", "tcp,shm"), "shm");
  EXPECT_EQ(chosen("tcp;ofi_rxm", "tcp"), "tcp;ofi_rxm");
  EXPECT_EQ(chosen("tcp", "tcp;ofi_rxm"), "tcp");
  EXPECT_EQ(chosen("tcp", "net"), "tcp");
  EXPECT_EQ(chosen("shm", "^tcp"), "shm");
}

TEST(ChooseProvider, NothingHidesMem) {
  EXPECT_EQ(chosen("mem", "tcp"), "mem");
  EXPECT_EQ(chosen("mem", "^mem"), "mem");
  EXPECT_EQ(chosen("", "mem"), "mem");
}

TEST(Provider, OnlySharedMemoryBindsNoAddress) {
  EXPECT_TRUE(binds_address("tcp"));
  EXPECT_TRUE(binds_address("verbs"));
  EXPECT_FALSE(binds_address("shm"));
  EXPECT_FALSE(binds_address("mem"));
}

TEST(Provider, OnlyMemAuthenticatesNoData) {
  EXPECT_TRUE(authenticates_data("tcp"));
  EXPECT_TRUE(authenticates_data("shm"));
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
  EXPECT_EQ(chosen("shm", "tcp"),
            "refused: FI_PROVIDER=tcp hides the provider \"shm\" from libfabric; expected provider "
            "\"tcp\", or FI_PROVIDER unset");
  EXPECT_EQ(chosen("", "^tcp"),
            "refused: FI_PROVIDER=^tcp hides the provider \"tcp\", the default, from libfabric; "
            "expected another provider, or FI_PROVIDER unset");
  EXPECT_TRUE(chosen("shm", "^tcp,shm").starts_with("refused: "));
  EXPECT_TRUE(chosen("net", "tcp").starts_with("refused: "));
  EXPECT_TRUE(hides_provider("tcp", "shm"));
  EXPECT_FALSE(hides_provider("tcp", "tcp;ofi_rxm"));
  EXPECT_FALSE(hides_provider(nullptr, "shm"));
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
