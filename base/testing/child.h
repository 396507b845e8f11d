#pragma once
// Processes that a test forks.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <type_traits>

namespace espalier {

// Starts a process that runs `body` and ends: with status 1 if a check of gtest failed there or
// `body` returned false, otherwise 0.
template <typename Body>
[[nodiscard]] pid_t start_child(Body body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child != 0) return child;
  bool is_right = true;
  if constexpr (std::is_void_v<std::invoke_result_t<Body>>) {
    body();
  } else {
    is_right = body();
  }
  std::fflush(nullptr);
  _exit(is_right && !testing::Test::HasFailure() ? 0 : 1);
}

// Waits for the end of a child. Returns its status as waitpid() does; -1: there is no such child.
[[nodiscard]] inline int wait_for_child(pid_t child) {
  int status = -1;
  return waitpid(child, &status, 0) == child ? status : -1;
}

// Returns the status of a child that runs `body`.
template <typename Body>
[[nodiscard]] int status_of_child(Body body) {
  return wait_for_child(start_child(body));
}

}  // namespace espalier
