#pragma once
// Marks the calls into libfabric, so that a test that replaces malloc can tell libfabric's own
// allocations from ours. Costs one thread-local increment a call.

namespace espalier::ofi {

// How many calls into libfabric this thread is inside of.
inline thread_local int fabric_depth = 0;

class InFabric {
 public:
  InFabric() { ++fabric_depth; }
  ~InFabric() { --fabric_depth; }
  InFabric(const InFabric&) = delete;
  InFabric& operator=(const InFabric&) = delete;
};

}  // namespace espalier::ofi
