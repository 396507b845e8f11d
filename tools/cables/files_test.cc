// Files with graphs of cables.

#include "tools/cables/files.h"

#include <gtest/gtest.h>

#include <string>

#include "base/testing/contains.h"
#include "base/testing/results.h"
#include "espalier/topology/topology.h"
#include "tools/cables/report.h"

namespace espalier::cables {
namespace {

std::string cables_in(const Graph& graph) {
  std::string text;
  for (const Cable& cable : graph.cables) {
    text += graph.text(cable.a) + "-" + graph.text(cable.b) + " ";
  }
  for (const Finding& finding : graph.findings) text += std::string(name_of(finding.kind)) + " ";
  return text;
}

TEST(CableFiles, LinesAreCables) {
  const Graph graph = or_throw(read_lines({"f",
                                           "# hand-made\nbox2 a box10 b 40000  # fast\n\nbox10 c "
                                           "box1 a 10000\r\nbox1 x box2 y 10000"}));
  EXPECT_EQ(cables_in(graph), "box1 a-box10 c box1 x-box2 y box2 a-box10 b ");
  EXPECT_EQ(
      topology_of(graph),
      "# Written by 'espalier cables'.\nname: \"cables\"\nranks: 3\n"
      "node { node: 0 name: \"box1\" }\nnode { node: 1 name: \"box2\" }\n"
      "node { node: 2 name: \"box10\" }\n"
      "cable { end { host: \"box1\" interface: \"a\" } end { host: \"box10\" interface: \"c\" } "
      "rate_mbits: 10000 }\n"
      "cable { end { host: \"box1\" interface: \"x\" } end { host: \"box2\" interface: \"y\" } "
      "rate_mbits: 10000 }\n"
      "cable { end { host: \"box2\" interface: \"a\" } end { host: \"box10\" interface: \"b\" } "
      "rate_mbits: 40000 }\n"
      "link { from: 1 to: 2 capacity: 4 }\n");
  EXPECT_TRUE(topology::parse("custom:" + topology_of(graph)));
  EXPECT_EQ(cables_in(or_throw(read_lines({"f", "a 1 b 1\na 2 b 2\nc 1 d 1\ne 1 e 2\nc 1 e 3"}))),
            "a 1-b 1 a 2-b 2 switch loop lanes islands ");
}

TEST(CableFiles, WrongLinesAreRefused) {
  const auto refusal = [](const std::string& text) { return message_of(read_lines({"f", text})); };
  const std::string form =
      "expected HOST INTERFACE HOST INTERFACE, and perhaps a rate in Mbit/s up to 100000000";
  EXPECT_EQ(refusal("a 1 b 2\na 1 b\n"), "f:2: " + form);
  for (const char* wrong : {"a", "a 1 b 2 0", "a 1 b 2 x", "a 1 b 2 100000001", "a 1 b 2 3 4"}) {
    EXPECT_EQ(refusal(wrong), "f:1: " + form) << wrong;
  }
  EXPECT_EQ(refusal("# nothing\n"), "'f' has no cable; expected one or more");
  EXPECT_EQ(refusal("a 1 b\x1b 2"),
            "f:1: 'b\\x1b' is not a name; expected 1 to 64 printable characters without spaces");
  std::string many;
  for (int i = 0; i < 300; ++i) many += "a " + std::to_string(i) + " b " + std::to_string(i) + "\n";
  EXPECT_EQ(refusal(many), "f:257: too many; expected at most 256 hosts of 256 interfaces");
}

// As lldpd 1.0.16 prints it: without a neighbour, with one, and with several.
TEST(CableFiles, LldpOfSeveralHostsIsJoined) {
  const auto entry = [](const std::string& own, const std::string& host, const std::string& port) {
    return "{\"" + own + "\":{\"via\":\"LLDP\",\"rid\":\"2\",\"chassis\":{\"" + host +
           "\":{\"id\":{\"type\":\"mac\",\"value\":\"82:1d:3c:60:a8:2b\"},\"mgmt-iface\":\"1001\"}}"
           ","
           "\"port\":{\"id\":{\"type\":\"mac\",\"value\":\"82:1d:3c:60:a8:2b\"},\"descr\":\"" +
           port + "\",\"ttl\":\"120\"}}}";
  };
  const std::string nothing = "{\"lldp\": {}}";
  const std::string one = "{\"lldp\":{\"interface\":" + entry("to0", "box0", "to1") + "}}";
  const std::string several = "{\"lldp\":{\"interface\":[" + entry("to1", "box1", "to0") + "," +
                              entry("to2", "box2", "to0") + "]}}";
  const auto read = [&](const std::string& a, const std::string& b) {
    return read_lldp({{"box0", {"a", a}}, {"box1", {"b", b}}});
  };
  EXPECT_EQ(cables_in(or_throw(read(several, one))), "box0 to1-box1 to0 box0 to2-box2 to0 ");
  EXPECT_EQ(cables_in(or_throw(read(nothing, one))), "box0 to1-box1 to0 ");
  // Some daemons give the name with the domain, and some hosts are given so.
  const std::string full = "{\"lldp\":{\"interface\":" + entry("to0", "box0.lab.net", "to1") + "}}";
  EXPECT_EQ(cables_in(or_throw(read(several, full))), "box0 to1-box1 to0 box0 to2-box2 to0 ");
  const auto given = read_lldp({{"box0.lab.net", {"a", nothing}}, {"box1", {"b", one}}});
  EXPECT_EQ(cables_in(or_throw(given)), "box0.lab.net to1-box1 to0 ");
  const auto two =
      read_lldp({{"box0.a", {"a", nothing}}, {"box0.b", {"b", nothing}}, {"c", {"c", one}}});
  EXPECT_EQ(cables_in(or_throw(two)), "box0 to1-c to0 ");
  EXPECT_EQ(message_of(read(nothing, nothing)), "LLDP has no cable; expected one or more");
  const std::string by_switch =
      "{\"lldp\":{\"interface\":[" + entry("m0", "a switch", "Port 3") + "]}}";
  EXPECT_EQ(cables_in(or_throw(read(nothing, by_switch))), "a?switch Port?3-box1 m0 ");
  // A system without a name, and a port that is named by its id.
  const std::string unnamed =
      "{\"lldp\":{\"interface\":{\"e\":{\"chassis\":{\"id\":{\"type\":\"mac\",\"value\":\"x\"}},"
      "\"port\":{\"descr\":\"p\"}}}}}";
  const std::string by_id =
      "{\"lldp\":{\"interface\":{\"e\":{\"chassis\":{\"sw\":{\"id\":{}}},\"port\":{\"id\":{"
      "\"type\":"
      "\"ifname\",\"value\":\"swp1\"},\"descr\":\"other\"}}}}}";
  EXPECT_EQ(cables_in(or_throw(read(unnamed, by_id))), "box1 e-sw swp1 ");
  for (const char* wrong : {"", "[]", "{}", "{\"lldp\":[]}", "{\"lldp\":{\"interface\":[1]}}",
                            "{\"lldp\":{\"interface\":\"x\"}}"}) {
    EXPECT_PRED2(contains, message_of(read(wrong, one)),
                 "'a' is not what 'lldpcli -f json show neighbors' prints; expected")
        << wrong;
  }
}

TEST(CableFiles, HostFilesOfMlx) {
  const std::string hosts =
      R"([{"ssh":"mac1","ips":["10.0.0.1"],"rdma":[null,"rdma_en5",["rdma_en3","rdma_en4"]]},
          {"ssh":"mac2","ips":[],"rdma":["rdma_en2",null,null]},
          {"ssh":"mac3","rdma":[["rdma_en7","rdma_en6"],null,null]}])";
  const std::string found =
      "mac1 rdma_en5-mac2 rdma_en2 mac1 rdma_en3-mac3 rdma_en7 mac1 rdma_en4-mac3 rdma_en6 lanes ";
  EXPECT_EQ(cables_in(or_throw(read_mlx({"f", hosts}))), found);
  EXPECT_EQ(cables_in(or_throw(
                read_mlx({"f", R"({"backend":"jaccl","envs":[],"hosts":)" + hosts + "}"}))),
            found);
  const std::string no_file = "'f' is not a host file of MLX";
  for (const char* wrong : {"", "{}", "1", R"([{"ssh":"a"}])", R"([{"ssh":"a","rdma":[]}])",
                            R"([{"ssh":"a","rdma":[null,1]},{"ssh":"b","rdma":["x",null]}])",
                            R"([{"ssh":"a","rdma":[null,"x"]},{"ssh":"b","rdma":[null,null]}])",
                            R"([{"ssh":"","rdma":[null,"x"]},{"ssh":"b","rdma":["x",null]}])"}) {
    EXPECT_PRED2(contains, message_of(read_mlx({"f", wrong})), no_file) << wrong;
  }
  EXPECT_EQ(message_of(read_mlx({"f", R"([{"ssh":"a","rdma":[null]}])"})),
            "'f' has no cable; expected one or more");
}

}  // namespace
}  // namespace espalier::cables
