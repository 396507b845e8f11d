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
#include "base/network/interfaces.h"
#include "base/one_line.h"
#include "bootstrap/candidates.h"
#include "bootstrap/listener.h"
#include "bootstrap/message.h"
#include "bootstrap/stream.h"

namespace espalier::bootstrap {
namespace {

// A connection that has not proven itself ends after this time, so that strangers hold no
// descriptors.
constexpr auto kHelloTime = std::chrono::seconds(10);
// Strangers at once; further ones are closed.
constexpr std::size_t kMaxStrangers = 64;
constexpr std::size_t kMaxHostName = 64;   // of which messages show so many bytes
constexpr std::size_t kMaxDescribed = 16;  // missing ranks of which the others learn more
// Newcomers at once; further ones are refused.
constexpr std::ptrdiff_t kMaxNewcomers = 1024;
// The library's own values, which serve one agreement on the processes of the job.
constexpr const char* kOwnKeys = "espalier.";

class ThreadedServer : public Server {
 public:
  ThreadedServer(Socket listener, std::string address, std::uint32_t size, const JobSecret& secret)
      : listener_(std::move(listener)),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        address_(std::move(address)),
        secret_(secret),
        size_(size),
        members_(size) {
    thread_ = std::thread([this] { serve_while_possible(); });
  }
  ~ThreadedServer() override {
    ends_ = true;
    const std::uint64_t one = 1;
    (void)!write(wake_.get(), &one, sizeof one);
    thread_.join();
    tell_the_waiting();
    // A child that was just forked may not have closed its copy yet, which would keep the port.
    (void)shutdown(listener_.get(), SHUT_RDWR);
  }
  [[nodiscard]] const std::string& address() const override { return address_; }
  [[nodiscard]] bool is_without_memory() const override { return is_without_memory_; }

 private:
  enum class Waits : std::uint8_t { kNothing, kFence, kRejoin, kAccept, kComplete };
  // A process of the job.
  struct Member {
    bool has_joined = false, has_ended = false;
    bool has_left = false;  // and ended as it should
    // Among the processes of the last agreement. Otherwise its number is free for a newcomer.
    bool is_current = true;
    bool is_new = false;        // a newcomer; the others have not agreed yet that it is connected
    std::uint32_t accepts = 0;  // its calls of accept() since the last rejoin()
    bool owes_vote = false;     // got kAccepted, and has not sent kComplete or begun something else
    Waits waits = Waits::kNothing;
    std::uint32_t number = 0;  // of the request that waits
    std::string host = {};     // name of its host, as the process says it
    std::map<std::string, std::string> pending = {}, published = {};
  };
  struct Connection {
    Stream stream;
    Clock::time_point since;
    std::int64_t rank = -1;  // -1: has not proven itself, or is_newcomer
    bool is_over = false;
    bool is_newcomer = false;  // has proven itself, and is no member yet
    std::uint32_t wish = 0;    // number of a newcomer's kAccept that waits; 0: none does
    [[nodiscard]] bool is_stranger() const { return rank < 0 && !is_newcomer && !is_over; }
  };

  // Those that wait learn for whom, before their connections end.
  void tell_the_waiting() {
    try {
      const std::vector<std::uint32_t> ranks = missing();
      if (!ranks.empty()) fail_fences("the job's server has ended; " + describe(ranks));
    } catch (const std::bad_alloc&) {
      return;  // they learn that their connections have ended
    }
  }

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
      end_growth_in_time();
      for (Connection& one : connections_) {
        if (one.is_over && one.rank >= 0) end_member(static_cast<std::uint32_t>(one.rank));
      }
      connections_.remove_if([](const Connection& one) { return one.is_over; });
    }
  }

  [[nodiscard]] int timeout_ms() const {
    if (is_rejoining_ || is_accepting_ || is_completing_) return 50;
    return connections_.empty() ? -1 : 1000;
  }

  void accept_one() {
    Socket socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (socket.get() < 0) {
      // No descriptor is left: do not spin on the listener.
      if (errno == EMFILE || errno == ENFILE) usleep(10'000);
      return;
    }
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

  void end_strangers() {
    for (Connection& one : connections_) {
      if (one.is_stranger() && Clock::now() - one.since > kHelloTime) one.is_over = true;
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

  // `number`: of the request that is answered.
  void reply(Connection& to, Message message, std::uint32_t number) {
    message.number = number;
    if (!to.stream.send(encode(message), secret_)) to.is_over = true;
  }
  void refuse(Connection& to, const std::string& reason, std::uint32_t number) {
    reply(to, {.kind = Kind::kRefused, .text = reason}, number);
  }

  void hello(Connection& from, const Message& message) {
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

  void welcome(Connection& from, const Message& message) {
    from.rank = message.a;
    members_[message.a].has_joined = true;
    members_[message.a].host = one_line(message.text.substr(0, kMaxHostName));
    reply(from, {.kind = Kind::kWelcome}, message.number);
  }

  // A process that has left joins again: once all have left, the job begins anew.
  void join_again(Connection& from, const Message& message) {
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

  // The lowest rank that waits: it speaks for all.
  [[nodiscard]] std::uint32_t first_waiting() const {
    std::uint32_t rank = 0;
    while (rank + 1 < members_.size() && members_[rank].waits == Waits::kNothing) ++rank;
    return rank;
  }

  // "rank 3 never started, rank 5 on host b has joined, and does something else".
  [[nodiscard]] std::string describe(const std::vector<std::uint32_t>& ranks) const {
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

  // Why fences fail. A rank may have ended because it waited too long for others.
  [[nodiscard]] std::string ended_text(std::uint32_t rank) const {
    const std::string others = describe(missing());
    return "rank " + std::to_string(rank) + " has ended" + (others.empty() ? "" : "; " + others);
  }

  [[nodiscard]] Message missing_message() const {
    const std::vector<std::uint32_t> ranks = missing();
    const bool have_joined = std::any_of(ranks.begin(), ranks.end(), [this](std::uint32_t rank) {
      return members_[rank].has_joined;
    });
    return {.kind = Kind::kRanks,
            .a = first_waiting(),
            .b = have_joined ? 1U : 0U,
            .text = describe(ranks),
            .data = encode_ranks(ranks)};
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

  // The rest serves newcomers. accept() has two parts. First all members wait in kAccept, until
  // enough newcomers do; each newcomer gets a number. Then all of them connect, and vote by
  // kComplete: either all are connected, and the newcomers are members, or none is.

  // A process that has proven itself waits for the members.
  void enter(Connection& from, const Message& message) {
    const auto others = std::count_if(connections_.begin(), connections_.end(),
                                      [](const Connection& one) { return one.is_newcomer; });
    if (others >= kMaxNewcomers) {
      refuse(from, counted(kMaxNewcomers, "process") + " wait for accept() already",
             message.number);
      from.is_over = true;
      return;
    }
    from.is_newcomer = true;
    reply(from, {.kind = Kind::kWelcome}, message.number);
  }

  void request_of_newcomer(Connection& from, const Message& message) {
    switch (message.kind) {
      case Kind::kAccept: from.wish = message.number; return decide_accept();
      case Kind::kMissing: return reply(from, {.kind = Kind::kRanks}, message.number);
      case Kind::kLeave:
        from.is_over = true;
        return reply(from, {.kind = Kind::kDone}, message.number);
      // It was accepted, and the others have failed meanwhile.
      case Kind::kPut:
      case Kind::kFence:
      case Kind::kGet:
      case Kind::kComplete: return refuse(from, outcome_, message.number);
      default: from.is_over = true;
    }
  }

  // The members' calls belong together by their numbers: one that comes after its round has failed
  // fails with the others.
  void accept(Connection& from, const Message& message) {
    const auto rank = static_cast<std::uint32_t>(from.rank);
    members_[rank].owes_vote = false;
    const std::uint32_t round = ++members_[rank].accepts;
    if (round <= failed_round_) return refuse(from, failed_reason_, message.number);
    std::string reason = first_end_;
    if (is_rejoining_) reason = "a process of the job calls rejoin()";
    if (is_completing_) reason = "another accept() of the job goes on";
    if (is_accepting_ && message.a != least_) {
      reason = "rank " + std::to_string(rank) + " calls accept() for " +
               counted(message.a, "newcomer") + ", another one for " + std::to_string(least_);
    }
    if (!reason.empty()) {
      if (!is_accepting_) note_failed_round(round, reason);
      fail_growth(reason);
      return refuse(from, reason, message.number);
    }
    if (!is_accepting_) {
      is_accepting_ = true;
      round_ = round;
      least_ = message.a;
      newcomers_ms_ = message.b;
      growth_until_ = Clock::now() + std::chrono::milliseconds(members_ms_of(message));
      awaits_newcomers_ = false;
    }
    members_[rank].waits = Waits::kAccept;
    members_[rank].number = message.number;
    decide_accept();
  }

  [[nodiscard]] std::vector<Connection*> newcomers() {
    std::vector<Connection*> all;
    for (Connection& one : connections_) {
      if (one.is_newcomer && one.wish != 0 && !one.is_over) all.push_back(&one);
    }
    return all;
  }

  // Once all members wait, and enough newcomers do, or their time is over.
  void decide_accept() {
    if (!is_accepting_) return;
    for (const Member& member : members_) {
      if (member.is_current && member.waits != Waits::kAccept) return;
    }
    if (!awaits_newcomers_) growth_until_ = Clock::now() + std::chrono::milliseconds(newcomers_ms_);
    awaits_newcomers_ = true;
    const std::vector<Connection*> all = newcomers();
    if (all.size() >= least_) return take(all);
    if (Clock::now() < growth_until_) return;
    fail_growth(std::to_string(all.size()) + " of " + counted(least_, "newcomer") +
                " came within " + std::to_string(newcomers_ms_) +
                " ms; expected more processes that join through the job file");
  }

  // Gives the newcomers their numbers: first the free ones.
  void take(const std::vector<Connection*>& all) {
    begin_generation();
    for (Connection* const one : all) {
      auto place = std::find_if(members_.begin(), members_.end(), [](const Member& member) {
        return !member.is_current && !member.is_new;
      });
      if (place == members_.end() && members_.size() == kMaxRanks) break;
      if (place == members_.end()) place = members_.insert(place, Member());
      *place = {.has_joined = true, .is_current = false, .is_new = true, .number = one->wish};
      one->rank = place - members_.begin();
      one->is_newcomer = false;
      one->wish = 0;
    }
    std::vector<std::uint32_t> ranks;
    for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
      if (members_[rank].is_current || members_[rank].is_new) ranks.push_back(rank);
    }
    is_accepting_ = false;
    is_completing_ = true;
    has_vote_ = false;
    outcome_.clear();
    for (const std::uint32_t rank : ranks) {
      members_[rank].waits = Waits::kNothing;
      members_[rank].owes_vote = true;
      Connection* const to = connection_of(rank);
      if (to == nullptr) continue;  // It has just ended.
      reply(*to,
            {.kind = Kind::kAccepted,
             .a = generation_,
             .b = size_,
             .text = std::to_string(rank),
             .data = encode_ranks(ranks)},
            members_[rank].number);
    }
  }

  // A member will not call accept(), for this reason: its next round fails.
  void decline(Connection& from, const Message& message) {
    const std::uint32_t round = ++members_[static_cast<std::size_t>(from.rank)].accepts;
    if (round <= failed_round_) return refuse(from, failed_reason_, message.number);
    if (!is_accepting_) note_failed_round(round, message.text);
    fail_growth(message.text);
    refuse(from, message.text, message.number);
  }
  void note_failed_round(std::uint32_t round, const std::string& reason) {
    failed_round_ = round;
    failed_reason_ = reason;
  }

  void complete(Connection& from, const Message& message) {
    members_[static_cast<std::size_t>(from.rank)].owes_vote = false;
    if (message.a == 0 && !message.text.empty()) return decline(from, message);
    if (!is_completing_ || message.a != generation_) {
      return refuse(from, outcome_.empty() ? "accept() is over" : outcome_, message.number);
    }
    const auto rank = static_cast<std::uint32_t>(from.rank);
    members_[rank].waits = Waits::kComplete;
    members_[rank].number = message.number;
    if (!message.text.empty()) {
      return fail_growth("rank " + std::to_string(rank) + ": " + message.text);
    }
    if (!has_vote_) {
      growth_until_ = Clock::now() + std::chrono::milliseconds(members_ms_of(message));
    }
    has_vote_ = true;
    decide_complete();
  }

  void decide_complete() {
    bool have_all = true;
    for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
      const Member& member = members_[rank];
      if (!member.is_current && !member.is_new) continue;
      if (member.has_ended) return fail_growth("rank " + std::to_string(rank) + " has ended");
      have_all = have_all && member.waits == Waits::kComplete;
    }
    if (!have_all) return;
    is_completing_ = false;
    for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
      Member& member = members_[rank];
      if (member.is_new) member.is_current = true;
      if (member.is_new) member.accepts = round_;
      member.is_new = false;
    }
    answer(Waits::kComplete, "");
  }

  // Ends accept(), if it goes on, with the same reason for all.
  void fail_growth(const std::string& reason) {
    if (is_accepting_) {
      answer(Waits::kAccept, reason);
      note_failed_round(round_, reason);
    }
    is_accepting_ = false;
    if (!is_completing_) return;
    is_completing_ = false;
    outcome_ = reason;
    answer(Waits::kComplete, reason);
    fail_fences(reason);
    for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
      if (!members_[rank].is_new) continue;
      // Its number is free again, and it may wait for the next accept().
      members_[rank] = {.has_ended = true, .has_left = true, .is_current = false};
      if (Connection* const one = connection_of(rank)) {
        one->rank = -1;
        one->is_newcomer = true;
      }
    }
  }

  // Answers the members that wait for this. `reason`: empty: it is done.
  void answer(Waits what, const std::string& reason) {
    for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
      Member& member = members_[rank];
      if (member.waits != what) continue;
      member.waits = Waits::kNothing;
      Connection* const to = connection_of(rank);
      if (to == nullptr) continue;
      if (reason.empty()) reply(*to, {.kind = Kind::kDone}, member.number);
      if (!reason.empty()) refuse(*to, reason, member.number);
    }
  }

  void end_growth_in_time() {
    if (!is_accepting_ && !is_completing_) return;
    if (is_accepting_) decide_accept();
    const bool is_timed = is_accepting_ ? !awaits_newcomers_ : is_completing_ && has_vote_;
    if (!is_timed || Clock::now() < growth_until_) return;
    const Waits what = is_accepting_ ? Waits::kAccept : Waits::kComplete;
    for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
      const Member& member = members_[rank];
      if (member.waits == what || (!member.is_current && !member.is_new)) continue;
      return fail_growth(
          "rank " + std::to_string(rank) +
          (is_accepting_ ? " did not call accept() in time" : " did not connect in time"));
    }
  }

  void note_end(std::uint32_t rank) {
    if (members_[rank].is_current && first_end_.empty()) {
      first_end_ = "rank " + std::to_string(rank) + " has ended; expected rejoin() before accept()";
      if (is_accepting_) fail_growth(first_end_);
    }
    if (is_completing_) decide_complete();
  }

  // The processes of the job have agreed anew: the library's values of earlier agreements go.
  void begin_generation() {
    ++generation_;
    first_end_.clear();
    for (Member& member : members_) {
      for (auto* const values : {&member.pending, &member.published}) {
        std::erase_if(*values, [](const auto& one) { return one.first.starts_with(kOwnKeys); });
      }
    }
  }

  Socket listener_, wake_;
  std::string address_;
  JobSecret secret_;
  std::uint32_t size_;  // that the job was started with
  std::vector<Member> members_;
  std::list<Connection> connections_;
  std::uint32_t generation_ = 0;
  bool is_rejoining_ = false;  // processes wait for it, until rejoin_until_
  Clock::time_point rejoin_until_;
  // accept(): members wait in it, or they and the newcomers connect.
  bool is_accepting_ = false, is_completing_ = false;
  bool awaits_newcomers_ = false;  // because all members wait
  bool has_vote_ = false;
  std::uint32_t least_ = 0, newcomers_ms_ = 0;
  Clock::time_point growth_until_;
  std::uint32_t round_ = 0;         // of the accept() that goes on, or was the last
  std::uint32_t failed_round_ = 0;  // those up to this one have failed
  std::string failed_reason_;
  std::string outcome_;    // why the last accept() failed after it gave numbers; empty: it did not
  std::string first_end_;  // the first end of a process since the last agreement; empty: none
  std::atomic<bool> ends_ = false;
  std::atomic<bool> is_without_memory_ = false;
  std::thread thread_;
};

}  // namespace

std::string own_ip() {
  const auto filter = network::interface_filter("");
  const auto used = filter ? filter->apply(network::running_interfaces())
                           : Result<std::vector<network::Interface>>();
  const Candidates own = own_candidates(used ? *used : std::vector<network::Interface>(), 0);
  return own.addresses.empty() ? "127.0.0.1" : own.addresses.front().host();
}

Result<std::unique_ptr<Server>> Server::start(const std::string& address, std::uint32_t size,
                                              const JobSecret& secret, bool* is_in_use,
                                              const network::PortRange& ports) {
  bool in_use = false;
  if (is_in_use != nullptr) *is_in_use = false;
  if (size == 0 || size > kMaxRanks) {
    return fail("a job of " + counted(size, "process") + "; expected 1 to " +
                std::to_string(kMaxRanks));
  }
  auto listener = listen_at(address, ports, in_use);
  if (is_in_use != nullptr) *is_in_use = in_use;
  if (!listener) return fail(listener.error());
  return std::make_unique<ThreadedServer>(std::move(listener->socket), listener->bound.text(), size,
                                          secret);
}

}  // namespace espalier::bootstrap
