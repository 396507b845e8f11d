// The functions of espalier_node.h: the programs of an image, a machine and an endpoint in the
// caller's memory. Freestanding.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "espalier/collectives/machine/machine.h"
#include "espalier/espalier_node.h"
#include "espalier/hal/serial/carrier.h"
#include "firmware/image/load_all.h"
#include "hal/serial/wired_endpoint.h"

namespace espalier::embedded {

// The numbers of espalier_types.h are those of the C++ enumerations, which are append-only as well.
static_assert(static_cast<int>(Type::kCustom) == ESPALIER_CUSTOM_TYPE);
static_assert(static_cast<int>(Op::kCustom) == ESPALIER_CUSTOM_OP);
static_assert(static_cast<int>(Collective::kBarrier) == ESPALIER_BARRIER);
static_assert(static_cast<int>(Status::kBadSignature) == ESPALIER_BAD_SIGNATURE);
static_assert(kAnyNode == ESPALIER_ANY_NODE);

constexpr std::uint32_t kMaxMtu = 65532;

class CallerClock final : public Clock {
 public:
  explicit CallerClock(const espalier_node_config& config) : config_(&config) {}
  [[nodiscard]] std::uint64_t now() override { return config_->now(config_->context); }

 private:
  const espalier_node_config* config_;
};

// The caller's carrier of one link.
class CallerCarrier final : public Carrier {
 public:
  CallerCarrier(const espalier_node_config& config, std::uint32_t link)
      : config_(&config), link_(link) {}
  [[nodiscard]] std::uint32_t mtu() const override { return config_->mtu; }
  [[nodiscard]] Status send(const std::uint8_t* frame, std::uint32_t size) override {
    const int status = config_->send(config_->context, link_, frame, size);
    return status == ESPALIER_TRY_AGAIN ? Status::kTryAgain : Status::kOk;
  }
  [[nodiscard]] std::uint32_t receive(std::uint8_t* frame) override {
    return config_->receive(config_->context, link_, frame);
  }

 private:
  const espalier_node_config* config_;
  std::uint32_t link_;
};

// Cuts the caller's memory into arrays. Without memory it only counts.
class Room {
 public:
  explicit Room(std::uint8_t* memory) : memory_(memory) {}
  // Returns raw memory for `count` objects of type T.
  template <typename T>
  [[nodiscard]] T* take(std::size_t count) {
    static_assert(alignof(T) <= kAlignment);
    std::uint8_t* const begin = memory_ == nullptr ? nullptr : memory_ + bytes_;
    bytes_ += (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    return reinterpret_cast<T*>(begin);
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  static constexpr std::size_t kAlignment = 8;

 private:
  std::uint8_t* memory_;
  std::size_t bytes_ = 0;
};

// A node's memory.
struct Parts {
  Parts(Room& room, const Image& image, const espalier_node_config& config);
  espalier_node* node;
  NodePrograms loaded;
  CallerCarrier* carriers;
  SerialWire* wires;
  std::uint8_t* frames;
};

// The carrier over the caller's bytes.
struct ByteWire {
  class Stream final : public ByteStream {
   public:
    explicit Stream(espalier_bytes& bytes) : bytes_(&bytes) {}
    [[nodiscard]] bool put(std::uint8_t byte) override {
      return bytes_->put(bytes_->device, byte) != 0;
    }
    [[nodiscard]] bool get(std::uint8_t& byte) override {
      return bytes_->get(bytes_->device, &byte) != 0;
    }

   private:
    espalier_bytes* bytes_;
  };
  ByteWire(espalier_bytes& bytes, std::uint32_t mtu) : stream(bytes), carrier(stream, mtu) {}
  Stream stream;
  ByteCarrier carrier;
};
static_assert(sizeof(ByteWire) <= sizeof espalier_bytes::carrier);

namespace {

// Bytes of a link's frames: one that arrives, and one that leaves.
std::size_t frame_bytes(const espalier_node_config& config) { return std::size_t{2} * config.mtu; }

bool is_complete(const espalier_node_config& config) {
  return config.image != nullptr && config.board != nullptr && config.send != nullptr &&
         config.receive != nullptr && config.now != nullptr &&
         (config.verify == nullptr) == (config.public_key == nullptr) &&
         config.mtu >= serial::kMinMtu && config.mtu <= kMaxMtu && config.mtu % 4 == 0 &&
         config.session != 0 && config.frames_in_flight >= 1 && config.frames_in_flight <= 255;
}

Status check(const espalier_node_config& config, Image& image) {
  if (!is_complete(config)) return Status::kBadArgument;
  const Authority authority{config.verify, config.public_key};
  Expectation expectation;
  expectation.board = config.board;
  expectation.node = config.node;
  expectation.counter = config.security_counter;
  expectation.authority = &authority;
  const Status status = check_image(static_cast<const std::uint8_t*>(config.image),
                                    config.image_bytes, expectation, image);
  if (status != Status::kOk) return status;
  return image.links == 0 ? Status::kNoSuchPeer : Status::kOk;
}

// The caller's memory may hold any number, which is not a value of the enumeration then.
template <typename Enumeration>
std::uint32_t number_of(const Enumeration& value) {
  static_assert(sizeof value <= sizeof(std::uint32_t));
  std::uint32_t number = 0;
  std::memcpy(&number, &value, sizeof value);
  return number;
}

Operator operator_of(const espalier_node_call& call) {
  constexpr std::uint32_t kUnknown = 255;
  Operator op;
  op.op = static_cast<Op>(std::min(number_of(call.op), kUnknown));
  op.type = static_cast<Type>(std::min(number_of(call.type), kUnknown));
  op.commutes = call.commutes != 0;
  op.element_bytes = call.element_bytes;
  op.custom_id = call.custom_id;
  op.custom = call.combine;
  op.context = call.context;
  return op;
}

Buffers buffers_of(const espalier_node_call& call) {
  Buffers buffers;
  buffers.input = number_of(call.collective) == ESPALIER_BROADCAST ? call.receive : call.send;
  buffers.output = call.receive;
  buffers.scratch = call.scratch;
  buffers.scratch_bytes = call.scratch_bytes;
  return buffers;
}

}  // namespace
}  // namespace espalier::embedded

// The programs follow in the caller's memory, then the links.
struct espalier_node : espalier::NodePrograms {
  espalier_node(const espalier_node_config& given, const espalier::Image& checked,
                const espalier::embedded::Parts& parts)
      : NodePrograms(parts.loaded),
        config(given),
        caller_clock(config),
        clock(caller_clock),
        image(checked),
        endpoint(clock, parts.wires, checked.links, checked.node) {}

  [[nodiscard]] espalier::Status find(const espalier_node_call& call, const espalier::Operator& op,
                                      const espalier::DecodedProgram*& program) const;

  espalier_node_config config;
  espalier::embedded::CallerClock caller_clock;
  espalier::WiredClock clock;
  espalier::Image image;
  espalier::WiredEndpoint endpoint;
  espalier::Machine machine{};
};

// Finds the program that serves the call, whose operator is `op`.
espalier::Status espalier_node::find(const espalier_node_call& call, const espalier::Operator& op,
                                     const espalier::DecodedProgram*& program) const {
  using namespace espalier;
  CallByRoot wanted;
  wanted.commutes = commutes(op);
#if ESPALIER_MAX_SELECTIONS > 0
  wanted.counts = call.count;
  wanted.element_bytes = element_bytes(op);
#endif
  wanted.collective = embedded::number_of(call.collective);
  wanted.root = call.root;
  return find_program(*this, wanted, program);
}

namespace espalier::embedded {

Parts::Parts(Room& room, const Image& image, const espalier_node_config& config)
    : node(room.take<espalier_node>(1)),
      loaded{.programs = room.take<DecodedProgram>(image.programs)},
      carriers(room.take<CallerCarrier>(image.links)),
      wires(room.take<SerialWire>(image.links)),
      frames(room.take<std::uint8_t>(image.links * frame_bytes(config))) {
#if ESPALIER_MAX_SELECTIONS > 0
  loaded.selections = room.take<NodeSelection>(image.selections);
#endif
}

namespace {

// Decodes everything that the image has for this node.
Status load(const Image& image, Parts& parts) {
  NodePrograms& loaded = parts.loaded;
  for (std::uint32_t i = 0; i < image.programs; ++i) new (&loaded.programs[i]) DecodedProgram;
#if ESPALIER_MAX_SELECTIONS > 0
  for (std::uint32_t i = 0; i < image.selections; ++i) new (&loaded.selections[i]) NodeSelection;
#endif
  return load_all(image, loaded);
}

void connect(espalier_node& node, const Parts& parts) {
  const espalier_node_config& config = node.config;
  SerialConfig links;
  links.session = config.session;
  SerialPortConfig port;
  port.resend_ns = config.resend_ns;
  port.frames_in_flight = config.frames_in_flight;
  for (std::uint32_t link = 0; link < node.image.links; ++link) {
    CallerCarrier& carrier = *new (&parts.carriers[link]) CallerCarrier(config, link);
    new (&parts.wires[link])
        SerialWire(carrier, node.clock, parts.frames + link * frame_bytes(config), node.image.node,
                   node.image.link(link).peer, port, links);
  }
}

Status make(const espalier_node_config& config, void* memory, std::size_t bytes,
            espalier_node*& made) {
  if (memory == nullptr || reinterpret_cast<std::uintptr_t>(memory) % Room::kAlignment != 0) {
    return Status::kBadArgument;
  }
  Image image;
  Status status = check(config, image);
  if (status != Status::kOk) return status;
  Room room(static_cast<std::uint8_t*>(memory));
  Parts parts(room, image, config);
  if (room.bytes() > bytes) return Status::kTooLarge;
  status = load(image, parts);
  if (status != Status::kOk) return status;
  espalier_node& node = *new (parts.node) espalier_node(config, image, parts);
  connect(node, parts);
  MachineConfig machine;
  if (config.window != 0) machine.window = config.window;
  machine.deadline_ns = config.deadline_ns;
  machine.check_blocks = config.check_blocks != 0;
  status = node.machine.init(node.endpoint, machine);
  if (status == Status::kOk) made = &node;
  return status;
}

ByteCarrier& carrier_of(espalier_bytes& bytes) {
  return std::launder(reinterpret_cast<ByteWire*>(bytes.carrier))->carrier;
}

}  // namespace
}  // namespace espalier::embedded

using namespace espalier;

bool espalier_node_ed25519(const uint8_t* signature, const uint8_t* bytes, size_t size,
                           const uint8_t* key) {
  return ed25519_authority(key).verify(signature, bytes, size, key);
}

size_t espalier_node_bytes(const espalier_node_config* config) {
  Image image;
  if (config == nullptr || embedded::check(*config, image) != Status::kOk) return 0;
  embedded::Room room(nullptr);
  static_cast<void>(embedded::Parts(room, image, *config));
  return room.bytes();
}

int espalier_node_init(const espalier_node_config* config, void* memory, size_t bytes,
                       espalier_node** node) {
  if (node == nullptr) return ESPALIER_BAD_ARGUMENT;
  *node = nullptr;
  if (config == nullptr) return ESPALIER_BAD_ARGUMENT;
  return static_cast<int>(embedded::make(*config, memory, bytes, *node));
}

uint32_t espalier_node_rank(const espalier_node* node) { return node->image.node; }
uint32_t espalier_node_size(const espalier_node* node) { return node->programs[0].ranks; }
uint32_t espalier_node_links(const espalier_node* node) { return node->image.links; }
uint32_t espalier_node_peer(const espalier_node* node, uint32_t link) {
  return node->endpoint.peer(link);
}

uint64_t espalier_node_scratch_bytes(const espalier_node* node, const espalier_node_call* call) {
  const Operator op = embedded::operator_of(*call);
  const DecodedProgram* program = nullptr;
  Layout layout;
  if (node->find(*call, op, program) != Status::kOk ||
      make_layout(*program, call->count, element_bytes(op), layout) != Status::kOk) {
    return 0;
  }
  return scratch_needed(*program, layout);
}

int espalier_node_start(espalier_node* node, const espalier_node_call* call) {
  Status status = node->machine.cause().status;
  const Operator op = embedded::operator_of(*call);
  const DecodedProgram* program = nullptr;
  if (status == Status::kOk) status = node->find(*call, op, program);
  if (status == Status::kOk) {
    status = node->machine.start(*program, embedded::buffers_of(*call), op, call->count);
  }
  return static_cast<int>(status);
}

int espalier_node_poll(espalier_node* node) { return static_cast<int>(node->machine.poll()); }

uint64_t espalier_node_next_deadline(espalier_node* node) {
  return node->endpoint.due(node->machine.next_deadline());
}

espalier_node_cause espalier_node_cause_of(const espalier_node* node) {
  const Cause& cause = node->machine.cause();
  const StallReport stall = node->machine.stall_report();
  espalier_node_cause report;
  report.status = static_cast<int>(cause.status);
  report.detector = cause.detector;
  report.peer = cause.peer;
  report.step = stall.step;
  report.link = stall.waiting ? stall.link : ESPALIER_NO_LINK;
  report.awaited = stall.peer;
  report.sending = stall.sending;
  report.since_ns = stall.since_ns;
  return report;
}

const char* espalier_status_name(int status) { return status_name(static_cast<Status>(status)); }

void espalier_bytes_init(espalier_bytes* bytes, int (*put)(void* device, uint8_t byte),
                         int (*get)(void* device, uint8_t* byte), void* device, uint32_t mtu) {
  bytes->put = put;
  bytes->get = get;
  bytes->device = device;
  new (bytes->carrier) embedded::ByteWire(*bytes, mtu);
}

int espalier_bytes_send(espalier_bytes* bytes, const uint8_t* frame, uint32_t size) {
  return static_cast<int>(embedded::carrier_of(*bytes).send(frame, size));
}

uint32_t espalier_bytes_receive(espalier_bytes* bytes, uint8_t* frame) {
  return embedded::carrier_of(*bytes).receive(frame);
}
