#pragma once
// What the endpoints of a process share over a provider of sockets (tcp): libfabric's objects, one
// port with one connection to each other process, and the wait for it. Each endpoint is a member.
//
// Lanes have numbers in the process, by which a word that arrives finds its member. A member that
// ends lives on as a departed one, because its peers may still write to its memory, until each has
// said goodbye on its lane: nothing that they wrote before can come after that. A process that has
// ended says none: note_end_of().
//
// Long messages go over ports of one member each, so that it can end its own without those of
// others. Few are open at once: an idle one is closed when another member needs one.

#include <rdma/fi_eq.h>

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/internal/base/assert.h"
#include "hal/fabric/ofi/domain.h"
#include "hal/fabric/ofi/light_mutex.h"
#include "hal/fabric/ofi/pages.h"
#include "hal/fabric/ofi/wire.h"

namespace espalier::ofi {

struct EndpointParts;

// A word that arrived for a member whose thread has not seen it yet.
struct Arrival {
  std::uint64_t data = 0;
  const void* completed = nullptr;  // or a write of this context that has completed, ...
  std::uint32_t lane = 0;           // the lane's index at the member
  bool has_failed = false;          // ... or failed
};

class SharedFabric {
 public:
  struct LongPort {
    std::uint32_t port = 0;        // of the domain; 0: not open
    std::uint32_t number = 0;      // of its socket
    std::uint64_t epoch = 0;       // counts the ports of this member
    std::uint32_t messages = 0;    // that need it: receives posted, and writes that are pending
    std::uint64_t idle_since = 0;  // ns, of monotonic_ns()
  };

  SharedFabric() = default;
  ~SharedFabric();
  SharedFabric(const SharedFabric&) = delete;
  SharedFabric& operator=(const SharedFabric&) = delete;

  // Held in all that follows, and in all calls into the domain.
  LightMutex mutex;

  // Adds a member; opens the domain for the first one. False: nothing can be shared over this
  // provider. Errors: as Domain::open(); no number is left.
  [[nodiscard]] Result<bool> add(EndpointParts& parts, const Config& config);
  // Ends a member. The domain closes after the last one.
  void remove(std::unique_ptr<EndpointParts> parts);

  [[nodiscard]] Domain& domain() { return domain_; }
  [[nodiscard]] const Registration& greetings() const { return greetings_registration_; }
  [[nodiscard]] const std::byte* greetings_memory() const { return greetings_.get(); }
  static constexpr std::uint32_t kGreetings = 4096;

  // When the domain was opened, in tenths of a second of the system's clock, modulo 2^32.
  [[nodiscard]] std::uint32_t opened() const { return opened_; }
  // How many other processes libfabric knows.
  [[nodiscard]] std::size_t peers() const { return is_open_ ? domain_.peers(0) : 0; }

  // Learns where the contexts of a member's writes are. They have their room.
  void add_contexts(EndpointParts& parts);
  // Numbers a lane.
  [[nodiscard]] std::uint32_t add_lane(EndpointParts& parts, std::uint32_t index);
  [[nodiscard]] bool has_lane_left() const {
    return !free_lanes_.empty() || lanes_.size() < kMaxLaneIds;
  }

  // The process whose port for short messages has this name has ended: it says no goodbye.
  void note_end_of(const std::string& port_name);
  // How many members have ended and wait for a goodbye.
  [[nodiscard]] std::size_t departed() const { return departed_.size(); }
  // Makes progress for all members. Whether anything moved.
  bool progress(EndpointParts& parts);
  // Waits until there may be something for this member, at most `ns`. The lock is not held
  // meanwhile.
  void wait(EndpointParts& parts, std::uint64_t ns);
  // Ends the wait of the member's thread.
  void wake(EndpointParts& parts);

  // Opens a port, if there are descriptors for it and so many connections: libfabric drops messages
  // without an error if there is none for a connection. Errors begin after the endpoint's name.
  [[nodiscard]] Result<void> open_long_port(LongPort& port, std::size_t connections);
  // Ends all: afterwards nothing reads or writes memory of the caller.
  void end_long_messages(EndpointParts& parts);
  // Counts the end of a message that needed the port.
  static void end_message(LongPort& port);

 private:
  void close_long_port(LongPort& port);
  // Asserts what holds between two calls.
  void check_invariants() const {
    ESPALIER_ASSERT(members_.size() == live_ + departed_.size());
    ESPALIER_ASSERT(contexts_.size() <= members_.size());
    ESPALIER_ASSERT(free_lanes_.size() <= lanes_.size() && lanes_.size() <= kMaxLaneIds);
    ESPALIER_ASSERT(is_open_ || (members_.empty() && long_ports_.empty()));
    ESPALIER_ASSERT(long_ports_.size() <= members_.size());
    ESPALIER_ASSERT(next_member_ < kMaxLaneIds);
  }
  struct LaneOwner {
    EndpointParts* parts = nullptr;
    std::uint32_t index = 0;
  };

  [[nodiscard]] Result<void> open(const Config& config);
  void close();
  // Passes what arrived on to its member. `own` takes it at once, as departed members do.
  void deliver(EndpointParts& to, const Arrival& arrival, EndpointParts& own);
  void take_entry(const fi_cq_data_entry& entry, EndpointParts& own);
  [[nodiscard]] EndpointParts* owner_of(const void* context) const;
  void tend_departed();
  void pass_poll_on();
  void erase(EndpointParts& parts);

  Domain domain_;
  bool is_open_ = false;
  std::uint32_t opened_ = 0;
  bool is_unfit_ = false;  // the provider has no sockets
  Pages greetings_;
  Registration greetings_registration_;
  std::vector<LaneOwner> lanes_;
  std::vector<std::uint32_t> free_lanes_;
  std::map<std::uint32_t, EndpointParts*> members_;  // by number, departed ones too
  std::uint32_t next_member_ = 0;
  std::size_t live_ = 0;
  std::map<const void*, EndpointParts*> contexts_;  // by the first context of each
  std::vector<std::unique_ptr<EndpointParts>> departed_;
  std::uint64_t tend_at_ns_ = UINT64_MAX;  // UINT64_MAX: none has more to say
  std::vector<LongPort*> long_ports_;      // open
  EndpointParts* poller_ = nullptr;        // whose thread waits for the sockets
  std::vector<EndpointParts*> waiting_;    // whose threads wait for the poller
  int nudge_ = -1;                         // wakes the poller
};

}  // namespace espalier::ofi
