#pragma once
// Test helper: the server of a job in a process of its own, which no end of a rank takes along.
// Host only.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <string>

#include "bootstrap/server.h"

namespace espalier::bootstrap {

class ServerProcess {
 public:
  // address() is empty if the server does not start.
  explicit ServerProcess(std::uint32_t ranks) {
    int ends[2] = {-1, -1};
    if (pipe(ends) != 0) return;
    std::fflush(nullptr);
    process_ = fork();
    if (process_ == 0) serve(ranks, ends[1]);
    close(ends[1]);
    char byte = 0;
    while (read(ends[0], &byte, 1) == 1) address_ += byte;
    close(ends[0]);
  }
  ~ServerProcess() { (void)end(); }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  [[nodiscard]] const std::string& address() const { return address_; }
  // Ends it. Returns whether it was still there.
  bool end() {
    if (process_ <= 0) return false;
    const bool was_there = kill(process_, SIGKILL) == 0;
    const bool has_ended = waitpid(process_, nullptr, 0) == process_;
    process_ = -1;
    return was_there && has_ended;
  }

 private:
  [[noreturn]] static void serve(std::uint32_t ranks, int out) {
    const auto server = Server::start("127.0.0.1:0", ranks, {});
    if (!server) _exit(1);
    const std::string& address = (*server)->address();
    if (write(out, address.data(), address.size()) < 0) _exit(1);
    close(out);
    while (true) pause();
  }

  pid_t process_ = -1;
  std::string address_;
};

}  // namespace espalier::bootstrap
