// espalier cables: finds the cables between hosts that have no switch.

#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "base/process/variables.h"
#include "bootstrap/cables/search.h"
#include "bootstrap/secret.h"
#include "espalier/topology/topology.h"
#include "tools/cables/files.h"
#include "tools/cables/report.h"
#include "tools/commands/commands.h"
#include "tools/common/failure.h"
#include "tools/common/output.h"
#include "topology/custom_content.h"

namespace espalier::tools {
namespace {

constexpr const char* kCablesFooter =
    "Run it on all hosts at about the same time, with the same secret: 32 random bytes in a file "
    "of\n"
    "mode 0600. Each prints the whole graph. Hosts need no address: the probes are UDP over\n"
    "link-local IPv6, on every interface that is up. Each cable is proven in both directions;\n"
    "packets without a code by the secret, and repeated ones, have no effect. Nothing is probed\n"
    "unless this command runs.\n"
    "Without --hosts, the search ends when nothing has changed for 2 s.\n"
    "Examples:\n"
    "  head -c 32 /dev/urandom > secret && chmod 600 secret      # and copy it to all hosts\n"
    "  espalier cables --secret-file secret --hosts 4\n"
    "  espalier cables --hosts 4 --topology cables.textproto --svg cables.svg\n"
    "  espalier compile --topology file:cables.textproto --links hop-by-hop "
    "--algorithm packed-trees \\\n"
    "                   --collective allreduce -o allreduce.esp\n"
    "Exit status: 0 the graph has no fault; 1 it has one, or was not complete in time; 2 bad "
    "input.";

struct CablesWords {
  std::string secret, interfaces, svg, topology, file, mlx;
  std::vector<std::string> lldp;
  std::uint32_t hosts = 0, wait_s = 30, port = cables::kSearchPort;
  bool is_json = false;
};

bootstrap::JobSecret secret_of(const CablesWords& words) {
  std::string path = words.secret;
  if (path.empty()) path = or_bad_input(read_text(Variable::kSecretFile)).value_or("");
  if (path.empty()) {
    bad_input(
        "nothing is believed without a secret; expected --secret-file or ESPALIER_SECRET_FILE, a "
        "file of mode 0600 with 32 random bytes, the same on all hosts");
  }
  return or_bad_input(bootstrap::read_secret(path));
}

// Writes the files that were asked for. A topology connects all its nodes.
void write_files(const cables::Graph& graph, const CablesWords& words) {
  if (words.topology.empty() && words.svg.empty()) return;
  const std::string text = cables::topology_of(graph);
  // LLDP's names of a switch's ports, for example, are none of interfaces.
  if (const auto content = topology::read_custom(text); !content && graph.hosts.size() >= 2) {
    negative("no topology was written: " + content.error().what);
  }
  const auto topology = topology::parse("custom:" + text);
  if (graph.hosts.size() < 2 || !topology) {
    negative("no topology was written: the cables do not connect all hosts");
  }
  if (!words.topology.empty()) write_file(words.topology, text);
  if (!words.svg.empty()) write_file(words.svg, topology::draw_svg(**topology));
}

cables::Source read_source(const std::string& path) {
  return {path, read_given(path, FileKind::kTopology)};
}

// HOST=FILE, several times.
cables::Graph read_lldp_files(const std::vector<std::string>& words) {
  std::vector<std::pair<std::string, cables::Source>> hosts;
  for (const std::string& word : words) {
    const std::size_t split = word.find('=');
    if (split == 0 || split >= word.size() - 1) {
      bad_input("--lldp '" + one_line(word) + "'; expected HOST=FILE");
    }
    hosts.emplace_back(word.substr(0, split), read_source(word.substr(split + 1)));
  }
  return or_bad_input(cables::read_lldp(hosts));
}

cables::SearchResult find(const CablesWords& words) {
  if (!words.file.empty()) {
    return {.graph = or_bad_input(cables::read_lines(read_source(words.file))), .is_settled = true};
  }
  if (!words.mlx.empty()) {
    return {.graph = or_bad_input(cables::read_mlx(read_source(words.mlx))), .is_settled = true};
  }
  if (!words.lldp.empty()) return {.graph = read_lldp_files(words.lldp), .is_settled = true};
  return or_bad_input(cables::search({.secret = secret_of(words),
                                      .interfaces = words.interfaces,
                                      .port = static_cast<std::uint16_t>(words.port),
                                      .hosts = words.hosts,
                                      .wait = std::chrono::seconds(words.wait_s)}));
}

void print(const cables::SearchResult& found, bool is_json) {
  if (is_json) {
    Json json = cables::json_of(found.graph);
    json.add("settled", found.is_settled);
    json.add("refused_packets", found.refused);
    return print_json(json);
  }
  std::fputs(cables::text_of(found.graph).c_str(), stdout);
  if (found.refused != 0) {
    std::printf("  note: %s refused: of another secret, malformed or repeated\n",
                counted(found.refused, "packet").c_str());
  }
}

void run_cables(const CablesWords& words) {
  for (const std::string& path : {words.svg, words.topology}) {
    if (!path.empty()) check_writable(path);
  }
  const cables::SearchResult found = find(words);
  print(found, words.is_json);
  if (found.is_settled) write_files(found.graph, words);
  const bool has_files = !words.topology.empty() || !words.svg.empty();
  const std::string unwritten = !found.is_settled && has_files ? "; no file was written" : "";
  std::size_t faults = 0;
  for (const cables::Finding& finding : found.graph.findings) faults += finding.is_fault();
  if (faults != 0) negative(counted(faults, "fault") + " in the graph of the cables" + unwritten);
  if (!found.is_settled) {
    negative("the graph still changed after " + counted(words.wait_s, "second") +
             "; expected a longer --wait" + unwritten);
  }
}

}  // namespace

void add_cables(Command app) {
  Command command = app.add_command(
      "cables", "Finds the cables between hosts that have no switch, and what is wrong with them");
  auto& words = command.bind<CablesWords>(run_cables);
  std::vector<Option> options;
  options.push_back(command
                        .number("--hosts", words.hosts, 2, cables::kMaxHosts,
                                "End as soon as so many hosts are found and see the same")
                        .show_default("any"));
  options.push_back(
      command.number("--wait", words.wait_s, 1, 3600, "End after this time in any case, s"));
  options.push_back(
      command.text("--secret-file", words.secret,
                   "The secret of the job; otherwise the file that ESPALIER_SECRET_FILE names"));
  options.push_back(command.text(
      "--interface", words.interfaces,
      "Interfaces to search, e.g. eth1,eth2 or !docker0; otherwise ESPALIER_INTERFACE"));
  options.push_back(
      command.number("--port", words.port, 1, UINT16_MAX, "UDP port, the same on all hosts"));
  Option file = command.text("--file", words.file,
                             "Search nothing, read a file: HOST INTERFACE HOST INTERFACE [MBITS]");
  Option mlx = command.text("--mlx", words.mlx, "Search nothing, read MLX's host file for RDMA");
  Option lldp = command.texts("--lldp", words.lldp,
                              "Search nothing, read HOST=FILE: what 'lldpcli -f json show "
                              "neighbors' printed there; may be repeated");
  file.excludes(mlx).excludes(lldp);
  mlx.excludes(lldp);
  for (const Option& option : options) {
    for (Option* source : {&file, &mlx, &lldp}) source->excludes(option);
  }
  command.text("--topology", words.topology, "Write the graph as a topology file");
  command.text("--svg", words.svg, "Draw the graph into this file");
  command.flag("--json", words.is_json, "Print JSON");
  command.set_footer(kCablesFooter);
}

}  // namespace espalier::tools
