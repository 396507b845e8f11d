#include "bootstrap/server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <list>
#include <map>
#include <new>
#include <thread>
#include <vector>

#include "base/counted.h"
#include "base/one_line.h"
#include "bootstrap/listener.h"
#include "bootstrap/message.h"
#include "bootstrap/stream.h"
#include "bootstrap/threaded_server.h"

namespace espalier::bootstrap {
namespace {

// A connection that has not proven itself ends after this time, so that strangers hold no
// descriptors.
constexpr auto kHelloTime = std::chrono::seconds(10);
// Strangers at once; further ones are closed.
constexpr std::size_t kMaxStrangers = 64;
constexpr std::size_t kMaxHostName = 64;   // of which messages show so many bytes
constexpr std::size_t kMaxDescribed = 16;  // missing ranks of which the others learn more

}  // namespace

ThreadedServer::ThreadedServer(Listener listener, std::uint32_t size, const JobSecret& secret,
                               network::InterfaceFilter interfaces)
    : listener_(std::move(listener.socket)),
      interfaces_(std::move(interfaces)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      address_(listener.bound.text()),
      secret_(secret),
      size_(size),
      members_(size) {
  thread_ = std::thread([this] { serve_while_possible(); });
}

ThreadedServer::~ThreadedServer() {
  ends_ = true;
  const std::uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof one);
  thread_.join();
  tell_the_waiting();
  // A child that was just forked may not have closed its copy yet, which would keep the port.
  (void)shutdown(listener_.get(), SHUT_RDWR);
}

void ThreadedServer::tell_the_waiting() {
  try {
    const std::vector<std::uint32_t> ranks = missing();
    if (!ranks.empty()) fail_fences("the job's server has ended; " + describe(ranks));
  } catch (const std::bad_alloc&) {
    return;  // they learn that their connections have ended
  }
}

void ThreadedServer::serve_while_possible() {
  try {
    serve();
  } catch (const std::bad_alloc&) {
    // The processes learn that their connections have ended.
    is_without_memory_ = true;
    (void)shutdown(listener_.get(), SHUT_RDWR);
    connections_.clear();
  }
}

void ThreadedServer::serve() {
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
    end_growth_in_time();
    refuse_stranded();
    for (Connection& one : connections_) {
      if (one.is_over && one.rank >= 0) end_member(static_cast<std::uint32_t>(one.rank));
    }
    connections_.remove_if([](const Connection& one) { return one.is_over; });
  }
}

int ThreadedServer::timeout_ms() const {
  if (is_rejoining_ || is_accepting_ || is_completing_) return 50;
  return connections_.empty() ? -1 : 1000;
}

void ThreadedServer::accept_one() {
  Socket socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (socket.get() < 0) {
    // No descriptor is left: do not spin on the listener.
    if (errno == EMFILE || errno == ENFILE) usleep(10'000);
    return;
  }
  if (!takes(interfaces_, socket)) return;
  const auto strangers = std::count_if(connections_.begin(), connections_.end(),
                                       [](const Connection& one) { return one.is_stranger(); });
  if (static_cast<std::size_t>(strangers) >= kMaxStrangers + members_.size()) {
    // The oldest one makes room: a process of the job proves itself at once.
    std::find_if(connections_.begin(), connections_.end(), [](const Connection& one) {
      return one.is_stranger();
    })->is_over = true;
  }
  connections_.push_back({Stream(std::move(socket), true), Clock::now()});
  if (!connections_.back().stream.greet()) connections_.back().is_over = true;
}

void ThreadedServer::end_strangers() {
  for (Connection& one : connections_) {
    if (one.is_stranger() && Clock::now() - one.since > kHelloTime) one.is_over = true;
  }
}

void ThreadedServer::handle(Connection& from) {
  if (from.is_over) return;
  const bool is_open = from.stream.read();
  while (!from.is_over) {
    const std::optional<std::string> bytes = from.stream.next(secret_);
    if (!bytes) break;
    const std::optional<Message> message = decode(*bytes);
    if (!message) {
      from.is_over = true;
    } else if (from.is_newcomer) {
      request_of_newcomer(from, *message);
    } else if (from.rank < 0) {
      hello(from, *message);
    } else {
      request(from, *message);
    }
  }
  if (!is_open || from.stream.is_broken()) from.is_over = true;
}

void ThreadedServer::reply(Connection& to, Message message, std::uint32_t number) {
  message.number = number;
  if (!to.stream.send(encode(message), secret_)) to.is_over = true;
}

void ThreadedServer::refuse(Connection& to, const std::string& reason, std::uint32_t number) {
  reply(to, {.kind = Kind::kRefused, .text = reason}, number);
}

void ThreadedServer::hello(Connection& from, const Message& message) {
  const std::uint32_t size = size_;
  std::string reason;
  if (message.kind == Kind::kProbe) return reply(from, {.kind = Kind::kHere}, message.number);
  if (message.kind == Kind::kNewcomer) return enter(from, message);
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

void ThreadedServer::welcome(Connection& from, const Message& message) {
  from.rank = message.a;
  members_[message.a].has_joined = true;
  members_[message.a].host = one_line(message.text.substr(0, kMaxHostName));
  reply(from, {.kind = Kind::kWelcome}, message.number);
}

void ThreadedServer::join_again(Connection& from, const Message& message) {
  std::vector<std::uint32_t> others;  // that have not left
  for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
    if (!members_[rank].has_left) others.push_back(rank);
  }
  if (others.empty()) {
    members_ = std::vector<Member>(size_);
    generation_ = 0;
    is_rejoining_ = false;
    first_end_.clear();
    failed_round_ = 0;
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

void ThreadedServer::leave(Connection& from, const Message& message) {
  const auto rank = static_cast<std::uint32_t>(from.rank);
  end_member(rank);
  members_[rank].has_left = true;
  reply(from, {.kind = Kind::kDone}, message.number);
  from.rank = -1;  // The end of the connection says nothing of the rank any more.
  from.is_over = true;
}

void ThreadedServer::request(Connection& from, const Message& message) {
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
    case Kind::kGet:
      if (member.owes_vote && !is_completing_) return refuse(from, outcome_, message.number);
      return get(from, message);
    case Kind::kMissing: return reply(from, missing_message(), message.number);
    case Kind::kFence:
      // Those that failed first have voted already, and come to no fence any more.
      if (member.owes_vote && !is_completing_) return refuse(from, outcome_, message.number);
      member.waits = Waits::kFence;
      member.number = message.number;
      return release_fence();
    case Kind::kRejoin:
      if (member.is_new) return refuse(from, "a newcomer has nothing to rejoin", message.number);
      if (!is_rejoining_) rejoin_until_ = Clock::now() + std::chrono::milliseconds(message.a);
      is_rejoining_ = true;
      member.owes_vote = false;
      fail_growth("a process of the job calls rejoin()");
      member.waits = Waits::kRejoin;
      member.number = message.number;
      fail_fences("a process of the job calls rejoin()");
      return release_rejoin();
    case Kind::kAccept: return accept(from, message);
    case Kind::kComplete: return complete(from, message);
    case Kind::kWithdraw: return withdraw(from, message);
    case Kind::kLeave: return leave(from, message);
    default: from.is_over = true;
  }
}

void ThreadedServer::get(Connection& from, const Message& message) {
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

std::vector<std::uint32_t> ThreadedServer::missing() const {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
    const Member& member = members_[rank];
    if (!member.has_ended && member.waits == Waits::kNothing) ranks.push_back(rank);
  }
  return ranks;
}

std::uint32_t ThreadedServer::first_waiting() const {
  std::uint32_t rank = 0;
  while (rank + 1 < members_.size() && members_[rank].waits == Waits::kNothing) ++rank;
  return rank;
}

std::string ThreadedServer::describe(const std::vector<std::uint32_t>& ranks) const {
  std::string text;
  for (std::size_t i = 0; i < ranks.size() && i < kMaxDescribed; ++i) {
    const Member& member = members_[ranks[i]];
    text += (i == 0 ? "rank " : ", rank ") + std::to_string(ranks[i]);
    if (!member.host.empty()) text += " on host " + member.host;
    text += member.has_joined ? " has joined, and does something else"
                              : " never started, or does not reach this job's server";
  }
  return text;
}

std::string ThreadedServer::ended_text(std::uint32_t rank) const {
  const std::string others = describe(missing());
  return "rank " + std::to_string(rank) + " has ended" + (others.empty() ? "" : "; " + others);
}

Message ThreadedServer::missing_message() {
  const std::vector<std::uint32_t> ranks = missing();
  const bool have_joined = std::any_of(
      ranks.begin(), ranks.end(), [this](std::uint32_t rank) { return members_[rank].has_joined; });
  return {.kind = Kind::kRanks,
          .a = first_waiting(),
          .b = have_joined ? 1U : 0U,
          .text = ranks.empty() ? newcomers_text() : describe(ranks),
          .data = encode_ranks(ranks)};
}

ThreadedServer::Connection* ThreadedServer::connection_of(std::uint32_t rank) {
  for (Connection& one : connections_) {
    if (one.rank == rank && !one.is_over) return &one;
  }
  return nullptr;
}

bool ThreadedServer::is_expected(const Member& member) const {
  return !member.has_ended || generation_ == 0;
}

void ThreadedServer::release_fence() {
  for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
    const Member& member = members_[rank];
    if (!is_expected(member)) continue;
    if (member.has_ended) return fail_fences(ended_text(rank));
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

void ThreadedServer::fail_fences(const std::string& reason) {
  for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
    if (members_[rank].waits != Waits::kFence) continue;
    members_[rank].waits = Waits::kNothing;
    if (Connection* to = connection_of(rank)) refuse(*to, reason, members_[rank].number);
  }
}

void ThreadedServer::release_rejoin() {
  std::vector<std::uint32_t> survivors;
  for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
    const Member& member = members_[rank];
    if (member.waits == Waits::kRejoin) survivors.push_back(rank);
    if (!member.has_ended && member.waits != Waits::kRejoin) return;
  }
  // None: those that called it have ended, too.
  is_rejoining_ = false;
  if (survivors.empty()) return;
  begin_generation();
  for (Member& member : members_) {
    member.is_current = member.waits == Waits::kRejoin;
    member.accepts = 0;
  }
  failed_round_ = 0;
  for (const std::uint32_t rank : survivors) members_[rank].waits = Waits::kNothing;
  for (const std::uint32_t rank : survivors) {
    if (Connection* to = connection_of(rank)) {
      reply(*to, {.kind = Kind::kSurvivors, .a = generation_, .data = encode_ranks(survivors)},
            members_[rank].number);
    }
  }
}

void ThreadedServer::end_rejoin_in_time() {
  if (!is_rejoining_ || Clock::now() < rejoin_until_) return;
  for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
    if (members_[rank].waits == Waits::kRejoin || members_[rank].has_ended) continue;
    members_[rank].has_ended = true;
    if (Connection* to = connection_of(rank)) to->is_over = true;
  }
  release_rejoin();
}

void ThreadedServer::end_member(std::uint32_t rank) {
  if (members_[rank].has_ended) return;
  members_[rank].has_ended = true;
  members_[rank].waits = Waits::kNothing;
  note_end(rank);
  if (generation_ == 0) fail_fences(ended_text(rank));
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

Result<std::unique_ptr<Server>> Server::start(const std::string& address, std::uint32_t size,
                                              const JobSecret& secret, bool* is_in_use,
                                              const ListenOptions& options) {
  bool in_use = false;
  if (is_in_use != nullptr) *is_in_use = false;
  if (size == 0 || size > kMaxRanks) {
    return fail("a job of " + counted(size, "process") + "; expected 1 to " +
                std::to_string(kMaxRanks));
  }
  auto listener = listen_at(address, options, in_use);
  if (is_in_use != nullptr) *is_in_use = in_use;
  if (!listener) return fail(listener.error());
  return std::make_unique<ThreadedServer>(
      *std::move(listener), size, secret,
      listener->bound.is_wildcard() ? options.interfaces : network::InterfaceFilter());
}

}  // namespace espalier::bootstrap
