#include "firmware/gateway/options.h"

#include "base/counted.h"
#include "base/try.h"

namespace espalier::gateway {
namespace {

// The gateway's own options; each has a value.
struct GatewayOption {
  const char* name;
  std::string GatewayOptions::*value;
};
constexpr GatewayOption kGatewayOptions[] = {{"device", &GatewayOptions::device},
                                             {"start", &GatewayOptions::start},
                                             {"console", &GatewayOptions::console},
                                             {"link-key", &GatewayOptions::link_key},
                                             {"node-command", &GatewayOptions::node_command}};

std::string GatewayOptions::*own_option(const std::string& name) {
  for (const GatewayOption& option : kGatewayOptions) {
    if (name == option.name) return option.value;
  }
  return nullptr;
}

// Stores the gateway's own options and returns the node's.
Result<std::vector<GivenOption>> sort_options(std::span<const std::string> words,
                                              GatewayOptions& options) {
  const std::span<const OptionSpec> node_specs = node::boot_option_specs();
  std::vector<OptionSpec> specs(node_specs.begin(), node_specs.end());
  for (const GatewayOption& option : kGatewayOptions) specs.push_back({option.name});
  ESPALIER_TRY_TO(const auto given, split_options("espalier-gateway", words, specs));
  std::vector<GivenOption> node_options;
  for (const GivenOption& option : given) {
    if (std::string GatewayOptions::*own = own_option(option.name); own != nullptr) {
      if (option.value.empty()) {
        return fail("no value after --" + option.name + "; see espalier-gateway --help");
      }
      options.*own = option.value;
      continue;
    }
    node_options.push_back(option);
    options.node_words.push_back("--" + option.name);
    for (const OptionSpec& spec : node_specs) {
      if (spec.name == option.name && spec.takes_value) options.node_words.push_back(option.value);
    }
  }
  return node_options;
}

// Checks which of the gateway's own options were given together.
Result<void> check_own(const GatewayOptions& options) {
  const bool remote = !options.node_command.empty();
  if (remote == !options.device.empty()) {
    return fail(std::string(remote ? "both --device and --node-command" : "no --device") +
                "; expected exactly one of --device SPEC and --node-command COMMAND; see "
                "espalier-gateway --help");
  }
  for (const char* name : {"start", "console", "link-key"}) {
    if (remote && !(options.*own_option(name)).empty()) {
      return fail(std::string("--") + name +
                  " applies only to a board at a --device; expected none with --node-command");
    }
  }
  if (options.start.empty() && !options.console.empty()) {
    return fail(
        "--console has no effect without --start COMMAND, whose output it stores; expected "
        "--start as well");
  }
  return {};
}

// Checks that no option says what the board boots from.
Result<void> check_board(const std::vector<GivenOption>& node_options) {
  for (const GivenOption& option : node_options) {
    if (option.name != "image" && option.name != "flash") continue;
    return fail("--" + option.name + " has no effect on a board at a --device, which boots from " +
                "its own flash; expected no --" + option.name +
                " (of espalier run: NODES=FILE, and NODES without this node)");
  }
  return {};
}

}  // namespace

const char* usage() {
  return "usage: espalier-gateway --device SPEC [--start COMMAND] [--console FILE] [--link-key "
         "FILE]\n"
         "       espalier-gateway --node-command COMMAND\n"
         "                        --node I --control FD [espalier-node's other options]\n"
         "\n"
         "Makes a board that runs the bare-metal node an ordinary rank: connects its framed\n"
         "serial links to libfabric, and represents it to the launcher. `espalier run --start\n"
         "'6=espalier-gateway --device SPEC ...'` starts the gateway instead of espalier-node and\n"
         "adds the options of the last line above. The board boots from its own flash: --image\n"
         "and --flash are refused with --device. The gateway checks that the booted image is for\n"
         "this node, topology and schedule. It never answers keepalive probes for its board.\n"
         "\n"
         "  --device SPEC    where the board is:\n"
         "      unix:LOCAL,REMOTE        Ethernet frames as datagrams, as qemu -netdev dgram "
         "sends\n"
         "                               them: its local.path is REMOTE, its remote.path LOCAL\n"
         "      udp:LOCALPORT,HOST:PORT  frames as UDP datagrams; an IPv6 HOST has brackets\n"
         "      tty:PATH,BAUD            a serial device\n"
         "      stream:PATH              a unix socket to which the device connects\n"
         "  --start COMMAND  words for sh that start the board (an emulator, or a script that\n"
         "                   flashes and resets it). The process ends with the gateway\n"
         "  --console FILE   stores the output of COMMAND\n"
         "  --link-key FILE  the key of the board's links, its 16 bytes, mode 0600: frames of an "
         "end\n"
         "                   without it are dropped. The board must have the same key\n"
         "  --node-command COMMAND  instead of --device: words for sh that run `espalier-node\n"
         "                   --stdio` on another host (ssh HOST espalier-node --stdio --address "
         "IP).\n"
         "                   The other nodes must reach that host through libfabric. It receives "
         "the\n"
         "                   schedules and the other options through its standard input\n"
         "  %r in any of these is the node's number\n"
         "\n"
         "Exit status: 0 the launcher ended the node, 1 a failure while running, 2 bad input.\n";
}

Result<GatewayOptions> parse_options(std::span<const std::string> words) {
  GatewayOptions options;
  ESPALIER_TRY_TO(const auto node_options, sort_options(words, options));
  for (const GivenOption& option : node_options) options.help |= option.name == "help";
  if (options.help) return options;
  ESPALIER_TRY(check_own(options));
  if (!options.device.empty()) {
    ESPALIER_TRY(check_board(node_options));
  }
  ESPALIER_TRY_TO(auto node, node::read_boot_options(node_options, node::BootSource::kOptional));
  options.node = std::move(node);
  if (options.node.nodes.size() != 1 || options.node.controls.size() != 1) {
    return fail(counted(options.node.nodes.size(), "node") + " and " +
                counted(options.node.controls.size(), "control channel") +
                "; expected one --node I and one --control FD");
  }
  for (const GatewayOption& option : kGatewayOptions) {
    options.*option.value = with_node_number(options.*option.value, options.node.nodes.front());
  }
  return options;
}

}  // namespace espalier::gateway
