// Prints the figures of docs/serial.md: the frames between two nodes one by one, and the cost of
// messages.

#include <cstdio>
#include <deque>
#include <string>
#include <vector>

#include "espalier/base/little_endian.h"
#include "espalier/hal/serial/frame.h"
#include "hal/serial/testing/hub.h"

namespace espalier {
namespace {

std::string record_text(const std::uint8_t* record) {
  const std::uint32_t size = load_u16(record + 2);
  const std::string number = std::to_string(record[1]);
  switch (static_cast<serial::Record>(record[0])) {
    case serial::Record::kGrant: return "grant " + number;
    case serial::Record::kOpening: return "opening " + number;
    case serial::Record::kData:
      return "data " + number + " at " + std::to_string(load_u32(record + 4)) + ", " +
             std::to_string(size - serial::kDataBytes) + " bytes";
    case serial::Record::kControl: return "control " + number;
  }
  return "?";
}

std::string frame_text(std::uint32_t from, const serial::Hub::Frame& frame) {
  const std::uint8_t* at = frame.data();
  std::string text = from == 0 ? "A > B " : "A < B ";
  text += std::to_string(load_u32(at + 4)) + " to " + std::to_string(load_u32(at + 8)) +
          ", sequence " + std::to_string(load_u32(at + 12)) + ", heard " +
          std::to_string(load_u32(at + 16));
  if ((at[2] & serial::kAsk) != 0) text += ", ask";
  if ((at[2] & serial::kGap) != 0) text += ", gap";
  if (load_u32(at + 20) != 0) text += ", offset " + std::to_string(load_u32(at + 20));
  if (at[24] != 0) text += ", arrived " + std::to_string(at[24]);
  if (at[25] != 0) text += ", settled " + std::to_string(at[25]);
  const std::uint8_t* end = at + frame.size() - serial::kCrcBytes;
  for (at += serial::kHeaderBytes; at < end; at += serial::kRecordBytes + load_u16(at + 2)) {
    text += " | " + record_text(at);
  }
  return text;
}

struct Pair {
  explicit Pair(const serial::CarrierFaults& faults) : hub({{1}, {0}}, faults) {
    for (std::uint32_t v = 0; v < 2; ++v) {
      SerialConfig config;
      config.session = 500 + 200 * v;
      config.window = 2;
      nodes.emplace_back(hub, v, std::vector<std::uint32_t>{1 - v}, config);
    }
  }
  // Counts the completions of each node.
  void run() {
    bool any = false;
    for (int v = 0; v < 2; ++v) {
      Completion c;
      while (nodes[v].endpoint().poll(c)) {
        any = true;
        if (c.kind == Completion::Kind::kSent) ++sent;
        if (c.kind == Completion::Kind::kReceived) ++received;
      }
    }
    if (!any) static_cast<void>(hub.advance(UINT64_MAX));
  }
  serial::Hub hub;
  std::deque<serial::SerialNode> nodes;
  std::uint32_t sent = 0, received = 0;
};

void print_conversation() {
  serial::CarrierFaults faults;
  faults.mtu = 300;
  Pair pair(faults);
  pair.hub.watch([](std::uint32_t from, const serial::Hub::Frame& frame) {
    std::printf("    %s\n", frame_text(from, frame).c_str());
  });
  std::vector<std::uint8_t> out(400), in(400);
  static_cast<void>(pair.nodes[0].endpoint().post_send(0, {out.data(), 400, 9, 0, 0}));
  for (int rounds = 0; rounds < 10; ++rounds) pair.run();
  static_cast<void>(pair.nodes[1].endpoint().post_receive(0, {in.data(), 400, 9, 0}));
  while (pair.sent == 0) pair.run();
}

// Many messages from one node to the other, two posted at a time at both ends.
void print_costs(double lose, std::uint32_t mtu) {
  for (const std::uint64_t size : {8u, 1024u, 16384u}) {
    constexpr std::uint32_t kMessages = 100;
    serial::CarrierFaults faults;
    faults.lose = lose;
    faults.mtu = mtu;
    Pair pair(faults);
    std::uint64_t bytes = 0;
    pair.hub.watch([&](std::uint32_t, const serial::Hub::Frame& frame) { bytes += frame.size(); });
    std::vector<std::uint8_t> out(size), in(size);
    std::uint32_t posted = 0, expected = 0;
    const std::uint64_t began = pair.hub.now();
    while (pair.sent < kMessages) {
      while (posted < kMessages && pair.nodes[0].endpoint().post_send(
                                       0, {out.data(), size, posted, 0, 0}) == Status::kOk) {
        ++posted;
      }
      while (expected < kMessages && pair.nodes[1].endpoint().post_receive(
                                         0, {in.data(), size, expected, 0}) == Status::kOk) {
        ++expected;
      }
      pair.run();
    }
    std::printf("| %u | %.0f %% | %llu | %.1f | %.0f | %.0f |\n", mtu, 100 * lose,
                static_cast<unsigned long long>(size),
                static_cast<double>(pair.hub.frames()) / kMessages,
                static_cast<double>(bytes) / kMessages - static_cast<double>(size),
                static_cast<double>(pair.hub.now() - began) / 1000 / kMessages);
  }
}

}  // namespace
}  // namespace espalier

int main() {
  espalier::print_conversation();
  for (const double lose : {0.0, 0.01, 0.1}) espalier::print_costs(lose, 1498);
  espalier::print_costs(0, 256);
}
