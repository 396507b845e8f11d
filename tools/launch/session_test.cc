#include "tools/launch/session.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace espalier::launch {
namespace {

// One end of a session: what it has taken from bytes.
struct End {
  Session session = {};
  Reader reader = Reader();
  std::vector<std::string> taken = {};

  End() {
    session.begin_sending();
    session.begin_taking(0);
  }
  // Returns whether `resumed` was among the messages.
  bool read(const std::string& bytes) {
    EXPECT_TRUE(reader.add(bytes));
    bool is_resumed = false;
    for (Fields message; reader.take(message);) {
      if (!session.take(message, 1)) taken.push_back(message[0]);
      is_resumed = is_resumed || message[0] == "resumed";
    }
    return is_resumed;
  }
};

// The way breaks anywhere in the bytes; each message arrives once, in order.
TEST(Session, EachMessageArrivesOnceWhereverTheWayBreaks) {
  const std::vector<std::string> names{"a", "b", "c"};
  std::size_t all = 0;
  for (const std::string& name : names) all += encode({name}).size();
  for (std::size_t arrives = 0; arrives <= all; ++arrives) {
    End launcher, daemon;
    std::string bytes;
    for (const std::string& name : names) bytes += daemon.session.encode({name});
    launcher.read(bytes.substr(0, arrives));
    daemon.read(launcher.session.alive(2 * kAliveTime));
    launcher.reader = Reader();
    ASSERT_TRUE(launcher.read(daemon.session.resumed()));
    ASSERT_TRUE(daemon.read(launcher.session.resumed() + launcher.session.rest()));
    const std::string rest = daemon.session.rest();
    launcher.read(rest + daemon.session.encode({"d"}));
    EXPECT_EQ(launcher.taken, (std::vector<std::string>{"a", "b", "c", "d"})) << arrives;
    EXPECT_TRUE(daemon.taken.empty());
  }
}

TEST(Session, WhatTheOtherEndHasTakenIsNotKept) {
  End one, other;
  other.read(one.session.encode({"a"}));
  EXPECT_NE(one.session.rest(), "");
  one.read(other.session.alive(2 * kAliveTime));
  EXPECT_EQ(one.session.rest(), "");
  EXPECT_EQ(other.session.alive(2 * kAliveTime + 1), "");
}

TEST(Session, APauseIsNoSilence) {
  End one;
  EXPECT_TRUE(one.session.is_silent(kSilentTime + 1, kSilentTime));
  one.read(encode({"pause"}));
  EXPECT_FALSE(one.session.is_silent(100 * kSilentTime, kSilentTime));
  one.read(encode({"alive", "0"}));
  EXPECT_TRUE(one.session.is_silent(100 * kSilentTime, kSilentTime));
  one.read(encode({"end"}));
  EXPECT_TRUE(one.session.has_ended());
}

}  // namespace
}  // namespace espalier::launch
