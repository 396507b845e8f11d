// bare-session: one session with a bare-metal node, like those of its gateway. Prints the node's
// replies, installs an image, runs the node's first program (a program of one node), or kills the
// node meanwhile.
//
//   bare-session --device SPEC [--link-key FILE] [--install IMAGE] [--run]
//                [--kill PID@MICROSECONDS]
//
// --kill: kills that process and ends, so long after the image (or the go order) begins to go to
// the node. Exit status 0: everything was answered, or the process was killed; 2: bad input; 3: the
// node violated the protocol.

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/one_line.h"
#include "base/read_file.h"
#include "firmware/gateway/conversation.h"
#include "hal/serial/host/carriers.h"
#include "hal/serial/host/link_key.h"

namespace espalier {
namespace {

using gateway::Conversation;
using Event = Conversation::Event;

struct Options {
  std::string device, image;
  LinkKey link_key = {};
  bool has_link_key = false;
  bool run = false;
  pid_t victim = 0;
  std::uint64_t after_us = 0;
};

[[noreturn]] void fail(int status, const std::string& line) {
  std::fprintf(stderr, "bare-session: %s\n", line.c_str());
  std::exit(status);
}

class Session {
 public:
  explicit Session(const Options& options, HostCarrier& carrier)
      : options_(options),
        memory_(2 * carrier.mtu() / 8 + 1),
        port_(carrier, clock_, reinterpret_cast<std::uint8_t*>(memory_.data()), {}),
        conversation_(port_, std::random_device{}() | 1,
                      options.has_link_key ? options_.link_key.data() : nullptr,
                      std::random_device{}()) {
    clock_.add(carrier);
  }

  void hello() {
    const agent::Hello hello = await().hello;
    greeted_ = true;
    if (hello.kind != agent::Kind::kHello) fail(3, "the node did not say hello");
    std::vector<std::uint8_t> tables(hello.links * sizeof(agent::LinkEntry) +
                                     hello.programs * sizeof(agent::ProgramEntry));
    if (!tables.empty()) {
      conversation_.expect(tables);
      await(Event::kData);
    }
    agent::ProgramEntry program;
    if (hello.programs > 0) {
      std::memcpy(&program, tables.data() + hello.links * sizeof(agent::LinkEntry), sizeof program);
    }
    schedule_ = program.schedule;
    std::printf("hello: %s, boot %s, slot %u, release %u, trial %u, slots %s and %s\n",
                one_line(hello.board).c_str(), status_name(hello.boot), hello.slot,
                hello.release & 0xffff, hello.trial, status_name(hello.slots[0].status),
                status_name(hello.slots[1].status));
  }

  void install() {
    const Result<std::string> read = read_file(options_.image, FileKind::kImage);
    if (!read) fail(2, "the image: " + read.error().message);
    const std::vector<std::uint8_t> image(read->begin(), read->end());
    if (image.empty()) fail(2, "the image " + options_.image + " is empty");
    agent::Install order{.bytes = static_cast<std::uint32_t>(image.size())};
    conversation_.send(order);
    if (!answered("install")) return;
    conversation_.send_data(image);
    begun_ = clock_.now();
    pull_plug();
    (void)answered("install");
  }

  void run() {
    agent::Configure configuration;
    conversation_.send(configuration);
    if (!answered("configure")) return;
    agent::RunRequest order{.number = 1, .schedule = schedule_};
    conversation_.send(order);
    if (!answered("run")) return;
    agent::Go go{.number = 1};
    conversation_.send(go);
    begun_ = clock_.now();
    if (options_.image.empty()) pull_plug();
    const agent::Report report = await().report;
    std::printf("report: %s, %u complete, confirmation %s, after %u us\n",
                status_name(report.status), static_cast<unsigned>(report.completed),
                status_name(report.confirmation), since());
  }

 private:
  [[nodiscard]] unsigned since() { return static_cast<unsigned>((clock_.now() - begun_) / 1000); }
  void pull_plug() {
    if (options_.victim == 0) return;
    const std::uint64_t until = begun_ + options_.after_us * 1000;
    while (clock_.now() < until) {
      if (came_ == Event::kNothing) go_on();
    }
    kill(options_.victim, SIGKILL);
    std::printf("killed\n");
    std::exit(0);
  }
  void go_on() {
    came_ = conversation_.poll();
    // A node that had a session with another gateway restarts, and then says hello.
    if (came_ == Event::kRestarted && !greeted_) came_ = Event::kNothing;
    if (came_ == Event::kRestarted) fail(3, "the node began anew");
    if (came_ == Event::kViolation)
      fail(3, "the node sent a message that the protocol does not allow");
    if (came_ == Event::kNothing) port_.wait(clock_.now() + 1'000'000);
  }
  const agent::Packet& await(Event event = Event::kPacket) {
    while (came_ == Event::kNothing) go_on();
    const Event came = came_;
    came_ = Event::kNothing;
    if (came != event) fail(3, "the node said something else than was expected");
    return conversation_.packet();
  }
  bool answered(const char* what) {
    const agent::Answer answer = await().answer;
    if (answer.kind != agent::Kind::kAnswer) fail(3, std::string("no answer to ") + what);
    std::printf("%s: %s, after %u us\n", what, status_name(answer.status), since());
    return answer.status == Status::kOk;
  }

  const Options& options_;
  std::vector<std::uint64_t> memory_;
  HostClock clock_;
  SerialPort port_;
  Conversation conversation_;
  Event came_ = Event::kNothing;
  bool greeted_ = false;
  std::uint64_t begun_ = 0;  // when sending the last order began
  std::uint64_t schedule_ = 0;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--run") {
      options.run = true;
      continue;
    }
    if (i + 1 == argc) fail(2, "unexpected argument " + word);
    const std::string value = argv[++i];
    if (word == "--device") {
      options.device = value;
    } else if (word == "--link-key") {
      const Result<LinkKey> key = read_link_key(value);
      if (!key) fail(2, key.error().message);
      options.link_key = *key;
      options.has_link_key = true;
    } else if (word == "--install") {
      options.image = value;
    } else if (word == "--kill" && value.find('@') != std::string::npos) {
      options.victim = std::atoi(value.c_str());
      options.after_us = std::strtoull(value.c_str() + value.find('@') + 1, nullptr, 10);
    } else {
      fail(2, "unexpected argument " + word + " " + value);
    }
  }
  return options;
}

}  // namespace
}  // namespace espalier

int main(int argc, char** argv) {
  using namespace espalier;
  const Options options = parse(argc, argv);
  const auto carrier = open_carrier(options.device);
  if (!carrier) fail(2, carrier.error().message);
  Session session(options, **carrier);
  session.hello();
  if (options.run) session.run();
  if (!options.image.empty()) session.install();
  return 0;
}
