#pragma once
// The command line of espalier-gateway: its own options, and those of espalier-node as the launcher
// passes them. Host only.

#include <span>
#include <string>
#include <vector>

#include "espalier/base/result.h"
#include "firmware/node/boot_options.h"

namespace espalier::gateway {

struct GatewayOptions {
  std::string device;    // where the board is: open_carrier()'s specification
  std::string start;     // words for sh that start the board; empty: it is already running
  std::string console;   // file for the output of `start`; empty: discarded
  std::string link_key;  // file of the key of the board's links; empty: they have none
  // Words for sh that run `espalier-node --stdio` on another host; excludes those above.
  std::string node_command;
  std::vector<std::string>
      node_words;  // the words of `node`: --NAME, then the value if it takes one
  bool help = false;
  node::BootOptions node;
};

// Reads the command line's words. Errors: an unknown option, a bad value, or options that do not
// fit together.
[[nodiscard]] Result<GatewayOptions> parse_options(std::span<const std::string> words);
[[nodiscard]] const char* usage();

}  // namespace espalier::gateway
