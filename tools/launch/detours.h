#pragma once
// Other ways to the daemons of a job that runs over cables, when the cable breaks over which one of
// them was reached. Host only.

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tools/launch/connection.h"
#include "tools/launch/job.h"

namespace espalier::launch {

class Detours {
 public:
  using Say = std::function<void(const std::string& line)>;
  using Lose = std::function<void(Connection& connection)>;
  // How long a host may be silent before it is lost.
  static constexpr std::uint64_t kLostTime = 20'000'000'000;  // ns
  // How long nothing need be looked at.
  static constexpr int kTickMs = 200;

  // All must outlive it. `say` prints a line, `lose` gives a host up.
  Detours(const JobOptions& options, std::vector<Connection>& connections, Say say, Lose lose)
      : options_(options),
        connections_(connections),
        say_(std::move(say)),
        lose_(std::move(lose)) {}
  // Asks the daemons for sessions that outlive their ways. Error: no random number for a name.
  [[nodiscard]] Result<void> begin(const DaemonStart& how, Connection::Relay relay);
  // Looks for silent hosts, and for ways to them. Call it each kTickMs.
  void tick(std::uint64_t now_ns);
  // Whether the message of a neighbour's daemon was about a way that is being tried.
  [[nodiscard]] bool take(const Fields& message, std::uint32_t channel);

 private:
  // From a host over an interface to a host.
  using Attempt = std::tuple<std::uint32_t, std::string, std::uint32_t>;
  struct Trial {
    std::uint32_t host = 0;  // a connection's number
    Way way = {};
    Reader reader{kGreeting};
    std::uint64_t since_ns = 0;
  };

  [[nodiscard]] bool is_silent(const Connection& host, std::uint64_t now_ns) const;
  void look_at(Connection& host, std::uint64_t now_ns);
  // Tries the next way to the host, if there is any that was not tried since it fell silent.
  void try_next(Connection& host, std::uint64_t now_ns);
  void end_late_trials(std::uint64_t now_ns);
  void adopt(Trial& trial, std::uint32_t channel, const Fields& message);
  [[nodiscard]] Connection* find(std::uint32_t number) const;

  const JobOptions& options_;
  std::vector<Connection>& connections_;
  Say say_;
  Lose lose_;
  Connection::Relay relay_;
  std::string espalier_, shell_, name_;
  std::uint32_t next_channel_ = 0;
  std::map<std::uint32_t, Trial> trials_;             // by channel
  std::map<std::uint32_t, std::uint64_t> silent_ns_;  // hosts, and since when
  std::set<Attempt> tried_;
  std::uint64_t ticked_at_ns_ = 0;
};

}  // namespace espalier::launch
