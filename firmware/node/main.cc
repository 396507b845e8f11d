// espalier-node: one or several Linux nodes in one process. Boots from schedule files, wires up,
// serves.

#include <sched.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "espalier/hal/ofi/ofi_endpoint.h"
#include "firmware/node/boot.h"
#include "firmware/node/boot_image.h"
#include "firmware/node/control.h"
#include "firmware/node/node.h"
#include "firmware/node/standard_io.h"
#include "firmware/node/wire_up.h"

namespace {

using espalier::Status;
namespace control = espalier::control;
namespace node = espalier::node;

constexpr int kFailed = 1;
constexpr int kBadInput = 2;

// One node of this process.
struct Served {
  std::uint32_t number = 0;
  int channel = -1;
  node::Booted booted;  // where it boots from an image
  node::Programs programs;
  std::unique_ptr<espalier::ofi::OfiEndpoint> fabric;
  std::vector<std::string> addresses;  // of the other ends of its lanes
};
using Nodes = std::vector<std::unique_ptr<Served>>;

// One line, to the launcher where there is one, else to stderr.
int fail(int status, int channel, const std::string& what) {
  control::send_failure(channel, "espalier-node", what);
  return status;
}

void describe(const Served& served) {
  for (std::uint32_t i = 0; i < served.programs.count; ++i) {
    const espalier::Program& program = served.programs.programs[i];
    std::printf(
        "%s: node %u of %u ranks%s, %s, %u actions, %u links, window %u, %u scratch blocks, "
        "schedule %016" PRIx64 "\n",
        served.programs.sources[i].c_str(), program.node, program.ranks,
        espalier::is_router(program) ? " (a router)" : "", program.algorithm,
        static_cast<unsigned>(program.actions_count),
        static_cast<unsigned>(espalier::links_count(program)), program.window,
        program.scratch_blocks, program.schedule_digest);
  }
}

espalier::ofi::Config endpoint_config(const node::Options& options, const Nodes& nodes,
                                      std::size_t at) {
  espalier::ofi::Config config;
  config.provider = options.provider;
  config.local_address = options.address;
  config.node = nodes[at]->number;
  config.window = options.window;
  if (options.links.empty()) {
    config.peers = nodes[at]->programs.peers;
    return config;
  }
  for (const node::Link& link : options.links[at]) {
    config.peers.push_back(link.peer);
    config.lanes.push_back({link.out, link.in});
  }
  return config;
}

// Opens the endpoints of all nodes and tells where they are, then connects them, each in turn:
// nodes of one process may be neighbours. 0, or the exit status.
int connect(const node::Options& options, Nodes& nodes) {
  std::string error;
  std::vector<node::ControlWireUp> wire_ups;
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    Served& served = *nodes[at];
    served.fabric = espalier::ofi::OfiEndpoint::open(endpoint_config(options, nodes, at), error);
    if (served.fabric == nullptr) {
      const std::string where = options.address.empty() ? "" : " on " + options.address;
      return fail(kFailed, served.channel,
                  "cannot open " + options.provider + where + ": " + error);
    }
    wire_ups.emplace_back(served.channel);
    if (!wire_ups.back().publish(served.number, served.fabric->addresses(),
                                 served.fabric->lane_peers(), error)) {
      return fail(kFailed, served.channel, error);
    }
  }
  const auto cannot = [&error](const Served& served) {
    return fail(kFailed, served.channel, "cannot connect to the neighbours: " + error);
  };
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    Served& served = *nodes[at];
    if (!wire_ups[at].collect(served.addresses, error)) {
      return fail(kFailed, served.channel, error);
    }
    if (served.fabric->start_connecting(served.addresses, error) != Status::kOk) {
      return cannot(served);
    }
  }
  bool busy = true;
  while (busy) {
    busy = false;
    for (const std::unique_ptr<Served>& served : nodes) {
      const Status status = served->fabric->go_on_connecting(error);
      if (status != Status::kOk && status != Status::kBusy) return cannot(*served);
      busy = busy || status == Status::kBusy;
    }
    if (busy) sched_yield();
  }
  return 0;
}

// What has run well is what the next boot takes.
void confirm(espalier::Slots& slots) {
  const Status status = slots.confirm();
  if (status == Status::kOk) {
    std::fprintf(stderr, "boot: confirmed, stored counter %u\n", slots.counter());
  } else {
    std::fprintf(stderr, "espalier-node: cannot confirm its image: %s\n",
                 espalier::status_name(status));
  }
}

int run(const node::Options& options, Nodes& nodes) {
  const int status = connect(options, nodes);
  if (status != 0) return status;
  espalier::MachineConfig config;
  config.window = options.window;
  config.deadline_ns = options.deadline_ns;
  config.check_blocks = options.check_blocks;
  std::vector<std::unique_ptr<node::Node>> machines;
  for (const std::unique_ptr<Served>& served : nodes) {
    machines.push_back(std::make_unique<node::Node>(served->fabric->endpoint(),
                                                    served->programs.programs.data(),
                                                    served->programs.count, served->channel));
    if (espalier::Slots* slots = served->booted.slots.get(); slots != nullptr) {
      machines.back()->after_first_good_run([slots] { confirm(*slots); });
    }
    const Status taken = machines.back()->init(config, options.log);
    if (taken == Status::kOk) continue;
    return fail(
        kFailed, served->channel,
        std::string("the machine does not take this endpoint: ") + espalier::status_name(taken));
  }
  return node::serve(machines);
}

}  // namespace

namespace {

int main_of(int argc, char** argv) {
  node::Options options;
  std::string error;
  if (!node::parse_options(argc, argv, options, error)) return fail(kBadInput, -1, error);
  if (options.help) {
    std::fputs(node::usage(), stdout);
    return 0;
  }
  Nodes nodes;
  for (std::size_t at = 0; at < options.nodes.size(); ++at) {
    nodes.push_back(std::make_unique<Served>());
    nodes.back()->number = options.nodes[at];
    nodes.back()->channel = options.check_only ? -1 : options.controls[at];
  }
  if (!espalier::ofi::known_provider(options.provider)) {
    return fail(kBadInput, nodes.empty() ? -1 : nodes.front()->channel,
                "unknown provider " + options.provider + "; know tcp and shm, among others");
  }
  for (const std::unique_ptr<Served>& served : nodes) {
    const bool from_schedules = !options.schedules.empty();
    const bool loaded =
        from_schedules
            ? node::load_programs(options, served->number, served->programs, error)
            : node::boot_image(options, served->number, served->booted, served->programs, error);
    std::fputs(served->booted.report.c_str(), options.check_only ? stdout : stderr);
    if (!loaded) return fail(kBadInput, served->channel, error);
    if (options.check_only) describe(*served);
  }
  return options.check_only ? 0 : run(options, nodes);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv, argv + argc);
  const auto stdio_word = std::find(words.begin(), words.end(), "--stdio");
  if (stdio_word == words.end()) return main_of(argc, argv);
  words.erase(stdio_word);
  node::Stdio stdio;
  std::string error;
  if (!stdio.begin(words, error)) return fail(kBadInput, -1, error);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  return main_of(static_cast<int>(words.size()), arguments.data());
}
