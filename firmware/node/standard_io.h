#pragma once
// A node whose launcher is at the other end of its standard input and output (stream.h). Host only.

#include <string>
#include <thread>
#include <vector>

namespace espalier::node {

// The node's own process goes on as if it had been started with a control channel; a thread carries
// that channel's packets.
class Stdio {
 public:
  Stdio() = default;
  Stdio(const Stdio&) = delete;
  Stdio& operator=(const Stdio&) = delete;
  ~Stdio();  // has carried the node's last word

  // Reads the command line that the launcher's end sends and opens the channel. `words`: this
  // process's own words on entry, which win over those that come (where they name an image or a
  // flash the schedules that come are left out); then all, with --control FD. Standard output is
  // stderr from then on. False and one line in `error` if what comes is not that.
  [[nodiscard]] bool begin(std::vector<std::string>& words, std::string& error);
  // The node is done with its end of the channel.
  void end();

 private:
  int node_end_ = -1;
  std::thread thread_;
};

}  // namespace espalier::node
