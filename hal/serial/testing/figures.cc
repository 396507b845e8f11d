// Prints the figures of docs/results/serial.md, and of docs/firmware_in_c.md: the frames between
// two nodes one by one, the cost of messages, and the times of messages over bad serial cables.

#include <cstdio>
#include <deque>
#include <string>
#include <vector>

#include "espalier/internal/hal/serial/frame.h"
#include "hal/serial/testing/cable.h"
#include "hal/serial/testing/hub.h"

namespace espalier {
namespace {

std::string record_text(const std::uint8_t* begin) {
  const std::string number = std::to_string(serial::get<serial::record::kNumber>(begin));
  switch (static_cast<serial::Record>(serial::get<serial::record::kType>(begin))) {
    case serial::Record::kGrant: return "grant " + number;
    case serial::Record::kOpening: return "opening " + number;
    case serial::Record::kData: {
      const std::uint32_t size = serial::get<serial::record::kBytes>(begin);
      const std::uint8_t* body = begin + serial::kRecordBytes;
      return "data " + number + " at " + std::to_string(serial::get<serial::data::kOffset>(body)) +
             ", " + std::to_string(size - serial::kDataBytes) + " bytes";
    }
    case serial::Record::kControl: return "control " + number;
  }
  return "?";
}

// The field's number, after `name`; nothing if it is 0.
template <serial::Field field>
std::string field_text(const std::string& name, const std::uint8_t* frame) {
  const std::uint64_t value = serial::get<field>(frame);
  return value == 0 ? "" : ", " + name + " " + std::to_string(value);
}

std::string frame_text(std::uint32_t from, const serial::Hub::Frame& frame) {
  namespace header = serial::header;
  const std::uint8_t* at = frame.data();
  const std::uint8_t flags = serial::get<header::kFlags>(at);
  std::string text = from == 0 ? "A > B " : "A < B ";
  text += std::to_string(serial::get<header::kSession>(at)) + " to " +
          std::to_string(serial::get<header::kPeerSession>(at)) + ", sequence " +
          std::to_string(serial::get<header::kSequence>(at)) + ", heard " +
          std::to_string(serial::get<header::kHeard>(at));
  if ((flags & serial::kAsk) != 0) text += ", ask";
  if ((flags & serial::kGap) != 0) text += ", gap";
  text += field_text<header::kAcked>("offset", at) + field_text<header::kArrived>("arrived", at) +
          field_text<header::kSettled>("settled", at);
  const std::uint8_t* end = at + frame.size() - serial::kCrcBytes;
  at += serial::kHeaderBytes;
  while (at < end) {
    text += " | " + record_text(at);
    at += serial::kRecordBytes + serial::get<serial::record::kBytes>(at);
  }
  return text;
}

struct Pair {
  Pair(const serial::CarrierFaults& faults, bool keyed) : hub({{1}, {0}}, faults) {
    static constexpr std::uint8_t kKey[16] = {1};
    for (std::uint32_t v = 0; v < 2; ++v) {
      SerialConfig config{.session = 500 + 200 * v, .window = 2};
      if (keyed) config.key = kKey;
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
  serial::CarrierFaults faults{.mtu = 300};
  Pair pair(faults, false);
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
void print_costs(double lose, std::uint32_t mtu, bool keyed) {
  for (const std::uint64_t size : {8u, 1024u, 16384u}) {
    constexpr std::uint32_t kMessages = 100;
    serial::CarrierFaults faults{.lose = lose, .mtu = mtu};
    Pair pair(faults, keyed);
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
    std::printf("| %u | %s | %.0f %% | %llu | %.1f | %.0f | %.0f |\n", mtu, keyed ? "yes" : "no",
                100 * lose, static_cast<unsigned long long>(size),
                static_cast<double>(pair.hub.frames()) / kMessages,
                static_cast<double>(bytes) / kMessages - static_cast<double>(size),
                static_cast<double>(pair.hub.now() - began) / 1000 / kMessages);
  }
}

void print_bad_cable(std::uint32_t baud, std::uint64_t resend_ms, std::uint32_t lose) {
  constexpr std::uint32_t kMessages = 1000, kBytes = 400;
  serial::CableSpec cable{.baud = baud, .lose = lose, .resend_ns = resend_ms * 1'000'000};
  const serial::CableTimes times = serial::exchange(cable, kMessages, kBytes);
  const auto seconds = [](std::uint64_t ns) { return static_cast<double>(ns) / 1e9; };
  std::printf("| %u | %llu | %s | %.2f | %.2f | %.2f | %.0f |\n", baud,
              static_cast<unsigned long long>(resend_ms),
              lose == 0 ? "none" : ("1 in " + std::to_string(lose)).c_str(),
              seconds(times.silence_ns), seconds(times.total_ns) / kMessages,
              seconds(times.message_ns), static_cast<double>(times.bytes) / kMessages);
}

}  // namespace
}  // namespace espalier

int main() {
  espalier::print_conversation();
  for (const bool keyed : {false, true}) {
    for (const double lose : {0.0, 0.01, 0.1}) espalier::print_costs(lose, 1498, keyed);
    espalier::print_costs(0, 256, keyed);
  }
  for (const unsigned lose : {0u, 8000u, 2000u, 500u}) {
    espalier::print_bad_cable(115200, 200, lose);
    espalier::print_bad_cable(19200, 1000, lose);
  }
}
