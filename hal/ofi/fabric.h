#pragma once
// One libfabric endpoint with its domain, completion queue and address vector: all calls into
// libfabric are here. Not thread safe.

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hal/ofi/door.h"
#include "hal/ofi/peer_process.h"

namespace espalier::ofi {

// Memory that peers may write, as they must name it.
struct Exposed {
  fid_mr* region = nullptr;
  std::uint64_t base = 0;  // address of its first byte, as the provider addresses it
  std::uint64_t key = 0;
};

class Fabric {
 public:
  enum class Result { kDone, kNoRoom, kFailed };

  Fabric() = default;
  ~Fabric() { close(); }
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  // The provider that users call `provider`: what the installed libfabric has of that name. Null if
  // it has none that can do what this back end needs. The caller frees it (fi_freeinfo).
  [[nodiscard]] static fi_info* find(const std::string& provider, const std::string& local_address);

  // Opens everything and enables the endpoint; false and one line in `error` on failure.
  [[nodiscard]] bool open(const std::string& provider, const std::string& local_address,
                          std::size_t peers, std::size_t completions, std::string& error);
  void close();

  // This endpoint's name, for insert() at its peers.
  [[nodiscard]] bool name(std::string& out, std::string& error) const;
  [[nodiscard]] bool insert(const std::string& name, fi_addr_t& peer, std::string& error);

  [[nodiscard]] bool expose(void* bytes, std::uint64_t size, Exposed& out);
  void hide(Exposed& exposed);

  // Ends every operation under way, without completions, and starts anew under the same name:
  // afterwards libfabric neither reads nor writes memory that is not exposed. Peers find the new
  // endpoint when they next write. False: this endpoint carries nothing more.
  bool restart();

  [[nodiscard]] std::uint64_t inject_bytes() const { return inject_bytes_; }
  [[nodiscard]] const std::string& provider() const { return provider_; }

  // Whether messages of any length are to go by inject(), piece by piece. Shared memory copies
  // anyway; but with write() the receiver's process reads the sender's memory when it gets to it,
  // which nothing can call back.
  [[nodiscard]] bool copies() const { return provider_ == "shm"; }

  // A write without immediate data or completion; the bytes may change at once.
  [[nodiscard]] Result inject_piece(fi_addr_t peer, const void* bytes, std::size_t size,
                                    std::uint64_t address, std::uint64_t key);
  // Writes with immediate data. inject: the bytes may change at once, no completion. write: the
  // bytes may change at the completion, which carries `context` (a fi_context2).
  [[nodiscard]] Result inject(fi_addr_t peer, const void* bytes, std::size_t size,
                              std::uint64_t data, std::uint64_t address, std::uint64_t key);
  [[nodiscard]] Result write(fi_addr_t peer, const void* bytes, std::size_t size,
                             std::uint64_t data, std::uint64_t address, std::uint64_t key,
                             void* context);

  // Progresses; up to `room` completions. 0: none. kFailure: the next one is an error, see
  // failed(). kShut: another process holds what must be held to read.
  static constexpr int kFailure = -1;
  static constexpr int kShut = -2;
  [[nodiscard]] int completions(fi_cq_data_entry* entries, std::size_t room);
  // The context of the operation that failed; null if it has none.
  [[nodiscard]] void* failed();

  // Every peer has been written to, and has written: the doors that are not known by now never
  // will be.
  void settle();
  // False: the peer's process (shm) is stopped or has ended.
  [[nodiscard]] bool runs(fi_addr_t peer) const { return peers_[peer].process.runs(); }

  // Blocks until completions() may have something, at most `ns`; returns false at once if this
  // provider cannot block.
  [[nodiscard]] bool block(std::uint64_t ns);

 private:
  [[nodiscard]] bool open_all(const std::string& provider, const std::string& local_address,
                              std::size_t peers, std::size_t completions, std::string& error);
  void open_wake();
  [[nodiscard]] int open_endpoint();
  [[nodiscard]] bool keep_name(std::string& error);
  // Makes `call`, which writes to the peer and returns libfabric's code.
  template <typename Call>
  [[nodiscard]] Result enter(fi_addr_t peer, Call call);

  struct Peer {
    Door door;
    PeerProcess process;
  };

  fi_info* info_ = nullptr;
  fid_fabric* fabric_ = nullptr;
  fid_eq* events_ = nullptr;
  fid_domain* domain_ = nullptr;
  fid_cq* queue_ = nullptr;
  fid_av* addresses_ = nullptr;
  fid_ep* endpoint_ = nullptr;
  Door door_;                // of this endpoint
  std::vector<Peer> peers_;  // by fi_addr_t
  std::string provider_;
  std::uint64_t inject_bytes_ = 0;
  std::uint64_t next_key_ = 1;
  int wake_ = -1;  // readable when the domain has something to progress; -1: there is no such thing
};

}  // namespace espalier::ofi
