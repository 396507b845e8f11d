#include "bootstrap/server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <list>
#include <map>
#include <new>
#include <thread>
#include <vector>

#include "base/counted.h"
#include "base/try.h"
#include "bootstrap/message.h"
#include "bootstrap/stream.h"

namespace espalier::bootstrap {
namespace {

// A connection that has not proven itself ends after this time, so that strangers hold no
// descriptors.
constexpr auto kHelloTime = std::chrono::seconds(10);
// Strangers at once; further ones are closed.
constexpr std::size_t kMaxStrangers = 64;

class ThreadedServer : public Server {
 public:
  ThreadedServer(Socket listener, std::string address, std::uint32_t size, const JobSecret& secret)
      : listener_(std::move(listener)),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        address_(std::move(address)),
        secret_(secret),
        members_(size) {
    thread_ = std::thread([this] { serve_while_possible(); });
  }
  ~ThreadedServer() override {
    ends_ = true;
    const std::uint64_t one = 1;
    (void)!write(wake_.get(), &one, sizeof one);
    thread_.join();
    // A child that was just forked may not have closed its copy yet, which would keep the port.
    (void)shutdown(listener_.get(), SHUT_RDWR);
  }
  [[nodiscard]] const std::string& address() const override { return address_; }
  [[nodiscard]] bool is_without_memory() const override { return is_without_memory_; }

 private:
  enum class Waits : std::uint8_t { kNothing, kFence, kRejoin };
  // A process of the job.
  struct Member {
    bool has_joined = false, has_ended = false;
    bool has_left = false;  // and ended as it should
    Waits waits = Waits::kNothing;
    std::uint32_t number = 0;  // of the request that waits
    std::map<std::string, std::string> pending, published;
  };
  struct Connection {
    Stream stream;
    Clock::time_point since;
    std::int64_t rank = -1;  // -1: has not proven itself
    bool is_over = false;
  };

  void serve_while_possible() {
    try {
      serve();
    } catch (const std::bad_alloc&) {
      // The processes learn that their connections have ended.
      is_without_memory_ = true;
      (void)shutdown(listener_.get(), SHUT_RDWR);
      connections_.clear();
    }
  }

  void serve() {
    while (!ends_) {
      std::vector<pollfd> waiting = {{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
      for (const Connection& one : connections_) {
        waiting.push_back({one.stream.descriptor(), POLLIN, 0});
      }
      (void)poll(waiting.data(), waiting.size(), timeout_ms());
      if ((waiting[1].revents & POLLIN) != 0) accept_one();
      for (Connection& one : connections_) handle(one);
      end_strangers();
      end_rejoin_in_time();
      for (Connection& one : connections_) {
        if (one.is_over && one.rank >= 0) end_member(static_cast<std::uint32_t>(one.rank));
      }
      connections_.remove_if([](const Connection& one) { return one.is_over; });
    }
  }

  [[nodiscard]] int timeout_ms() const {
    if (is_rejoining_) return 50;
    return connections_.empty() ? -1 : 1000;
  }

  void accept_one() {
    Socket socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (socket.get() < 0) {
      // No descriptor is left: do not spin on the listener.
      if (errno == EMFILE || errno == ENFILE) usleep(10'000);
      return;
    }
    const auto strangers =
        std::count_if(connections_.begin(), connections_.end(),
                      [](const Connection& one) { return one.rank < 0 && !one.is_over; });
    if (static_cast<std::size_t>(strangers) >= kMaxStrangers + members_.size()) {
      // The oldest one makes room: a process of the job proves itself at once.
      std::find_if(connections_.begin(), connections_.end(), [](const Connection& one) {
        return one.rank < 0 && !one.is_over;
      })->is_over = true;
    }
    connections_.push_back({Stream(std::move(socket), true), Clock::now()});
    if (!connections_.back().stream.greet()) connections_.back().is_over = true;
  }

  void end_strangers() {
    for (Connection& one : connections_) {
      if (one.rank < 0 && Clock::now() - one.since > kHelloTime) one.is_over = true;
    }
  }

  void handle(Connection& from) {
    if (from.is_over) return;
    const bool is_open = from.stream.read();
    while (!from.is_over) {
      const std::optional<std::string> bytes = from.stream.next(secret_);
      if (!bytes) break;
      const std::optional<Message> message = decode(*bytes);
      if (!message) {
        from.is_over = true;
      } else if (from.rank < 0) {
        hello(from, *message);
      } else {
        request(from, *message);
      }
    }
    if (!is_open || from.stream.is_broken()) from.is_over = true;
  }

  // `number`: of the request that is answered.
  void reply(Connection& to, Message message, std::uint32_t number) {
    message.number = number;
    if (!to.stream.send(encode(message), secret_)) to.is_over = true;
  }
  void refuse(Connection& to, const std::string& reason, std::uint32_t number) {
    reply(to, {.kind = Kind::kRefused, .text = reason}, number);
  }

  void hello(Connection& from, const Message& message) {
    const auto size = static_cast<std::uint32_t>(members_.size());
    std::string reason;
    if (message.kind != Kind::kHello) {
      from.is_over = true;
      return;
    }
    if (message.b != size) {
      reason = "this process was started for " + counted(message.b, "rank") + ", the job has " +
               std::to_string(size);
    } else if (message.a >= size) {
      reason = "rank " + std::to_string(message.a) + " of " + std::to_string(size);
    } else if (members_[message.a].has_left) {
      return join_again(from, message);
    } else if (members_[message.a].has_ended) {
      reason = "the job goes on without rank " + std::to_string(message.a);
    } else if (members_[message.a].has_joined) {
      reason = "another process has rank " + std::to_string(message.a) + " already";
    }
    if (reason.empty()) return welcome(from, message);
    refuse(from, reason, message.number);
    from.is_over = true;
  }

  void welcome(Connection& from, const Message& message) {
    from.rank = message.a;
    members_[message.a].has_joined = true;
    reply(from, {.kind = Kind::kWelcome}, message.number);
  }

  // A process that has left joins again: once all have left, the job begins anew.
  void join_again(Connection& from, const Message& message) {
    std::vector<std::uint32_t> others;  // that have not left
    for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
      if (!members_[rank].has_left) others.push_back(rank);
    }
    if (others.empty()) {
      members_ = std::vector<Member>(members_.size());
      generation_ = 0;
      is_rejoining_ = false;
      return welcome(from, message);
    }
    const auto dead = std::find_if(others.begin(), others.end(),
                                   [this](std::uint32_t rank) { return members_[rank].has_ended; });
    if (dead != others.end()) {
      refuse(from,
             "rank " + std::to_string(*dead) +
                 " ended without leaving the job, so no process can join it again",
             message.number);
    } else {
      reply(from, {.kind = Kind::kLater, .data = encode_ranks(others)}, message.number);
    }
    from.is_over = true;
  }

  // Only then does the process join again: its reply says that it is known to have left.
  void leave(Connection& from, const Message& message) {
    const auto rank = static_cast<std::uint32_t>(from.rank);
    end_member(rank);
    members_[rank].has_left = true;
    reply(from, {.kind = Kind::kDone}, message.number);
    from.rank = -1;  // The end of the connection says nothing of the rank any more.
    from.is_over = true;
  }

  void request(Connection& from, const Message& message) {
    Member& member = members_[static_cast<std::size_t>(from.rank)];
    switch (message.kind) {
      case Kind::kPut: {
        const bool is_used =
            member.pending.contains(message.text) || member.published.contains(message.text);
        if (is_used) {
          return refuse(from, "key '" + message.text + "' is used twice", message.number);
        }
        member.pending[message.text] = message.data;
        return reply(from, {.kind = Kind::kDone}, message.number);
      }
      case Kind::kGet: return get(from, message);
      case Kind::kMissing:
        return reply(from, {.kind = Kind::kRanks, .data = encode_ranks(missing())}, message.number);
      case Kind::kFence:
        member.waits = Waits::kFence;
        member.number = message.number;
        return release_fence();
      case Kind::kRejoin:
        if (!is_rejoining_) rejoin_until_ = Clock::now() + std::chrono::milliseconds(message.a);
        is_rejoining_ = true;
        member.waits = Waits::kRejoin;
        member.number = message.number;
        fail_fences("a process of the job calls rejoin()");
        return release_rejoin();
      case Kind::kLeave: return leave(from, message);
      default: from.is_over = true;
    }
  }

  void get(Connection& from, const Message& message) {
    if (message.a < members_.size()) {
      const auto& published = members_[message.a].published;
      const auto found = published.find(message.text);
      if (found != published.end()) {
        return reply(from, {.kind = Kind::kValue, .data = found->second}, message.number);
      }
    }
    refuse(from, "rank " + std::to_string(message.a) + " has published no '" + message.text + "'",
           message.number);
  }

  // Those that the others wait for: they have not joined, or have not called what the others did.
  [[nodiscard]] std::vector<std::uint32_t> missing() const {
    std::vector<std::uint32_t> ranks;
    for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
      const Member& member = members_[rank];
      if (!member.has_ended && member.waits == Waits::kNothing) ranks.push_back(rank);
    }
    return ranks;
  }

  [[nodiscard]] Connection* connection_of(std::uint32_t rank) {
    for (Connection& one : connections_) {
      if (one.rank == rank && !one.is_over) return &one;
    }
    return nullptr;
  }

  // After a rejoin, members that ended are not waited for.
  [[nodiscard]] bool is_expected(const Member& member) const {
    return !member.has_ended || generation_ == 0;
  }

  void release_fence() {
    for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
      const Member& member = members_[rank];
      if (!is_expected(member)) continue;
      if (member.has_ended) return fail_fences("rank " + std::to_string(rank) + " has ended");
      if (member.waits != Waits::kFence) return;
    }
    for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
      Member& member = members_[rank];
      member.published.merge(member.pending);
      member.pending.clear();
    }
    // Rank 0 last: if this server is in its process, it may end as soon as it has its reply.
    for (auto rank = static_cast<std::uint32_t>(members_.size()); rank-- > 0;) {
      if (members_[rank].waits != Waits::kFence) continue;
      members_[rank].waits = Waits::kNothing;
      if (Connection* to = connection_of(rank)) {
        reply(*to, {.kind = Kind::kDone}, members_[rank].number);
      }
    }
  }

  void fail_fences(const std::string& reason) {
    for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
      if (members_[rank].waits != Waits::kFence) continue;
      members_[rank].waits = Waits::kNothing;
      if (Connection* to = connection_of(rank)) refuse(*to, reason, members_[rank].number);
    }
  }

  void release_rejoin() {
    std::vector<std::uint32_t> survivors;
    for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
      const Member& member = members_[rank];
      if (member.waits == Waits::kRejoin) survivors.push_back(rank);
      if (!member.has_ended && member.waits != Waits::kRejoin) return;
    }
    // None: those that called it have ended, too.
    is_rejoining_ = false;
    if (survivors.empty()) return;
    ++generation_;
    for (const std::uint32_t rank : survivors) members_[rank].waits = Waits::kNothing;
    for (const std::uint32_t rank : survivors) {
      if (Connection* to = connection_of(rank)) {
        reply(*to, {.kind = Kind::kSurvivors, .a = generation_, .data = encode_ranks(survivors)},
              members_[rank].number);
      }
    }
  }

  // Processes that did not call rejoin() in time take no further part.
  void end_rejoin_in_time() {
    if (!is_rejoining_ || Clock::now() < rejoin_until_) return;
    for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
      if (members_[rank].waits == Waits::kRejoin || members_[rank].has_ended) continue;
      members_[rank].has_ended = true;
      if (Connection* to = connection_of(rank)) to->is_over = true;
    }
    release_rejoin();
  }

  void end_member(std::uint32_t rank) {
    if (members_[rank].has_ended) return;
    members_[rank].has_ended = true;
    members_[rank].waits = Waits::kNothing;
    if (generation_ == 0) fail_fences("rank " + std::to_string(rank) + " has ended");
    if (generation_ > 0) release_fence();
    const bool any_waits = std::any_of(members_.begin(), members_.end(), [](const Member& member) {
      return member.waits == Waits::kRejoin;
    });
    if (any_waits) {
      release_rejoin();
    } else {
      is_rejoining_ = false;
    }
  }

  Socket listener_, wake_;
  std::string address_;
  JobSecret secret_;
  std::vector<Member> members_;
  std::list<Connection> connections_;
  std::uint32_t generation_ = 0;
  bool is_rejoining_ = false;  // processes wait for it, until rejoin_until_
  Clock::time_point rejoin_until_;
  std::atomic<bool> ends_ = false;
  std::atomic<bool> is_without_memory_ = false;
  std::thread thread_;
};

}  // namespace

std::string own_ip() { return own_address().host(); }

Result<std::unique_ptr<Server>> Server::start(const std::string& address, std::uint32_t size,
                                              const JobSecret& secret, bool* is_in_use) {
  if (is_in_use != nullptr) *is_in_use = false;
  ESPALIER_TRY_TO(auto where, resolve(address));
  if (size == 0 || size > kMaxRanks) {
    return fail("a job of " + counted(size, "process") + "; expected 1 to " +
                std::to_string(kMaxRanks));
  }
  Socket listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  (void)setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in bound{};
  bound.sin_family = AF_INET;
  bound.sin_addr.s_addr = where.ip;
  bound.sin_port = htons(where.port);
  socklen_t length = sizeof bound;
  if (bind(listener.get(), reinterpret_cast<sockaddr*>(&bound), length) != 0 ||
      listen(listener.get(), 1024) != 0) {
    if (is_in_use != nullptr) *is_in_use = errno == EADDRINUSE;
    return fail("cannot listen at " + address + ": " + std::strerror(errno));
  }
  (void)getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &length);
  where.port = ntohs(bound.sin_port);
  return std::make_unique<ThreadedServer>(std::move(listener), where.text(), size, secret);
}

}  // namespace espalier::bootstrap
