#pragma once
// Marks calls into libfabric, so that a test that replaces malloc can distinguish libfabric's own
// allocations from ours. Costs one thread-local increment per call.

namespace espalier::ofi {

// How many marks this thread is inside of; 0: it runs our code.
inline thread_local int libfabric_call_depth = 0;

class LibfabricCall {
 public:
  LibfabricCall() { ++libfabric_call_depth; }
  ~LibfabricCall() { --libfabric_call_depth; }
  LibfabricCall(const LibfabricCall&) = delete;
  LibfabricCall& operator=(const LibfabricCall&) = delete;
};

}  // namespace espalier::ofi
