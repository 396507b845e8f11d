#pragma once
// The process that is the board, or that starts it. Host only.

#include <sys/types.h>

#include <string>

namespace espalier::gateway {

// The destructor kills the process. The kernel kills it when the thread that started it ends, for
// any reason.
class Child {
 public:
  Child() = default;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  // Runs `command` by sh. Its output goes to the file `console`. If that is empty, its stderr goes
  // to this process's stderr, and its standard output is discarded. False and one line in `error`
  // on failure.
  [[nodiscard]] bool start(const std::string& command, const std::string& console,
                           std::string& error);
  // As above, with the socket `stdio` as the command's standard input and output.
  [[nodiscard]] bool start(const std::string& command, int stdio, std::string& error);
  [[nodiscard]] pid_t pid() const { return pid_; }  // 0: no process was started
  // Whether the process failed or was killed; `how` then says so. A process that ended with status
  // 0 only had to start the board, and has not failed.
  [[nodiscard]] bool failed(std::string& how);

 private:
  [[nodiscard]] bool run(const std::string& command, int in, int out, int errors,
                         std::string& error);

  pid_t pid_ = 0;
  bool reaped_ = false;
};

}  // namespace espalier::gateway
