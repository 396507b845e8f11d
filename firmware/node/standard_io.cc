#include "firmware/node/standard_io.h"

#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "firmware/node/node.h"
#include "firmware/node/stream.h"

namespace espalier::node {
namespace {

// Carries packets between the stream and the channel until either ends.
class Carrying {
 public:
  Carrying(int in, int out, int channel) : stream_(in, out), channel_(channel) {}
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
        !stream_.send_memory(memory_.bytes, control::output_offset(memory_.about.input_bytes),
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
    if (header.kind != Frame::kPacket || !take_packet(header, bytes_, memory_, packet))
      return false;
    if (packet.packet == control::Packet::kMemory) return pass_memory(packet);
    return control::send_packet(channel_, &packet, control::packet_size(packet.packet), -1, 5000);
  }

  bool pass_memory(const control::Any& packet) {
    memory_.about = packet.memory;
    memory_.bytes = nullptr;
    const int file = memfd_create("espalier", MFD_CLOEXEC);
    if (file < 0) return false;
    const bool made = ftruncate(file, static_cast<off_t>(memory_.size())) == 0 &&
                      mapping_.map(memory_.size(), file, 0, true);
    memory_.bytes = static_cast<std::uint8_t*>(mapping_.bytes());
    const bool passed = made && control::send(channel_, packet.memory, file);
    close(file);
    return passed;
  }

  Stream stream_;
  int channel_;
  Mapping mapping_;
  Shared memory_;
  std::vector<std::uint8_t> bytes_;
};

// A file of this process's memory with the schedule that came; its path, or none.
std::string file_of(const std::vector<std::uint8_t>& bytes) {
  const int file = memfd_create("schedule", MFD_CLOEXEC);
  if (file < 0) return "";
  const ssize_t written = write(file, bytes.data(), bytes.size());
  return written == static_cast<ssize_t>(bytes.size()) ? "/proc/self/fd/" + std::to_string(file)
                                                       : "";
}

}  // namespace

Stdio::~Stdio() { end(); }

void Stdio::end() {
  if (node_end_ >= 0) close(node_end_);
  node_end_ = -1;
  if (thread_.joinable()) thread_.join();
}

bool Stdio::begin(std::vector<std::string>& words, std::string& error) {
  std::signal(SIGPIPE, SIG_IGN);
  const int in = dup(STDIN_FILENO);
  const int out = dup(STDOUT_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  Stream stream(in, out);
  FrameHeader header;
  std::vector<std::uint8_t> bytes;
  const std::vector<std::string> own(words.begin() + 1, words.end());
  const auto given = [&own](const char* word) {
    return std::find(own.begin(), own.end(), word) != own.end();
  };
  const bool boots_itself = given("--image") || given("--flash");
  words.resize(1);
  while (true) {
    const control::Received received = stream.receive(header, bytes, Stream::kPatience);
    if (received != control::Received::kPacket || header.kind > Frame::kBegin) {
      error = "--stdio is for espalier-gateway --node-command, which did not speak";
      return false;
    }
    if (header.kind == Frame::kBegin) break;
    words.push_back(header.kind == Frame::kWord ? std::string(bytes.begin(), bytes.end())
                                                : file_of(bytes));
    if (header.kind == Frame::kFile && boots_itself) words.resize(words.size() - 2);
  }
  words.insert(words.end(), own.begin(), own.end());
  int launcher_end = -1;
  if (!control::open_channel(launcher_end, node_end_)) {
    error = std::string("cannot open a control channel: ") + std::strerror(errno);
    return false;
  }
  words.insert(words.end(), {"--control", std::to_string(node_end_)});
  thread_ = std::thread([in, out, launcher_end] { Carrying(in, out, launcher_end).run(); });
  return true;
}

}  // namespace espalier::node
