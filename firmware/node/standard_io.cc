#include "firmware/node/standard_io.h"

#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/try.h"
#include "firmware/node/mapping.h"
#include "firmware/node/stream.h"

namespace espalier::node {
namespace {

// Carries packets between the stream and the channel until one of them ends.
class PacketCarrier {
 public:
  PacketCarrier(int in, int out, int channel) : stream_(in, out), channel_(channel) {}
  void run() {
    while (from_node() && from_launcher()) {
      pollfd entries[] = {{channel_, POLLIN, 0}, {stream_.in(), POLLIN, 0}};
      (void)poll(entries, 2, -1);
    }
    close(channel_);
  }

 private:
  bool from_node() {
    control::Any packet;
    int descriptor = -1;
    const control::Received received = control::receive(channel_, packet, descriptor, 0);
    if (received == control::Received::kNothing) return true;
    if (received != control::Received::kPacket) return false;
    const bool final = packet.packet == control::Packet::kReport &&
                       packet.report.status != Status::kBusy && memory_.bytes != nullptr;
    if (final &&
        !stream_.send_memory(memory_.bytes, control::output_offset(memory_.layout.input_bytes),
                             memory_.size())) {
      return false;
    }
    return stream_.send_packet(packet);
  }

  bool from_launcher() {
    FrameHeader header;
    const control::Received received = stream_.receive(header, bytes_, 0);
    if (received == control::Received::kNothing) return true;
    if (received != control::Received::kPacket) return false;
    if (header.kind == Frame::kBytes) return memory_.write(header, bytes_);
    control::Any packet;
    if (header.kind != Frame::kPacket || !stream_.take_packet(bytes_, memory_, packet))
      return false;
    if (packet.packet == control::Packet::kMemory) return pass_memory(packet);
    return control::send_packet(channel_, &packet, control::packet_size(packet.packet), -1, 5000);
  }

  bool pass_memory(const control::Any& packet) {
    memory_.layout = packet.memory;
    memory_.bytes = nullptr;
    const int file = memfd_create("espalier", MFD_CLOEXEC);
    if (file < 0) return false;
    const bool mapped = ftruncate(file, static_cast<off_t>(memory_.size())) == 0 &&
                        mapping_.map(memory_.size(), file, 0, true);
    memory_.bytes = static_cast<std::uint8_t*>(mapping_.bytes());
    const bool passed = mapped && control::send(channel_, packet.memory, file);
    close(file);
    return passed;
  }

  ControlStream stream_;
  int channel_;
  Mapping mapping_;
  SharedMemory memory_;
  std::vector<std::uint8_t> bytes_;
};

// Stores a received schedule in a file in memory. Returns its path.
Result<std::string> file_of(const std::vector<std::uint8_t>& bytes) {
  const int file = memfd_create("schedule", MFD_CLOEXEC);
  if (file < 0 || write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    return fail(std::string("cannot store a received schedule: ") + std::strerror(errno));
  }
  return "/proc/self/fd/" + std::to_string(file);
}

}  // namespace

Stdio::~Stdio() { end(); }

void Stdio::end() {
  if (node_end_ >= 0) close(node_end_);
  node_end_ = -1;
  if (thread_.joinable()) thread_.join();
}

Result<std::vector<std::string>> Stdio::begin(const std::vector<std::string>& own) {
  std::signal(SIGPIPE, SIG_IGN);
  const int in = dup(STDIN_FILENO);
  const int out = dup(STDOUT_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  ControlStream stream(in, out);
  FrameHeader header;
  std::vector<std::uint8_t> bytes;
  const bool has_image = std::any_of(own.begin(), own.end(), [](const std::string& word) {
    return word == "--image" || word == "--flash" || word.starts_with("--image=") ||
           word.starts_with("--flash=");
  });
  std::vector<std::string> words;
  while (true) {
    const control::Received received = stream.receive(header, bytes, ControlStream::kPatience);
    if (received != control::Received::kPacket || header.kind > Frame::kBegin) {
      return fail(
          "no command line on standard input; expected espalier-gateway --node-command there");
    }
    if (header.kind == Frame::kBegin) break;
    if (header.kind == Frame::kWord) {
      words.emplace_back(bytes.begin(), bytes.end());
      continue;
    }
    ESPALIER_TRY_TO(const auto path, file_of(bytes));
    words.push_back(path);
    if (has_image) words.resize(words.size() - 2);
  }
  words.insert(words.end(), own.begin(), own.end());
  int launcher_end = -1;
  if (!control::open_channel(launcher_end, node_end_)) {
    return fail(std::string("cannot open a control channel: ") + std::strerror(errno));
  }
  words.insert(words.end(), {"--control", std::to_string(node_end_)});
  thread_ = std::thread([in, out, launcher_end] { PacketCarrier(in, out, launcher_end).run(); });
  return words;
}

}  // namespace espalier::node
