#pragma once
// Connects a node to a launcher at the other end of its standard input and output (stream.h). Host
// only.

#include <string>
#include <thread>
#include <vector>

#include "espalier/base/result.h"

namespace espalier::node {

// Gives the process a control channel, as if its launcher ran on the same host. A thread carries
// the channel's packets to and from the stream.
class Stdio {
 public:
  Stdio() = default;
  Stdio(const Stdio&) = delete;
  Stdio& operator=(const Stdio&) = delete;
  ~Stdio();  // returns once the node's last packet has been sent

  // Receives a command line from the launcher's end and opens the channel.
  // own: this process's own words, without the program's name. Returns the received words, then the
  // own ones, which override them, then --control FD. If the own words name an image or a flash,
  // received schedules are left out. Standard output becomes stderr. Errors: no command line
  // arrived, or the channel cannot be opened.
  [[nodiscard]] Result<std::vector<std::string>> begin(const std::vector<std::string>& own);
  // Closes the node's end of the channel and waits until its packets have been sent.
  void end();

 private:
  int node_end_ = -1;
  std::thread thread_;
};

}  // namespace espalier::node
