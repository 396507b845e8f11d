#pragma once
// Four bare-metal nodes in one program, each with its flash, boot, server and gateway. Carriers in
// memory join them, which lose some frames and repeat others. For tests that run on boards and on
// Linux.

#include <cstring>

#include "base/crc32.h"
#include "base/splitmix64.h"
#include "espalier/hal/serial/serial_endpoint.h"
#include "espalier/internal/base/little_endian.h"
#include "firmware/bare/server.h"
#include "tests/bare/check.h"
#include "tests/bare/memory_flash.h"

namespace espalier::bare_nodes {

inline constexpr std::uint32_t kNodes = 4, kMtu = 1498;
inline constexpr std::uint32_t kRoom = 24576, kScratchRoom = 98304, kEventsRoom = 1024;

struct ImageBytes {
  const std::uint8_t* bytes;
  std::uint32_t size;
};
// What the nodes boot: kNodes images, and the public key of their signer. Set before any node is
// made.
inline const ImageBytes* images = nullptr;
inline const std::uint8_t* signer = nullptr;

// Each read of the clock takes a microsecond.
class StepClock final : public Clock {
 public:
  std::uint64_t now() override { return at_ += 1000; }

 private:
  std::uint64_t at_ = 0;
};

// Frames on their way to one end.
class Inbox {
 public:
  bool push(const std::uint8_t* frame, std::uint32_t size) {
    if (end_ - first_ == kSlots) return false;
    std::memcpy(frames_[end_ % kSlots], frame, size);
    sizes_[end_ % kSlots] = size;
    ++end_;
    return true;
  }
  std::uint32_t pop(std::uint8_t* frame) {
    if (first_ == end_) return 0;
    const std::uint32_t size = sizes_[first_ % kSlots];
    std::memcpy(frame, frames_[first_ % kSlots], size);
    ++first_;
    return size;
  }

 private:
  static constexpr std::uint32_t kSlots = 8;
  std::uint8_t frames_[kSlots][kMtu] = {};
  std::uint32_t sizes_[kSlots] = {};
  std::uint32_t first_ = 0, end_ = 0;
};

class BareNode;
inline BareNode* nodes = nullptr;  // kNodes of them

// A node's carrier: frames of the agent go to the node's gateway, others to the node at the end of
// their channel.
class NodeCarrier final : public Carrier {
 public:
  explicit NodeCarrier(std::uint32_t node) : node_(node) {}
  std::uint32_t mtu() const override { return kMtu; }
  Status send(const std::uint8_t* frame, std::uint32_t size) override;
  std::uint32_t receive(std::uint8_t* frame) override { return inbox.pop(frame); }
  Inbox inbox;

 private:
  std::uint32_t node_;
  std::uint32_t sent_ = 0;
};

class GatewayCarrier final : public Carrier {
 public:
  explicit GatewayCarrier(Inbox& node) : node_(node) {}
  std::uint32_t mtu() const override { return kMtu; }
  Status send(const std::uint8_t* frame, std::uint32_t size) override {
    return node_.push(frame, size) ? Status::kOk : Status::kTryAgain;
  }
  std::uint32_t receive(std::uint8_t* frame) override { return inbox.pop(frame); }
  Inbox inbox;

 private:
  Inbox& node_;
};

inline SerialConfig config_of(std::uint32_t session, std::uint32_t channel, std::uint32_t window) {
  return SerialConfig{
      .session = session, .first_channel = static_cast<std::uint8_t>(channel), .window = window};
}

// A board with its gateway.
class BareNode {
 public:
  explicit BareNode(std::uint32_t node)
      : slots_(flash_, whole_flash(flash_)),
        booted(programs_),
        carrier(node),
        gateway_carrier(carrier.inbox),
        port_(carrier, clock_, frames_, {}),
        gateway_port_(gateway_carrier, clock_, gateway_frames_, {}),
        links_(port_, links_memory_, boot(node), kNodes - 1, node,
               config_of(node + 1, 0, kSerialWindow)),
        agent_(port_, agent_memory_, &agent::kGateway, 1, node,
               config_of(node + 1, agent::kChannel, agent::kWindow)),
        gateway_(gateway_port_, gateway_memory_, &booted.image.node, 1, agent::kGateway,
                 config_of(node + 100, agent::kChannel, agent::kWindow)),
        server_(agent_, &links_, slots_, booted, rooms()) {
    server_.begin();
  }
  BareNode(const BareNode&) = delete;
  BareNode& operator=(const BareNode&) = delete;

  void step() {
    CHECK(server_.step());
    Completion completion;
    while (gateway_.poll(completion)) {
      CHECK_EQ(completion.status, Status::kOk);
      if (completion.kind == Completion::Kind::kSent) ++sent_;
      if (completion.kind == Completion::Kind::kReceived) ++received_;
    }
  }
  // send() and receive() post a message and wait until it completes.
  void send(const void* bytes, std::uint32_t size, std::uint64_t tag) {
    SendPost post{.bytes = bytes, .size = size, .tag = tag};
    CHECK_EQ(gateway_.post_send(0, post), Status::kOk);
    await(sent_);
  }
  void receive(void* bytes, std::uint32_t size, std::uint64_t tag) {
    ReceivePost post{.bytes = bytes, .size = size, .tag = tag};
    CHECK_EQ(gateway_.post_receive(0, post), Status::kOk);
    await(received_);
  }
  template <typename T>
  void send_packet(const T& order) {
    agent::Packet packet;
    std::memcpy(packet.bytes, &order, sizeof order);
    send(&packet, sizeof packet, agent::kPacketTag);
  }
  agent::Packet receive_packet() {
    agent::Packet packet;
    receive(&packet, sizeof packet, agent::kPacketTag);
    return packet;
  }
  void send_data(const std::uint8_t* bytes, std::uint32_t size) {
    for (std::uint32_t i = 0; i < size; i += agent::kPieceBytes) {
      const std::uint32_t part = size - i < agent::kPieceBytes ? size - i : agent::kPieceBytes;
      send(bytes + i, part, agent::kDataTag);
    }
  }
  void receive_data(std::uint8_t* bytes, std::uint32_t size) {
    for (std::uint32_t i = 0; i < size; i += agent::kPieceBytes) {
      const std::uint32_t part = size - i < agent::kPieceBytes ? size - i : agent::kPieceBytes;
      receive(bytes + i, part, agent::kDataTag);
    }
  }
  Slots& slots() { return slots_; }

 private:
  // Installs and boots the node's image; returns the node's peers.
  const std::uint32_t* boot(std::uint32_t node) {
    authority_ = ed25519_authority(signer);
    Expectation expected{.board = "mps2-an385", .node = node, .authority = &authority_};
    const Acceptance loads{accept_loaded, static_cast<NodePrograms*>(&booted)};
    CHECK_EQ(slots_.begin(images[node].size), Status::kOk);
    CHECK_EQ(slots_.append(images[node].bytes, images[node].size), Status::kOk);
    CHECK_EQ(slots_.finish(expected, loads), Status::kOk);
    booted.status = slots_.boot(expected, loads, booted.image, booted.report);
    CHECK(booted.status == Status::kOk && booted.report.trial);
    for (std::uint32_t link = 0; link < booted.image.links; ++link) {
      peers_[link] = booted.image.link(link).peer;
    }
    return peers_;
  }
  bare::Rooms rooms() {
    bare::Rooms made{.input = input_, .output = output_, .scratch = scratch_, .events = events_};
    made.input_bytes = made.output_bytes = kRoom;
    made.scratch_bytes = kScratchRoom;
    made.events_count = kEventsRoom;
    return made;
  }
  void await(std::uint32_t& counter);

  MemoryFlash flash_;
  Slots slots_;
  DecodedProgram programs_[kMaxPrograms] = {};
  Authority authority_;

 public:
  bare::Booted booted;
  NodeCarrier carrier;
  GatewayCarrier gateway_carrier;

 private:
  StepClock clock_;
  alignas(4) std::uint8_t frames_[2 * kMtu] = {};
  alignas(4) std::uint8_t gateway_frames_[2 * kMtu] = {};
  std::uint32_t peers_[kNodes] = {};
  SerialLink links_memory_[kNodes - 1] = {};
  SerialLink agent_memory_[1] = {};
  SerialLink gateway_memory_[1] = {};
  alignas(16) std::uint8_t input_[kRoom] = {};
  alignas(16) std::uint8_t output_[kRoom] = {};
  alignas(16) std::uint8_t scratch_[kScratchRoom] = {};
  Event events_[kEventsRoom];
  SerialPort port_, gateway_port_;
  SerialEndpoint links_, agent_, gateway_;
  bare::Server server_;
  std::uint32_t sent_ = 0, received_ = 0;
};

inline Status NodeCarrier::send(const std::uint8_t* frame, std::uint32_t size) {
  const std::uint32_t channel = serial::get<serial::header::kChannel>(frame);
  ++sent_;
  if (sent_ % 29 == 0) return Status::kOk;  // lost
  if (channel == agent::kChannel) {
    return nodes[node_].gateway_carrier.inbox.push(frame, size) ? Status::kOk : Status::kTryAgain;
  }
  const std::uint32_t peer = nodes[node_].booted.image.link(channel).peer;
  BareNode& other = nodes[peer];
  std::uint32_t back = 0;
  while (other.booted.image.link(back).peer != node_) ++back;
  std::uint8_t changed[kMtu];
  std::memcpy(changed, frame, size);
  serial::set<serial::header::kChannel>(changed, back);
  const std::uint32_t covered = size - serial::kCrcBytes;
  store_u32(changed + covered, crc32(0, changed, covered));
  const bool taken = other.carrier.inbox.push(changed, size);
  if (taken && sent_ % 31 == 0) (void)other.carrier.inbox.push(changed, size);  // repeated
  return taken ? Status::kOk : Status::kTryAgain;
}

inline void step_all() {
  for (std::uint32_t v = 0; v < kNodes; ++v) nodes[v].step();
}

inline void BareNode::await(std::uint32_t& counter) {
  static bool stuck = false;  // nothing more will arrive
  const std::uint32_t before = counter;
  for (std::uint32_t steps = 0; counter == before && !stuck; ++steps) {
    step_all();
    if (steps == 300'000) stuck = !CHECK(steps < 300'000);
  }
}

inline std::uint64_t noise(std::uint32_t rank, std::uint64_t at) {
  return splitmix64(at ^ std::uint64_t{rank} << 48);
}

// The input that `espalier simulate` gives to `rank`: bytes without a pattern, or small numbers for
// sums.
inline void fill_input(std::uint32_t rank, bool numbers, std::uint8_t* bytes, std::uint32_t size) {
  for (std::uint32_t i = 0; i < size; i += 8) {
    std::uint64_t word = noise(rank, i);
    if (numbers) {
      float pair[2];
      for (std::uint32_t k = 0; k < 2; ++k) {
        const auto small = static_cast<std::int32_t>((noise(rank, i / 4 + k) >> 20) % 1009);
        pair[k] = static_cast<float>(small - 504);
      }
      std::memcpy(&word, pair, 8);
    }
    std::memcpy(bytes + i, &word, 8);
  }
}

inline std::uint32_t bytes_of(Extent extent, std::uint32_t own, std::uint32_t whole) {
  return extent == Extent::kWhole ? whole : extent == Extent::kOwn ? own : 0;
}

inline void configure(std::uint32_t v) {
  agent::Configure order{.deadline_ns = 60'000'000'000, .check_blocks = 1, .log = 1};
  nodes[v].send_packet(order);
  const agent::Answer answer = nodes[v].receive_packet().answer;
  CHECK(answer.to == agent::Kind::kConfigure && answer.status == Status::kOk);
}

}  // namespace espalier::bare_nodes
