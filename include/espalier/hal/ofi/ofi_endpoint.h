#pragma once
// The endpoint over libfabric, and over the provider "mem"; and the exchange of addresses that
// connects the endpoints of a cluster. Host only. Allocates in open() and connect() only.
//
// Messages are RMA writes with immediate data into registered memory; one credit flows back, and no
// libfabric receive is ever posted.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/hal/endpoint.h"

namespace espalier::ofi {

// Random bytes that all nodes of a job share and no other process knows.
using Secret = std::array<std::uint8_t, 32>;

// What endpoints of a process share: descriptors, connections, and the wait for them.
class SharedFabric;
// Returns a new one, which opens nothing yet.
[[nodiscard]] std::shared_ptr<SharedFabric> make_shared_fabric();

// The parameters that all endpoints have; FixedConfig and AddedConfig add those of one kind.
struct Config {
  // "tcp" (named "net" in libfabric 1.17), or any other libfabric name except "shm"; "mem": memory
  // that processes of one host share, without libfabric; "mem+NAME", only for AddedLinks: mem
  // between processes of one host, NAME between hosts.
  std::string provider = "tcp";
  // IP to bind, of either family, "fe80::7%eth0"; empty: 127.0.0.1 (tcp). mem refuses one.
  std::string local_address;
  // Ports at which the endpoint may listen, where the provider has IP addresses. 0: the system
  // chooses.
  std::uint16_t first_port = 0, last_port = 0;
  std::uint32_t node = 0;
  std::uint32_t window = 16;
  // Maximum size of an eager message. A larger one needs a clear to send: a write of its own, and
  // on tcp a system call, so copying 16 KiB is cheaper. With a job secret, both ends also compute
  // the code of an eager payload. 0: the default, which is 16384, with a job secret 8192, and over
  // mem 4096.
  std::uint32_t eager_bytes = 0;
  // How long to wait for a peer that does not connect.
  std::uint64_t connect_deadline_ns = 60'000'000'000;
  // Whether the endpoint has a job secret, and the secret: each word that a peer writes is then
  // authenticated (docs/security.md). All nodes of a job must have the same.
  bool has_secret = false;
  Secret secret = {};
  // Also authenticates the payload of long messages, where it is complete; one that was changed
  // completes with kCorrupt. Needs a secret. All nodes of a job must have the same. mem refuses it.
  bool authenticate_data = false;
};

// The parameters of FixedLinks::open().
struct FixedConfig : Config {
  std::vector<std::uint32_t> peers;  // node at the other end of each link
  // Empty: the fabric routes. One libfabric endpoint knows the addresses of all peers, and each
  // link has one lane.
  // Otherwise hop by hop: lanes of each link and direction (0: no messages in that direction). A
  // link has max(out, in) libfabric endpoints, one per lane. Each knows only the address of its
  // other end. Over mem a link is one channel, whatever its lanes.
  struct Lanes {
    std::uint32_t out = 1;
    std::uint32_t in = 1;
  };
  std::vector<Lanes> lanes;
  // Instead of local_address: the IP that each lane binds, ordered by link, all of one family, with
  // the scope where it needs one ("fe80::7%eth0"). Its messages leave by that address's interface.
  // Only hop by hop, over a provider that has IP addresses. Empty: local_address.
  std::vector<std::string> lane_addresses;
  // With lane_addresses: each lane has a libfabric domain of its own. Otherwise tcp has one for all
  // lanes, and other providers one per device, which they find by the address.
  bool separate_domains = false;
};

// The parameters of AddedLinks::open(). The fabric routes, unless there are cables.
struct AddedConfig : Config {
  // A cable from this node to another one.
  struct Cable {
    std::uint32_t number = 0;   // of the cable: both ends give the same
    std::uint32_t node = 0;     // at the other end
    std::string local_address;  // "fe80::7%eth0": the IP that this end binds
    std::uint32_t lanes = 1;    // in proportion to the cable's rate
  };
  // Links leave by these cables only, and lead to the nodes at their other ends; several cables to
  // one node are lanes of one link. With "mem+NAME", nodes of this host share memory instead.
  // Instead of local_address; not for mem. Empty: one endpoint reaches all nodes.
  std::vector<Cable> cables;
  // With "mem+NAME": this node has no cable, other nodes of its host have all.
  bool is_without_cables = false;
  std::uint32_t max_links = 0;  // of the endpoint: from 1 to kMaxLinks, which is 128
  // For "mem+NAME": processes with the same text share memory. Empty: as the kernel says, which
  // makes each container a host of its own. Other providers refuse it.
  std::string host;
  // Whether the process may have very many such endpoints: mem then touches a link's memory for
  // long messages only when one is sent.
  bool is_small = false;
  // Endpoints with the same one, of the same provider and address, share what they can; over tcp,
  // each may then be used by a thread of its own. All nodes of a job must have one, or none. Null:
  // nothing is shared. Endpoints with cables share nothing, and each may have a thread of its own.
  std::shared_ptr<SharedFabric> fabric;
};

// Checks that `name` can be given to `--provider`: it is mem, or the installed libfabric has that
// provider, with the capabilities that the endpoint needs. Error: why it cannot serve, in one line.
[[nodiscard]] Result<void> check_provider(const std::string& name);
// Whether check_provider() finds no error.
[[nodiscard]] bool known_provider(const std::string& name);

// The payload of the messages that an endpoint has moved by one of its cables: bytes, since it was
// opened. A message counts when libfabric has accepted it, or when it has arrived.
struct CableTraffic {
  std::uint32_t number = 0;  // AddedConfig::Cable::number
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_bytes = 0;
};

// One node's endpoint over libfabric or mem. Its links are fixed (FixedLinks), or added when they
// are needed (AddedLinks).
class OfiEndpoint {
 public:
  virtual ~OfiEndpoint() = default;
  // Gives the job secret that Config did not have. Errors: the addresses of peers were given
  // before.
  [[nodiscard]] virtual Result<void> set_secret(const Secret& secret) = 0;
  // Returns the number of words that were dropped because they were not authentic. The first one is
  // also reported on stderr.
  [[nodiscard]] virtual std::uint64_t rejected_words() const = 0;
  // What this endpoint lacked for a message that it ended with kBackEnd, e.g. descriptors. Empty:
  // nothing that it knows of.
  [[nodiscard]] virtual std::string lacked() const { return {}; }
  // Registers regions at once, until forget() of the same regions: collectives that use memory
  // inside them then register nothing. Without effect after Endpoint::release(). Errors: the
  // provider refuses.
  [[nodiscard]] virtual Result<void> keep(std::span<const Region> regions) = 0;
  // Ends the registrations of keep(), those of a collective in progress when it is complete.
  virtual void forget(std::span<const Region> regions) = 0;
  // Ends the wait() of another thread, or its next one. Any thread may call it at any time.
  virtual void wake() = 0;
  // Returns the endpoint, which lives as long as this object. It carries messages once its lanes
  // are connected.
  [[nodiscard]] virtual Endpoint& endpoint() = 0;
};

// An endpoint whose links are known when it is opened. First open(), then exchange addresses(),
// then connect().
class FixedLinks : public virtual OfiEndpoint {
 public:
  // Opens the local half. Errors: a configuration out of range; a provider that this libfabric does
  // not have; a provider that refuses.
  [[nodiscard]] static Result<std::unique_ptr<FixedLinks>> open(const FixedConfig& config);
  // The node at the other end of each lane, ordered by link.
  [[nodiscard]] virtual std::vector<std::uint32_t> lane_peers() const = 0;
  // For each lane, the address that its other end needs (binary; the launcher carries it).
  [[nodiscard]] virtual std::vector<std::string> addresses() const = 0;
  // Connects all lanes and returns when each can carry messages. addresses[l]: the address that the
  // other end of lane l published (other_end()). Errors: not one address per lane, a
  // wrong address, no connection within Config.connect_deadline_ns.
  [[nodiscard]] Result<void> connect(const std::vector<std::string>& addresses);
  // connect() in two parts, for a thread that connects several endpoints to each other. Start each;
  // then call go_on_connecting() on all in turn until each has returned true: all its lanes can
  // carry messages. Call it on connected endpoints too, because they still answer the others.
  // Errors: as connect().
  [[nodiscard]] virtual Result<void> start_connecting(
      const std::vector<std::string>& addresses) = 0;
  [[nodiscard]] virtual Result<bool> go_on_connecting() = 0;
};

// An endpoint that starts without links; add_link() adds them, one per peer. First open(), then
// exchange address(), then set_addresses(), add_link() and connect_links().
class AddedLinks : public virtual OfiEndpoint {
 public:
  // Opens the local half. Errors: as FixedLinks::open().
  [[nodiscard]] static Result<std::unique_ptr<AddedLinks>> open(const AddedConfig& config);
  // Returns the one address that every peer needs (binary; the launcher carries it).
  [[nodiscard]] virtual std::string address() const = 0;
  // Gives the addresses of all nodes, by node; this node's own is ignored. Connects nothing. From
  // then on a link is added when another node connects to this node, in any call that makes
  // progress. Errors: called twice, authenticate_data without a secret.
  [[nodiscard]] virtual Result<void> set_addresses(std::vector<std::string> addresses) = 0;
  // Once set_addresses() is called: R, if each host has R successive nodes, which share its memory
  // (mem). 1: otherwise, or it is not known. All nodes say the same.
  [[nodiscard]] virtual std::uint32_t nodes_per_host() const = 0;
  // Returns the number of the link to `node`; adds the link unless there is one. Connects nothing.
  // Errors: no address of this node, a wrong address, max_links links.
  [[nodiscard]] virtual Result<std::uint32_t> add_link(std::uint32_t node) = 0;
  // Starts to connect these links, makes progress, and returns whether each can carry messages.
  // Call again until it returns true. The other end of a link need not call this, if it makes
  // progress. If both call, the lower node opens the connection.
  // Messages may be posted earlier; they wait for the connection. Errors: no such link, a link
  // broke, a peer over mem has ended or is not on this host, a peer did not connect within
  // Config.connect_deadline_ns of the first call for its link.
  [[nodiscard]] virtual Result<bool> connect_links(std::span<const std::uint32_t> links) = 0;
  // The process of `node` has ended, as all other nodes have agreed: no endpoint that shares its
  // AddedConfig::fabric keeps memory for what this process may still write.
  virtual void note_end_of(std::uint32_t /*node*/) {}
  // Whether links leave by cables, on all nodes: then only some nodes can have one to each other.
  [[nodiscard]] virtual bool has_cables() const { return false; }
  // Returns by which cables a link leaves, "over eth0 (fe80::7%eth0 to fe80::9)", for messages.
  // Empty: the fabric routes, or there is no such link.
  [[nodiscard]] virtual std::string way_of_link(std::uint32_t /*link*/) const { return {}; }
  // Fills in the traffic of as many cables as there is room for, in AddedConfig::cables' order.
  // Returns how many cables there are. Allocates nothing. Any thread may call it at any time.
  virtual std::size_t cable_traffic(std::span<CableTraffic> /*to*/) const { return 0; }
};

// Returns the number that lane `lane` of node `node` has at its other end. peers[v]: the node at
// the other end of each lane of node v. The i-th lane from a to b is the i-th lane from b to a. If
// the other end has no such lane, returns its number of lanes.
[[nodiscard]] std::uint32_t other_end(const std::vector<std::vector<std::uint32_t>>& peers,
                                      std::uint32_t node, std::uint32_t lane);

// The address exchange of one node with its neighbours: each opens its endpoint, publishes the
// addresses of its lanes, collects those of its neighbours, and connects. A launcher carries the
// addresses, so there is one WireUp per kind of launcher: implement it for a process manager (PMIx,
// PMI), MPI, or any other. espalier-node has one for `espalier run`.
class WireUp {
 public:
  virtual ~WireUp() = default;
  // Publishes the address of each lane of `node`, and the peer at its other end. Errors: too many
  // or too long addresses, or the launcher is gone.
  [[nodiscard]] virtual Result<void> publish(std::uint32_t node,
                                             const std::vector<std::string>& addresses,
                                             const std::vector<std::uint32_t>& peers) = 0;
  // Waits for the address at the other end of each published lane (other_end()), in
  // the order of the lanes. All nodes of a thread must publish before the first of them collects.
  // Error: the launcher is gone.
  [[nodiscard]] virtual Result<std::vector<std::string>> collect() = 0;
  // Returns the job secret, once collect() has returned; null: the launcher gave none.
  [[nodiscard]] virtual const Secret* secret() const { return nullptr; }
};

// Connects the endpoint of `node` to its neighbours: publishes its addresses, collects theirs and
// connects. The neighbours must do the same at the same time, each in its own process or thread.
// Errors: those of `wire_up` and of FixedLinks::connect().
[[nodiscard]] Result<void> connect(FixedLinks& endpoint, std::uint32_t node, WireUp& wire_up);

}  // namespace espalier::ofi
