#include "firmware/gateway/remote.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>

#include "firmware/gateway/child.h"
#include "firmware/node/control.h"
#include "firmware/node/node.h"
#include "firmware/node/stream.h"

namespace espalier::gateway {
namespace {

using node::Frame;

class Remote {
 public:
  Remote(const Options& options, int stream)
      : options_(options), channel_(options.node.controls.front()), stream_(stream, stream) {}

  int run() {
    if (!send_words()) return fail("the node's host does not take its command line");
    while (!ended_) {
      if (!from_launcher() || !from_node()) return fail(error_);
      if (ended_) break;
      pollfd entries[] = {{channel_, POLLIN, 0}, {stream_.in(), POLLIN, 0}};
      (void)poll(entries, 2, -1);
    }
    return 0;
  }

  Child child;

 private:
  int fail(std::string what) {
    // A stream that has ended says nothing; what ran it does, soon.
    std::string how;
    bool lost = false;
    for (int i = 0; i < 100 && how.empty(); ++i) {
      lost = child.lost(how);
      if (how.empty()) usleep(1000);
    }
    if (lost) what = "its host's command: " + how;
    control::send_failure(channel_, "espalier-gateway",
                          what + "; it was started as: " + options_.node_command);
    return 1;
  }

  // All but the control channel, which is this end's; schedules by their contents.
  bool send_words() {
    const std::vector<std::string>& words = options_.node_words;
    for (std::size_t at = 0; at < words.size(); ++at) {
      if (words[at] == "--control") {
        ++at;
        continue;
      }
      if (!stream_.send(Frame::kWord, bytes_of(words[at]))) return false;
      if (words[at] != "--schedule" || at + 1 == words.size()) continue;
      std::ifstream file(words[++at], std::ios::binary);
      const std::string contents{std::istreambuf_iterator<char>(file), {}};
      if (!stream_.send(Frame::kFile, bytes_of(contents))) return false;
    }
    return stream_.send(Frame::kBegin, {});
  }

  static std::span<const std::uint8_t> bytes_of(const std::string& text) {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
  }

  bool broken(const std::string& what) {
    error_ = what;
    return false;
  }

  bool from_launcher() {
    control::Any packet;
    int descriptor = -1;
    const control::Received received = control::receive(channel_, packet, descriptor, 0);
    if (received == control::Received::kNothing) return true;
    if (received != control::Received::kPacket) {
      ended_ = true;
      return true;
    }
    ended_ = packet.packet == control::Packet::kQuit;
    bool well = packet.packet != control::Packet::kMemory || map(packet.memory, descriptor);
    if (descriptor >= 0) close(descriptor);
    if (well && packet.packet == control::Packet::kRun && memory_.bytes != nullptr) {
      well = stream_.send_memory(memory_.bytes, 0, memory_.about.input_bytes);
    }
    if (well && stream_.send_packet(packet)) return true;
    return broken("its host takes nothing");
  }

  bool map(const control::Memory& about, int descriptor) {
    memory_.about = about;
    if (descriptor < 0 || !mapping_.map(memory_.size(), descriptor, 0, true)) return false;
    memory_.bytes = static_cast<std::uint8_t*>(mapping_.bytes());
    return true;
  }

  bool from_node() {
    node::FrameHeader header;
    const control::Received received = stream_.receive(header, bytes_, 0);
    if (received == control::Received::kNothing) return true;
    if (received == control::Received::kEnd) return broken("its host hung up");
    control::Any packet;
    if (received == control::Received::kPacket && header.kind == Frame::kBytes &&
        memory_.write(header, bytes_)) {
      return true;
    }
    if (received != control::Received::kPacket || header.kind != Frame::kPacket ||
        !node::take_packet(header, bytes_, memory_, packet)) {
      return broken(
          "its host says something that is not of this protocol: install both of one "
          "release");
    }
    // Its number there is nobody's here; a signal to it is one to what leads there.
    if (packet.packet == control::Packet::kHello) packet.hello.pid = child.pid();
    return control::send_packet(channel_, &packet, control::packet_size(packet.packet), -1, 5000) ||
           broken("the launcher is gone");
  }

  const Options& options_;
  int channel_;
  node::Stream stream_;
  node::Mapping mapping_;
  node::Shared memory_;
  std::vector<std::uint8_t> bytes_;
  std::string error_;
  bool ended_ = false;
};

}  // namespace

int join_remote(const Options& options) {
  const int channel = options.node.controls.front();
  // Else the command would hold it open.
  (void)fcntl(channel, F_SETFD, FD_CLOEXEC);
  std::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    control::send_failure(channel, "espalier-gateway", std::strerror(errno));
    return 1;
  }
  Remote remote(options, ends[0]);
  std::string error;
  const bool started = remote.child.start(options.node_command, ends[1], error);
  close(ends[1]);
  if (started) return remote.run();
  control::send_failure(channel, "espalier-gateway", error);
  return 1;
}

}  // namespace espalier::gateway
