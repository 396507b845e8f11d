#pragma once
// The command line of espalier-gateway: espalier-node's, as the launcher gives it, and the
// gateway's own words. Host only.

#include <string>
#include <vector>

#include "firmware/node/boot.h"

namespace espalier::gateway {

struct Options {
  std::string device;   // open_carrier's specification: where the board is
  std::string start;    // words for sh that start the board; empty: it runs
  std::string console;  // file for what those say; empty: none
  // Instead of all these: words for sh that run `espalier-node --stdio` on another host.
  std::string node_command;
  std::vector<std::string> node_words;  // the words of `node`
  bool help = false;
  node::Options node;
};

// Reads the command line; false and one line in `error` if it is wrong.
[[nodiscard]] bool parse_options(int argc, char** argv, Options& options, std::string& error);
[[nodiscard]] const char* usage();

}  // namespace espalier::gateway
