#pragma once
// Connects the lanes of an endpoint: makes their addresses, reads those of the peers, greets.
//
// The lower node of a lane writes first and the other answers, so only one of the two opens a
// connection. With a SharedFabric, the process that opened it earlier does so for all its members:
// libfabric's tcp (1.17) never frees what it allocates to accept a connection, and a process that
// lives long would accept one from each newcomer of its job.
//
// With fixed links both say hello on lanes whose numbers the addresses contain. With added links
// the greetings carry the numbers, and the other end greets too if the first one has not done so
// for a while.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hal/fabric/address.h"
#include "hal/fabric/ofi/lanes/endpoint_state.h"

namespace espalier::ofi {

// A process's port for short messages.
struct ProcessPort {
  std::uint32_t opened = 0;  // AddressHead::opened
  std::string name = {};     // in libfabric
};
// Whether `own` writes first. One of the two does.
[[nodiscard]] bool opens_first(const ProcessPort& own, const ProcessPort& peer);

class LaneConnector {
 public:
  explicit LaneConnector(EndpointState& state) : state_(state) {}

  // As FixedLinks::addresses().
  [[nodiscard]] std::vector<std::string> addresses() const;
  // Takes the addresses of the other ends and starts the greeting. Errors: not one address per
  // lane, a wrong address.
  [[nodiscard]] Result<void> start(const std::vector<std::string>& addresses);
  // Whether all lanes are connected. Progress the endpoint between two calls. Errors: a link broke,
  // or a peer did not connect in time.
  [[nodiscard]] Result<bool> check();

  // As start() and check(), for one link over cables, after begin().
  [[nodiscard]] Result<void> begin();
  [[nodiscard]] Result<void> start_link(std::uint32_t link, std::span<const std::string> addresses);
  [[nodiscard]] Result<bool> check_link(std::uint32_t link);

  // As the functions of AddedLinks.
  [[nodiscard]] std::string address() const;
  [[nodiscard]] Result<void> set_addresses(std::vector<std::string> addresses);
  // Returns the name of the node's port for short messages, one per process; empty: not known.
  [[nodiscard]] std::string port_name_of(std::uint32_t node) const;
  [[nodiscard]] Result<std::uint32_t> add_link(std::uint32_t node);
  // Whether start(), begin() or set_addresses() was called.
  [[nodiscard]] bool has_addresses() const { return greet_until_ns_ != 0 || !addresses_.empty(); }
  // Starts to connect these links, unless that was done. Error: no such link.
  [[nodiscard]] Result<void> start_links(std::span<const std::uint32_t> links);
  // Whether these links are connected. Errors as check().
  [[nodiscard]] Result<bool> check_links(std::span<const std::uint32_t> links);
  // Repeats the greetings that are due.
  void repeat_greetings();
  // Returns the time of the next repetition; UINT64_MAX: none.
  [[nodiscard]] std::uint64_t next_greeting_ns() const;

  // A peer's hello or greeting arrived.
  void hello_arrived(Lane& lane, std::uint64_t code);
  void greeting_arrived(std::uint32_t node);

 private:
  [[nodiscard]] AddressHead head() const;
  [[nodiscard]] Result<void> check_secret() const;
  [[nodiscard]] Result<void> decode(Lane& lane, const std::string& address);
  [[nodiscard]] Result<void> insert(Lane& lane, const std::string& address);
  void greet(Lane& lane);
  [[nodiscard]] Result<bool> connected(const Lane& lane, std::uint64_t until_ns) const;
  [[nodiscard]] Lane* find_lane(std::uint32_t node);
  // Checks that the connections to be made find descriptors. Error: fewer are free.
  [[nodiscard]] Result<void> check_files() const;
  [[nodiscard]] Result<std::uint32_t> make_link(std::uint32_t node);

  EndpointState& state_;
  std::uint64_t greet_until_ns_ = 0;
  std::vector<std::string> addresses_;  // by node; only with added links
  bool has_missed_greeting_ = false;    // one arrived before the addresses: its peer is connected
};

}  // namespace espalier::ofi
