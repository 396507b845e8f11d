#include "tools/launch/hosts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>

#include "base/testing/contains.h"
#include "base/testing/results.h"

namespace espalier::launch {
namespace {

std::string text_of(const std::vector<Host>& hosts) {
  std::string text;
  for (const Host& host : hosts) {
    text += (text.empty() ? "" : " ") + host.name + "=" + std::to_string(host.slots);
    if (host.port != 0) text += "/" + std::to_string(host.port);
  }
  return text;
}

// A hostfile of this text, for one test.
class Hostfile {
 public:
  explicit Hostfile(const std::string& text) {
    const int file = mkstemp(path_);
    EXPECT_EQ(::write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(file);
  }
  ~Hostfile() { std::remove(path_); }
  [[nodiscard]] std::string path() const { return path_; }

 private:
  char path_[32] = "/tmp/espalier-hosts-XXXXXX";
};

struct Case {
  std::string text;
  std::string expected;  // the hosts, or a part of the error
};

TEST(Hosts, AHostfileAsOtherLaunchersReadIt) {
  for (const auto& [text, expected] : std::vector<Case>{
           {"a\nb\n", "a=1 b=1"},
           {"a slots=2\nb slots=3", "a=2 b=3"},
           {"a:2\nb:2\n", "a=2 b=2"},
           {"a slots=2 max_slots=4\n", "a=2"},
           {"a max-slots=4 slots=4\n", "a=4"},
           {"a slots = 2 max_slots= 4\r\nb\tslots =3 # three\r\n\r\n# none\r\n", "a=2 b=3"},
           {"\xef\xbb\xbf"
            "a:4\n",
            "a=4"},
           {"a\nb\na\na slots=2\n", "a=4 b=1"},
           {"me@a:2\na:2\n", "me@a=2 a=2"},
           {"a user=me\nme@a\n", "me@a=2"},
           {"a port=2222 slots=2\n", "a=2/2222"},
           {"10.0.0.1:2\n::1\n[fe80::1%eth0]:3\n[::1] slots=2\n",
            "10.0.0.1=2 ::1=3 fe80::1%eth0=3"},
       }) {
    const Hostfile file(text);
    EXPECT_EQ(text_of(or_throw(read_hostfile(file.path()))), expected) << text;
  }
}

TEST(Hosts, AHostfileThatIsRefusedNamesTheLine) {
  for (const auto& [text, expected] : std::vector<Case>{
           {"a\nb:\n", "line 2: malformed host 'b:'; expected 'HOST:N'"},
           {"a:x", "line 1: malformed host 'a:x'; expected 'HOST:N', with N from 1 to 65536"},
           {"a:0", "line 1: malformed host 'a:0'"},
           {"a:65537", "line 1: malformed host 'a:65537'"},
           {"a:4294967297", "line 1: malformed host"},
           {"a:2:3", "line 1: malformed host 'a:2:3'; expected 'HOST', 'HOST:N' or 'HOST slots=N'"},
           {"a*2",
            "line 1: malformed host name 'a*2'; expected letters, digits and .-_:@%, or 'HOST:N'"},
           {"^a", "line 1: malformed host name '^a'"},
           {"-oProxyCommand=x", "line 1: malformed host name"},
           {"@a", "line 1: malformed host name '@a'"},
           {"a slots=", "line 1: malformed 'slots='; expected 'slots=N', with N from 1 to 65536"},
           {"a port=65536",
            "line 1: malformed 'port=65536'; expected 'port=N', with N from 1 to 65535"},
           {"a user=", "line 1: malformed 'user='; expected 'user=NAME'"},
           {"a slits=2",
            "line 1: 'slits=2' is not understood; expected slots=N, max_slots=N, port=N or"},
           {"a 2", "line 1: '2' is not understood"},
           {"a:2 slots=2", "line 1: both ':N' and 'slots=N' for host 'a'; expected one of them"},
           {"me@a user=me", "line 1: both 'USER@' and 'user=' for host 'me@a'"},
           {"a slots=4 max_slots=2", "line 1: max_slots=2 is below the 4 slots of host 'a'"},
           {"a port=1\na port=2", "line 2: host 'a' has two ports; expected one"},
           {"[::1", "line 1: malformed host '[::1'; expected '[IPV6]' or '[IPV6]:N'"},
           {"[a]:2", "line 1: malformed host '[a]:2'"},
           {"a slots=2 slots=3",
            "line 1: 'slots=3' after another value; expected 'slots=N' once per line"},
           {"a slots=2 slots=2", "line 1: 'slots=2' after another value"},
           {"a slots=1 max_slots=2 max-slots=3",
            "line 1: 'max-slots=3' after another value; expected 'max_slots=N' once per line"},
           {"b\na port=1 port=2", "line 2: 'port=2' after another value; expected 'port=N' once"},
           {"a user=me username=me", "line 1: 'username=me' after another value; expected"},
           {std::string("a\0b", 3), "line 1: malformed host name 'a\\x00b'"},
           {std::string("b\na user=m\0", 11), "line 2: malformed 'user=m\\x00'"},
           {std::string("a:2\0", 4), "line 1: malformed host 'a:2\\x00'"},
           {"", "no host; expected lines 'HOST slots=N'"},
           {"# none\n", "no host; expected lines 'HOST slots=N'"},
       }) {
    const Hostfile file(text);
    const std::string message = message_of(read_hostfile(file.path()));
    EXPECT_TRUE(message.starts_with(file.path())) << message;
    EXPECT_PRED2(contains, message, expected) << text;
  }
  EXPECT_PRED2(contains, message_of(read_hostfile("/tmp")), "--hostfile: cannot read '/tmp': ");
  EXPECT_PRED2(contains, message_of(read_hostfile("/dev/zero")), "it is a device");
}

TEST(Hosts, TheWordsOfHosts) {
  EXPECT_EQ(text_of(or_throw(read_hosts({"a", "b"}))), "a=0 b=0");
  EXPECT_EQ(text_of(or_throw(read_hosts({"a:2", "b"}))), "a=2 b=1");
  EXPECT_EQ(text_of(or_throw(read_hosts({"a", "b", "a"}))), "a=2 b=1");
  EXPECT_NE(message_of(read_hosts({"a", "b:no"})).find("--hosts: malformed host 'b:no'"),
            std::string::npos);
}

TEST(Hosts, RanksGoToSlotsInOrder) {
  const auto placed = or_throw(place(or_throw(read_hosts({"a:2", "b:9", "c"})), 5));
  ASSERT_EQ(placed.size(), 2u);
  EXPECT_EQ(placed[0].count, 2u);
  EXPECT_EQ(placed[1].first, 2u);
  EXPECT_EQ(placed[1].count, 3u);
  EXPECT_NE(message_of(place(or_throw(read_hosts({"a:2", "b"})), 4)).find("have 3 slots"),
            std::string::npos);
}

bool is_here(const std::string& name) {
  auto hosts = or_throw(read_hosts({name}));
  mark_this_host(hosts);
  return hosts[0].is_here;
}

TEST(Hosts, ThisHostIsKnownByItsNames) {
  char own[HOST_NAME_MAX + 1] = "";
  ASSERT_EQ(gethostname(own, sizeof own - 1), 0);
  const std::string name = own;
  for (const std::string& each :
       {std::string("localhost"), std::string("LOCALHOST"), std::string("127.0.0.1"),
        std::string("127.0.1.1"), std::string("::1"), name, name.substr(0, name.find('.'))}) {
    EXPECT_TRUE(is_here(each)) << each;
  }
  for (const std::string& each :
       {std::string("192.0.2.1"), std::string("2001:db8::1"), std::string("no-such-host.invalid"),
        "me@" + name, std::string("localhost.example.invalid")}) {
    EXPECT_FALSE(is_here(each)) << each;
  }
  std::vector<Host> with_port(1);
  with_port[0].name = "localhost";
  with_port[0].port = 2222;
  mark_this_host(with_port);
  EXPECT_FALSE(with_port[0].is_here);
}

}  // namespace
}  // namespace espalier::launch
