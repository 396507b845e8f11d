// espalier-gateway: makes a bare-metal board an ordinary rank.

#include <cstdio>

#include "firmware/gateway/gateway.h"
#include "firmware/gateway/remote.h"

int main(int argc, char** argv) {
  espalier::gateway::Options options;
  std::string error;
  if (!espalier::gateway::parse_options(argc, argv, options, error)) {
    std::fprintf(stderr, "espalier-gateway: %s\n", error.c_str());
    return 2;
  }
  if (options.help) {
    std::fputs(espalier::gateway::usage(), stdout);
    return 0;
  }
  if (!options.node_command.empty()) return espalier::gateway::join_remote(options);
  return espalier::gateway::Gateway(options).run();
}
