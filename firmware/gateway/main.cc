// espalier-gateway: makes a bare-metal board, or a Linux node of another host, an ordinary rank.

#include <cstdio>

#include "firmware/gateway/gateway.h"
#include "firmware/gateway/remote.h"

int main(int argc, char** argv) {
  espalier::gateway::GatewayOptions options;
  std::string error;
  if (!espalier::gateway::parse_options(espalier::words_of(argc, argv), options, error)) {
    std::fprintf(stderr, "espalier-gateway: %s\n", error.c_str());
    return 2;
  }
  if (options.help) {
    std::fputs(espalier::gateway::usage(), stdout);
    return 0;
  }
  if (!options.node_command.empty()) return espalier::gateway::serve_remote(options);
  return espalier::gateway::Gateway(options).run();
}
