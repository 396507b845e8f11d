#pragma once
// The endpoint over libfabric: RMA writes with immediate data into registered memory, one credit
// back, no receive ever posted. Host only. Allocates in open() and connect() only.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "espalier/hal/endpoint.h"

namespace espalier::ofi {

struct Config {
  // "tcp" (which is "net" in libfabric 1.17), "shm", or any libfabric name.
  std::string provider = "tcp";
  std::string local_address;  // IP to bind; empty: 127.0.0.1 (tcp)
  std::uint32_t node = 0;
  std::vector<std::uint32_t> peers;  // node at the other end of each link
  // Empty: direct, one libfabric endpoint that knows the addresses of all peers. Else modelled:
  // each link has so many lanes in each direction (0: none), and each lane, of the direction that
  // has more, is a libfabric endpoint of its own that knows the address of its other end and no
  // more.
  struct Lanes {
    std::uint32_t out = 1;
    std::uint32_t in = 1;
  };
  std::vector<Lanes> lanes;
  std::uint32_t window = 16;
  // A grant costs a write of its own, and so a trip through the kernel on tcp: copying 16 KiB is
  // cheaper. 0: 16384, or where the provider itself copies (shm), what it takes in one piece.
  std::uint32_t eager_bytes = 0;
};

// The names `--provider` takes, with what libfabric 1.17 calls them.
[[nodiscard]] bool known_provider(const std::string& name);

class OfiEndpoint {
 public:
  // Opens the local half; null and one clear line in `error` on failure.
  [[nodiscard]] static std::unique_ptr<OfiEndpoint> open(const Config& config, std::string& error);
  virtual ~OfiEndpoint() = default;
  // The node at the other end of each lane, link by link; a direct link has one lane.
  [[nodiscard]] virtual std::vector<std::uint32_t> lane_peers() const = 0;
  // What the other end of each lane must know of it (binary; the launcher carries it).
  [[nodiscard]] virtual std::vector<std::string> addresses() const = 0;
  // addresses[l]: of the other end of lane l (other_end() of address.h). Returns when every lane
  // can carry; kBackEnd and `error` otherwise.
  [[nodiscard]] virtual Status connect(const std::vector<std::string>& addresses,
                                       std::string& error) = 0;
  // connect() in two parts, for a thread that connects several endpoints to each other: start each,
  // then go on with all in turn until none is kBusy. What is connected goes on answering there.
  [[nodiscard]] virtual Status start_connecting(const std::vector<std::string>& addresses,
                                                std::string& error) = 0;
  [[nodiscard]] virtual Status go_on_connecting(std::string& error) = 0;
  [[nodiscard]] virtual Endpoint& endpoint() = 0;
};

}  // namespace espalier::ofi
