#include "firmware/bare/node.h"

#include "espalier/hal/serial/serial_endpoint.h"
#include "espalier/internal/hal/serial/serial_port.h"
#include "firmware/bare/board.h"
#include "firmware/bare/boot.h"
#include "firmware/bare/server.h"
#include "firmware/bare/text.h"

#ifndef ESPALIER_ROOM_BYTES
#define ESPALIER_ROOM_BYTES 262144  // each for input, output and scratch of a collective
#endif
#ifndef ESPALIER_MAX_MTU
#define ESPALIER_MAX_MTU 1500  // longest frame of any carrier, bytes
#endif
#ifndef ESPALIER_ROOM_EVENTS
#define ESPALIER_ROOM_EVENTS 16384  // maximum number of records of a log
#endif

namespace espalier::bare {
namespace {

// Notes whether a frame arrived. Each of the two endpoints takes the frames of both, so a poll
// without a completion does not mean that the node is idle; a poll without a frame does.
class NotedCarrier final : public Carrier {
 public:
  explicit NotedCarrier(Carrier& carrier) : carrier_(carrier) {}
  std::uint32_t mtu() const override { return carrier_.mtu(); }
  Status send(const std::uint8_t* frame, std::uint32_t size) override {
    return carrier_.send(frame, size);
  }
  std::uint32_t receive(std::uint8_t* frame) override {
    const std::uint32_t size = carrier_.receive(frame);
    if (size != 0) received = true;
    return size;
  }
  bool down() const override { return carrier_.down(); }

  bool received = false;

 private:
  Carrier& carrier_;
};

alignas(16) std::uint8_t input_room[ESPALIER_ROOM_BYTES];
alignas(16) std::uint8_t output_room[ESPALIER_ROOM_BYTES];
alignas(16) std::uint8_t scratch_room[ESPALIER_ROOM_BYTES];
// Not an array of Event: a default Event is not all zeros and would need initialised memory.
alignas(Event) std::uint8_t events_room[ESPALIER_ROOM_EVENTS * sizeof(Event)];
alignas(4) std::uint8_t frames[2 * ESPALIER_MAX_MTU];
SerialLink agent_link[1];
SerialLink links[kMaxLinks];
std::uint32_t peers[kMaxLinks];
DecodedProgram programs[kMaxPrograms];
#if ESPALIER_UPDATES
DecodedProgram program_to_check;
#endif

#if ESPALIER_SERIAL_MAC
bool reported[2];

// Prints the reason and the link of the first frame that was dropped for want of a key or of the
// right code; once for each `place`.
void report_rejections(const SerialEndpoint& endpoint, const char* what, std::uint32_t place) {
  const SerialRejections& rejections = endpoint.rejections();
  if (rejections.frames == 0 || reported[place]) return;
  reported[place] = true;
  Text text;
  text << "links: dropped a frame of " << what;
  if (place != 0) {
    text << rejections.link << " (to node " << endpoint.peer(rejections.link) << ")";
  }
  switch (rejections.reason) {
    case SerialRejections::Reason::kWrongCode: text << ": its code is wrong\n"; break;
    case SerialRejections::Reason::kNoKeyHere: text << ": it has a key, this board none\n"; break;
    case SerialRejections::Reason::kNoKeyThere: text << ": it has no key, this board has one\n";
  }
}
#endif

}  // namespace

bool run_node() {
  board::begin();
  if (const std::uint32_t mtu = board::carrier().mtu(); mtu > ESPALIER_MAX_MTU) {
    Text() << "carrier: its frames have up to " << mtu << " bytes, and the node has room for "
           << std::uint32_t{ESPALIER_MAX_MTU} << "; expected max_mtu of at least " << mtu
           << " under limits in the board's description\n";
    return false;
  }
  static Slots slots(board::flash(), whole_flash(board::flash()), board::security_counter());
  static Booted booted(programs);
  const bool has_image = boot(slots, booted) == Status::kOk;
  print_report(booted);

  static NotedCarrier carrier(board::carrier());
  static SerialPort port(carrier, board::clock(), frames, board::port_config());
  SerialConfig config;
  config.session = board::session();
#if ESPALIER_SERIAL_MAC
  config.key = board::link_key();
  config.nonce = board::session();
#endif
  const std::uint32_t count = has_image ? booted.image.links : 0;
  for (std::uint32_t link = 0; link < count; ++link) peers[link] = booted.image.link(link).peer;
  const std::uint32_t node = has_image ? booted.image.node : agent::kNoNode;
  static SerialEndpoint endpoint(port, links, peers, count, node, config);
  config.first_channel = agent::kChannel;
  config.window = agent::kWindow;
  static SerialEndpoint gateway(port, agent_link, &agent::kGateway, 1, agent::kNoNode, config);

  Rooms rooms;
  rooms.input = input_room;
  rooms.output = output_room;
  rooms.scratch = scratch_room;
  rooms.events = reinterpret_cast<Event*>(events_room);
  rooms.input_bytes = sizeof input_room;
  rooms.output_bytes = sizeof output_room;
  rooms.scratch_bytes = sizeof scratch_room;
  rooms.events_count = ESPALIER_ROOM_EVENTS;
  static Server server(gateway, has_image ? &endpoint : nullptr, slots, booted, rooms);
#if ESPALIER_SPARES
  if (has_image) {
    static NodeSpares spares(booted, endpoint);
    server.use(spares);
  }
#endif
#if ESPALIER_UPDATES
  if (has_image) {
    static NodeUpdate update(slots, booted, endpoint, rooms, program_to_check);
    server.use(update);
  }
#endif
  server.begin();
  while (server.step()) {
    if (!carrier.received) port.wait(server.wake());
    carrier.received = false;
#if ESPALIER_SERIAL_MAC
    if (server.is_running()) continue;
    report_rejections(gateway, "the agent's channel", 0);
    report_rejections(endpoint, "link ", 1);
#endif
  }
  return true;
}

}  // namespace espalier::bare
