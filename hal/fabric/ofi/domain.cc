#include "hal/fabric/ofi/domain.h"

#include <netinet/in.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <utility>

#include "base/process/open_files.h"
#include "base/process/system_error.h"
#include "espalier/internal/base/little_endian.h"
#include "hal/fabric/ofi/libfabric_call.h"
#include "hal/fabric/ofi/provider.h"
#include "hal/fabric/provider_list.h"
#include "hal/fabric/random.h"

namespace espalier::ofi {
namespace {

std::string reason(const char* call, int code) {
  const int error = code < 0 ? -code : code;  // as errno below 256
  return std::string(call) + ": " + fi_strerror(error) + limit_suffix(error);
}

// Counted on libfabric 1.17, over tcp: one of them is that of a SharedFabric, or for a moment. With
// fewer, it fails anywhere, and with other errors.
constexpr std::uint64_t kEndpointFiles = 12;
constexpr int kKeyAttempts = 4;  // A random key is in use already once in 2^60 registrations.

// Returns a random key of at most `size` bytes.
std::uint64_t random_key(std::size_t size) {
  std::uint64_t key = 0;
  fill_randomly(reinterpret_cast<std::uint8_t*>(&key), std::min(size, sizeof(key)));
  return key;
}

}  // namespace

espalier::Result<void> Domain::open(const std::string& provider, const std::string& local_address,
                                    const Capacity& capacity) {
  first_socket_ = capacity.first_socket;
  last_socket_ = capacity.last_socket;
  auto opened = open_all(provider, local_address, capacity);
  if (opened) return opened;
  const std::string where = local_address.empty() ? "" : " at address " + local_address;
  return fail("provider \"" + provider + "\"" + where + ": " + opened.error().message);
}

espalier::Result<void> Domain::open_all(const std::string& provider,
                                        const std::string& local_address,
                                        const Capacity& capacity) {
  ESPALIER_ASSERT(devices_.empty() && ports_.empty() && capacity.ports >= 1);
  if (binds_address(provider)) {
    if (auto free = check_free_files(kEndpointFiles, "an endpoint"); !free) return free;
  }
  ports_.resize(capacity.ports);
  if (auto found = find_devices(provider, local_address, capacity); !found) return found;
  const LibfabricCall mark;
  info_ = devices_.front().info;
  provider_ = info_->fabric_attr->prov_name;
  inject_bytes_ = info_->tx_attr->inject_size;
  for (Device& device : devices_) {
    inject_bytes_ = std::min<std::uint64_t>(inject_bytes_, device.info->tx_attr->inject_size);
    if (auto opened = open_device(device, capacity.completions * capacity.ports); !opened) {
      return opened;
    }
  }
  wake_ = devices_.front().wake;
  queue_ = devices_.size() == 1 ? devices_.front().queue : nullptr;
  if (devices_.size() > 1) open_common_wake();
  for (std::uint32_t port = 0; port < ports_.size(); ++port) {
    if (auto opened = open_port(port, capacity); !opened) {
      const std::string own = capacity.addresses.empty() ? "" : capacity.addresses[port] + ": ";
      return fail(own + opened.error().message);
    }
  }
  return {};
}

espalier::Result<void> Domain::find_devices(const std::string& provider,
                                            const std::string& local_address,
                                            const Capacity& capacity) {
  if (capacity.addresses.empty()) {
    const auto found = find_provider(provider, local_address);
    if (!found) return fail(found.error());
    devices_.push_back({.info = *found});
    return {};
  }
  ESPALIER_ASSERT(capacity.addresses.size() == ports_.size());
  for (std::uint32_t port = 0; port < ports_.size(); ++port) {
    const std::string& address = capacity.addresses[port];
    const auto found = find_provider(provider, address);
    if (!found) return fail(address + ": " + found.error().message);
    if (auto taken = take_entry(*found, port, capacity.separate); !taken) {
      return fail(address + ": " + taken.error().message);
    }
  }
  return {};
}

// tcp binds any address in any domain. Others, such as verbs, find the device by the address.
espalier::Result<void> Domain::take_entry(fi_info* entry, std::uint32_t port, bool separate) {
  const std::size_t size = entry->src_addr == nullptr ? 0 : entry->src_addrlen;
  if (size != 0) ports_[port].source.assign(static_cast<const char*>(entry->src_addr), size);
  const bool is_tcp = entry->ep_attr->protocol == FI_PROTO_XNET;
  const std::string name = entry->domain_attr->name == nullptr ? "" : entry->domain_attr->name;
  // Whether the ports of another entry's device can have this address.
  const auto serves = [&](const fi_info& other) {
    return !separate &&
           (is_tcp || (other.domain_attr->name != nullptr && name == other.domain_attr->name));
  };
  std::uint32_t device = 0;
  while (device < devices_.size() && !serves(*devices_[device].info)) ++device;
  ports_[port].device = device;
  const bool is_known = device < devices_.size();
  if (!is_known) devices_.push_back({.info = entry});
  const fi_info& first = *devices_.front().info;
  const bool fits = size != 0 && first.src_addrlen == size &&
                    first.addr_format == entry->addr_format &&
                    first.domain_attr->mr_mode == entry->domain_attr->mr_mode;
  if (is_known) fi_freeinfo(entry);
  if (fits) return {};
  return fail("not an address of the kind of the first lane's; expected IPs of one family");
}

espalier::Result<void> Domain::open_device(Device& device, std::size_t completions) {
  if (const int code = fi_fabric(device.info->fabric_attr, &device.fabric, nullptr); code != 0) {
    return fail(reason("fi_fabric", code));
  }
  open_event_wake(device);
  if (const int code = fi_domain(device.fabric, device.info, &device.domain, nullptr); code != 0) {
    return fail(reason("fi_domain", code));
  }
  fi_cq_attr attributes = {};
  attributes.size = completions;
  attributes.format = FI_CQ_FORMAT_DATA;
  attributes.wait_obj = has_queue_wake() ? FI_WAIT_FD : FI_WAIT_NONE;
  if (const int code = fi_cq_open(device.domain, &attributes, &device.queue, nullptr); code != 0) {
    return fail(reason("fi_cq_open", code));
  }
  if (has_queue_wake() && fi_control(&device.queue->fid, FI_GETWAIT, &device.wake) != 0) {
    device.wake = -1;
  }
  return {};
}

void Domain::open_common_wake() {
  common_wake_ = epoll_create1(EPOLL_CLOEXEC);
  bool has_all = common_wake_ >= 0;
  for (const Device& device : devices_) {
    epoll_event wanted = {};
    wanted.events = EPOLLIN;
    has_all = has_all && device.wake >= 0 &&
              epoll_ctl(common_wake_, EPOLL_CTL_ADD, device.wake, &wanted) == 0;
  }
  wake_ = has_all ? common_wake_ : -1;
}

espalier::Result<void> Domain::open_port(std::uint32_t port, const Capacity& capacity) {
  ESPALIER_ASSERT(port < ports_.size() && ports_[port].endpoint == nullptr);
  ESPALIER_ASSERT(ports_[port].addresses == nullptr);
  fi_av_attr av = {};
  av.type = FI_AV_TABLE;
  av.count = capacity.peers + 1;
  if (const int code =
          fi_av_open(devices_[ports_[port].device].domain, &av, &ports_[port].addresses, nullptr);
      code != 0) {
    return fail(reason("fi_av_open", code));
  }
  if (auto opened = open_at_socket(port); !opened) return opened;
  if (const int code = read_name(port); code != 0) return fail(reason("fi_getname", code));
  return {};
}

espalier::Result<std::uint32_t> Domain::add_port(std::size_t peers) {
  const LibfabricCall mark;
  ESPALIER_ASSERT(can_be_shared());
  std::uint32_t port = 1;
  while (port < ports_.size() && ports_[port].endpoint != nullptr) ++port;
  if (port == ports_.size()) ports_.emplace_back();
  if (auto opened = open_port(port, {1, peers, 0}); !opened) {
    close_port(port);
    return fail(opened.error());
  }
  return port;
}

void Domain::close_port(std::uint32_t port) {
  const LibfabricCall mark;
  ESPALIER_ASSERT(port < ports_.size());
  Port& closed = ports_[port];
  if (closed.endpoint != nullptr) fi_close(&closed.endpoint->fid);
  if (closed.addresses != nullptr) fi_close(&closed.addresses->fid);
  closed.endpoint = nullptr;
  closed.addresses = nullptr;
  closed.source.clear();
}

// In all socket addresses of IP, the number follows two bytes, most significant byte first.
std::uint32_t Domain::socket_port(std::uint32_t port) const {
  ESPALIER_ASSERT(port < ports_.size() && ports_[port].name.size() >= 4);
  const std::string& name = ports_[port].name;
  return std::uint32_t{static_cast<std::uint8_t>(name[2])} << 8 |
         static_cast<std::uint8_t>(name[3]);
}

bool Domain::insert_socket(const std::string& address, std::uint32_t number, Target& target) {
  char name[64];
  ESPALIER_ASSERT(target.port < ports_.size() && ports_[target.port].addresses != nullptr);
  if (address.size() < 4 || address.size() > sizeof(name)) return false;
  std::memcpy(name, address.data(), address.size());
  if constexpr (!kIsLittleEndian) std::swap(name[0], name[1]);
  name[2] = static_cast<char>(number >> 8);
  name[3] = static_cast<char>(number);
  set_scope(name, address.size(), scope_of(target.port));
  const LibfabricCall mark;
  return fi_av_insert(ports_[target.port].addresses, name, 1, &target.peer, 0, nullptr) == 1;
}

bool Domain::has_ip() const {
  const std::uint32_t format = devices_.front().info->addr_format;
  return format == FI_SOCKADDR || format == FI_SOCKADDR_IN || format == FI_SOCKADDR_IN6;
}

espalier::Result<void> Domain::open_at_socket(std::uint32_t port) {
  if (first_socket_ == 0 || !has_ip() || info_->src_addr == nullptr) {
    const int code = open_endpoint(port);
    return code == 0 ? espalier::Result<void>() : fail(reason("fi_endpoint", code));
  }
  std::string& source = ports_[port].source;
  if (source.empty()) {
    source.assign(static_cast<const char*>(info_->src_addr), info_->src_addrlen);
  }
  char* const number = source.data() + 2;
  int code = 0;
  for (std::uint32_t socket = first_socket_; socket <= last_socket_; ++socket) {
    number[0] = static_cast<char>(socket >> 8);
    number[1] = static_cast<char>(socket);
    code = open_endpoint(port);
    number[0] = number[1] = 0;
    if (code == 0) return {};
    if (ports_[port].endpoint != nullptr) fi_close(&ports_[port].endpoint->fid);
    ports_[port].endpoint = nullptr;
    if (code != -FI_EADDRINUSE && code != -FI_EACCES) return fail(reason("fi_endpoint", code));
  }
  return fail("no port of " + std::to_string(first_socket_) + "-" + std::to_string(last_socket_) +
              " is free; expected a wider range of ports (ESPALIER_PORTS)");
}

std::string Domain::name(std::uint32_t port) const {
  ESPALIER_ASSERT(port < ports_.size());
  std::string name = ports_[port].name;
  set_scope(name.data(), name.size(), 0);
  return converted(name);
}

std::uint32_t Domain::scope_of(std::uint32_t port) const {
  const std::string& name = ports_[port].name;
  sockaddr_in6 ip = {};
  if (name.size() == sizeof ip) std::memcpy(&ip, name.data(), sizeof ip);
  return ip.sin6_family == AF_INET6 ? ip.sin6_scope_id : 0;
}

void Domain::set_scope(char* name, std::size_t size, std::uint32_t scope) const {
  sockaddr_in6 ip;
  if (size != sizeof ip || !has_ip()) return;
  std::memcpy(&ip, name, sizeof ip);
  if (ip.sin6_family != AF_INET6 || !IN6_IS_ADDR_LINKLOCAL(&ip.sin6_addr)) return;
  ip.sin6_scope_id = scope;
  std::memcpy(name, &ip, sizeof ip);
}

int Domain::open_endpoint(std::uint32_t port) {
  ESPALIER_ASSERT(port < ports_.size());
  fid_ep*& endpoint = ports_[port].endpoint;
  const Device& device = devices_[ports_[port].device];
  std::string& source = ports_[port].source;
  // libfabric copies the address; the entry keeps its own.
  void* const address = device.info->src_addr;
  const std::size_t address_bytes = device.info->src_addrlen;
  if (!source.empty()) {
    device.info->src_addr = source.data();
    device.info->src_addrlen = source.size();
  }
  int code = fi_endpoint(device.domain, device.info, &endpoint, nullptr);
  device.info->src_addr = address;
  device.info->src_addrlen = address_bytes;
  if (code != 0) {
    endpoint = nullptr;
    return code;
  }
  // Two binds: in one, selective completion would apply to received data, too.
  code = fi_ep_bind(endpoint, &device.queue->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION);
  if (code == 0) code = fi_ep_bind(endpoint, &device.queue->fid, FI_RECV);
  if (code == 0) code = fi_ep_bind(endpoint, &ports_[port].addresses->fid, 0);
  if (code == 0) code = fi_enable(endpoint);
  return code;
}

int Domain::read_name(std::uint32_t port) {
  std::string& name = ports_[port].name;
  std::size_t size = 512;
  name.resize(size);
  const int code = fi_getname(&ports_[port].endpoint->fid, name.data(), &size);
  name.resize(code == 0 ? size : 0);
  return code;
}

std::string Domain::converted(std::string name) const {
  if constexpr (!kIsLittleEndian) {
    if (has_ip() && name.size() >= 2) std::swap(name[0], name[1]);
  }
  return name;
}

void Domain::restart() {
  const LibfabricCall mark;
  ESPALIER_ASSERT(!devices_.empty());
  for (std::uint32_t index = 0; index < ports_.size(); ++index) {
    Port& port = ports_[index];
    if (port.endpoint != nullptr) fi_close(&port.endpoint->fid);
    port.source = port.name;
    if (open_endpoint(index) == 0) continue;
    if (port.endpoint != nullptr) fi_close(&port.endpoint->fid);
    port.endpoint = nullptr;
  }
}

// If a completion queue supports waiting, the provider net of libfabric 1.17 starts a progress
// thread, which then races ours for every message. An event queue with a descriptor, opened before
// the domain, watches the domain's sockets without such a thread. Its successor, tcp of 1.18 and
// later, has that thread no more: there the queue of completions watches the sockets, and the event
// queue is silent. No other provider reports arrivals in either (over rxm each wait would last
// until its end), so its callers sleep instead.
void Domain::open_event_wake(Device& device) {
  fi_eq_attr attributes = {};
  attributes.size = 1;
  attributes.wait_obj = FI_WAIT_FD;
  if (info_->ep_attr->protocol != FI_PROTO_XNET || has_queue_wake() ||
      fi_eq_open(device.fabric, &attributes, &device.events, nullptr) != 0) {
    device.events = nullptr;
    return;
  }
  if (fi_control(&device.events->fid, FI_GETWAIT, &device.wake) != 0) device.wake = -1;
}

bool Domain::has_queue_wake() const {
  return info_->ep_attr->protocol == FI_PROTO_XNET && provider_ == "tcp";
}

bool Domain::may_block() {
  if (!has_queue_wake()) return true;
  const LibfabricCall mark;
  for (const Device& device : devices_) {
    fid* queue = &device.queue->fid;
    if (fi_trywait(device.fabric, &queue, 1) != FI_SUCCESS) return false;
  }
  return true;
}

bool Domain::wait(std::uint64_t ns, const std::array<int, 2>& others,
                  std::array<bool, 2>& is_readable) {
  is_readable = {};
  if (wake_ < 0) return false;
  if (!may_block()) return true;
  const timespec timeout = {static_cast<time_t>(ns / 1'000'000'000),
                            static_cast<long>(ns % 1'000'000'000)};
  pollfd wanted[] = {{wake_, POLLIN, 0}, {others[0], POLLIN, 0}, {others[1], POLLIN, 0}};
  const nfds_t count = others[1] >= 0 ? 3 : others[0] >= 0 ? 2 : 1;
  if (ppoll(wanted, count, &timeout, nullptr) <= 0) return true;
  for (std::size_t i = 0; i < others.size(); ++i) is_readable[i] = wanted[i + 1].revents != 0;
  return true;
}

void Domain::close() {
  const LibfabricCall mark;
  const auto close_one = [](auto*& object) {
    if (object != nullptr) fi_close(&object->fid);
    object = nullptr;
  };
  for (Port& port : ports_) close_one(port.endpoint);
  for (Port& port : ports_) close_one(port.addresses);
  ports_.clear();
  if (common_wake_ >= 0) ::close(common_wake_);
  common_wake_ = wake_ = -1;
  for (Device& device : devices_) {
    close_one(device.queue);
    close_one(device.domain);
    close_one(device.events);
    close_one(device.fabric);
    fi_freeinfo(device.info);
  }
  devices_.clear();
  at_others_.clear();
  queue_ = nullptr;
  info_ = nullptr;
}

espalier::Result<void> Domain::insert(const std::string& address, Target& target) {
  std::string name = converted(address);
  ESPALIER_ASSERT(target.port < ports_.size() && ports_[target.port].addresses != nullptr);
  set_scope(name.data(), name.size(), scope_of(target.port));
  const LibfabricCall mark;
  const int inserted =
      fi_av_insert(ports_[target.port].addresses, name.data(), 1, &target.peer, 0, nullptr);
  if (inserted == 1) return {};
  return fail(reason("fi_av_insert", inserted));
}

bool Domain::register_memory(void* bytes, std::uint64_t size, Registration& out) {
  ESPALIER_ASSERT(out.region == nullptr && size > 0);
  if (!register_at(0, bytes, size, out)) return false;
  if (devices_.size() == 1) return true;
  std::vector<Registration> others(devices_.size() - 1);
  for (std::uint32_t device = 1; device < devices_.size(); ++device) {
    if (register_at(device, bytes, size, others[device - 1])) continue;
    for (Registration& other : others) end_at(other);
    end_at(out);
    return false;
  }
  std::uint32_t entry = 0;
  while (entry < at_others_.size() && !at_others_[entry].empty()) ++entry;
  if (entry == at_others_.size()) at_others_.emplace_back();
  at_others_[entry] = std::move(others);
  out.at_others = entry + 1;
  return true;
}

bool Domain::register_at(std::uint32_t device, void* bytes, std::uint64_t size, Registration& out) {
  const std::uint64_t access = FI_REMOTE_WRITE | (registers_local_memory() ? FI_WRITE : 0);
  // A random key each time: no stranger guesses it, and a write under an old key never reaches new
  // memory. Providers with FI_MR_PROV_KEY choose the key themselves.
  int code = -FI_ENOKEY;
  for (int attempt = 0; attempt < kKeyAttempts && code == -FI_ENOKEY; ++attempt) {
    const std::uint64_t wanted_key = random_key(info_->domain_attr->mr_key_size);
    const LibfabricCall mark;
    code = fi_mr_reg(devices_[device].domain, bytes, size, access, 0, wanted_key, 0, &out.region,
                     nullptr);
  }
  if (code != 0) {
    out.region = nullptr;
    return false;
  }
  const bool virtual_addresses = (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
  out.base = virtual_addresses ? reinterpret_cast<std::uintptr_t>(bytes) : 0;
  out.key = fi_mr_key(out.region);
  if (registers_local_memory()) local_.push_back({bytes, size, out.region, device});
  return true;
}

std::uint64_t Domain::key_at(const Registration& registration, std::uint32_t device) const {
  ESPALIER_ASSERT(device != 0 && registration.at_others != 0);
  return at_others_[registration.at_others - 1][device - 1].key;
}

void Domain::end_registration(Registration& registration) {
  if (registration.at_others != 0) {
    std::vector<Registration>& others = at_others_[registration.at_others - 1];
    for (Registration& other : others) end_at(other);
    others.clear();
  }
  end_at(registration);
}

// At one device.
void Domain::end_at(Registration& registration) {
  if (registration.region == nullptr) return;
  const LibfabricCall mark;
  std::erase_if(local_,
                [&](const LocalMemory& each) { return each.region == registration.region; });
  fi_close(&registration.region->fid);
  registration = {};
}

bool Domain::registers_local_memory() const {
  return (info_->domain_attr->mr_mode & FI_MR_LOCAL) != 0;
}

// The registered memory that contains these bytes; null if there is none.
fid_mr* Domain::local_region(const void* bytes, std::size_t size, std::uint32_t device) const {
  const auto first = reinterpret_cast<std::uintptr_t>(bytes);
  for (const LocalMemory& each : local_) {
    if (each.device != device) continue;
    const auto base = reinterpret_cast<std::uintptr_t>(each.bytes);
    if (first >= base && size <= each.size && first - base <= each.size - size) return each.region;
  }
  return nullptr;
}

template <typename Call>
Domain::Result Domain::write_from(std::uint32_t port, Call call) {
  ESPALIER_ASSERT(port < ports_.size());
  fid_ep* const endpoint = ports_[port].endpoint;
  if (endpoint == nullptr) return Result::kFailed;
  const LibfabricCall mark;
  const ssize_t code = call(endpoint);
  if (code == -FI_EAGAIN) return Result::kNoRoom;
  return code == 0 ? Result::kDone : Result::kFailed;
}

Domain::Result Domain::inject_silently(Target to, const void* bytes, std::size_t size,
                                       std::uint64_t address, std::uint64_t key) {
  return write_from(to.port, [&](fid_ep* endpoint) {
    return fi_inject_write(endpoint, bytes, size, to.peer, address, key);
  });
}

Domain::Result Domain::inject(Target to, const void* bytes, std::size_t size, std::uint64_t data,
                              std::uint64_t address, std::uint64_t key) {
  return write_from(to.port, [&](fid_ep* endpoint) {
    return fi_inject_writedata(endpoint, bytes, size, data, to.peer, address, key);
  });
}

Domain::Result Domain::write(Target to, const void* bytes, std::size_t size, std::uint64_t data,
                             std::uint64_t address, std::uint64_t key, void* context) {
  iovec from = {const_cast<void*>(bytes), size};
  // libfabric's net sends these bytes; where sizes have 32 bits, the next 32 bits with them.
  fi_rma_iov there;
  std::memset(&there, 0, sizeof(there));
  there.addr = address;
  there.len = size;
  there.key = key;
  fi_msg_rma message = {};
  message.msg_iov = &from;
  void* descriptor = nullptr;
  if (registers_local_memory()) {
    fid_mr* const region = local_region(bytes, size, ports_[to.port].device);
    if (region == nullptr) return Result::kFailed;
    descriptor = fi_mr_desc(region);
  }
  message.desc = &descriptor;
  message.iov_count = 1;
  message.addr = to.peer;
  message.rma_iov = &there;
  message.rma_iov_count = 1;
  message.context = context;
  message.data = data;
  return write_from(to.port, [&](fid_ep* endpoint) {
    return fi_writemsg(endpoint, &message, FI_REMOTE_CQ_DATA | FI_COMPLETION);
  });
}

int Domain::read_completions(fi_cq_data_entry* entries, std::size_t room) {
  const LibfabricCall mark;
  if (queue_ == nullptr) return read_devices(entries, room);
  const ssize_t count = fi_cq_read(queue_, entries, room);
  if (count >= 0) return static_cast<int>(count);
  return count == -FI_EAVAIL ? kFailure : 0;
}

// Reading a queue progresses its device, so each is read at every call that has room for it.
int Domain::read_devices(fi_cq_data_entry* entries, std::size_t room) {
  const auto devices = static_cast<std::uint32_t>(devices_.size());
  std::size_t filled = 0;
  turn_ = (turn_ + 1) % devices;
  for (std::uint32_t i = 0; i < devices && filled < room; ++i) {
    const std::uint32_t device = (turn_ + i) % devices;
    const ssize_t count = fi_cq_read(devices_[device].queue, entries + filled, room - filled);
    if (count > 0) filled += static_cast<std::size_t>(count);
    if (count != -FI_EAVAIL || filled != 0) continue;  // the error stays first in its queue
    failed_ = device;
    return kFailure;
  }
  return static_cast<int>(filled);
}

void* Domain::read_failure() {
  const LibfabricCall mark;
  fi_cq_err_entry entry = {};
  return fi_cq_readerr(devices_[failed_].queue, &entry, 0) == 1 ? entry.op_context : nullptr;
}

}  // namespace espalier::ofi
