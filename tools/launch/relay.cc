#include "tools/launch/relay.h"

#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

namespace espalier::launch {
namespace {

constexpr std::size_t kRelayedBytes = 65536;
constexpr int kLastWordsMs = 50;

}  // namespace

void Relay::start(std::uint32_t number, const Fields& message) {
  const auto started =
      neighbours_[number].shell.start(keeper_,
                                      {.espalier = message[3],
                                       .remote_shell = message[4],
                                       .host = message[2],
                                       .session = message.size() > 5 ? message[5] : ""},
                                      prepare_);
  if (started) return;
  end(number);
  say_({"words", std::to_string(number), started.error().message});
  say_({"gone", std::to_string(number)});
}

void Relay::end(std::uint32_t number) {
  Neighbour& neighbour = neighbours_[number];
  end_shells({&neighbour.shell}, neighbour.has_spoken ? kDaemonPatience : 0);
  neighbours_.erase(number);
}

bool Relay::take(const Fields& message) {
  const auto number = message.size() < 2 ? std::nullopt : read_number(message[1]);
  if (!number) return false;
  const auto found = neighbours_.find(*number);
  if (message[0] == "reach" && (message.size() == 5 || message.size() == 6) &&
      found == neighbours_.end()) {
    start(*number, message);
  } else if (message[0] == "to" && message.size() == 3) {
    if (found != neighbours_.end()) found->second.shell.send(message[2]);
  } else if (message[0] == "shut" && message.size() == 2) {
    if (found != neighbours_.end()) end(*number);
  } else if (message[0] == "cut" && message.size() == 2) {
    if (found == neighbours_.end()) return true;
    found->second.has_spoken = false;
    end(*number);
  } else {
    return false;
  }
  return true;
}

void Relay::add_events(std::vector<pollfd>& files) const {
  for (const auto& [number, neighbour] : neighbours_) {
    const auto events = neighbour.shell.events(true);
    files.insert(files.end(), events.begin(), events.end());
  }
}

bool Relay::pass(int pipe, const char* name, std::uint32_t number) const {
  std::string bytes(kRelayedBytes, '\0');
  const ssize_t received = read(pipe, bytes.data(), bytes.size());
  if (received < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (received <= 0) return false;
  bytes.resize(static_cast<std::size_t>(received));
  say_({name, std::to_string(number), bytes});
  return true;
}

void Relay::serve(const pollfd* entries) {
  for (auto each = neighbours_.begin(); each != neighbours_.end(); entries += 3) {
    const std::uint32_t number = each->first;
    Neighbour& neighbour = (each++)->second;
    Shell& shell = neighbour.shell;
    if (entries[1].revents != 0 && !pass(shell.errors(), "words", number)) shell.close_errors();
    if (entries[2].revents != 0) shell.flush();
    if (entries[0].revents == 0) continue;
    neighbour.has_spoken = true;
    if (pass(shell.output(), "from", number)) continue;
    // The last words, if the daemon's end came first.
    while (shell.errors() >= 0) {
      pollfd last{shell.errors(), POLLIN, 0};
      if (poll(&last, 1, kLastWordsMs) <= 0 || !pass(shell.errors(), "words", number)) break;
    }
    say_({"gone", std::to_string(number)});
    end(number);
  }
}

void Relay::end() {
  std::vector<Shell*> shells;
  for (auto& [number, neighbour] : neighbours_) {
    neighbour.shell.send(encode({"end"}));
    shells.push_back(&neighbour.shell);
  }
  end_shells(shells);
  neighbours_.clear();
}

}  // namespace espalier::launch
