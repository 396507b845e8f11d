#pragma once
// The daemons that the daemon of a host has started on its neighbours: it passes on what the
// launcher and they say to each other. Host only.

#include <poll.h>

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "tools/cluster/keeper.h"
#include "tools/launch/frames.h"
#include "tools/launch/shell.h"

namespace espalier::launch {

class Relay {
 public:
  using Say = std::function<void(const Fields& message)>;
  // `say` sends a message to the launcher; `prepare` restores the signals in a new process.
  Relay(const cluster::Keeper& keeper, Say say, std::function<void()> prepare)
      : keeper_(keeper), say_(std::move(say)), prepare_(std::move(prepare)) {}
  // Whether it was a message of the launcher for a neighbour; malformed ones are not.
  [[nodiscard]] bool take(const Fields& message);
  void add_events(std::vector<pollfd>& files) const;
  // Takes what poll() said of the entries that add_events() had added.
  void serve(const pollfd* entries);
  // Ends the neighbours' daemons, and with them their ranks.
  void end();

 private:
  void start(std::uint32_t number, const Fields& message);
  void end(std::uint32_t number);
  // Passes on what the pipe has. Returns false at its end.
  [[nodiscard]] bool pass(int pipe, const char* name, std::uint32_t number) const;

  struct Neighbour {
    Shell shell = {};
    bool has_spoken = false;  // it runs: it ends by itself once its pipe is closed
  };

  const cluster::Keeper& keeper_;
  Say say_;
  std::function<void()> prepare_;
  std::map<std::uint32_t, Neighbour> neighbours_;  // by the launcher's number
};

}  // namespace espalier::launch
