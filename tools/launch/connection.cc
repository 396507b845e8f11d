#include "tools/launch/connection.h"

#include <unistd.h>

#include <utility>

#include "base/clock.h"

namespace espalier::launch {
namespace {

constexpr std::size_t kMaxErrorBytes = 65536;  // kept of stderr

}  // namespace

std::string Connection::where() const {
  if (host.name.empty()) return came_from.empty() ? "this host" : came_from;
  return "host " + host.name + (came_from.empty() ? "" : " (" + came_from + ")");
}

Result<void> Connection::start(const DaemonStart& how) {
  ShellCommand command{.espalier = how.espalier};
  if (!host.is_here) {
    command.remote_shell = how.remote_shell;
    command.host = host.name;
    command.port = host.port;
  }
  return shell_.start(how.keeper, command, [&how] { how.signals.restore(); });
}

void Connection::start_over(const Way& over, const std::string& espalier, const std::string& shell,
                            Relay relay) {
  way = over;
  relay_ = std::move(relay);
  relay_(*way, {"reach", std::to_string(channel), way->to.address + "%" + way->to.interface,
                espalier, shell});
}

void Connection::send(const Fields& message) { pass(session.encode(message)); }

void Connection::pass(const std::string& bytes) {
  if (bytes.empty()) return;
  if (!way) return shell_.send(bytes);
  relay_(*way, {"to", std::to_string(channel), bytes});
}

void Connection::go_over(const Way& over, std::uint32_t other_channel, Reader reader,
                         const Fields& resumed) {
  way = over;
  channel = other_channel;
  reader_ = std::move(reader);
  is_cut = false;
  (void)session.take(resumed, monotonic_ns());
  pass(session.resumed() + session.rest());
}

void Connection::close_messages() {
  if (way) return relay_(*way, {"shut", std::to_string(channel)});
  shell_.close_output();
}

std::string Connection::read_errors() {
  char buffer[4096];
  const ssize_t received = read(shell_.errors(), buffer, sizeof buffer);
  if (received <= 0) {
    shell_.close_errors();
    return {};
  }
  return take_errors(std::string(buffer, static_cast<std::size_t>(received)));
}

std::string Connection::take_errors(const std::string& text) {
  if (state == State::kRunning) return text;
  error_text_ = (error_text_ + text).substr(0, kMaxErrorBytes);
  return {};
}

std::string Connection::last_error_line() const {
  std::string text = error_text_;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

void end_daemons(std::vector<Connection>& connections) {
  std::vector<Shell*> shells;
  for (Connection& connection : connections) shells.push_back(&connection.shell_);
  end_shells(shells);
  connections.clear();
}

}  // namespace espalier::launch
