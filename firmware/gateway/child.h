#pragma once
// The process that is the board, or starts it. Host only.

#include <sys/types.h>

#include <string>

namespace espalier::gateway {

// Ends with this, and with the thread that started it, however that ends.
class Child {
 public:
  Child() = default;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  // Runs `command` by sh. What it writes goes into the file `console`; where that is empty only
  // what it writes to stderr is seen. False and one line in `error` on failure.
  [[nodiscard]] bool start(const std::string& command, const std::string& console,
                           std::string& error);
  // The same, its standard input and output being the socket `stdio`.
  [[nodiscard]] bool start(const std::string& command, int stdio, std::string& error);
  [[nodiscard]] pid_t pid() const { return pid_; }  // 0: none was started
  // Whether it failed or was killed, and `how`. One that ended well had only to start the board.
  [[nodiscard]] bool lost(std::string& how);

 private:
  [[nodiscard]] bool run(const std::string& command, int in, int out, int errors,
                         std::string& error);

  pid_t pid_ = 0;
  bool reaped_ = false;
};

}  // namespace espalier::gateway
