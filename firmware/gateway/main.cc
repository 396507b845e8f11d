// espalier-gateway: makes a bare-metal board, or a Linux node of another host, an ordinary rank.

#include <cstdio>

#include "base/one_line.h"
#include "base/process/file_limit.h"
#include "base/process/inherited.h"
#include "firmware/gateway/gateway.h"
#include "firmware/gateway/remote.h"

int main(int argc, char** argv) {
  espalier::repair_inherited();
  espalier::fail_beyond_file_limit();
  const auto parsed = espalier::gateway::parse_options(espalier::words_of(argc, argv));
  if (!parsed) {
    std::fprintf(stderr, "espalier-gateway: %s\n",
                 espalier::one_line(parsed.error().message).c_str());
    return 2;
  }
  const espalier::gateway::GatewayOptions& options = *parsed;
  if (options.help) {
    std::fputs(espalier::gateway::usage(), stdout);
    return 0;
  }
  if (!options.node_command.empty()) return espalier::gateway::serve_remote(options);
  return espalier::gateway::Gateway(options).run();
}
