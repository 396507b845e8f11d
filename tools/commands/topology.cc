// espalier topology: prints and draws the topology of a specification.

#include <cstdio>

#include "planner/make/plan.h"
#include "tools/commands/commands.h"
#include "tools/common/failure.h"
#include "tools/common/json.h"
#include "tools/common/output.h"
#include "tools/options/plan_options.h"

namespace espalier::tools {
namespace {

struct TopologyArguments {
  std::string spec, svg;
  Format format = Format::kText;
};

constexpr std::uint64_t kMaxPrinted = 100;
constexpr std::uint64_t kMaxAsJson = 4'000'000;

void print_text(const topology::Topology& topology) {
  std::printf("%s: %s", topology.title().c_str(), counted(topology.ranks(), "rank").c_str());
  if (topology.nodes() > topology.ranks()) {
    std::printf(", %s", counted(topology.nodes() - topology.ranks(), "router").c_str());
  }
  std::printf(", %s, digest %s\n", counted(topology.link_count(), "directed link").c_str(),
              hex(topology.digest()).c_str());
  if (topology.link_count() > kMaxPrinted) {
    std::printf("(more than %llu links: not printed; --format json prints them)\n",
                static_cast<unsigned long long>(kMaxPrinted));
    return;
  }
  for (const topology::Link& link : topology.links()) {
    std::printf("  %s -> %s", topology.node_name(link.from).c_str(),
                topology.node_name(link.to).c_str());
    if (link.capacity != 1) std::printf(", %u lanes", link.capacity);
    const topology::LinkClass link_class = topology.link_class(link.from, link.to);
    if (link_class != topology::LinkClass::kFabric) {
      std::printf(", %s", topology::link_class_name(link_class));
    }
    std::printf("\n");
  }
}

void print_as_json(const topology::Topology& topology) {
  if (topology.link_count() + topology.nodes() > kMaxAsJson) {
    bad_input(topology.title() + " has " + counted(topology.link_count(), "link") +
              ", too many to print; expected at most " + std::to_string(kMaxAsJson));
  }
  auto nodes = Json::array();
  for (std::uint32_t node = 0; node < topology.nodes(); ++node) {
    nodes.push_back({{"node", node},
                     {"kind", node < topology.ranks() ? "rank" : "router"},
                     {"name", topology.node_name(node)}});
  }
  auto links = Json::array();
  for (const topology::Link& link : topology.links()) {
    links.push_back(
        {{"from", link.from},
         {"to", link.to},
         {"capacity", link.capacity},
         {"class", topology::link_class_name(topology.link_class(link.from, link.to))}});
  }
  print_json({{"topology", topology.spec()},
              {"digest", hex(topology.digest())},
              {"ranks", topology.ranks()},
              {"nodes", nodes},
              {"links", links}});
}

void run_topology(const TopologyArguments& arguments) {
  if (!arguments.svg.empty()) check_writable(arguments.svg);
  const auto topology = parse_topology(arguments.spec);
  if (!arguments.svg.empty()) write_file(arguments.svg, topology::draw_svg(*topology));
  if (arguments.format == Format::kJson) {
    print_as_json(*topology);
  } else {
    print_text(*topology);
  }
}

}  // namespace

void add_topology(Command app) {
  Command command = app.add_command("topology", "Prints a topology, and draws it");
  auto& arguments = command.bind<TopologyArguments>(run_topology);
  command.text("topology", arguments.spec, topology::kSpecificationForms).required();
  command.text("--svg", arguments.svg, "Also draw it into this file");
  add_format(command, arguments.format);
  command.set_footer(
      "Examples:\n"
      "  espalier topology mesh:4x4\n"
      "  espalier topology torus:4x4x4 --format json\n"
      "  espalier topology hypercube:4 --svg hypercube.svg\n"
      "  espalier topology fattree:k=4,h=2,c=k --svg tree.svg\n"
      "  espalier topology hosts:4x8 --svg hosts.svg\n"
      "  espalier topology file:examples/topologies/broken-mesh.textproto --svg mesh.svg");
}

}  // namespace espalier::tools
