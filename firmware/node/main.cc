// espalier-node: the Linux node. Boots from schedule files, wires up, serves.

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "firmware/node/boot.h"
#include "firmware/node/control.h"
#include "firmware/node/node.h"
#include "firmware/node/wire_up.h"
#include "hal/ofi/ofi_endpoint.h"

namespace {

using espalier::Status;
namespace control = espalier::control;
namespace node = espalier::node;

constexpr int kFailed = 1;
constexpr int kBadInput = 2;

// Everything a node needs besides its endpoint's own memory, reserved at compile time.
node::Programs programs;

// One line, to the launcher where there is one, else to stderr. A launcher that is gone has said
// why already.
int fail(int status, int channel, const std::string& what) {
  control::Failed failed;
  std::snprintf(failed.text, sizeof failed.text, "%s", what.c_str());
  if (channel < 0 || (!control::send(channel, failed) && errno != EPIPE && errno != ECONNRESET)) {
    std::fprintf(stderr, "espalier-node: %s\n", what.c_str());
  }
  return status;
}

void describe(const node::Options& options) {
  for (std::uint32_t i = 0; i < programs.count; ++i) {
    const espalier::Program& program = programs.programs[i];
    std::printf(
        "%s: node %u of %u ranks, %s, %u actions, %u links, window %u, %u scratch blocks, "
        "schedule %016" PRIx64 "\n",
        options.schedules[i].c_str(), program.node, program.ranks, program.algorithm,
        static_cast<unsigned>(program.actions_count), static_cast<unsigned>(links_count(program)),
        program.window, program.scratch_blocks, program.schedule_digest);
  }
}

int run(const node::Options& options) {
  const int channel = options.control;
  std::string error;
  espalier::ofi::Config config;
  config.provider = options.provider;
  config.local_address = options.address;
  config.node = options.node;
  config.peers = programs.peers;
  config.window = options.window;
  const std::unique_ptr<espalier::ofi::OfiEndpoint> fabric =
      espalier::ofi::OfiEndpoint::open(config, error);
  if (fabric == nullptr) {
    const std::string where = options.address.empty() ? "" : " on " + options.address;
    return fail(kFailed, channel, "cannot open " + options.provider + where + ": " + error);
  }
  node::ControlWireUp wire_up(channel);
  std::vector<std::string> addresses;
  if (!wire_up.exchange(options.node, fabric->address(), programs.peers, addresses, error)) {
    return fail(kFailed, channel, error);
  }
  if (fabric->connect(addresses, error) != Status::kOk) {
    return fail(kFailed, channel, "cannot connect to the neighbours: " + error);
  }

  static node::Node self(fabric->endpoint(), programs.programs.data(), programs.count, channel);
  espalier::MachineConfig machine;
  machine.window = options.window;
  machine.deadline_ns = options.deadline_ns;
  machine.check_blocks = options.check_blocks;
  const Status status = self.init(machine);
  if (status != Status::kOk) {
    return fail(kFailed, channel,
                std::string("the machine does not take this endpoint: ") + status_name(status));
  }
  return self.serve();
}

}  // namespace

int main(int argc, char** argv) {
  node::Options options;
  std::string error;
  if (!node::parse_options(argc, argv, options, error)) return fail(kBadInput, -1, error);
  if (options.help) {
    std::fputs(node::usage(), stdout);
    return 0;
  }
  const int channel = options.check_only ? -1 : options.control;
  if (!espalier::ofi::known_provider(options.provider)) {
    return fail(kBadInput, channel,
                "unknown provider " + options.provider + "; know tcp and shm, among others");
  }
  if (!node::load_programs(options, programs, error)) return fail(kBadInput, channel, error);
  if (options.check_only) {
    describe(options);
    return 0;
  }
  return run(options);
}
