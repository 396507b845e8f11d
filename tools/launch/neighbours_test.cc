#include "tools/launch/neighbours.h"

#include <gtest/gtest.h>

namespace espalier::launch {
namespace {

// As iputils 20240905 prints it.
constexpr const char* kPing =
    "PING ff02::1(ff02::1%eth0) from fe80::1%eth0 eth0: 56 data bytes\n"
    "64 bytes from fe80::7%eth0: icmp_seq=1 ttl=64 time=0.4 ms\n"
    "64 bytes from fe80::8%eth0: icmp_seq=1 ttl=64 time=0.5 ms (DUP!)\n"
    "64 bytes from fe80::7%eth0: icmp_seq=2 ttl=64 time=0.4 ms\n"
    "64 bytes from 2001:db8::1: icmp_seq=2 ttl=64 time=0.4 ms\n"
    "64 bytes from fe80::9%enp1s0f0np0: icmp_seq=1 ttl=64 time=0.4 ms\n";

TEST(Neighbours, PingNamesEachOnce) {
  EXPECT_EQ(read_ping(kPing),
            (std::vector<Neighbour>{
                {"eth0", "fe80::7"}, {"eth0", "fe80::8"}, {"enp1s0f0np0", "fe80::9"}}));
}

TEST(Neighbours, AMessageIsReadAsItWasWritten) {
  const Surroundings all{.own = {{"eth0", "fe80::1"}, {"eth1", "fe80::2"}},
                         .found = {{"eth1", "fe80::7"}}};
  const auto read = read_surroundings(to_fields(all));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->own, all.own);
  EXPECT_EQ(read->found, all.found);
}

TEST(Neighbours, MalformedMessagesAreRefused) {
  for (const Fields& message :
       std::initializer_list<Fields>{{"neighbours"},
                                     {"neighbours", "x"},
                                     {"neighbours", "1"},
                                     {"neighbours", "2", "eth0", "fe80::1"},
                                     {"neighbours", "0", "eth0"},
                                     {"neighbours", "0", "eth0", "$(reboot)"},
                                     {"neighbours", "0", "eth0", "10.0.0.1"},
                                     {"other", "0"}}) {
    EXPECT_FALSE(read_surroundings(message));
  }
}

}  // namespace
}  // namespace espalier::launch
