// Fuzz target: processes of a job send a rendezvous server messages of any contents, and strangers
// send bytes. The server answers what it must, ends each connection whose process ends, and goes
// on. The first byte of each message tells its connection and its kind; messages are sealed with
// the job's secret, so that they reach what is behind the seal.

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "base/network/address.h"
#include "bootstrap/message.h"
#include "bootstrap/server.h"
#include "bootstrap/stream.h"
#include "tests/fuzz/expect.h"

namespace espalier::fuzz {
namespace {

using namespace bootstrap;

constexpr std::uint32_t kRanks = 3;
constexpr Kind kKinds[] = {Kind::kHello,    Kind::kPut,    Kind::kFence,    Kind::kGet,
                           Kind::kMissing,  Kind::kRejoin, Kind::kWelcome,  Kind::kValue,
                           Kind::kNewcomer, Kind::kAccept, Kind::kComplete, Kind::kLeave,
                           Kind::kProbe};

JobSecret secret() {
  JobSecret secret;
  secret.fill(7);
  return secret;
}

// A connection to the server, as a process of the job or a stranger.
class Process {
 public:
  explicit Process(const network::Address& server) {
    Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_storage address;
    const socklen_t size = server.to_socket(address);
    expect(connect(socket.get(), reinterpret_cast<sockaddr*>(&address), size) == 0,
           "the server listens");
    stream_ = Stream(std::move(socket), false);
  }
  // Sends this process's random value and waits for the server's.
  void greet() {
    expect(stream_.greet(), "the server takes a greeting");
    while (!stream_.is_ready()) {
      wait();
      if (!stream_.read()) break;
    }
    expect(stream_.is_ready(), "the server greets");
  }
  void send_raw(const std::string& bytes) {
    (void)::send(stream_.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  void send(const std::string& message) {
    if (stream_.is_ready()) (void)stream_.send(message, secret());
  }
  // Sends nothing more, and takes what the server answers until it ends the connection.
  void end() {
    shutdown(stream_.descriptor(), SHUT_WR);
    for (bool is_open = true; is_open;) {
      wait();
      is_open = stream_.read();
      while (const auto bytes = stream_.next(secret())) {
        const auto message = decode(*bytes);
        expect(message && message->kind >= Kind::kWelcome, "the server answers with messages");
      }
    }
  }

 private:
  void wait() {
    pollfd waiting{stream_.descriptor(), POLLIN, 0};
    (void)poll(&waiting, 1, -1);
  }
  Stream stream_;
};

Message make_message(Input& input) {
  Message message{.kind = kKinds[input.below(std::size(kKinds))],
                  .a = input.below(2) == 0 ? input.below(kRanks + 1) : input.word(),
                  .b = input.below(4) == 0 ? input.word() : kRanks,
                  .number = input.byte()};
  message.text.assign(input.below(4), static_cast<char>('a' + input.below(4)));
  message.data.assign(input.below(300), 'x');
  return message;
}

void decode_raw(const Input& input) {
  const std::string bytes(reinterpret_cast<const char*>(input.rest()), input.left());
  const auto message = decode(bytes);
  if (message) expect(encode(*message) == bytes, "a message is the same after writing");
}

void serve(Input& input) {
  // Another address each time: the ports of ended connections stay taken for a minute.
  static unsigned serves = 0;
  const unsigned at = serves++;
  auto server = Server::start(
      "127.1." + std::to_string(at / 256 % 256) + "." + std::to_string(at % 256) + ":0", kRanks,
      secret());
  expect(server.has_value(), "a server starts");
  const auto addresses = network::resolve((*server)->address());
  std::optional<Process> processes[kRanks + 1];  // the last is a stranger
  while (input.left() > 0) {
    std::optional<Process>& process = processes[input.below(std::size(processes))];
    const bool is_stranger = &process == &processes[kRanks];
    if (!process) {
      process.emplace(addresses->front());
      if (!is_stranger || input.below(2) == 0) process->greet();
    }
    const unsigned action = input.below(8);
    if (action == 0) {
      process->end();
      process.reset();
    } else if (is_stranger) {
      std::string bytes(input.below(600), '\0');
      for (char& byte : bytes) byte = static_cast<char>(input.byte());
      process->send_raw(bytes);
    } else if (action == 1) {
      std::string bytes(input.below(40), '\0');
      for (char& byte : bytes) byte = static_cast<char>(input.byte());
      process->send(bytes);
    } else {
      process->send(encode(make_message(input)));
    }
  }
  for (auto& process : processes) {
    if (process) process->end();
  }
}

}  // namespace

void run(Input& input) {
  if (input.below(4) == 0) {
    decode_raw(input);
  } else {
    serve(input);
  }
}

}  // namespace espalier::fuzz
