#pragma once
// The process that is the board, or that starts it. Host only.

#include <sys/types.h>

#include <optional>
#include <string>

#include "espalier/base/result.h"

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
  // to this process's stderr, and its standard output is discarded.
  [[nodiscard]] Result<void> start(const std::string& command, const std::string& console);
  // As above, with the socket `stdio` as the command's standard input and output.
  [[nodiscard]] Result<void> start(const std::string& command, int stdio);
  [[nodiscard]] pid_t pid() const { return pid_; }  // 0: no process was started
  struct End {
    bool failed = false;  // false: status 0, the process only had to start the board
    std::string how;      // "ended with status 3"
  };
  // Returns how the process ended, once; nothing while it runs.
  [[nodiscard]] std::optional<End> ended();
  // Returns what the console said last, for the end of a message: "; its console ends with ...".
  // Empty without a console that is a file.
  [[nodiscard]] std::string last_words() const;

 private:
  [[nodiscard]] Result<void> run(const std::string& command, int in, int out, int errors);

  std::string console_;
  pid_t pid_ = 0;
  bool reaped_ = false;
};

}  // namespace espalier::gateway
