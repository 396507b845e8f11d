#pragma once
// A libfabric domain and its ports: a port is an endpoint with an address vector of its own. All
// calls into libfabric are here. Not thread safe.

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

  // What to open: so many ports, each of so many peers and outstanding completions.
  struct Size {
    std::size_t ports = 1;
    std::size_t peers = 0;
    std::size_t completions = 0;
  };
  // Opens everything and enables the ports; false and one line in `error` on failure.
  [[nodiscard]] bool open(const std::string& provider, const std::string& local_address,
                          const Size& size, std::string& error);
  void close();

  // Who is written to, and from where: a peer that the port's address vector has.
  struct Target {
    std::uint32_t port = 0;
    fi_addr_t peer = 0;
  };
  // A port's name, for insert() at its peers.
  [[nodiscard]] const std::string& name(std::uint32_t port) const { return ports_[port].name; }
  // Makes the peer of that name known to the port target.port.
  [[nodiscard]] bool insert(const std::string& name, Target& target, std::string& error);

  [[nodiscard]] bool expose(void* bytes, std::uint64_t size, Exposed& out);
  void hide(Exposed& exposed);

  // Ends every operation under way, without completions, and starts anew under the same names:
  // afterwards libfabric neither reads nor writes memory that is not exposed. Peers find the new
  // endpoints when they next write. A port that does not start again carries nothing more.
  void restart();

  [[nodiscard]] std::uint64_t inject_bytes() const { return inject_bytes_; }
  [[nodiscard]] const std::string& provider() const { return provider_; }

  // Whether messages of any length are to go by inject(), piece by piece. Shared memory copies
  // anyway; but with write() the receiver's process reads the sender's memory when it gets to it,
  // which nothing can call back.
  [[nodiscard]] bool copies() const { return provider_ == "shm"; }

  // A write without immediate data or completion; the bytes may change at once.
  [[nodiscard]] Result inject_piece(Target to, const void* bytes, std::size_t size,
                                    std::uint64_t address, std::uint64_t key);
  // Writes with immediate data. inject: the bytes may change at once, no completion. write: the
  // bytes may change at the completion, which carries `context` (a fi_context2).
  [[nodiscard]] Result inject(Target to, const void* bytes, std::size_t size, std::uint64_t data,
                              std::uint64_t address, std::uint64_t key);
  [[nodiscard]] Result write(Target to, const void* bytes, std::size_t size, std::uint64_t data,
                             std::uint64_t address, std::uint64_t key, void* context);

  // The completion queues: of a port each where reading takes a lock that the port's peers take,
  // too (shm), so that none of them can shut the others out; else one for all.
  [[nodiscard]] std::uint32_t queues() const { return static_cast<std::uint32_t>(queues_.size()); }
  // Progresses a queue; up to `room` completions. 0: none. kFailure: the next one is an error, see
  // failed(). kShut: another process holds what must be held to read.
  static constexpr int kFailure = -1;
  static constexpr int kShut = -2;
  [[nodiscard]] int completions(std::uint32_t queue, fi_cq_data_entry* entries, std::size_t room);
  // The context of the operation that failed; null if it has none.
  [[nodiscard]] void* failed(std::uint32_t queue);

  // Every peer has been written to, and has written: the doors that are not known by now never
  // will be.
  void settle();
  // False: the peer's process (shm) is stopped or has ended.
  [[nodiscard]] bool runs(Target peer) const {
    return ports_[peer.port].peers[peer.peer].process.runs();
  }

  // Blocks until completions() may have something, at most `ns`; returns false at once if this
  // provider cannot block.
  [[nodiscard]] bool block(std::uint64_t ns);

 private:
  struct Peer {
    Door door;
    PeerProcess process;
  };
  struct Port {
    fid_av* addresses = nullptr;
    fid_ep* endpoint = nullptr;
    std::string name;
    std::vector<Peer> peers;  // by fi_addr_t
  };
  struct Queue {
    fid_cq* queue = nullptr;
    Door door;  // of its port
  };

  [[nodiscard]] bool open_all(const std::string& provider, const std::string& local_address,
                              const Size& size, std::string& error);
  void open_wake();
  [[nodiscard]] bool open_port(std::uint32_t port, const Size& size, std::string& error);
  [[nodiscard]] int open_endpoint(std::uint32_t port);
  [[nodiscard]] bool read_name(std::uint32_t port, std::string& error);
  [[nodiscard]] Queue& queue_of(std::uint32_t port) {
    return queues_[port < queues_.size() ? port : 0];
  }
  // Makes `call`, which writes to the peer from the endpoint that it is given, and returns
  // libfabric's code.
  template <typename Call>
  [[nodiscard]] Result enter(Target to, Call call);

  fi_info* info_ = nullptr;
  fid_fabric* fabric_ = nullptr;
  fid_eq* events_ = nullptr;
  fid_domain* domain_ = nullptr;
  std::vector<Queue> queues_;
  std::vector<Port> ports_;
  std::string provider_;
  std::uint64_t inject_bytes_ = 0;
  std::uint64_t next_key_ = 1;
  int wake_ = -1;  // readable when the domain has something to progress; -1: there is no such thing
};

}  // namespace espalier::ofi
