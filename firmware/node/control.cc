#include "firmware/node/control.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include "base/one_line.h"
#include "espalier/internal/base/little_endian.h"

namespace espalier::control {
namespace {

// Waits for `events`; false on a timeout.
bool wait_for(int channel, short events, int timeout_ms) {
  pollfd entry{channel, events, 0};
  const int ready = poll(&entry, 1, timeout_ms);
  return ready > 0 || (ready < 0 && errno == EINTR);
}

// Takes the first descriptor and closes the others: alignment leaves room for more than one.
void take_first(const cmsghdr& header, int& descriptor) {
  const std::size_t count = (header.cmsg_len - CMSG_LEN(0)) / sizeof(int);
  for (std::size_t k = 0; k < count; ++k) {
    int each = -1;
    std::memcpy(&each, CMSG_DATA(&header) + k * sizeof each, sizeof each);
    if (k == 0) {
      descriptor = each;
    } else {
      close(each);
    }
  }
}

// Applies little() to fields.
template <typename... Fields>
void convert(Fields&... fields) {
  const auto one = [](auto& field) {
    using Field = std::remove_reference_t<decltype(field)>;
    if constexpr (std::is_enum_v<Field>) {
      field = static_cast<Field>(little(static_cast<std::underlying_type_t<Field>>(field)));
    } else {
      field = little(field);
    }
  };
  (one(fields), ...);
}

void convert_report(Report& report) {
  convert(report.number, report.blocks, report.completed, report.begin_ns, report.end_ns,
          report.clock_error_ns, report.cause.detector, report.cause.peer, report.log.count,
          report.log.retired, report.log.lost, report.stall.step, report.stall.link,
          report.stall.peer, report.stall.action, report.stall.since_ns);
}

}  // namespace

void convert_order(Any& packet, Packet kind) {
  if constexpr (kIsLittleEndian) return;
  convert(packet.packet);
  switch (kind) {
    case Packet::kHello:
      convert(packet.hello.version, packet.hello.node, packet.hello.pid, packet.hello.lanes,
              packet.hello.release, packet.hello.release_digest);
      for (std::uint32_t& peer : packet.hello.peers) convert(peer);
      for (Address& address : packet.hello.addresses) convert(address.size);
      break;
    case Packet::kFailed: convert(packet.failed.is_bad_input); break;
    case Packet::kPeers:
      convert(packet.peers.lanes);
      for (Address& address : packet.peers.addresses) convert(address.size);
      break;
    case Packet::kReport: convert_report(packet.report); break;
    case Packet::kMemory:
      convert(packet.memory.input_bytes, packet.memory.output_bytes, packet.memory.events,
              packet.memory.counts);
      break;
    case Packet::kRun:
      convert(packet.run_request.number, packet.run_request.program, packet.run_request.schedule,
              packet.run_request.count, packet.run_request.repetitions, packet.run_request.start_ns,
              packet.run_request.counts);
      break;
    default: break;
  }
}

void from_wire(Any& packet) {
  Packet kind = packet.packet;
  convert(kind);
  convert_order(packet, kind);
}

std::size_t packet_size(Packet packet) {
  switch (packet) {
    case Packet::kHello: return sizeof(Hello);
    case Packet::kReady: return sizeof(Ready);
    case Packet::kMapped: return sizeof(Mapped);
    case Packet::kReport: return sizeof(Report);
    case Packet::kFailed: return sizeof(Failed);
    case Packet::kPeers: return sizeof(Peers);
    case Packet::kMemory: return sizeof(Memory);
    case Packet::kRun: return sizeof(RunRequest);
    case Packet::kAsk: return sizeof(Ask);
    case Packet::kQuit: return sizeof(Quit);
    case Packet::kReturn: return sizeof(Return);
  }
  return 0;
}

bool is_flag(const bool& flag) {
  std::uint8_t byte = 0;
  std::memcpy(&byte, &flag, sizeof byte);
  return byte <= 1;
}

bool is_valid(const Any& packet, std::size_t size) {
  if (size < sizeof(Packet) || size != packet_size(packet.packet)) return false;
  if (packet.packet == Packet::kMemory) {
    constexpr std::uint64_t kMost = 1ull << 48;
    const Memory& memory = packet.memory;
    return memory.input_bytes <= kMost && memory.output_bytes <= kMost && memory.counts <= kMost;
  }
  if (packet.packet != Packet::kReport) return true;
  const Report& report = packet.report;
  return is_flag(report.stall.waiting) && is_flag(report.stall.sending) &&
         report.loss.kind <= static_cast<std::uint32_t>(Loss::Kind::kNode);
}

bool open_channel(int& launcher_end, int& node_end) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return false;
  launcher_end = ends[0];
  node_end = ends[1];
  return true;
}

bool is_channel(int descriptor) {
  struct stat about = {};
  return fstat(descriptor, &about) == 0 && S_ISSOCK(about.st_mode);
}

bool is_closed(int channel) {
  pollfd entry{channel, 0, 0};
  return poll(&entry, 1, 0) > 0 && (entry.revents & (POLLHUP | POLLERR)) != 0;
}

namespace {

bool send_bytes(int channel, const void* packet, std::size_t size, int descriptor, int timeout_ms) {
  iovec part{const_cast<void*>(packet), size};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = room;
    message.msg_controllen = sizeof room;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  while (true) {
    const ssize_t sent = sendmsg(channel, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent == static_cast<ssize_t>(size)) return true;
    if (sent >= 0) return false;
    if (errno == EINTR) continue;
    if (errno != EAGAIN || !wait_for(channel, POLLOUT, timeout_ms)) return false;
  }
}

}  // namespace

bool send_packet(int channel, const void* packet, std::size_t size, int descriptor,
                 int timeout_ms) {
  if constexpr (!kIsLittleEndian) {
    Any converted;
    std::memcpy(static_cast<void*>(&converted), packet, size);
    convert_order(converted, converted.packet);
    return send_bytes(channel, &converted, size, descriptor, timeout_ms);
  }
  return send_bytes(channel, packet, size, descriptor, timeout_ms);
}

Received receive(int channel, Any& packet, int& descriptor, int timeout_ms) {
  descriptor = -1;
  if (timeout_ms != 0 && !wait_for(channel, POLLIN, timeout_ms)) return Received::kNothing;
  iovec part{&packet, sizeof packet};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof room;
  const ssize_t size = recvmsg(channel, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size < 0) return errno == EAGAIN || errno == EINTR ? Received::kNothing : Received::kEnd;
  // Descriptors can come with an empty packet, too.
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS) take_first(*header, descriptor);
  if (size >= static_cast<ssize_t>(sizeof(Packet))) from_wire(packet);
  if (is_valid(packet, static_cast<std::size_t>(size))) return Received::kPacket;
  if (descriptor >= 0) close(descriptor);
  descriptor = -1;
  return size == 0 ? Received::kEnd : Received::kBad;
}

void send_failure(int channel, const char* program, const std::string& what, bool is_bad_input) {
  Failed failed;
  failed.is_bad_input = is_bad_input ? 1 : 0;
  const std::string line = one_line(what);
  std::snprintf(failed.text, sizeof failed.text, "%s", line.c_str());
  if (channel < 0 || (!send(channel, failed) && errno != EPIPE && errno != ECONNRESET)) {
    std::fprintf(stderr, "%s: %s\n", program, line.c_str());
    return;
  }
  Any packet;
  int descriptor = -1;
  Received received = Received::kNothing;
  while (received == Received::kNothing) received = receive(channel, packet, descriptor, -1);
}

}  // namespace espalier::control
