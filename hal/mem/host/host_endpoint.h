#pragma once
// The memory endpoint of a process: its segment, the blocks of its peers, and its waits. Host only.

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/hal/mem/mem_endpoint.h"
#include "hal/mem/host/segment.h"
#include "hal/mem/host/shared_memory.h"

namespace espalier::mem {

// How an endpoint that others may connect to is laid out.
struct HostConfig {
  MemConfig endpoint;
  std::uint32_t blocks = 0;  // of its segment: links, or nodes that may add one
  // Called in poll() and wait() when a peer has added a link to this endpoint. Empty: none does
  // before this end has added it.
  std::function<void()> greeted = {};
  // Whether peers in this process read any message where it is, not only in memory of allocate().
  // The caller then keeps a message's memory until no peer polls any more: a peer may be reading it
  // when release() returns, and memory of allocate() alone can always be read.
  bool reads_all_memory = false;
  // Whether adding a link touches all its memory, where pieces take turns. Otherwise messages do.
  bool touches_memory = true;
};

class HostEndpoint final : public MemEndpoint {
 public:
  explicit HostEndpoint(const HostConfig& config);
  [[nodiscard]] Result<void> open();
  [[nodiscard]] const SegmentPlace& place() const { return segment_.place(); }

  // Adds the link to `peer`, which writes block `own` of this segment. This end writes block
  // `remote` of the segment at `place`. Error: that is not there.
  [[nodiscard]] Result<void> connect(std::uint32_t peer, std::uint32_t own,
                                     const SegmentPlace& place, std::uint32_t remote);
  // Adds a link to `peer`, whose segment is not there: it never connects, and nothing that is sent
  // over it arrives. Error: no memory.
  [[nodiscard]] Result<void> connect_to_none(std::uint32_t peer, std::uint32_t own);
  // Whether the peer that writes block `own` has added its link.
  [[nodiscard]] bool is_greeted(std::uint32_t own) const;

  [[nodiscard]] bool poll(Completion& completion) override;
  // Moves what can be moved, without waiting. Returns whether there may be something to poll.
  [[nodiscard]] bool look();
  // Looks for a while, then yields the core between looks, then sleeps until a peer has something.
  // Peers wake only those that sleep.
  void wait(std::uint64_t until) override;
  // Ends the wait() of another thread, or its next one. Any thread may call it.
  void wake();
  [[nodiscard]] std::uint64_t now() override;

 private:
  void add_remote(std::uint32_t peer, std::uint32_t own, RemoteBlock block);
  void notify(std::uint32_t link) override;
  [[nodiscard]] bool find_place(std::uint32_t link, const std::uint8_t* bytes, std::uint64_t size,
                                std::uint64_t& place) override;
  [[nodiscard]] const std::uint8_t* at_place(std::uint32_t link, std::uint64_t place,
                                             std::uint64_t size) override;
  // Returns whether there were any.
  bool take_greetings();
  [[nodiscard]] bool sleep(std::uint64_t until);

  HostConfig config_;
  Segment segment_;
  const SharedMemory* memory_ = nullptr;  // of this process; null: none
  std::vector<MemLink> links_;
  std::vector<RemoteBlock> remotes_;    // by link
  std::atomic<bool> is_woken_ = false;  // by wake(), since the last wait()
  std::uint32_t greeted_ = 0;           // greetings that were taken
  std::uint64_t spin_ns_ = 1'000;       // how long wait() spins before it yields
};

}  // namespace espalier::mem
