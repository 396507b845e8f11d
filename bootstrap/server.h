#pragma once
// The rendezvous server of a job: keeps what its processes publish, releases their fences, and
// counts survivors. A launcher has one; otherwise rank 0 does. Host only.

#include <cstdint>
#include <memory>
#include <string>

#include "bootstrap/listener.h"
#include "espalier/base/result.h"
#include "espalier/bootstrap/bootstrap.h"

namespace espalier::bootstrap {

// A server for one job.
class Server {
 public:
  // Listens at `address` (listen_at()) for a job of `size` processes, and serves them in a thread
  // of its own. Connections of processes without the secret, and those to addresses that the
  // options leave out, have no effect.
  // Errors: the address is malformed, or in use (is_in_use says which); `size` is 0 or above 2^20.
  [[nodiscard]] static Result<std::unique_ptr<Server>> start(const std::string& address,
                                                             std::uint32_t size,
                                                             const JobSecret& secret,
                                                             bool* is_in_use = nullptr,
                                                             const ListenOptions& options = {});
  virtual ~Server() = default;  // ends the thread and all connections
  // Where it listens: "127.0.0.1:4000", "[::]:4000" at all addresses of this host. This process
  // reaches it there.
  [[nodiscard]] virtual const std::string& address() const = 0;
  // Whether it serves no more, because its process has no memory.
  [[nodiscard]] virtual bool is_without_memory() const = 0;
};

}  // namespace espalier::bootstrap
