#include "firmware/gateway/options.h"

#include <vector>

namespace espalier::gateway {
namespace {

std::string with_node(std::string text, std::uint32_t node) {
  for (std::size_t at = text.find("%r"); at != std::string::npos; at = text.find("%r", at)) {
    text.replace(at, 2, std::to_string(node));
  }
  return text;
}

}  // namespace

const char* usage() {
  return "usage: espalier-gateway --device SPEC [--start COMMAND] [--console FILE]\n"
         "       espalier-gateway --node-command COMMAND\n"
         "                        --node I --control FD [espalier-node's other options]\n"
         "\n"
         "Makes a board that runs the bare-metal node an ordinary rank: joins its framed serial\n"
         "links to libfabric, and speaks to the launcher on its behalf. `espalier run --start\n"
         "'6=espalier-gateway --device SPEC ...'` starts it in espalier-node's place and adds the\n"
         "last line. The board boots from its own flash; the gateway checks that what it has\n"
         "booted is for this node, topology and schedule. It never answers for its board.\n"
         "\n"
         "  --device SPEC    where the board is:\n"
         "      unix:LOCAL,REMOTE        Ethernet frames as datagrams, as qemu -netdev dgram has\n"
         "                               them: its local.path is REMOTE, its remote.path LOCAL\n"
         "      udp:LOCALPORT,HOST:PORT  frames as UDP datagrams\n"
         "      tty:PATH,BAUD            a serial device\n"
         "      stream:PATH              a unix socket to which the device connects\n"
         "  --start COMMAND  words for sh that start the board (an emulator, or what flashes and\n"
         "                   resets it); what they start ends with the gateway, and is the node's\n"
         "                   process for `espalier run --kill`\n"
         "  --console FILE   what COMMAND writes\n"
         "  --node-command COMMAND  instead: words for sh that run `espalier-node --stdio` on "
         "another\n"
         "                   host (ssh HOST espalier-node --stdio --address IP), whose libfabric "
         "the\n"
         "                   others must reach; it gets the schedules and the rest through its "
         "standard\n"
         "                   input\n"
         "  %r in any of these is the node's number\n"
         "\n"
         "Exit status: 0 told to end, 1 a failure while running, 2 bad input.\n";
}

bool parse_options(int argc, char** argv, Options& options, std::string& error) {
  std::vector<char*> rest = {argv[0]};
  for (int at = 1; at < argc; ++at) {
    const std::string word = argv[at];
    if (word == "--help") {
      options.help = true;
      return true;
    }
    std::string* value = word == "--device"         ? &options.device
                         : word == "--start"        ? &options.start
                         : word == "--console"      ? &options.console
                         : word == "--node-command" ? &options.node_command
                                                    : nullptr;
    if (value == nullptr) {
      rest.push_back(argv[at]);
    } else if (++at < argc && argv[at][0] != '\0') {
      *value = argv[at];
    } else {
      error = "no value after " + word + "; see espalier-gateway --help";
      return false;
    }
  }
  if (options.device.empty() == options.node_command.empty()) {
    error =
        "which board? give one of --device SPEC and --node-command COMMAND; see espalier-gateway "
        "--help";
    return false;
  }
  const bool remote = !options.node_command.empty();
  if (remote && !(options.start.empty() && options.console.empty())) {
    error = std::string(options.start.empty() ? "--console" : "--start") +
            " is for a board at a --device; give none with --node-command";
    return false;
  }
  if (options.start.empty() && !options.console.empty()) {
    error = "--console is for what --start COMMAND writes; give --start as well";
    return false;
  }
  options.node_words.assign(rest.begin() + 1, rest.end());
  rest.push_back(nullptr);
  if (!node::parse_options(static_cast<int>(rest.size()) - 1, rest.data(), options.node, error)) {
    return false;
  }
  if (options.node.nodes.size() != 1 || options.node.controls.size() != 1) {
    error = "a gateway drives one board: give one --node I and one --control FD";
    return false;
  }
  for (std::string* text :
       {&options.device, &options.start, &options.console, &options.node_command}) {
    *text = with_node(*text, options.node.nodes.front());
  }
  return true;
}

}  // namespace espalier::gateway
