#include "firmware/node/stream.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/clock.h"

namespace espalier::node {
namespace {

constexpr std::uint32_t kPieceBytes = 1 << 20;
constexpr std::uint32_t kMaxFrameBytes = 64 << 20;        // the largest schedule file
constexpr std::int64_t kMaxTime = std::int64_t{1} << 60;  // ns: 36 years

bool wait_for(int descriptor, short events, int timeout_ms) {
  pollfd entry{descriptor, events, 0};
  int ready = 0;
  while ((ready = poll(&entry, 1, timeout_ms)) < 0 && errno == EINTR) continue;
  return ready > 0;
}

// Whether the times are far from the largest number, so that differences can be computed.
bool has_times(const FrameHeader& header) {
  return header.sent_ns <= static_cast<std::uint64_t>(kMaxTime) &&
         (header.bound_ns == FrameHeader::kNoBound ||
          (header.bound_ns >= -kMaxTime && header.bound_ns <= kMaxTime));
}

}  // namespace

ControlStream::ControlStream(int in, int out) : in_(in), out_(out) {
  for (const int descriptor : {in, out}) {
    fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  }
}

bool ControlStream::write(const void* bytes, std::size_t size) {
  const auto* from = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t written = ::write(out_, from, size);
    if (written > 0) {
      from += written;
      size -= static_cast<std::size_t>(written);
    } else if (errno == EAGAIN) {
      if (!wait_for(out_, POLLOUT, kPatience)) return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool ControlStream::read(void* bytes, std::size_t size, int timeout_ms) {
  auto* to = static_cast<char*>(bytes);
  while (size > 0) {
    const ssize_t received = ::read(in_, to, size);
    if (received > 0) {
      to += received;
      size -= static_cast<std::size_t>(received);
    } else if (received < 0 && errno == EAGAIN) {
      if (!wait_for(in_, POLLIN, timeout_ms)) return false;
    } else if (received == 0 || errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool ControlStream::send(Frame kind, std::span<const std::uint8_t> bytes, std::uint64_t offset) {
  const std::uint64_t now = monotonic_ns();
  const FrameHeader header{kind, static_cast<std::uint32_t>(bytes.size()), offset, now,
                           difference_.bound(now).value_or(FrameHeader::kNoBound)};
  return write(&header, sizeof header) && write(bytes.data(), bytes.size());
}

bool ControlStream::send_packet(const control::Any& packet) {
  const std::size_t size = control::packet_size(packet.packet);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&packet);
  if constexpr (!kIsLittleEndian) {
    control::Any converted = packet;
    control::convert_order(converted, packet.packet);
    return send(Frame::kPacket, {reinterpret_cast<const std::uint8_t*>(&converted), size});
  }
  return send(Frame::kPacket, {bytes, size});
}

bool ControlStream::send_memory(const std::uint8_t* memory, std::uint64_t from, std::uint64_t end) {
  while (from < end) {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(end - from, kPieceBytes));
    if (!send(Frame::kBytes, {memory + from, size}, from)) return false;
    from += size;
  }
  return true;
}

control::Received ControlStream::receive(FrameHeader& header, std::vector<std::uint8_t>& bytes,
                                         int timeout_ms) {
  if (!wait_for(in_, POLLIN, timeout_ms)) return control::Received::kNothing;
  if (!read(&header, sizeof header, kPatience)) return control::Received::kEnd;
  const std::uint64_t now = monotonic_ns();
  if (header.size > kMaxFrameBytes || header.kind < Frame::kWord || header.kind > Frame::kBytes ||
      !has_times(header)) {
    return control::Received::kBad;
  }
  std::optional<std::int64_t> others_bound;
  if (header.bound_ns != FrameHeader::kNoBound) others_bound = header.bound_ns;
  difference_.note(header.sent_ns, others_bound, now);
  // Takes memory only for bytes that arrive, whatever size the header claims.
  bytes.clear();
  while (bytes.size() < header.size) {
    const std::size_t before = bytes.size();
    bytes.resize(before + std::min<std::size_t>(header.size - before, kPieceBytes));
    if (!read(&bytes[before], bytes.size() - before, kPatience)) return control::Received::kEnd;
  }
  return control::Received::kPacket;
}

bool SharedMemory::write(const FrameHeader& header, std::span<const std::uint8_t> from) const {
  if (header.offset > size() || from.size() > size() - header.offset) return false;
  if (!from.empty()) std::memcpy(bytes + header.offset, from.data(), from.size());
  return true;
}

bool ControlStream::take_packet(std::span<const std::uint8_t> bytes, const SharedMemory& memory,
                                control::Any& packet) const {
  if (bytes.size() < sizeof(control::Packet) || bytes.size() > sizeof packet) return false;
  std::memcpy(static_cast<void*>(&packet), bytes.data(), bytes.size());
  control::from_wire(packet);
  if (!control::is_valid(packet, bytes.size())) return false;
  if (packet.packet != control::Packet::kRun && packet.packet != control::Packet::kReport) {
    return true;
  }
  const auto difference = difference_.estimate(monotonic_ns());
  if (!difference) return false;
  // Unsigned arithmetic wraps, so either clock may be ahead.
  const std::uint64_t shift = difference->shift;
  if (packet.packet == control::Packet::kRun) {
    packet.run_request.start_ns += shift;
    return true;
  }
  control::Report& report = packet.report;
  report.begin_ns += shift;
  report.end_ns += shift;
  report.clock_error_ns += difference->error_ns;
  if (report.status == Status::kBusy || memory.layout.events == 0) return true;
  auto* times = reinterpret_cast<EventTimes*>(
      memory.bytes + control::log_offset(memory.layout.input_bytes, memory.layout.output_bytes));
  const std::uint32_t count = std::min(report.log.count, memory.layout.events);
  for (std::uint32_t i = 0; i < count; ++i) {
    for (Little<std::uint64_t>* time :
         {&times[i].issued, &times[i].posted, &times[i].done, &times[i].retired}) {
      if (*time != 0) *time += shift;
    }
  }
  return true;
}

}  // namespace espalier::node
