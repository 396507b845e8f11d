#include "hal/ofi/fabric.h"

#include <poll.h>
#include <rdma/fi_errno.h>
#include <sys/uio.h>

#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "hal/ofi/in_fabric.h"

namespace espalier::ofi {
namespace {

constexpr std::uint64_t kLeastInject = 64;  // every entry of wire.h fits

std::string reason(const char* call, int code) {
  return std::string(call) + ": " + fi_strerror(code < 0 ? -code : code);
}

// The reliable datagram endpoint of exactly this provider; layered ones ("tcp;ofi_rxm") are not
// taken for their parts.
fi_info* find_exactly(const std::string& name, const std::string& local_address, int mr_mode) {
  fi_info* hints = fi_allocinfo();
  if (hints == nullptr) return nullptr;
  hints->caps = FI_MSG | FI_RMA;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->fabric_attr->prov_name = strdup(name.c_str());  // fi_freeinfo frees it
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->cq_data_size = 8;
  hints->domain_attr->mr_mode = mr_mode;
  hints->tx_attr->msg_order = FI_ORDER_SAS | FI_ORDER_WAW;
  const char* node = local_address.empty() ? nullptr : local_address.c_str();
  fi_info* all = nullptr;
  const int code =
      fi_getinfo(FI_VERSION(1, 17), node, nullptr, node != nullptr ? FI_SOURCE : 0, hints, &all);
  fi_freeinfo(hints);
  if (code != 0) return nullptr;
  fi_info* found = nullptr;
  for (fi_info* info = all; info != nullptr && found == nullptr; info = info->next) {
    if (name == info->fabric_attr->prov_name && info->tx_attr->inject_size >= kLeastInject) {
      found = fi_dupinfo(info);
    }
  }
  fi_freeinfo(all);
  return found;
}

// The file in /dev/shm that holds the queue of a shm endpoint: "fi_shm://<process>:..." is in
// "<process>:...".
std::string file_of(const std::string& name) {
  const std::string text = name.c_str();  // to its terminating zero
  return text.substr(text.rfind('/') + 1);
}

}  // namespace

fi_info* Fabric::find(const std::string& provider, const std::string& local_address) {
  const InFabric mark;
  // "tcp" means the tcp provider with reliable datagram endpoints. libfabric 1.17 ships it under
  // the name "net"; from 1.18 on it is "tcp".
  std::vector<std::string> names = {provider};
  if (provider == "tcp") names.emplace_back("net");
  std::string address = local_address;
  if (address.empty() && (provider == "tcp" || provider == "net")) address = "127.0.0.1";
  if (provider == "shm") address.clear();
  // Offsets and keys of our own choice where the provider allows it; else what it insists on.
  for (const int mr_mode : {0, FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY}) {
    for (const std::string& name : names) {
      if (fi_info* info = find_exactly(name, address, mr_mode)) return info;
    }
  }
  return nullptr;
}

bool Fabric::open(const std::string& provider, const std::string& local_address, std::size_t peers,
                  std::size_t completions, std::string& error) {
  if (open_all(provider, local_address, peers, completions, error)) return true;
  const std::string at = local_address.empty() ? "" : " at address " + local_address;
  error = "provider \"" + provider + "\"" + at + ": " + error;
  return false;
}

bool Fabric::open_all(const std::string& provider, const std::string& local_address,
                      std::size_t peers, std::size_t completions, std::string& error) {
  info_ = find(provider, local_address);
  if (info_ == nullptr) {
    error =
        "this libfabric has no such provider there (want \"tcp\", \"shm\", or any with reliable "
        "datagram "
        "endpoints and remote writes)";
    return false;
  }
  const InFabric mark;
  provider_ = info_->fabric_attr->prov_name;
  inject_bytes_ = info_->tx_attr->inject_size;
  if (const int code = fi_fabric(info_->fabric_attr, &fabric_, nullptr); code != 0) {
    error = reason("fi_fabric", code);
    return false;
  }
  open_wake();
  if (const int code = fi_domain(fabric_, info_, &domain_, nullptr); code != 0) {
    error = reason("fi_domain", code);
    return false;
  }
  fi_av_attr av = {};
  av.type = FI_AV_TABLE;
  av.count = peers + 1;
  if (const int code = fi_av_open(domain_, &av, &addresses_, nullptr); code != 0) {
    error = reason("fi_av_open", code);
    return false;
  }
  fi_cq_attr queue = {};
  queue.size = completions;
  queue.format = FI_CQ_FORMAT_DATA;
  queue.wait_obj = FI_WAIT_NONE;  // see open_wake()
  if (const int code = fi_cq_open(domain_, &queue, &queue_, nullptr); code != 0) {
    error = reason("fi_cq_open", code);
    return false;
  }
  if (const int code = open_endpoint(); code != 0) {
    error = reason("fi_endpoint", code);
    return false;
  }
  return keep_name(error);
}

int Fabric::open_endpoint() {
  int code = fi_endpoint(domain_, info_, &endpoint_, nullptr);
  if (code != 0) {
    endpoint_ = nullptr;
    return code;
  }
  // Two binds: with both in one, selective completion would hold for what comes in, too.
  code = fi_ep_bind(endpoint_, &queue_->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION);
  if (code == 0) code = fi_ep_bind(endpoint_, &queue_->fid, FI_RECV);
  if (code == 0) code = fi_ep_bind(endpoint_, &addresses_->fid, 0);
  if (code == 0) code = fi_enable(endpoint_);
  return code;
}

// From now on the endpoint's own name is what info_ asks for, so that restart() gets it again.
bool Fabric::keep_name(std::string& error) {
  std::string own;
  if (!name(own, error)) return false;
  void* copy = std::malloc(own.size());  // fi_freeinfo frees it
  if (copy == nullptr) return true;
  std::memcpy(copy, own.data(), own.size());
  std::free(info_->src_addr);
  info_->src_addr = copy;
  info_->src_addrlen = own.size();
  if (provider_ == "shm") door_ = Door(file_of(own));
  return true;
}

bool Fabric::restart() {
  const InFabric mark;
  if (endpoint_ != nullptr) fi_close(&endpoint_->fid);
  endpoint_ = nullptr;
  door_ = Door();  // it went with the endpoint
  if (open_endpoint() == 0) return true;
  if (endpoint_ != nullptr) fi_close(&endpoint_->fid);
  endpoint_ = nullptr;
  return false;
}

// A completion queue that can be waited for makes net start a progress thread, which then races
// ours for every message. An event queue with a descriptor, opened before the domain, watches the
// domain's sockets without one. Providers that have no such queue (shm) are napped for.
void Fabric::open_wake() {
  fi_eq_attr attributes = {};
  attributes.size = 1;
  attributes.wait_obj = FI_WAIT_FD;
  if (provider_ == "shm" || fi_eq_open(fabric_, &attributes, &events_, nullptr) != 0) {
    events_ = nullptr;
    return;
  }
  if (fi_control(&events_->fid, FI_GETWAIT, &wake_) != 0) wake_ = -1;
}

bool Fabric::block(std::uint64_t ns) {
  if (wake_ < 0) return false;
  const timespec timeout = {static_cast<time_t>(ns / 1'000'000'000),
                            static_cast<long>(ns % 1'000'000'000)};
  pollfd wanted = {wake_, POLLIN, 0};
  (void)ppoll(&wanted, 1, &timeout, nullptr);
  return true;
}

void Fabric::close() {
  const InFabric mark;
  const auto close_one = [](auto*& object) {
    if (object != nullptr) fi_close(&object->fid);
    object = nullptr;
  };
  close_one(endpoint_);
  close_one(addresses_);
  close_one(queue_);
  close_one(domain_);
  close_one(events_);
  wake_ = -1;
  close_one(fabric_);
  if (info_ != nullptr) fi_freeinfo(info_);
  info_ = nullptr;
}

bool Fabric::name(std::string& out, std::string& error) const {
  const InFabric mark;
  std::size_t size = 512;
  out.resize(size);
  const int code = fi_getname(&endpoint_->fid, out.data(), &size);
  if (code != 0) {
    error = reason("fi_getname", code);
    return false;
  }
  out.resize(size);
  return true;
}

bool Fabric::insert(const std::string& name, fi_addr_t& peer, std::string& error) {
  const InFabric mark;
  const int inserted = fi_av_insert(addresses_, name.data(), 1, &peer, 0, nullptr);
  if (inserted == 1) {
    if (peer >= peers_.size()) peers_.resize(peer + 1);
    if (provider_ != "shm") return true;
    const std::string file = file_of(name);
    peers_[peer] = {Door(file), PeerProcess(std::atoll(file.c_str()))};
    return true;
  }
  error = reason("fi_av_insert", inserted);
  return false;
}

bool Fabric::expose(void* bytes, std::uint64_t size, Exposed& out) {
  const InFabric mark;
  // A new key each time: a write under an old one must never find new memory.
  if (fi_mr_reg(domain_, bytes, size, FI_REMOTE_WRITE, 0, next_key_, 0, &out.region, nullptr) !=
      0) {
    out.region = nullptr;
    return false;
  }
  ++next_key_;
  const bool virtual_addresses = (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
  out.base = virtual_addresses ? reinterpret_cast<std::uintptr_t>(bytes) : 0;
  out.key = fi_mr_key(out.region);
  return true;
}

void Fabric::hide(Exposed& exposed) {
  if (exposed.region == nullptr) return;
  const InFabric mark;
  fi_close(&exposed.region->fid);
  exposed = {};
}

template <typename Call>
Fabric::Result Fabric::enter(fi_addr_t peer, Call call) {
  if (endpoint_ == nullptr) return Result::kFailed;
  const InFabric mark;
  Entry entry(peers_[peer].door);
  if (!entry.open()) return Result::kNoRoom;
  const ssize_t code = call();
  if (code == -FI_EAGAIN) return Result::kNoRoom;
  if (code != 0) return Result::kFailed;
  entry.done();
  return Result::kDone;
}

Fabric::Result Fabric::inject_piece(fi_addr_t peer, const void* bytes, std::size_t size,
                                    std::uint64_t address, std::uint64_t key) {
  return enter(peer, [&] { return fi_inject_write(endpoint_, bytes, size, peer, address, key); });
}

Fabric::Result Fabric::inject(fi_addr_t peer, const void* bytes, std::size_t size,
                              std::uint64_t data, std::uint64_t address, std::uint64_t key) {
  return enter(
      peer, [&] { return fi_inject_writedata(endpoint_, bytes, size, data, peer, address, key); });
}

Fabric::Result Fabric::write(fi_addr_t peer, const void* bytes, std::size_t size,
                             std::uint64_t data, std::uint64_t address, std::uint64_t key,
                             void* context) {
  iovec from = {const_cast<void*>(bytes), size};
  fi_rma_iov to = {address, size, key};
  fi_msg_rma message = {};
  message.msg_iov = &from;
  message.iov_count = 1;
  message.addr = peer;
  message.rma_iov = &to;
  message.rma_iov_count = 1;
  message.context = context;
  message.data = data;
  return enter(peer,
               [&] { return fi_writemsg(endpoint_, &message, FI_REMOTE_CQ_DATA | FI_COMPLETION); });
}

void Fabric::settle() {
  door_.settle();
  for (Peer& peer : peers_) peer.door.settle();
}

int Fabric::completions(fi_cq_data_entry* entries, std::size_t room) {
  const InFabric mark;
  Entry entry(door_);
  if (!entry.open()) return kShut;
  const ssize_t count = fi_cq_read(queue_, entries, room);
  entry.done();
  if (count >= 0) return static_cast<int>(count);
  return count == -FI_EAVAIL ? kFailure : 0;
}

void* Fabric::failed() {
  const InFabric mark;
  fi_cq_err_entry entry = {};
  return fi_cq_readerr(queue_, &entry, 0) == 1 ? entry.op_context : nullptr;
}

}  // namespace espalier::ofi
