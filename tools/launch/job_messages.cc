// What a job's launcher does with the messages of its daemons.

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/version.h"
#include "tools/launch/job_run.h"

namespace espalier::launch {
namespace {

constexpr std::size_t kMaxQuoted = 40;  // bytes of a wrong message in an error

}  // namespace

void Job::fail_with(const std::string& line, int status) {
  say(line);
  if (status_ == 0) status_ = status;
  if (options_.kill_on_failure) end_all(SIGKILL);
}

// False: the rank is not one of the host, or has ended before.
bool Job::take_end(Connection& connection, const RankEnd& end) {
  const auto [rank, status] = end;
  const Host& host = connection.host;
  if (rank < host.first || rank - host.first >= host.count || ended_[rank]) return false;
  ended_[rank] = true;
  --living_;
  if (rank == 0) takes_input_ = false;
  if (status == 0) return true;
  const std::string place = connection.host.name.empty() ? "" : " on host " + connection.host.name;
  const bool is_signal = status < 0;
  const std::string how = "rank " + std::to_string(rank) + place + " ended with " +
                          (is_signal ? "signal " : "status ") +
                          std::to_string(is_signal ? -status : status);
  if (start_again(connection, rank, how)) return true;
  fail_with(how, is_signal ? 128 - status : status);
  return true;
}

// Without another process, no rank is left that could accept it.
bool Job::start_again(Connection& connection, std::uint32_t rank, const std::string& how) {
  if (restarts_ == options_.max_restarts || living_ == 0 || interrupted_by_ != 0) return false;
  ++restarts_;
  ++living_;
  ended_[rank] = false;
  say(how + "; it is started again, " + std::to_string(restarts_) + " of " +
      std::to_string(options_.max_restarts));
  const auto host = static_cast<std::size_t>(&connection - connections_.data());
  connection.send({"again", std::to_string(rank), rendezvous_.ticket_for(callers(), host)});
  return true;
}

// False: the rank is not one of the host, or the daemon sends more than it may.
bool Job::take_output(Connection& connection, const Fields& message) {
  const Host& host = connection.host;
  const auto rank = read_number(message[1]);
  if (!rank || *rank < host.first || *rank - host.first >= host.count) return false;
  connection.unprinted += message[3].size();
  if (connection.unprinted > kMaxUnprinted + host.count * kMaxRest) return false;
  output_->print(message[2] == "2" ? Output::kStderr : Output::kStdout, *rank, message[3],
                 static_cast<std::size_t>(&connection - connections_.data()));
  return true;
}

// Tells the daemons which output has been printed, so that they send more, and which stream the
// reader has closed: the ranks' end of it is then closed, too.
void Job::take_printed() {
  const std::vector<std::size_t> printed = output_->take_printed();
  for (std::size_t i = 0; i < printed.size(); ++i) {
    if (printed[i] == 0) continue;
    connections_[i].unprinted -= printed[i];
    if (connections_[i].state != Connection::State::kRunning) continue;
    connections_[i].send({"printed", std::to_string(printed[i])});
  }
  for (const auto stream : {Output::kStdout, Output::kStderr}) {
    const int error = output_->error(stream);
    if (error == 0 || is_closed_[stream - 1]) continue;
    is_closed_[stream - 1] = true;
    if (error != EPIPE) {
      say(std::string("cannot write to ") + (stream == Output::kStdout ? "stdout: " : "stderr: ") +
          std::strerror(error));
      if (status_ == 0) status_ = 1;
      continue;
    }
    for (Connection& connection : connections_) {
      if (connection.state != Connection::State::kRunning) continue;
      connection.send({"closed", std::to_string(stream)});
    }
  }
}

void Job::take_hello(Connection& connection, const Fields& message) {
  connection.state = Connection::State::kHello;
  connection.caller = message[2];
  if (message[1] != kVersion) {
    connection.refusal = "it has Espalier " + message[1] + "; expected " + kVersion;
  } else if (message.size() == 5) {
    connection.identity = message[3];
    connection.announced = message[4];
  }
}

Connection* Job::find(std::uint32_t number) {
  for (Connection& each : connections_) {
    if (each.number == number) return &each;
  }
  return nullptr;
}

// A neighbour that the launcher has dropped may still have spoken.
bool Job::take_relayed(Connection& connection, const Fields& message) {
  const auto number = message.size() < 2 ? std::nullopt : read_number(message[1]);
  if (!number || message.size() != (message[0] == "gone" ? 2 : 3)) return false;
  if (detours_.take(message, *number)) return true;
  const auto found =
      std::find_if(connections_.begin(), connections_.end(),
                   [&number](const Connection& each) { return each.channel == *number; });
  Connection* const neighbour = found == connections_.end() ? nullptr : &*found;
  if (neighbour == nullptr || neighbour->state == Connection::State::kOver) return true;
  if (message[0] == "gone" && neighbour->session.has_begun()) {
    neighbour->is_cut = true;
    return true;
  }
  if (!neighbour->way || neighbour->way->from != connection.number) return false;
  if (message[0] == "words") {
    const std::string text = neighbour->take_errors(message[2]);
    if (!text.empty()) output_->say(text);
  } else {
    take_messages(*neighbour, message[0] == "from" && neighbour->fill(message[2]));
  }
  return true;
}

// False: the message is malformed, or does not belong here.
bool Job::handle(Connection& connection, const Fields& message) {
  using State = Connection::State;
  const std::string& name = message[0];
  const bool runs = connection.state == State::kRunning;
  if (name == "hello" && message.size() >= 3 && connection.state == State::kStarting) {
    take_hello(connection, message);
  } else if (name == "lasting" && message.size() == 1 && connection.way) {
    connection.session.begin_taking(monotonic_ns());
  } else if (name == "neighbours" && connection.state != State::kStarting &&
             options_.cables.lead_to_hosts) {
    connection.surroundings = read_surroundings(message);
    return connection.surroundings.has_value();
  } else if ((name == "from" || name == "words" || name == "gone") &&
             options_.cables.lead_to_hosts) {
    return take_relayed(connection, message);
  } else if (name == "ready" && message.size() == 1 && connection.state == State::kHello) {
    connection.state = State::kReady;
  } else if (name == "refused" && message.size() == 2) {
    connection.refusal = message[1];
  } else if (name == "taken" && message.size() == 1 && runs) {
    takes_input_ = living_ > 0;
  } else if (name == "end" && runs) {
    const auto end = read_end(message);
    return end && take_end(connection, *end);
  } else if (name == "output" && message.size() == 4 && runs) {
    return take_output(connection, message);
  } else {
    return false;
  }
  return true;
}

// The daemon is gone, and with it every process of its host.
void Job::lose(Connection& connection) {
  const bool was_running = connection.state == Connection::State::kRunning;
  connection.state = Connection::State::kOver;
  connection.close_messages();
  for (Connection& each : connections_) {
    const bool is_behind = each.way && each.way->from == connection.number;
    if (!is_behind || each.state == Connection::State::kOver) continue;
    each.is_cut = each.session.has_begun();
    if (!each.is_cut) lose(each);
  }
  if (!was_running) return;
  std::uint32_t lost = 0;
  for (std::uint32_t i = 0; i < connection.host.count; ++i) {
    const std::uint32_t rank = connection.host.first + i;
    if (ended_[rank]) continue;
    ended_[rank] = true;
    ++lost;
  }
  living_ -= lost;
  if (lost == 0) return;
  const std::string reason = connection.refusal.empty() ? "its daemon ended" : connection.refusal;
  fail_with(connection.where() + ": " + reason + "; " + std::to_string(lost) +
                " of its ranks from " + std::to_string(connection.host.first) + " are lost",
            1);
}

void Job::serve(Connection& connection) { take_messages(connection, connection.fill()); }

void Job::take_messages(Connection& connection, bool is_open) {
  for (Fields message; connection.take(message);) {
    if (connection.session.take(message, monotonic_ns()) || handle(connection, message)) continue;
    connection.refusal = "its daemon sent a message '" + message[0].substr(0, kMaxQuoted) +
                         "' that is malformed or does not belong here";
    return lose(connection);
  }
  if (!is_open) lose(connection);
}

void Job::print_errors(Connection& connection) {
  const std::string text = connection.read_errors();
  if (!text.empty()) output_->say(text);
}

}  // namespace espalier::launch
