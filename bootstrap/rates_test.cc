// Which subnet is the fastest, by short transfers.

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "base/testing/results.h"
#include "bootstrap/data_address.h"
#include "bootstrap/listener.h"
#include "bootstrap/subnet_probe.h"
#include "bootstrap/subnet_rates.h"
#include "bootstrap/testing/members.h"

namespace espalier::bootstrap {
namespace {

// A process whose two subnets are addresses of the loopback.
struct End {
  Listener listener = [] {
    bool is_in_use = false;
    return or_throw(listen_at("0.0.0.0:0", {}, is_in_use));
  }();
  std::uint64_t token = 0;
  [[nodiscard]] RateTest towards(const End& next) const {
    RateTest test{.listener = listener.socket.get(), .own_token = token, .peer_token = next.token};
    for (const char* each : {"127.0.0.1", "127.0.0.2"}) {
      test.subnets.push_back({ip(each), ip(each).with_port(next.listener.bound.port)});
    }
    return test;
  }
};

TEST(Rates, TheFirstThatNoneBeats) {
  constexpr std::uint32_t kGbit = 1'000'000;
  EXPECT_EQ(preferred_by_rate({10 * kGbit}), 0u);
  EXPECT_EQ(preferred_by_rate({kGbit, 10 * kGbit}), 1u);
  EXPECT_EQ(preferred_by_rate({20'000, 25'000}), 0u);
  EXPECT_EQ(preferred_by_rate({20'000, 29'900}), 0u);
  EXPECT_EQ(preferred_by_rate({20'000, 30'100}), 1u);
  EXPECT_EQ(preferred_by_rate({20'000, 100'000, 120'000}), 1u);
  EXPECT_EQ(preferred_by_rate({20'000, 1, 120'000}), 2u);
  // So fast that a pause of a process would decide.
  EXPECT_EQ(preferred_by_rate({5 * kGbit, 50 * kGbit}), 0u);
  EXPECT_EQ(preferred_by_rate({0, kGbit}), 0u);
  EXPECT_EQ(preferred_by_rate({kGbit, 20'000, 0}), 0u);
}

// The subnet of the drivers' rates, the kinds and the interfaces, and whether it is proven.
SharedSubnet subnet(std::uint32_t interface, std::uint32_t mbits, bool is_known = true) {
  SharedSubnet made;
  made.interfaces = {interface, interface};
  made.slowest_mbits = mbits;
  made.is_rate_known = is_known;
  return made;
}

TEST(Rates, MeasuresWhereDriversDoNotDecide) {
  using Numbers = std::vector<std::size_t>;
  EXPECT_EQ(subnets_to_measure({}), Numbers());
  EXPECT_EQ(subnets_to_measure({subnet(1, 1000)}), Numbers());
  EXPECT_EQ(subnets_to_measure({subnet(1, 10'000), subnet(2, 1000)}), Numbers());
  EXPECT_EQ(subnets_to_measure({subnet(1, 10'000), subnet(2, 10'000)}), (Numbers{0, 1}));
  EXPECT_EQ(subnets_to_measure({subnet(1, 10'000), subnet(2, 1000), subnet(3, 1000, false)}),
            (Numbers{0, 2}));
  EXPECT_EQ(subnets_to_measure({subnet(1, 1000, false), subnet(2, 100)}), (Numbers{0, 1}));
  // IPv4 and IPv6 of one cable.
  EXPECT_EQ(subnets_to_measure({subnet(1, 1000), subnet(1, 1000)}), Numbers());
  std::vector<SharedSubnet> mixed = {subnet(1, 1000), subnet(2, 1000), subnet(3, 1000)};
  mixed[1].is_unproven = true;
  mixed[2].is_point_to_point = true;
  EXPECT_EQ(subnets_to_measure(mixed), Numbers());
  EXPECT_EQ(subnets_to_measure(std::vector<SharedSubnet>(
                {subnet(1, 9), subnet(2, 9), subnet(3, 9), subnet(4, 9), subnet(5, 9)})),
            (Numbers{0, 1, 2, 3}));
}

TEST(Rates, ARingOfHostsMeasures) {
  const std::vector<End> ring = [] {
    std::vector<End> ends;
    for (std::uint64_t token = 7; token < 10; ++token) ends.push_back({.token = token});
    return ends;
  }();
  std::vector<std::future<std::vector<std::uint32_t>>> measured;
  for (std::size_t i = 0; i < ring.size(); ++i) {
    measured.push_back(std::async(std::launch::async, [&ring, i] {
      return measured_rates(ring[i].towards(ring[(i + 1) % ring.size()]));
    }));
  }
  for (auto& each : measured) {
    const auto rates = each.get();
    ASSERT_EQ(rates.size(), 2u);
    EXPECT_TRUE(rates[0] > 0 && rates[1] > 0);
  }
}

// The peer accepts nothing and sends nothing: its listener takes a part of the bytes.
TEST(Rates, APeerThatDoesNotReadEndsIt) {
  const End one{.token = 7}, silent{.token = 8};
  const auto begin = Clock::now();
  EXPECT_EQ(measured_rates(one.towards(silent)), (std::vector<std::uint32_t>{0, 0}));
  EXPECT_GE(Clock::now() - begin, kMeasureTime);
  EXPECT_LT(Clock::now() - begin, 20 * kMeasureTime);  // only a hang reaches it
}

// One that does not know the token sends as much as it can.
TEST(Rates, StrangersDoNotCount) {
  const End one{.token = 7}, silent{.token = 8};
  const Socket stranger = start_probe(
      {.from = ip("127.0.0.2"), .to = ip("127.0.0.2").with_port(one.listener.bound.port)});
  ASSERT_EQ(error_of(stranger), 0);
  std::atomic<bool> ends = false;
  std::thread sends([&] {
    const std::string bytes(10'000, 'x');
    while (!ends) {
      (void)!send(stranger.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      std::this_thread::yield();
    }
  });
  EXPECT_EQ(measured_rates(one.towards(silent)), (std::vector<std::uint32_t>{0, 0}));
  ends = true;
  sends.join();
}

// A subnet over which nothing comes is the slowest, although connections succeed.
TEST(Rates, ASubnetThatDropsLongMessages) {
  const End one{.token = 7}, other{.token = 8};
  RateTest drops = other.towards(one);
  drops.subnets[0].to.port = 0;  // is never connected
  auto there = std::async(std::launch::async, [&] { return measured_rates(drops); });
  const auto here = measured_rates(one.towards(other));
  EXPECT_EQ(here[0], 1u);
  EXPECT_EQ(preferred_by_rate(here), 1u);
  (void)there.get();
}

}  // namespace
}  // namespace espalier::bootstrap
