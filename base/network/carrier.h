#pragma once
// Whether interfaces have lost their carrier or were set down. Without a thread. Host only.

#include <cstdint>
#include <memory>
#include <vector>

namespace espalier::network {

// Linux reports a lost carrier at once only if a second has passed since the last change of any
// interface, in any network namespace. So the watch also asks: the reply is always right.
class CarrierWatch {
 public:
  // How often to ask. One check takes two system calls per interface.
  static constexpr std::uint64_t kPeriodNs = 100'000'000;
  // A carrier that is back within this time was not lost. What has seen it last may be as old as
  // kPeriodNs, so one that is gone for 250 ms is always lost.
  static constexpr std::uint64_t kForgivenNs = 150'000'000;

  // Watches the interfaces with these numbers. Null: the system does not say.
  [[nodiscard]] static std::unique_ptr<CarrierWatch> open(std::vector<std::uint32_t> indexes);
  ~CarrierWatch();
  CarrierWatch(const CarrierWatch&) = delete;
  CarrierWatch& operator=(const CarrierWatch&) = delete;

  // Readable when an interface of this host has changed: call check() then, whatever due_ns() says.
  [[nodiscard]] int descriptor() const { return socket_; }
  // When to call check() next; of base/clock.h:monotonic_ns().
  [[nodiscard]] std::uint64_t due_ns() const { return due_ns_; }
  // Asks for all interfaces. Whether one has been lost since the last call. `time_ns`: now.
  bool check(std::uint64_t time_ns);
  // Whether the interface at this place of open()'s list was without a carrier, down or gone for
  // kForgivenNs on end. It stays lost.
  [[nodiscard]] bool is_lost(std::size_t place) const { return watched_[place].is_lost; }

 private:
  struct Watched {
    std::uint32_t index = 0;
    std::uint32_t changes = 0;  // of the carrier, as the kernel counts them
    std::uint64_t down_ns = 0;  // start of the time without a carrier; 0: there is a carrier
    bool is_lost = false;
  };

  CarrierWatch(int socket, const std::vector<std::uint32_t>& indexes);
  void ask(std::uint32_t index);
  void read_all(std::uint64_t time_ns);
  void take(const void* message, std::uint64_t time_ns);
  void note(std::uint32_t index, bool has_carrier, std::uint32_t changes, std::uint64_t time_ns);

  int socket_;
  std::uint64_t due_ns_ = 0;
  std::vector<Watched> watched_;
};

}  // namespace espalier::network
