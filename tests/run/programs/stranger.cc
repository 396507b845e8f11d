// A process that does not belong to a job and attacks one of its nodes over libfabric's tcp
// provider. This process knows what any process may know: the node's address, the layout of its
// memory and the format of its words, and the rest only from the command line.
//
//   stranger write IP PORT KEYS BYTES MS
//     For MS milliseconds, writes BYTES bytes at offset 0 under the keys 1 .. KEYS.
//   stranger forge IP PORT WINDOW EAGER_BYTES KEY BASE MS
//     For MS milliseconds, forges words of every kind for every lane and message number: under the
//     memory key KEY at address BASE, as writes of no bytes, which need no key, and as messages.
// Prints how many operations libfabric completed.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/clock.h"
#include "hal/fabric/ofi/wire.h"

namespace {

using espalier::monotonic_ns;
namespace ofi = espalier::ofi;

constexpr std::uint64_t kAttemptNs = 200'000'000;

// One connection to the node. A node that refuses an operation closes it.
class Connection {
 public:
  explicit Connection(const sockaddr_in& node) {
    fi_info* hints = fi_allocinfo();
    hints->fabric_attr->prov_name = strdup("net");  // freed with the hints
    hints->caps = FI_MSG | FI_RMA;
    hints->mode = FI_CONTEXT;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->cq_data_size = 8;
    if (fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", nullptr, FI_SOURCE, hints, &info_) != 0) {
      std::free(hints->fabric_attr->prov_name);
      hints->fabric_attr->prov_name = strdup("tcp");
      check(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", nullptr, FI_SOURCE, hints, &info_));
    }
    fi_freeinfo(hints);
    check(fi_fabric(info_->fabric_attr, &fabric_, nullptr));
    check(fi_domain(fabric_, info_, &domain_, nullptr));
    fi_cq_attr cq = {};
    cq.size = 1024;
    cq.format = FI_CQ_FORMAT_DATA;
    check(fi_cq_open(domain_, &cq, &queue_, nullptr));
    fi_av_attr av = {};
    av.type = FI_AV_TABLE;
    check(fi_av_open(domain_, &av, &addresses_, nullptr));
    check(fi_endpoint(domain_, info_, &endpoint_, nullptr));
    check(fi_ep_bind(endpoint_, &queue_->fid, FI_TRANSMIT | FI_RECV));
    check(fi_ep_bind(endpoint_, &addresses_->fid, 0));
    check(fi_enable(endpoint_));
    if (fi_av_insert(addresses_, &node, 1, &node_, 0, nullptr) != 1) std::exit(2);
  }
  ~Connection() {
    fi_close(&endpoint_->fid);
    fi_close(&addresses_->fid);
    fi_close(&queue_->fid);
    fi_close(&domain_->fid);
    fi_close(&fabric_->fid);
    fi_freeinfo(info_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Makes `call` and waits for its end. Returns whether it completed without an error.
  template <typename Call>
  bool complete(Call call) {
    const std::uint64_t until = monotonic_ns() + kAttemptNs;
    bool started = false;
    while (monotonic_ns() < until) {
      if (!started) {
        const ssize_t code = call(endpoint_, node_, &context_);
        if (code != 0 && code != -FI_EAGAIN) return false;
        started = code == 0;
      }
      fi_cq_data_entry entry = {};
      const ssize_t count = fi_cq_read(queue_, &entry, 1);
      if (count == 1) return true;
      if (count != -FI_EAVAIL) continue;
      fi_cq_err_entry error = {};
      (void)fi_cq_readerr(queue_, &error, 0);
      return false;
    }
    return false;
  }

 private:
  static void check(int code) {
    if (code == 0) return;
    std::fprintf(stderr, "stranger: %s\n", fi_strerror(-code));
    std::exit(2);
  }

  fi_info* info_ = nullptr;
  fid_fabric* fabric_ = nullptr;
  fid_domain* domain_ = nullptr;
  fid_cq* queue_ = nullptr;
  fid_av* addresses_ = nullptr;
  fid_ep* endpoint_ = nullptr;
  fi_addr_t node_ = 0;
  fi_context2 context_ = {};
};

std::uint64_t write_under_keys(const sockaddr_in& node, std::uint64_t keys, std::size_t size,
                               std::uint64_t until) {
  const std::vector<std::uint8_t> bytes(size, 0xee);
  std::uint64_t completed = 0;
  while (monotonic_ns() < until) {
    for (std::uint64_t key = 1; key <= keys && monotonic_ns() < until; ++key) {
      Connection connection(node);
      completed += connection.complete([&](fid_ep* endpoint, fi_addr_t peer, void* context) {
        return fi_write(endpoint, bytes.data(), bytes.size(), nullptr, peer, 0, key, context);
      });
    }
  }
  return completed;
}

struct Forgery {
  ofi::ArenaLayout layout;
  std::uint64_t key = 0;
  std::uint64_t base = 0;
};

// Forges one word of each kind for one lane and number; returns how many were completed.
std::uint64_t forge_words(Connection& connection, const Forgery& forgery, std::uint32_t lane,
                          std::uint8_t number) {
  std::uint64_t completed = 0;
  const auto write = [&](const ofi::Immediate& immediate, std::uint64_t offset, const void* bytes,
                         std::size_t size) {
    completed += connection.complete([&](fid_ep* endpoint, fi_addr_t peer, void* context) {
      return fi_writedata(endpoint, bytes, size, nullptr, pack(immediate), peer,
                          forgery.base + offset, forgery.key, context);
    });
  };
  ofi::ControlEntry control{.sequence = std::uint64_t{1} << 60,
                            .status = static_cast<std::uint32_t>(espalier::Status::kDeadLink)};
  for (const auto kind : {espalier::ControlKind::kProbe, espalier::ControlKind::kAnswer,
                          espalier::ControlKind::kCause}) {
    const auto opcode = static_cast<ofi::Opcode>(static_cast<std::uint8_t>(ofi::Opcode::kProbe) +
                                                 static_cast<std::uint8_t>(kind));
    control.code = 0x1234567890abcdef + number;
    write({opcode, lane, number, 0}, forgery.layout.control(lane, kind), &control, sizeof(control));
  }
  const std::uint64_t position = number & (forgery.layout.ring() - 1);
  // Entries that the node itself awaits from its peers are left alone: whoever has the key can
  // overwrite them, which stops the collective but is not believed.
  for (const auto opcode :
       {ofi::Opcode::kHello, ofi::Opcode::kEager, ofi::Opcode::kPlaced,
        ofi::Opcode::kPlacedWithHeader, ofi::Opcode::kClearToSend, ofi::Opcode::kRequestToSend,
        ofi::Opcode::kCredit, ofi::Opcode::kWithdrawn, ofi::Opcode::kRejected,
        ofi::Opcode::kGreeting}) {
    const std::uint64_t nothing = 0;
    write({opcode, lane, number, position}, forgery.layout.sink(lane), &nothing, sizeof(nothing));
    // Writes of no bytes need no key.
    completed += connection.complete([&](fid_ep* endpoint, fi_addr_t peer, void* context) {
      return fi_writedata(endpoint, &nothing, 0, nullptr,
                          ofi::pack({opcode, lane, number, position}), peer, 0, 0, context);
    });
  }
  return completed;
}

std::uint64_t forge(const sockaddr_in& node, const Forgery& forgery, std::uint64_t until) {
  std::uint64_t completed = 0;
  while (monotonic_ns() < until) {
    Connection connection(node);
    for (std::uint32_t lane = 0; lane < 4; ++lane) {
      for (std::uint32_t number = 0; number < 256 && monotonic_ns() < until; number += 5) {
        completed += forge_words(connection, forgery, lane, static_cast<std::uint8_t>(number));
      }
    }
    completed += connection.complete([&](fid_ep* endpoint, fi_addr_t peer, void* context) {
      const std::uint64_t nothing = 0;
      return fi_senddata(endpoint, &nothing, sizeof(nothing), nullptr,
                         ofi::pack({ofi::Opcode::kCause, 0, 0, 0}), peer, context);
    });
  }
  return completed;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool writes = words.size() == 6 && words[0] == "write";
  const bool forges = words.size() == 8 && words[0] == "forge";
  sockaddr_in node = {};
  node.sin_family = AF_INET;
  if ((!writes && !forges) || inet_pton(AF_INET, words[1].c_str(), &node.sin_addr) != 1) {
    std::fprintf(stderr,
                 "usage: stranger write IP PORT KEYS BYTES MS\n"
                 "       stranger forge IP PORT WINDOW EAGER_BYTES KEY BASE MS\n");
    return 2;
  }
  const auto number = [&](std::size_t index) { return std::stoull(words[index]); };
  node.sin_port = htons(static_cast<std::uint16_t>(number(2)));
  const std::uint64_t until = monotonic_ns() + number(words.size() - 1) * 1'000'000;
  std::uint64_t completed = 0;
  if (writes) {
    completed = write_under_keys(node, number(3), number(4), until);
  } else {
    const Forgery forgery = {ofi::ArenaLayout(static_cast<std::uint32_t>(number(3)),
                                              static_cast<std::uint32_t>(number(4))),
                             number(5), number(6)};
    completed = forge(node, forgery, until);
  }
  std::printf("%llu\n", static_cast<unsigned long long>(completed));
}
