// Ends that do not agree, and unexpected messages.

#include <string>

#include "hal/conformance/conformance.h"

namespace espalier::conformance {
namespace {

using Kind = Completion::Kind;

// One message whose ends differ, then one whose ends agree.
struct Disagreement {
  std::uint64_t send_size, receive_size;
  std::uint64_t send_tag, receive_tag;
};

class Disagreements {
 public:
  explicit Disagreements(std::uint64_t eager) {
    const std::uint64_t sizes[] = {0, 1, eager / 2, eager, eager + 1, 3 * eager, 40 * eager};
    for (const std::uint64_t send : sizes) {
      for (const std::uint64_t receive : sizes) {
        if (send != receive) list.push_back({send, receive, 5, 5});
        list.push_back({send, receive, 5, 6});
        list.push_back({send, receive, 5, 5 + (1ull << 63)});
      }
    }
  }
  std::vector<Disagreement> list;
};

TEST_P(ConformanceTest, BothEndsLearnOfAMismatch) {
  open(complete(2));
  for (const Disagreement& d : Disagreements(eager()).list) {
    for (const bool send_first : {true, false}) {
      const std::string what = "send " + std::to_string(d.send_size) + ", receive " +
                               std::to_string(d.receive_size) + " bytes, tags " +
                               (d.send_tag == d.receive_tag ? "equal, " : "differ, ") +
                               (send_first ? "send" : "receive") + " first";
      fill(node(0).out.data(), d.send_size, 1);
      const SendPost out{node(0).out.data(), d.send_size, d.send_tag, 0, 11};
      const ReceivePost in{node(1).in.data(), d.receive_size, d.receive_tag, 22};
      if (send_first) {
        ASSERT_EQ(send(0, 0, out), Status::kOk);
        idle();
      }
      ASSERT_EQ(receive(1, 0, in), Status::kOk);
      if (!send_first) {
        idle();
        ASSERT_EQ(send(0, 0, out), Status::kOk);
      }
      Completion c;
      ASSERT_TRUE(next(1, Kind::kReceived, c)) << what;
      EXPECT_EQ(c.status, Status::kMismatch) << what;
      EXPECT_EQ(c.cookie, 22u) << what;
      ASSERT_TRUE(next_send_mismatch(0, 11, d.send_size)) << what;
      EXPECT_EQ(first_other(node(1).in.data(), 64 * eager(), kUntouched), -1) << what;
    }
  }
}

TEST_P(ConformanceTest, OneMismatchSpoilsNoOtherMessage) {
  open(complete(2));
  const std::uint64_t size = 2 * eager();
  for (const std::uint64_t wrong_size : {std::uint64_t{8}, eager(), 2 * eager(), 3 * eager()}) {
    for (std::uint32_t i = 0; i < 3; ++i) {
      const bool wrong = i == 1;
      fill(node(0).out.data() + i * 4 * eager(), 4 * eager(), i);
      ASSERT_EQ(send(0, 0,
                     {node(0).out.data() + i * 4 * eager(), wrong ? wrong_size : size,
                      wrong ? 77u : i, 0, i}),
                Status::kOk);
      ASSERT_EQ(receive(1, 0, {node(1).in.data() + i * 4 * eager(), size, i, i}), Status::kOk);
    }
    std::uint32_t good = 0;
    bool bad = false;
    for (std::uint32_t i = 0; i < 3; ++i) {
      Completion c;
      ASSERT_TRUE(next(1, Kind::kReceived, c));
      EXPECT_EQ(c.status, i == 1 ? Status::kMismatch : Status::kOk);
      EXPECT_EQ(c.cookie, i);
      if (i == 1) continue;
      EXPECT_EQ(first_difference(node(1).in.data() + i * 4 * eager(), size, i), -1);
    }
    while (good < 2 || !bad) {
      Completion c;
      ASSERT_TRUE(next(0, Kind::kSent, c));
      if (c.status == Status::kMismatch) {
        EXPECT_EQ(c.cookie, 1u);
        EXPECT_FALSE(bad);
        bad = true;
      } else {
        EXPECT_EQ(c.status, Status::kOk);
        if (c.cookie == 1) {
          EXPECT_LE(wrong_size, eager()) << "only a short send may complete before it is compared";
        } else {
          EXPECT_EQ(c.cookie, 2 * good++);
        }
      }
    }
    EXPECT_EQ(count(0, Kind::kSent), 0u);
  }
}

TEST_P(ConformanceTest, TellsAnEarlyMessageOnce) {
  open(complete(3));
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{8}, eager(), 4 * eager()}) {
    const std::uint64_t tag = 0xfedcba9876543210ull + size;
    fill(node(2).out.data(), size, size);
    ASSERT_EQ(send(2, 1, {node(2).out.data(), size, tag, 9, 4}), Status::kOk);
    Completion c;
    ASSERT_TRUE(next(1, Kind::kEarly, c)) << size << " bytes";
    EXPECT_EQ(c.link, 1u);
    EXPECT_EQ(c.tag, tag);
    idle();
    EXPECT_EQ(count(1, Kind::kEarly), 0u) << size << " bytes: reported twice";
    ASSERT_EQ(receive(1, 1, {node(1).in.data(), size, tag, 0}), Status::kOk);
    ASSERT_TRUE(next(1, Kind::kReceived, c));
    EXPECT_EQ(c.status, Status::kOk);
    EXPECT_EQ(c.check, 9u);
    ASSERT_TRUE(next(2, Kind::kSent, c));
    EXPECT_EQ(count(1, Kind::kEarly), 0u) << size << " bytes: reported twice";
    EXPECT_EQ(count(0, Kind::kEarly), 0u);
  }
}

}  // namespace
}  // namespace espalier::conformance
