#include "firmware/gateway/remote.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/read_file.h"
#include "firmware/gateway/child.h"
#include "firmware/node/control.h"
#include "firmware/node/mapping.h"
#include "firmware/node/stream.h"

namespace espalier::gateway {
namespace {

using node::Frame;

class RemoteNode {
 public:
  RemoteNode(const GatewayOptions& options, int stream)
      : options_(options), channel_(options.node.controls.front()), stream_(stream, stream) {}

  int run() {
    if (auto sent = send_words(); !sent) return end(sent.error());
    while (!ended_) {
      if (auto passed = from_launcher(); !passed) return end(passed.error());
      if (auto passed = from_node(); !passed) return end(passed.error());
      if (ended_) break;
      pollfd entries[] = {{channel_, POLLIN, 0}, {stream_.in(), POLLIN, 0}};
      (void)poll(entries, 2, -1);
    }
    return 0;
  }

  Child child;

 private:
  // Reports the failure to the launcher. Returns the exit status.
  int end(Error error) {
    // The end of a stream has no reason; the exit status of its command, which follows soon, does.
    std::optional<Child::End> ended = child.ended();
    for (int i = 0; i < 99 && !ended; ++i) {
      usleep(1000);
      ended = child.ended();
    }
    if (ended && ended->failed) error.message = "its host's command " + ended->how;
    control::send_failure(channel_, "espalier-gateway",
                          error.message + "; it was started as: " + options_.node_command);
    return 1;
  }

  // Sends the node's words, with the contents of schedules instead of their paths. Leaves out the
  // control channel, which belongs to this process.
  Result<void> send_words() {
    const std::vector<std::string>& words = options_.node_words;
    bool sent = true;
    for (std::size_t i = 0; i < words.size() && sent; ++i) {
      if (words[i] == "--control") {
        ++i;
        continue;
      }
      sent = stream_.send(Frame::kWord, bytes_of(words[i]));
      if (words[i] != "--schedule") continue;
      const Result<std::string> contents = read_file(words[++i], FileKind::kSchedule);
      if (!contents) return fail("the schedule: " + contents.error().message);
      sent = sent && stream_.send(Frame::kFile, bytes_of(*contents));
    }
    sent = sent && stream_.send(Frame::kBegin, {});
    // If a node ended meanwhile, the stream's rest says why.
    if (!sent && !control::is_closed(stream_.in())) {
      return fail("its host does not accept its command line");
    }
    return {};
  }

  static std::span<const std::uint8_t> bytes_of(const std::string& text) {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
  }

  Result<void> from_launcher() {
    control::Any packet;
    int descriptor = -1;
    const control::Received received = control::receive(channel_, packet, descriptor, 0);
    if (received == control::Received::kNothing) return {};
    if (received != control::Received::kPacket) {
      ended_ = true;
      return {};
    }
    ended_ = packet.packet == control::Packet::kQuit;
    bool passed = packet.packet != control::Packet::kMemory || map(packet.memory, descriptor);
    if (descriptor >= 0) close(descriptor);
    if (passed && packet.packet == control::Packet::kRun && memory_.bytes != nullptr) {
      passed = send_input(packet.run_request);
    }
    passed = passed && stream_.send_packet(packet);
    if (passed || control::is_closed(stream_.in())) return {};
    return fail("its host accepts no data");
  }

  // Sends what the collective reads: the input, and the counts of all ranks.
  bool send_input(const control::RunRequest& request) {
    const control::Memory& layout = memory_.layout;
    if (!stream_.send_memory(memory_.bytes, 0, layout.input_bytes)) return false;
    const std::uint64_t from =
        control::counts_offset(layout.input_bytes, layout.output_bytes, layout.events);
    const std::uint64_t counts = std::min(request.counts, layout.counts);
    return stream_.send_memory(memory_.bytes, from, from + counts * sizeof(std::uint64_t));
  }

  bool map(const control::Memory& layout, int descriptor) {
    memory_.layout = layout;
    if (descriptor < 0 || !mapping_.map(memory_.size(), descriptor, 0, true)) return false;
    memory_.bytes = static_cast<std::uint8_t*>(mapping_.bytes());
    return true;
  }

  Result<void> from_node() {
    node::FrameHeader header;
    const control::Received received = stream_.receive(header, bytes_, 0);
    if (received == control::Received::kNothing) return {};
    if (received == control::Received::kEnd) return fail("its host closed the connection");
    control::Any packet;
    if (received == control::Received::kPacket && header.kind == Frame::kBytes &&
        memory_.write(header, bytes_)) {
      return {};
    }
    if (received != control::Received::kPacket || header.kind != Frame::kPacket ||
        !stream_.take_packet(bytes_, memory_, packet)) {
      return fail(
          "its host sent a packet that is not part of this protocol; install the same release on "
          "both hosts");
    }
    // Its process number means nothing on this host. A signal goes to the command that leads there.
    if (packet.packet == control::Packet::kHello) packet.hello.pid = child.pid();
    if (control::send_packet(channel_, &packet, control::packet_size(packet.packet), -1, 5000)) {
      return {};
    }
    return fail("the launcher is gone");
  }

  const GatewayOptions& options_;
  int channel_;
  node::ControlStream stream_;
  node::Mapping mapping_;
  node::SharedMemory memory_;
  std::vector<std::uint8_t> bytes_;
  bool ended_ = false;
};

}  // namespace

int serve_remote(const GatewayOptions& options) {
  const int channel = options.node.controls.front();
  // Otherwise the command would inherit the channel and hold it open.
  (void)fcntl(channel, F_SETFD, FD_CLOEXEC);
  std::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    control::send_failure(channel, "espalier-gateway", std::strerror(errno));
    return 1;
  }
  RemoteNode remote(options, ends[0]);
  const auto started = remote.child.start(options.node_command, ends[1]);
  close(ends[1]);
  if (started) return remote.run();
  control::send_failure(channel, "espalier-gateway", started.error().message);
  return 1;
}

}  // namespace espalier::gateway
