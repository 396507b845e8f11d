#pragma once
// How work that may take seconds tells how far it is. Host only.

#include <functional>

namespace espalier::planner {

// Called with the part that is done, 0 .. 1. Empty: the caller does not want to know.
using ShowProgress = std::function<void(double done)>;

inline void show(const ShowProgress& progress, double done) {
  if (progress) progress(done);
}

}  // namespace espalier::planner
