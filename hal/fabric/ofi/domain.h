#pragma once
// The libfabric domains of an endpoint, one per device, and their ports. All calls into libfabric
// are made here. Not thread safe.
//
// A port is a libfabric endpoint with an address vector of its own. All ports share one device
// unless they have addresses of their own, and the provider needs a domain per device.

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/internal/base/assert.h"

namespace espalier::ofi {

// Registered memory: peers may write to it under this address and key.
struct Registration {
  fid_mr* region = nullptr;
  std::uint64_t base = 0;       // address of the first byte, as the provider counts addresses
  std::uint64_t key = 0;        // at the first device; see Domain::key()
  std::uint32_t at_others = 0;  // number of the entry of the other devices; 0: there are none
};

class Domain {
 public:
  // kNoRoom: try again later.
  enum class Result { kDone, kNoRoom, kFailed };

  Domain() = default;
  ~Domain() { close(); }
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;

  struct Capacity {
    std::size_t ports = 1;
    std::size_t peers = 0;        // per port
    std::size_t completions = 0;  // outstanding, per port
    // Numbers of the sockets at which ports may listen, where the provider has IP; 0: any.
    std::uint16_t first_socket = 0, last_socket = 0;
    std::vector<std::string> addresses = {};  // of each port, of one family; empty: local_address
    bool separate = false;  // every port has a device of its own, whatever the provider needs
  };
  // Opens everything and enables the ports.
  [[nodiscard]] espalier::Result<void> open(const std::string& provider,
                                            const std::string& local_address,
                                            const Capacity& capacity);
  void close();

  // The receiver of a write, and the port that writes: `peer` is in that port's address vector.
  struct Target {
    std::uint32_t port = 0;
    fi_addr_t peer = 0;
  };
  // Returns the port's name in libfabric, as it travels: without a scope. Its peers insert() it.
  [[nodiscard]] std::string name(std::uint32_t port) const;
  // Whether libfabric's objects and connections may be shared by endpoints: its names are those of
  // sockets, and wait() works.
  [[nodiscard]] bool can_be_shared() const { return wake_ >= 0; }
  // Readable when there may be something to progress; only if can_be_shared().
  [[nodiscard]] int wake() const { return wake_; }
  // Before a wait for wake(): false, if there is something to progress now.
  [[nodiscard]] bool may_block();
  // One more port, of a domain that can be shared, and its end.
  [[nodiscard]] espalier::Result<std::uint32_t> add_port(std::size_t peers);
  void close_port(std::uint32_t port);
  // The number of the socket in a port's name.
  [[nodiscard]] std::uint32_t socket_port(std::uint32_t port) const;
  // As insert() of the port whose name is `address` with the socket `number`. Allocates nothing but
  // in libfabric.
  [[nodiscard]] bool insert_socket(const std::string& address, std::uint32_t number,
                                   Target& target);
  // Makes the peer with this address known to the port target.port, and sets target.peer.
  [[nodiscard]] espalier::Result<void> insert(const std::string& address, Target& target);

  // Registers memory for writes by peers, at all devices; false if the provider refuses.
  [[nodiscard]] bool register_memory(void* bytes, std::uint64_t size, Registration& out);
  // Whether write() needs the bytes to be in registered memory (FI_MR_LOCAL).
  [[nodiscard]] bool registers_local_memory() const;
  // Returns the key with which the peer of this port writes to registered memory.
  [[nodiscard]] std::uint64_t key(const Registration& registration, std::uint32_t port) const {
    const std::uint32_t device = ports_[port].device;
    return device == 0 ? registration.key : key_at(registration, device);
  }
  // Ends the registration, if there is one: from then on no write arrives under its key.
  void deregister(Registration& registration) {
    if (registration.region != nullptr) end_registration(registration);
  }

  // Ends all pending operations without completions, and opens the ports anew under the same names.
  // Afterwards libfabric neither reads nor writes memory that is not registered. Peers find the new
  // ports when they next write. A port that cannot be opened again carries nothing more.
  void restart();

  [[nodiscard]] std::uint64_t inject_bytes() const { return inject_bytes_; }
  [[nodiscard]] const std::string& provider() const { return provider_; }

  // Writes without immediate data and without a completion. The bytes may be reused at once.
  [[nodiscard]] Result inject_silently(Target to, const void* bytes, std::size_t size,
                                       std::uint64_t address, std::uint64_t key);
  // Writes with immediate data and without a completion. The bytes may be reused at once.
  [[nodiscard]] Result inject(Target to, const void* bytes, std::size_t size, std::uint64_t data,
                              std::uint64_t address, std::uint64_t key);
  // Writes with immediate data. The bytes may be reused at the completion, which carries `context`
  // (a fi_context2).
  [[nodiscard]] Result write(Target to, const void* bytes, std::size_t size, std::uint64_t data,
                             std::uint64_t address, std::uint64_t key, void* context);

  // Progresses all ports. Returns the number of completions read, at most `room`. kFailure: the
  // next completion is an error; read_failure() has it.
  static constexpr int kFailure = -1;
  [[nodiscard]] int read_completions(fi_cq_data_entry* entries, std::size_t room);
  // The context of the operation that failed; null if the operation has none.
  [[nodiscard]] void* read_failure();

  // Waits until read_completions() may have something or one of `others` (descriptors; -1: none) is
  // readable, at most `ns` nanoseconds. Sets `is_readable` for these. Returns false at once if this
  // provider has no way to wait.
  [[nodiscard]] bool wait(std::uint64_t ns, const std::array<int, 2>& others,
                          std::array<bool, 2>& is_readable);
  [[nodiscard]] bool wait(std::uint64_t ns) {
    std::array<bool, 2> is_readable;
    return wait(ns, {-1, -1}, is_readable);
  }

 private:
  struct Device {
    fi_info* info = nullptr;
    fid_fabric* fabric = nullptr;
    fid_eq* events = nullptr;
    fid_domain* domain = nullptr;
    fid_cq* queue = nullptr;  // the completions of its ports
    int wake = -1;  // readable when the device has something to progress; -1: not available
  };
  struct Port {
    fid_av* addresses = nullptr;
    fid_ep* endpoint = nullptr;
    std::string name;
    std::uint32_t device = 0;
    std::string source = {};  // the socket address to bind; empty: that of the device's info
  };
  struct LocalMemory {
    const void* bytes = nullptr;
    std::uint64_t size = 0;
    fid_mr* region = nullptr;
    std::uint32_t device = 0;
  };

  [[nodiscard]] espalier::Result<void> open_all(const std::string& provider,
                                                const std::string& local_address,
                                                const Capacity& capacity);
  // Finds the devices of the ports, and what each port binds.
  [[nodiscard]] espalier::Result<void> find_devices(const std::string& provider,
                                                    const std::string& local_address,
                                                    const Capacity& capacity);
  // Takes the entry for the port: at its device, or as a new one.
  [[nodiscard]] espalier::Result<void> take_entry(fi_info* entry, std::uint32_t port,
                                                  bool separate);
  [[nodiscard]] espalier::Result<void> open_device(Device& device, std::size_t completions);
  void open_event_wake(Device& device);
  // Makes one descriptor of those of several devices.
  void open_common_wake();
  [[nodiscard]] bool has_queue_wake() const;
  [[nodiscard]] espalier::Result<void> open_port(std::uint32_t port, const Capacity& capacity);
  [[nodiscard]] int open_endpoint(std::uint32_t port);
  // The same at a socket of the numbers allowed.
  [[nodiscard]] espalier::Result<void> open_at_socket(std::uint32_t port);
  [[nodiscard]] bool has_ip() const;
  void end_registration(Registration& registration);
  [[nodiscard]] bool register_at(std::uint32_t device, void* bytes, std::uint64_t size,
                                 Registration& out);
  void end_at(Registration& registration);
  [[nodiscard]] std::uint64_t key_at(const Registration& registration, std::uint32_t device) const;
  // As read_completions(), of several devices.
  [[nodiscard]] int read_devices(fi_cq_data_entry* entries, std::size_t room);
  [[nodiscard]] int read_name(std::uint32_t port);
  // Converts a name to how it travels, or back: a socket address begins with its family, which
  // libfabric has in the order of this machine, and others expect to be little-endian.
  [[nodiscard]] std::string converted(std::string name) const;
  // Returns the scope of the port's own address; 0: it has none.
  [[nodiscard]] std::uint32_t scope_of(std::uint32_t port) const;
  // Gives a link-local address this scope: scopes are numbers of each host's interfaces.
  void set_scope(char* name, std::size_t size, std::uint32_t scope) const;
  [[nodiscard]] fid_mr* local_region(const void* bytes, std::size_t size,
                                     std::uint32_t device) const;
  // Makes `call`, which takes the endpoint to write from and returns libfabric's code.
  template <typename Call>
  [[nodiscard]] Result write_from(std::uint32_t port, Call call);

  std::vector<Device> devices_;
  fi_info* info_ = nullptr;   // of the first device; all have the same modes
  fid_cq* queue_ = nullptr;   // of the only device; null: there are several
  std::uint32_t turn_ = 0;    // the device that is read first next time
  std::uint32_t failed_ = 0;  // the device whose next completion is an error
  std::vector<Port> ports_;
  // With several devices: the registrations at the second one and the later ones.
  std::vector<std::vector<Registration>> at_others_;
  std::vector<LocalMemory> local_;  // only if registers_local_memory()
  std::string provider_;
  std::uint16_t first_socket_ = 0, last_socket_ = 0;
  std::uint64_t inject_bytes_ = 0;
  int wake_ = -1;         // readable when a device has something to progress; -1: not available
  int common_wake_ = -1;  // of several devices, in place of theirs
};

}  // namespace espalier::ofi
