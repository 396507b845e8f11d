// The gateway's beginning: until its board has booted and its neighbours are connected.

#include <fcntl.h>
#include <sched.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <random>

#include "espalier/base/digest.h"
#include "firmware/gateway/gateway.h"
#include "firmware/node/wire_up.h"

namespace espalier::gateway {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;  // ns
constexpr std::uint64_t kBootPatience = 30 * kSecond;
constexpr std::uint64_t kAnswerPatience = 10 * kSecond;

// Two frames of 512 bytes on a line of 115200 baud take 90 ms.
SerialPortConfig port_config(const std::string& device) {
  SerialPortConfig config;
  const bool bytes = device.starts_with("tty:") || device.starts_with("stream:");
  if (bytes) config.resend_ns = 200'000'000;
  return config;
}

std::uint32_t new_session() { return std::random_device{}() | 1; }

std::string release_text(std::uint32_t release) {
  return std::to_string(release >> 24) + "." + std::to_string(release >> 16 & 0xff) + "." +
         std::to_string(release & 0xffff);
}

std::string slot_text(const agent::Hello& hello, std::uint32_t slot) {
  const agent::Slot& told = hello.slots[slot];
  const std::string status = told.looked_at == 0 ? "older" : status_name(told.status);
  return "slot " + std::to_string(slot) + ": " + status +
         (told.looked_at != 0 && told.status != Status::kOk
              ? " (status " + std::to_string(static_cast<int>(told.status)) + ")"
              : "");
}

}  // namespace

std::string Gateway::board() const {
  const std::string name = hello_.board[0] == '\0' ? "" : std::string(" ") + hello_.board;
  return "its board" + name + " at " + options_.device;
}

bool Gateway::start_board() {
  if (options_.node.provider == "shm") {
    error_ =
        "a gateway cannot tell its board of a neighbour that died holding one of shm's locks; "
        "expected --provider tcp";
    return false;
  }
  if (!options_.node.schedules.empty()) {
    programs_ = std::make_unique<node::Programs>();
    if (!node::load_programs(options_.node, options_.node.nodes.front(), *programs_, error_)) {
      return false;
    }
  }
  carrier_ = open_carrier(options_.device, error_);
  if (carrier_ == nullptr) return false;
  clock_.add(*carrier_);
  frames_.resize((2 * carrier_->mtu() + 3) / 4);
  port_ = std::make_unique<SerialPort>(*carrier_, clock_,
                                       reinterpret_cast<std::uint8_t*>(frames_.data()),
                                       port_config(options_.device));
  agent_ = std::make_unique<Conversation>(*port_, new_session());
  return options_.start.empty() || child_.start(options_.start, options_.console, error_);
}

bool Gateway::await(Conversation::Event wanted, std::uint64_t patience_ns,
                    const std::string& what) {
  board_moved_ns_ = clock_.now();
  while (true) {
    const Conversation::Event event = pump();
    if (event == wanted) return true;
    if (!works()) return false;
    if (event != Conversation::Event::kNothing) {
      return broken("it sent something else than " + what);
    }
    if (!patient(patience_ns, what)) return false;
    clock_.wait(clock_.now() + 1'000'000);
  }
}

bool Gateway::hear_hello() {
  const std::uint64_t until = clock_.now() + kBootPatience;
  // A board that another gateway has used starts again when it hears this one.
  while (true) {
    const Conversation::Event event = pump();
    if (!works()) return false;
    const bool hello =
        event == Conversation::Event::kPacket && agent_->packet().kind == agent::Kind::kHello;
    if (hello) break;
    if (event == Conversation::Event::kPacket || event == Conversation::Event::kStrange) {
      return broken("it speaks, but not the protocol of this release: install both of one release");
    }
    if (clock_.now() > until) {
      return broken("no word of it for " + std::to_string(kBootPatience / kSecond) +
                    " s; awaited that it boots and says hello");
    }
    clock_.wait(clock_.now() + 1'000'000);
  }
  hello_ = agent_->packet().hello;
  hello_.board[sizeof hello_.board - 1] = '\0';
  if (hello_.version != agent::kVersion) {
    return broken("it speaks version " + std::to_string(hello_.version) +
                  " of the agent's protocol, the gateway " + std::to_string(agent::kVersion) +
                  ": install both of one release");
  }
  if (hello_.links > kMaxLinks || hello_.programs > kMaxPrograms) {
    return broken("it says that it has " + std::to_string(hello_.links) + " links and " +
                  std::to_string(hello_.programs) + " programs");
  }
  board_links_.resize(hello_.links);
  board_programs_.resize(hello_.programs);
  const std::size_t links = board_links_.size() * sizeof(agent::LinkEntry);
  const std::size_t programs = board_programs_.size() * sizeof(agent::ProgramEntry);
  std::vector<std::uint8_t> tables(links + programs);
  if (tables.empty()) return true;
  agent_->expect(tables);
  if (!await(Conversation::Event::kData, kAnswerPatience, "its tables of links and programs")) {
    return false;
  }
  if (links != 0) std::memcpy(board_links_.data(), tables.data(), links);
  if (programs != 0) std::memcpy(board_programs_.data(), tables.data() + links, programs);
  return true;
}

bool Gateway::check_hello() {
  const std::string slots = slot_text(hello_, 0) + ", " + slot_text(hello_, 1);
  if (hello_.boot != Status::kOk) {
    return broken("nothing boots; " + slots + "; install an image for it");
  }
  std::fprintf(stderr, "espalier-gateway: node %u: board %s boots slot %u, release %s%s; %s\n",
               hello_.node, hello_.board, hello_.slot, release_text(hello_.release).c_str(),
               hello_.trial != 0 ? " (its first run)" : "", slots.c_str());
  const std::uint32_t node = options_.node.nodes.front();
  if (hello_.node != node) {
    return broken("its image is for node " + std::to_string(hello_.node) + ", expected one for " +
                  std::to_string(node));
  }
  const std::string& topology = options_.node.topology;
  if (!topology.empty() &&
      digest_bytes(kDigestSeed, topology.data(), topology.size()) != hello_.topology_digest) {
    return broken("its image is for another topology, expected one for " + topology);
  }
  for (std::uint32_t at = 0; programs_ != nullptr && at < programs_->count; ++at) {
    const std::uint64_t digest = programs_->programs[at].schedule_digest;
    bool there = false;
    for (const agent::ProgramEntry& entry : board_programs_) {
      there = there || entry.schedule == digest;
    }
    if (there) continue;
    char text[64];
    std::snprintf(text, sizeof text, "%016" PRIx64, digest);
    return broken("none of its " + std::to_string(hello_.programs) + " programs is of schedule " +
                  text + " (" + programs_->programs[at].algorithm +
                  "); build its image of that schedule");
  }
  return true;
}

bool Gateway::configure() {
  agent::Configure order;
  order.window = options_.node.window;
  order.deadline_ns = options_.node.deadline_ns;
  order.check_blocks = options_.node.check_blocks;
  order.log = options_.node.log;
  agent_->send(order);
  if (!await(Conversation::Event::kPacket, kAnswerPatience, "its answer to Configure"))
    return false;
  const agent::Answer& answer = agent_->packet().answer;
  if (answer.kind == agent::Kind::kAnswer && answer.status == Status::kOk) return true;
  return broken(std::string("it does not take this run's configuration: ") +
                status_name(answer.status));
}

// Its links on the fabric: those of the board that the programs of this run use, in a modelled run
// with the lanes that the launcher says.
bool Gateway::open_fabric() {
  ofi::Config config;
  config.provider = options_.node.provider;
  config.local_address = options_.node.address;
  config.node = hello_.node;
  config.window = options_.node.window;
  const std::vector<node::Link>* modelled =
      options_.node.links.empty() ? nullptr : &options_.node.links.front();
  Bridge::Shape shape;
  std::vector<std::uint32_t> needed;
  if (modelled != nullptr) {
    for (const node::Link& link : *modelled) needed.push_back(link.peer);
  } else if (programs_ != nullptr) {
    needed = programs_->peers;
  } else {
    for (const agent::LinkEntry& link : board_links_) needed.push_back(link.peer);
  }
  shape.fabric_links.assign(board_links_.size(), Bridge::kNone);
  shape.tells_early.assign(board_links_.size(), true);
  for (std::uint32_t at = 0; at < needed.size(); ++at) {
    std::size_t link = 0;
    while (link < board_links_.size() && board_links_[link].peer != needed[at]) ++link;
    const bool has = link < board_links_.size();
    if (has) shape.fabric_links[link] = at;
    config.peers.push_back(needed[at]);
    if (modelled != nullptr) {  // a board has links to those neighbours only that it has to do with
      config.lanes.push_back({(*modelled)[at].out, (*modelled)[at].in});
      if (has) shape.tells_early[link] = (*modelled)[at].in <= 1;
    } else if (!has) {
      return broken("it has no link to node " + std::to_string(needed[at]));
    }
  }
  fabric_ = ofi::OfiEndpoint::open(config, error_);
  if (fabric_ == nullptr) {
    error_ = "cannot open " + config.provider + ": " + error_;
    return false;
  }
  shape.block_bytes = std::max({hello_.input_room, hello_.output_room, hello_.scratch_room});
  SerialConfig serial;
  serial.session = new_session();
  serial.window = std::min(hello_.window, kSerialWindow);
  serial.settles = true;
  links_ = std::vector<SerialLink>(board_links_.size());
  bridge_ = std::make_unique<Bridge>(*port_, links_.data(), fabric_->endpoint(), shape, serial);
  return true;
}

bool Gateway::connect() {
  node::ControlWireUp wire_up(options_.node.controls.front(), child_.pid());
  std::vector<std::string> addresses;
  if (!wire_up.publish(hello_.node, fabric_->addresses(), fabric_->lane_peers(), error_) ||
      !wire_up.collect(addresses, error_)) {
    return false;
  }
  Status status = fabric_->start_connecting(addresses, error_);
  while (status == Status::kOk) {
    status = fabric_->go_on_connecting(error_);
    if (status == Status::kOk) break;
    if (status == Status::kBusy) status = Status::kOk;
    sched_yield();
  }
  if (status == Status::kOk) status = bridge_->prepare();
  if (status == Status::kOk) return true;
  error_ = "cannot connect to the neighbours: " +
           (error_.empty() ? std::string(status_name(status)) : error_);
  return false;
}

}  // namespace espalier::gateway
