// The gateway's start: boots the board and connects it to its neighbours.

#include <fcntl.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <random>

#include "base/counted.h"
#include "base/digest.h"
#include "base/one_line.h"
#include "base/try.h"
#include "firmware/gateway/gateway.h"
#include "firmware/node/lane_addresses.h"
#include "firmware/node/wire_up.h"
#include "firmware/update/release.h"
#include "hal/serial/host/link_key.h"

namespace espalier::gateway {
namespace {

constexpr std::uint64_t kBootPatience = 30 * kSecond;
constexpr std::uint64_t kAnswerPatience = 10 * kSecond;
constexpr std::uint32_t kUpdatePieceBytes = 4096;  // of each image
// What a Hello may claim. A board has far less memory.
constexpr std::uint32_t kMaxRoomBytes = 1u << 28;    // of an input, an output or a scratch
constexpr std::uint32_t kMaxRoomEvents = 1u << 24;   // records of a log
constexpr std::uint64_t kMaxBufferBytes = 1u << 30;  // of a bridge

SerialPortConfig port_config(const HostCarrier& carrier) {
  return {.resend_ns = carrier.resend_ns()};
}

std::uint32_t new_session() { return std::random_device{}() | 1; }

std::string release_text(std::uint32_t release) {
  return std::to_string(release >> 24) + "." + std::to_string(release >> 16 & 0xff) + "." +
         std::to_string(release & 0xffff);
}

std::string slot_text(const agent::Hello& hello, std::uint32_t slot) {
  const agent::Slot& entry = hello.slots[slot];
  std::string text = "slot " + std::to_string(slot) + ": ";
  if (entry.looked_at == 0) return text + "older";
  text += status_name(entry.status);
  if (entry.status == Status::kOk) return text;
  text += " (status " + std::to_string(static_cast<int>(entry.status)) + ")";
  const char* place =
      hello.own_counter != 0 ? "board's own counter" : "counter in the board's flash";
  if (entry.status == Status::kRolledBack) {
    text += ": its security counter " + std::to_string(hello.slot_counters[slot]) + " is below " +
            std::to_string(hello.stored_counter) + ", the " + place;
  } else if (hello.counter_status != Status::kOk) {
    text += std::string(": the ") + place + " cannot be read";
  }
  return text;
}

std::uint32_t largest_room(const agent::Hello& hello) {
  return std::max<std::uint32_t>({hello.input_room, hello.output_room, hello.scratch_room});
}

std::uint64_t buffer_bytes(const agent::Hello& hello) {
  return (1u + hello.further_generations) *
         Bridge::buffer_bytes(hello.links, std::min<std::uint32_t>(hello.window, kSerialWindow),
                              largest_room(hello));
}

// Returns what a Hello says about the size of the buffers, for errors.
std::string sizes_text(const agent::Hello& hello) {
  return "its Hello has room for " + counted(largest_room(hello), "byte") + " and " +
         counted(hello.links, "link") + " with a window of " + std::to_string(hello.window);
}

// Checks each number of a Hello that the gateway computes with. A board may be hostile.
Result<void> check_numbers(const agent::Hello& hello) {
  const bool boots = hello.boot == Status::kOk;
  const struct {
    const char* field;
    std::uint32_t value, least, most;
  } rows[] = {
      {"slot", hello.slot, 0, 1},
      {"nodes", hello.nodes, boots ? 1u : 0u, kMaxNodes},
      {"links", hello.links, 0, boots ? kMaxLinks : 0},
      {"programs", hello.programs, 0, boots ? kMaxPrograms : 0},
      {"further_generations", hello.further_generations, 0,
       std::max(1u, agent::kChannel / std::max<std::uint32_t>(1, hello.links)) - 1},
      {"window", hello.window, 1, kMaxFieldWindow},
      {"input_room", hello.input_room, 0, kMaxRoomBytes},
      {"output_room", hello.output_room, 0, kMaxRoomBytes},
      {"scratch_room", hello.scratch_room, 0, kMaxRoomBytes},
      {"events_room", hello.events_room, 0, kMaxRoomEvents},
  };
  for (const auto& row : rows) {
    if (row.value >= row.least && row.value <= row.most) continue;
    return fail("its Hello has " + std::string(row.field) + " " + std::to_string(row.value) +
                "; expected " + std::to_string(row.least) + " to " + std::to_string(row.most));
  }
  if (boots && hello.node >= hello.nodes) {
    return fail("its Hello has node " + std::to_string(hello.node) + " of " +
                counted(hello.nodes, "node") + "; expected a node of the schedule");
  }
  const std::uint64_t bytes = buffer_bytes(hello);
  if (bytes <= kMaxBufferBytes) return {};
  return fail(sizes_text(hello) + "; the gateway would need " + std::to_string(bytes) +
              " bytes of buffers, expected at most " + std::to_string(kMaxBufferBytes));
}

}  // namespace

std::string Gateway::board() const {
  return "its board" + (board_name_.empty() ? "" : " " + board_name_) + " at " + options_.device;
}

// Returns what is known about the first frame of the agent's channel that was dropped.
std::string Gateway::rejection(const Conversation& agent) const {
  return rejection_text(agent.rejections(), "the gateway", "the agent's channel to " + board());
}

void Gateway::report_rejections() {
  if (!reported_agent_ && agent_->rejections().frames != 0) {
    reported_agent_ = true;
    std::fprintf(stderr, "espalier-gateway: %s\n", rejection(*agent_).c_str());
  }
  for (const Generation& each : generations_) {
    const SerialRejections& rejections = each.bridge->rejections();
    if (reported_links_ || rejections.frames == 0) continue;
    reported_links_ = true;
    const std::string name = "link " + std::to_string(rejections.link) + " (to node " +
                             std::to_string(board_links_[rejections.link].peer) + ") of " + board();
    std::fprintf(stderr, "espalier-gateway: %s\n",
                 rejection_text(rejections, "the gateway", name).c_str());
  }
}

Result<void> Gateway::start_board() {
  if (!options_.node.schedules.empty()) {
    programs_ = std::make_unique<node::Programs>();
    ESPALIER_TRY(node::load_programs(options_.node, options_.node.nodes.front(), *programs_));
  }
  if (!options_.link_key.empty()) {
    ESPALIER_TRY_TO(link_key_, read_link_key(options_.link_key));
  }
  ESPALIER_TRY_TO(carrier_, open_carrier(options_.device));
  clock_.add(*carrier_);
  frames_.resize((2 * carrier_->mtu() + 3) / 4);
  port_ = std::make_unique<SerialPort>(
      *carrier_, clock_, reinterpret_cast<std::uint8_t*>(frames_.data()), port_config(*carrier_));
  agent_ = std::make_unique<Conversation>(*port_, new_session(), link_key(), new_session());
  if (options_.start.empty()) return {};
  return child_.start(options_.start, options_.console);
}

Result<void> Gateway::await(Conversation::Event expected, std::uint64_t patience_ns,
                            const std::string& what) {
  board_progress_ns_ = clock_.now();
  while (true) {
    const Conversation::Event event = pump();
    if (event == expected) return {};
    ESPALIER_TRY(check_works());
    if (event != Conversation::Event::kNothing) {
      return fail_board("it sent another message; expected " + what);
    }
    ESPALIER_TRY(check_progress(patience_ns, what));
    clock_.wait(clock_.now() + 1'000'000);
  }
}

Result<void> Gateway::receive_hello() {
  const std::uint64_t until = clock_.now() + kBootPatience;
  // A board that has a session with another gateway restarts when this one's first frame arrives.
  while (true) {
    const Conversation::Event event = pump();
    ESPALIER_TRY(check_works());
    const bool hello =
        event == Conversation::Event::kPacket && agent_->packet().kind == agent::Kind::kHello;
    if (hello) break;
    if (event == Conversation::Event::kPacket || event == Conversation::Event::kViolation) {
      return fail_board(
          "it does not follow the agent's protocol of this release; install the same release on "
          "both");
    }
    if (clock_.now() > until) {
      return fail_board("it was silent for " + std::to_string(kBootPatience / kSecond) +
                        " s; expected that it boots and sends Hello" +
                        (agent_->rejections().frames == 0 ? "" : "; " + rejection(*agent_)));
    }
    clock_.wait(clock_.now() + 1'000'000);
  }
  hello_ = agent_->packet().hello;
  hello_.board[sizeof hello_.board - 1] = '\0';
  board_name_ = one_line(hello_.board);
  record_.name_board(board_name_ + " at " + options_.device);
  if (hello_.version != agent::kVersion) {
    return fail_board("it uses version " + std::to_string(hello_.version) +
                      " of the agent's protocol, the gateway version " +
                      std::to_string(agent::kVersion) + "; install the same release on both");
  }
  if (auto sound = check_numbers(hello_); !sound) return fail_board(sound.error().message);
  return receive_tables();
}

Result<void> Gateway::receive_tables() {
  board_links_.resize(hello_.links);
  board_programs_.resize(hello_.programs);
  const std::size_t links = board_links_.size() * sizeof(agent::LinkEntry);
  const std::size_t programs = board_programs_.size() * sizeof(agent::ProgramEntry);
  std::vector<std::uint8_t> tables(links + programs);
  if (tables.empty()) return {};
  agent_->expect(tables);
  ESPALIER_TRY(
      await(Conversation::Event::kData, kAnswerPatience, "its tables of links and programs"));
  if (links != 0) std::memcpy(board_links_.data(), tables.data(), links);
  if (programs != 0) std::memcpy(board_programs_.data(), tables.data() + links, programs);
  return check_links();
}

// Each link leads to another node of the schedule, and no two to the same.
Result<void> Gateway::check_links() {
  for (std::size_t i = 0; i < board_links_.size(); ++i) {
    const std::uint32_t peer = board_links_[i].peer;
    const bool is_repeated =
        std::any_of(board_links_.begin(), board_links_.begin() + static_cast<std::ptrdiff_t>(i),
                    [peer](const agent::LinkEntry& link) { return link.peer == peer; });
    if (peer < hello_.nodes && peer != hello_.node && !is_repeated) continue;
    return fail_board("its link " + std::to_string(i) + " leads to node " + std::to_string(peer) +
                      "; expected another node for each link, of nodes 0 to " +
                      std::to_string(hello_.nodes - 1) + " without its own, " +
                      std::to_string(hello_.node));
  }
  return {};
}

Result<void> Gateway::check_hello() {
  const std::string slots = slot_text(hello_, 0) + "; " + slot_text(hello_, 1);
  if (hello_.boot != Status::kOk) {
    return fail_board("no image boots; " + slots + "; install an image for it");
  }
  std::fprintf(stderr, "espalier-gateway: node %u: board %s boots slot %u, release %s%s; %s\n",
               std::uint32_t{hello_.node}, board_name_.c_str(), std::uint32_t{hello_.slot},
               release_text(hello_.release).c_str(), hello_.trial != 0 ? " (its first run)" : "",
               slots.c_str());
  const std::uint32_t node = options_.node.nodes.front();
  if (hello_.node != node) {
    return fail_board("its image is for node " + std::to_string(hello_.node) +
                      ", expected one for " + std::to_string(node));
  }
  const std::string& topology = options_.node.topology;
  if (!topology.empty() &&
      digest_bytes(kDigestSeed, topology.data(), topology.size()) != hello_.topology_digest) {
    return fail_board("its image is for another topology, expected one for " + topology);
  }
  for (std::uint32_t i = 0; programs_ != nullptr && i < programs_->count; ++i) {
    const std::uint64_t digest = programs_->programs[i].schedule_digest;
    bool has_program = false;
    for (const agent::ProgramEntry& entry : board_programs_) {
      has_program = has_program || entry.schedule == digest;
    }
    if (has_program) continue;
    char text[64];
    std::snprintf(text, sizeof text, "%016" PRIx64, digest);
    return fail_board("none of its " + counted(hello_.programs, "program") + " is of schedule " +
                      text + " (" + programs_->programs[i].algorithm +
                      "); build its image from that schedule");
  }
  return {};
}

// In an update: checks that the board takes part, and reads the new images if it has to send them.
Result<void> Gateway::read_release() {
  if (!options_.node.updates()) return {};
  if (hello_.updates == 0) {
    return fail_board(
        "its firmware takes no part in updates of all nodes; expected one that was built with "
        "updates in the limits of its description");
  }
  if (options_.node.update_origin != hello_.node) return {};
  const std::uint32_t room = hello_.input_room / hello_.nodes;
  const std::uint32_t unit = UpdateOrder::kPieceUnit;
  const std::uint32_t piece = std::min(kUpdatePieceBytes, room / unit * unit);
  if (piece < kImageHeaderBytes) {
    return fail_board("it has room for " + counted(hello_.input_room, "byte") +
                      " of input, too few to send images to " + counted(hello_.nodes, "node") +
                      "; expected another --from");
  }
  Expectation expectation{.board = hello_.board, .node = hello_.node};
  expectation.authority = &kTakesUnsigned;  // the board checks signatures
  ESPALIER_TRY_TO(release_, node::read_new_release(options_.node.new_images, hello_.nodes,
                                                   hello_.node, expectation, piece));
  piece_.resize(std::size_t{hello_.nodes} * piece);
  return {};
}

Result<void> Gateway::configure() {
  if (options_.node.updates()) return {};  // Update has the configuration
  if (options_.node.comes_back) {          // the launcher says when
    if (generations() > 1) return {};
    return fail_board("--comes-back: its image has no spares; expected one built with --spares");
  }
  send_configuration();
  ESPALIER_TRY(await(Conversation::Event::kPacket, kAnswerPatience, "its answer to Configure"));
  const agent::Answer& answer = agent_->packet().answer;
  if (answer.kind == agent::Kind::kAnswer && answer.status == Status::kOk) return {};
  return fail_board(std::string("it rejects this run's configuration: ") +
                    status_name(answer.status));
}

void Gateway::send_configuration() {
  agent_->send(agent::Configure{.window = options_.node.window,
                                .deadline_ns = options_.node.deadline_ns,
                                .check_blocks = options_.node.check_blocks,
                                .log = options_.node.log,
                                .spares = generations() > 1,
                                .comes_back = options_.node.comes_back});
}

// Opens an endpoint with the board's links that the programs of this run use. Hop by hop, the
// launcher's options list the links and their lanes.
Result<void> Gateway::open_fabric() {
  ofi::FixedConfig& config = fabric_config_;
  config.provider = options_.node.provider;
  config.local_address = options_.node.address;
  config.node = hello_.node;
  config.window = options_.node.window;
  config.authenticate_data = options_.node.authenticate_data;
  const std::vector<node::Link>* hop_by_hop =
      options_.node.links.empty() ? nullptr : &options_.node.links.front();
  Bridge::Shape shape;
  std::vector<std::uint32_t> needed;
  if (hop_by_hop != nullptr) {
    for (const node::Link& link : *hop_by_hop) needed.push_back(link.peer);
  } else if (programs_ != nullptr) {
    needed = programs_->peers;
  } else {
    for (const agent::LinkEntry& link : board_links_) needed.push_back(link.peer);
  }
  shape.fabric_links.assign(board_links_.size(), Bridge::kNone);
  shape.reports_unexpected.assign(board_links_.size(), true);
  for (std::uint32_t i = 0; i < needed.size(); ++i) {
    std::size_t link = 0;
    while (link < board_links_.size() && board_links_[link].peer != needed[i]) ++link;
    const bool has_link = link < board_links_.size();
    if (has_link) shape.fabric_links[link] = i;
    config.peers.push_back(needed[i]);
    if (hop_by_hop != nullptr) {  // a board has links only to neighbours that its programs use
      config.lanes.push_back({(*hop_by_hop)[i].out, (*hop_by_hop)[i].in});
      if (has_link) shape.reports_unexpected[link] = (*hop_by_hop)[i].in <= 1;
    } else if (!has_link) {
      return fail_board("it has no link to node " + std::to_string(needed[i]));
    }
  }
  if (hop_by_hop != nullptr) {
    auto addresses = node::lane_addresses(*hop_by_hop);
    has_bad_input_ = !addresses;
    if (!addresses) return fail(addresses.error());
    config.lane_addresses = *std::move(addresses);
  }
  shape.block_bytes = largest_room(hello_);
  shape.reports_link_down = options_.node.updates();
  shape.board = hello_.node;
  for (const agent::LinkEntry& link : board_links_) shape.peers.push_back(link.peer);
  ESPALIER_TRY(open_endpoints());
  fabrics_.take();
  while (generations_.size() < generations()) {
    ESPALIER_TRY(open_bridge(shape));
  }
  return {};
}

// Opens the endpoints of all generations.
Result<void> Gateway::open_endpoints() {
  const auto open = [this]() -> Result<std::shared_ptr<ofi::FixedLinks>> {
    auto opened = ofi::FixedLinks::open(fabric_config_);
    if (opened) return *std::move(opened);
    return fail("cannot open " + fabric_config_.provider + ": " + opened.error().message);
  };
  return fabrics_.open(open, generations());
}

// Opens the bridge of the next generation.
Result<void> Gateway::open_bridge(const Bridge::Shape& shape) {
  Generation next;
  const auto number = static_cast<std::uint32_t>(generations_.size());
  next.links = std::vector<SerialLink>(board_links_.size());
  SerialConfig serial{.session = new_session(),
                      .first_channel = static_cast<std::uint8_t>(number * board_links_.size()),
                      .window = std::min<std::uint32_t>(hello_.window, kSerialWindow),
                      .settles = true,
                      .key = link_key(),
                      .nonce = new_session()};
  next.bridge =
      std::make_unique<Bridge>(*port_, next.links.data(), fabrics_.links(number), shape, serial);
  generations_.push_back(std::move(next));
  if (generations_.back().bridge->has_memory()) return {};
  return fail_board(sizes_text(hello_) + "; no memory for " + std::to_string(buffer_bytes(hello_)) +
                    " bytes of buffers");
}

// Connects the newest endpoints.
Result<void> Gateway::connect() {
  node::ControlWireUp wire_up(channel(), child_.pid());
  wire_up.on_wait([this] { look_at_board(clock_.now()); });
  ReleaseDigest release(hello_.topology_digest, hello_.release, hello_.counter);
  for (const agent::ProgramEntry& program : board_programs_) release.add(program.schedule);
  wire_up.set_release(hello_.release, release.value());
  return node::connect(fabrics_, hello_.node, channel(), wire_up);
}

// Prepares the bridges of this generation and all later ones.
Result<void> Gateway::prepare_bridges(std::uint32_t first) {
  for (; first < generations_.size(); ++first) {
    const Status status = generations_[first].bridge->prepare();
    if (status == Status::kOk) continue;
    return fail(std::string("cannot connect to the neighbours: ") + status_name(status));
  }
  return {};
}

}  // namespace espalier::gateway
