#include "bootstrap/client.h"

#include <poll.h>
#include <sodium.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <thread>
#include <utility>

#include "base/counted.h"
#include "base/one_line.h"
#include "base/parse_number.h"
#include "base/process/system_error.h"
#include "base/try.h"
#include "bootstrap/attempts.h"
#include "bootstrap/first_word.h"
#include "bootstrap/message.h"
#include "bootstrap/newcomers.h"
#include "bootstrap/stream.h"

namespace espalier::bootstrap {
namespace {

using Milliseconds = std::chrono::milliseconds;

// Pause before a server that still serves another job is asked again.
constexpr auto kRetryPause = Milliseconds(20);
// How often a process that connects looks whether its own server still serves.
constexpr auto kLookPause = Milliseconds(200);
// Time for the reply to kLeave, whose loss harms nothing but a join after it.
constexpr auto kLeaveTime = Milliseconds(2'000);
// Time for a reply that the server gives without waiting for other processes.
constexpr auto kReplyTime = Milliseconds(10'000);
// The same once the deadline has passed.
constexpr auto kShortestReplyTime = Milliseconds(900);
// How much later than its deadline the server's reply may come.
constexpr auto kServerTime = Milliseconds(5'000);
// How often a process that waits in accept() asks whether to end it.
constexpr auto kAskPause = Milliseconds(10);
constexpr std::size_t kMaxFailure = 1024;  // bytes of a process's failure to connect

std::uint32_t wire_ms(Milliseconds time) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(time.count(), 0, 1 << 30));
}

std::string list_of(const std::string& data) {
  std::string text;
  const std::vector<std::uint32_t> ranks = decode_ranks(data);
  const std::size_t count = ranks.size();
  for (std::size_t i = 0; i < count && i < 16; ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  if (count > 16) text += " and " + std::to_string(count - 16) + " more";
  return (count == 1 ? "rank " : "ranks ") + text;
}

std::string seconds_text(Milliseconds time) {
  const auto ms = time.count();
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms";
}

class ConnectedBootstrap : public Bootstrap {
 public:
  ConnectedBootstrap(Place place, Milliseconds deadline)
      : place_(std::move(place)), deadline_(deadline) {}

  // In a forked child the membership stays the parent's.
  ~ConnectedBootstrap() override {
    if (generation_ != process_generation()) {
      keep_for_parent(place_.server.release());
      return;
    }
    leave();
    remove_file();
    if (!place_.job_file.empty()) remove_job_file(place_.job_file, job_ticket(place_));
    // Ended before the connection to the server: otherwise the server takes the end of the
    // connection for a failure.
    place_.server.reset();
  }
  [[nodiscard]] Result<void> connect();

  [[nodiscard]] std::uint32_t rank() const override { return place_.rank; }
  [[nodiscard]] std::uint32_t size() const override { return place_.size; }
  [[nodiscard]] Method method() const override { return place_.method; }
  [[nodiscard]] bool is_secret() const override { return place_.is_secret; }
  [[nodiscard]] const JobSecret& secret() const override { return place_.secret; }
  [[nodiscard]] const std::string& local_address() const override { return local_address_; }
  [[nodiscard]] const std::string& server_address() const { return server_address_; }

  [[nodiscard]] Result<void> put(const std::string& key, const std::string& value) override {
    if (value.size() > (std::size_t{64} << 10) || key.size() > 512) {
      return fail("'" + key.substr(0, 40) + "' has " + counted(value.size(), "byte") +
                  "; expected at most 65536, and a key of at most 512");
    }
    ESPALIER_TRY(ask({.kind = Kind::kPut, .text = key, .data = value}, Kind::kDone, reply_time()));
    return {};
  }

  [[nodiscard]] Result<void> fence() override {
    ESPALIER_TRY(ask({.kind = Kind::kFence}, Kind::kDone, deadline_));
    remove_file();  // All have joined.
    return {};
  }

  [[nodiscard]] Result<std::string> get(std::uint32_t rank, const std::string& key) override {
    ESPALIER_TRY_TO(auto reply,
                    ask({.kind = Kind::kGet, .a = rank, .text = key}, Kind::kValue, reply_time()));
    return std::move(reply.data);
  }

  [[nodiscard]] Result<Survivors> rejoin() override {
    // The server answers at the deadline at the latest.
    ESPALIER_TRY_TO(auto reply, ask({.kind = Kind::kRejoin, .a = wire_ms(deadline_)},
                                    Kind::kSurvivors, deadline_ + kShortestReplyTime));
    return Survivors{.ranks = decode_ranks(reply.data), .generation = reply.a};
  }

  [[nodiscard]] bool is_newcomer() const override { return place_.is_newcomer; }
  [[nodiscard]] Result<Accepted> accept(std::uint32_t least, Milliseconds time) override;
  [[nodiscard]] Result<void> complete(const Accepted& accepted,
                                      const std::string& failure) override;
  void end_accept_by(EndOfAccept end) override { end_of_accept_ = std::move(end); }

 private:
  // Removes the file through which the others join.
  void remove_file() {
    if (!place_.file.empty()) (void)unlink(place_.file.c_str());
    place_.file.clear();
  }
  // The addresses of the server. Errors: place_.address is malformed or unknown.
  [[nodiscard]] Result<std::vector<Target>> targets(Clock::time_point until) const;
  // Asks end_of_accept_, and tells the server the line.
  void withdraw_in_time();
  // Why no server was found, before the deadline; nothing: it may still be.
  [[nodiscard]] std::optional<Error> refusal(const Attempts& attempts) const;
  [[nodiscard]] Error not_found(const Attempts& attempts) const;
  [[nodiscard]] Result<bool> say_hello(Clock::time_point until);
  // Errors: this process was forked from the member.
  [[nodiscard]] Result<void> check_process() const;
  // Sends a request and waits for its reply, of the kind `wanted`.
  [[nodiscard]] Result<Message> ask(Message request, Kind wanted, Milliseconds time);
  // Receives the reply to a request. Nothing: not within the time.
  [[nodiscard]] Result<std::optional<Message>> receive(Clock::time_point until,
                                                       std::uint32_t number);
  // As ask(), for a request whose reply comes at the time of the server's. Nothing: not within it.
  // `awaited`: what this process waits for, as it tells the user; empty: the ranks that the server
  // names.
  [[nodiscard]] Result<std::optional<Message>> await_agreement(Message request, Kind wanted,
                                                               Clock::time_point until,
                                                               const std::string& awaited);
  // Tells the server that this end is not a failure, and waits until it knows.
  void leave();
  // The ranks that a fence or rejoin waits for.
  struct Missing {
    std::vector<std::uint32_t> all = {};
    std::string ranks = {};  // "ranks 3, 5"; empty: none
    std::string facts = {};  // what the server knows of them
    bool have_some_joined = false;
    std::uint32_t speaker = 0;  // the rank that tells the user
    [[nodiscard]] std::string described() const { return have_some_joined ? ": " + facts : ""; }
  };
  // Tells the user, if this process is the one that does.
  void say_missing(const Missing& who, const std::string& so_far) const;
  // Errors: the server is gone, or does not answer until `until`, or for kShortestReplyTime.
  [[nodiscard]] Result<Missing> missing(Clock::time_point until);
  // How long a reply may take that waits for no other process.
  [[nodiscard]] Milliseconds reply_time() const {
    return std::clamp(deadline_, kShortestReplyTime, kReplyTime);
  }
  [[nodiscard]] bool is_without_server() const {
    return place_.server != nullptr && place_.server->is_without_memory();
  }
  [[nodiscard]] Error lost() const {
    if (is_without_server()) {
      return {"the job's server, which is in this process, has no memory" + limit_suffix(ENOMEM)};
    }
    return {"the connection to the job's server at " + server_text() + " has ended"};
  }
  [[nodiscard]] const std::string& server_text() const {
    return place_.address.empty() ? server_address_ : place_.address;
  }

  Place place_;
  Milliseconds deadline_;
  Stream stream_;
  std::string local_address_;
  std::string server_address_;
  EndOfAccept end_of_accept_;     // null: nothing is asked, or the server knows the line
  std::optional<Message> early_;  // arrived before it was waited for
  std::uint32_t requests_ = 0;
  bool has_ended_ = false;  // the connection
  bool has_joined_ = false;
  std::string not_left_;  // ranks of the job before, which this process has left already
  Clock::time_point newcomer_until_ = {};  // when a newcomer that is not accepted gives up
  std::uint32_t generation_ = process_generation();
};

Result<std::vector<Target>> ConnectedBootstrap::targets(Clock::time_point until) const {
  if (place_.address.empty()) return targets_of(place_.candidates, place_.interfaces);
  std::vector<Target> targets;
  std::istringstream list(place_.address);  // one, or several between commas
  Result<void> resolved;
  for (std::string text; std::getline(list, text, ',');) {
    const auto left = std::chrono::duration_cast<Milliseconds>(until - Clock::now());
    const auto addresses = resolve_in_time(text, std::max(left, Milliseconds(0)));
    if (!addresses) resolved = fail(addresses.error());  // of an interface that this host lacks
    if (!addresses) continue;
    for (const network::Address& each : *addresses) targets.push_back({each});
  }
  if (targets.empty() && !resolved) return fail(resolved.error());
  return targets;
}

// With a ticket, the secret is the server's: another one's address leads elsewhere.
std::optional<Error> ConnectedBootstrap::refusal(const Attempts& attempts) const {
  if (is_without_server()) return lost();
  if (place_.address.empty()) return {};
  if (attempts.is_foreign()) {
    return Error{"the server at " + place_.address +
                 " is not one of Espalier; expected another ESPALIER_ADDRESS or MASTER_PORT"};
  }
  if (!attempts.has_other_secret()) return {};
  return Error{"the job's server at " + place_.address +
               " has another secret; expected the file that ESPALIER_SECRET_FILE names to be the "
               "same for all processes"};
}

Error ConnectedBootstrap::not_found(const Attempts& attempts) const {
  if (!not_left_.empty()) {
    return {not_left_ + " of " + std::to_string(place_.size) + " did not leave the job within " +
            seconds_text(deadline_) +
            "; expected all to end each of its communicators before this one joins again"};
  }
  const std::string where = place_.address.empty() ? "" : " at " + place_.address;
  return {"no server of the job" + where + " within " + seconds_text(deadline_) + "; tried " +
          attempts.report() + "; expected rank 0 or the launcher there"};
}

Result<void> ConnectedBootstrap::connect() {
  const Clock::time_point until = Clock::now() + deadline_;
  ESPALIER_TRY_TO(auto all, targets(until));
  Attempts attempts(std::move(all), place_.secret);
  FirstWord word;
  Speaker speaker;
  while (true) {
    auto reached = attempts.go_on(std::min(until, Clock::now() + kLookPause));
    if (reached) {
      stream_ = std::move(reached->stream);
      local_address_ = reached->own.host();
      server_address_ = reached->server.host();
      has_ended_ = false;
      ESPALIER_TRY_TO(has_joined_, say_hello(until));
      if (has_joined_) return {};
      std::this_thread::sleep_for(kRetryPause);
    }
    if (const auto error = refusal(attempts)) return fail(*error);
    if (Clock::now() > until) return fail(not_found(attempts));
    if (!word.is_due()) continue;
    if (!FirstWord::is_watched() && !speaker.may_speak(attempts.first().text())) continue;
    const std::string me =
        "rank " + std::to_string(place_.rank) + " of " + std::to_string(place_.size);
    if (not_left_.empty()) {
      std::fprintf(stderr,
                   "espalier: %s waits for the job's server; it was reached at none of %s%s\n",
                   me.c_str(), attempts.report().c_str(), word.so_far().c_str());
    } else {
      std::fprintf(stderr, "espalier: %s waits for %s to leave the job%s\n", me.c_str(),
                   not_left_.c_str(), word.so_far().c_str());
    }
  }
}

// False: the server ends, or still serves the job that this process has left.
Result<bool> ConnectedBootstrap::say_hello(Clock::time_point until) {
  char host[HOST_NAME_MAX + 1] = "";
  (void)gethostname(host, sizeof host - 1);
  const auto left = std::chrono::duration_cast<Milliseconds>(until - Clock::now());
  if (place_.is_newcomer) newcomer_until_ = until;
  const Kind hello = place_.is_newcomer ? Kind::kNewcomer : Kind::kHello;
  auto reply = ask({.kind = hello, .a = place_.rank, .b = place_.size, .text = host},
                   Kind::kWelcome, std::clamp(left, kShortestReplyTime, kReplyTime));
  if (reply && reply->kind == Kind::kLater) {
    not_left_ = list_of(reply->data);
    return false;
  }
  if (reply) return true;
  if (!is_without_server() && reply.error().message == lost().message) return false;
  return fail(reply.error());
}

// A reply to an earlier request, which was given up, is dropped.
Result<std::optional<Message>> ConnectedBootstrap::receive(Clock::time_point until,
                                                           std::uint32_t number) {
  if (early_ && early_->number == number) return std::exchange(early_, std::nullopt);
  while (true) {
    while (auto bytes = stream_.next(place_.secret)) {
      auto message = decode(*bytes);
      if (!message) return fail(lost());
      if (message->number == number) return message;
      early_ = std::move(message);
    }
    if (stream_.is_broken() || has_ended_) return fail(lost());
    const auto left = std::chrono::duration_cast<Milliseconds>(until - Clock::now()).count();
    if (left < 0) return std::optional<Message>();
    pollfd waiting{stream_.descriptor(), POLLIN, 0};
    const std::int64_t pause = end_of_accept_ ? kAskPause.count() : 1000;
    (void)poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(left + 1, pause)));
    if (waiting.revents != 0) has_ended_ = !stream_.read();
    withdraw_in_time();
  }
}

void ConnectedBootstrap::withdraw_in_time() {
  if (!end_of_accept_) return;
  const std::string reason = end_of_accept_();
  if (reason.empty()) return;
  end_of_accept_ = nullptr;  // it is told once
  (void)stream_.send(encode({.kind = Kind::kWithdraw, .text = reason.substr(0, kMaxFailure)}),
                     place_.secret);
}

Result<void> ConnectedBootstrap::check_process() const {
  if (generation_ == process_generation()) return {};
  return fail("this process was forked from rank " + std::to_string(place_.rank) +
              " of the job and has no rank of its own");
}

Result<Message> ConnectedBootstrap::ask(Message request, Kind wanted, Milliseconds time) {
  ESPALIER_TRY(check_process());
  const std::uint32_t number = request.number = ++requests_;
  early_.reset();
  if (!stream_.send(encode(request), place_.secret)) return fail(lost());
  const Clock::time_point until = Clock::now() + time;
  FirstWord word;
  while (true) {
    ESPALIER_TRY_TO(auto reply, receive(std::min(until, word.next().value_or(until)), number));
    if (reply) {
      if (reply->kind == Kind::kRefused) return fail(one_line(reply->text));
      if (reply->kind != wanted && reply->kind != Kind::kLater) return fail(lost());
      return std::move(*reply);
    }
    const auto asked = missing(until);
    if (!asked) {
      // A server that ends says why before its connection ends.
      const auto last = receive(Clock::now(), number);
      if (last && *last && (*last)->kind == Kind::kRefused) return fail(one_line((*last)->text));
      return fail(asked.error());
    }
    const Missing& who = *asked;
    if (who.ranks.empty()) {  // They have just come: the reply is on its way.
      (void)word.is_due();
      continue;
    }
    const std::string of = who.ranks + " of " + std::to_string(place_.size);
    if (Clock::now() >= until) {
      return fail(of + " did not come within " + seconds_text(time) + who.described());
    }
    if (word.is_due()) say_missing(who, word.so_far());
  }
}

void ConnectedBootstrap::say_missing(const Missing& who, const std::string& so_far) const {
  std::string of = who.ranks;
  if (who.all.empty()) {
    of = "newcomers";
  } else if (who.all.back() < place_.size) {  // no newcomer
    of += " of " + std::to_string(place_.size);
  }
  const std::string seen = place_.observer == nullptr ? "" : place_.observer->facts(who.all);
  const std::string& facts = seen.empty() ? who.facts : seen;
  if (FirstWord::is_watched()) {
    const std::string more = seen.empty() ? "" : ": " + seen;
    std::fprintf(stderr, "espalier: rank %u waits for %s%s%s\n", place_.rank, of.c_str(),
                 more.c_str(), so_far.c_str());
  } else if (who.speaker == place_.rank) {
    std::fprintf(stderr, "espalier: waiting for %s: %s%s\n", of.c_str(), facts.c_str(),
                 so_far.c_str());
  }
}

Result<std::optional<Message>> ConnectedBootstrap::await_agreement(Message request, Kind wanted,
                                                                   Clock::time_point until,
                                                                   const std::string& awaited) {
  ESPALIER_TRY(check_process());
  const std::uint32_t number = request.number = ++requests_;
  early_.reset();
  if (!stream_.send(encode(request), place_.secret)) return fail(lost());
  FirstWord word;
  while (true) {
    ESPALIER_TRY_TO(auto reply, receive(std::min(until, word.next().value_or(until)), number));
    if (!reply && Clock::now() < until) {
      if (!word.is_due()) continue;
      if (!awaited.empty()) {
        std::fprintf(stderr, "espalier: waiting for %s%s\n", awaited.c_str(),
                     word.so_far().c_str());
        continue;
      }
      ESPALIER_TRY_TO(const auto who, missing(until));
      if (!who.all.empty() || !who.facts.empty()) say_missing(who, word.so_far());
      continue;
    }
    if (!reply) return reply;
    if (reply->kind == Kind::kRefused) return fail(one_line(reply->text));
    if (reply->kind != wanted) return fail(lost());
    return reply;
  }
}

// Which of both lacks, the newcomer does not know.
constexpr const char* kAcceptance = ": all its ranks must call accept(), and enough newcomers come";

Result<Accepted> ConnectedBootstrap::accept(std::uint32_t least, Milliseconds time) {
  const bool is_newcomer = place_.is_newcomer;
  const AcceptRequest wish{
      .least = least, .time_ms = wire_ms(time), .members_ms = wire_ms(deadline_)};
  const Clock::time_point until = is_newcomer ? newcomer_until_
                                              : Clock::now() + Milliseconds(wish.members_ms) +
                                                    Milliseconds(wish.time_ms) + kServerTime;
  const std::string job = "the job at " + server_text();
  ESPALIER_TRY_TO(auto reply, await_agreement(accept_request(wish), Kind::kAccepted, until,
                                              is_newcomer ? job + kAcceptance : ""));
  if (!reply && is_newcomer) {
    return fail(job + " did not accept this process within " + seconds_text(deadline_) +
                "; expected all its ranks to call accept(), and enough newcomers");
  }
  if (!reply) return fail("the job's server at " + server_text() + " does not answer");
  if (is_newcomer) {
    if (!parse_number(reply->text, place_.rank)) return fail(lost());
    place_.size = reply->b;
  }
  return Accepted{.ranks = decode_ranks(reply->data), .generation = reply->a};
}

Result<void> ConnectedBootstrap::complete(const Accepted& accepted, const std::string& failure) {
  withdraw_in_time();
  const CompleteRequest vote{.generation = accepted.generation,
                             .failure = failure.substr(0, kMaxFailure),
                             .members_ms = wire_ms(deadline_)};
  // Until the vote of the last process, or the deadline after the first one's.
  const Clock::time_point until =
      Clock::now() + (accepted.generation == 0 ? kReplyTime : 2 * deadline_ + kServerTime);
  ESPALIER_TRY_TO(auto reply, await_agreement(complete_request(vote), Kind::kDone, until, ""));
  if (!reply) return fail("the job's server at " + server_text() + " does not answer");
  place_.is_newcomer = false;
  return {};
}

void ConnectedBootstrap::leave() {
  // A server in this process ends at once, and with it the job.
  if (!has_joined_ || has_ended_ || place_.server != nullptr) return;
  const std::uint32_t number = ++requests_;
  if (!stream_.send(encode({.kind = Kind::kLeave, .number = number}), place_.secret)) return;
  (void)receive(Clock::now() + kLeaveTime, number);
}

// The reply of the request that waits may arrive first: receive() keeps it.
Result<ConnectedBootstrap::Missing> ConnectedBootstrap::missing(Clock::time_point until) {
  const std::uint32_t number = ++requests_;
  if (!stream_.send(encode({.kind = Kind::kMissing, .number = number}), place_.secret)) {
    return fail(lost());
  }
  const auto now = Clock::now();
  ESPALIER_TRY_TO(auto reply,
                  receive(std::clamp(until, now + kShortestReplyTime, now + kReplyTime), number));
  if (!reply) {
    return fail("the job's server at " + server_text() +
                " does not answer; expected its process "
                "to run, and its host to be reached");
  }
  if (reply->kind != Kind::kRanks) return fail(lost());
  if (reply->data.empty()) return Missing{.facts = one_line(reply->text), .speaker = reply->a};
  return Missing{.all = decode_ranks(reply->data),
                 .ranks = list_of(reply->data),
                 .facts = one_line(reply->text),
                 .have_some_joined = reply->b != 0,
                 .speaker = reply->a};
}

JobSecret random_secret() {
  JobSecret secret;
  randombytes_buf(secret.data(), secret.size());
  return secret;
}

class AloneBootstrap : public Bootstrap {
 public:
  [[nodiscard]] std::uint32_t rank() const override { return 0; }
  [[nodiscard]] std::uint32_t size() const override { return 1; }
  [[nodiscard]] Method method() const override { return Method::kAlone; }
  [[nodiscard]] bool is_secret() const override { return true; }
  [[nodiscard]] const JobSecret& secret() const override { return secret_; }
  [[nodiscard]] const std::string& local_address() const override { return address_; }
  [[nodiscard]] Result<void> put(const std::string& key, const std::string& value) override {
    if (!values_.emplace(key, value).second) return fail("key '" + key + "' is used twice");
    return {};
  }
  [[nodiscard]] Result<void> fence() override { return {}; }
  [[nodiscard]] Result<std::string> get(std::uint32_t rank, const std::string& key) override {
    const auto found = values_.find(key);
    if (rank == 0 && found != values_.end()) return found->second;
    return fail("rank " + std::to_string(rank) + " has published no '" + key + "'");
  }
  [[nodiscard]] Result<Survivors> rejoin() override { return Survivors{{0}, ++generation_}; }
  [[nodiscard]] Result<Accepted> accept(std::uint32_t, Milliseconds) override {
    return fail(
        "a job of one process without a job file takes no newcomers; expected "
        "ESPALIER_JOB_FILE, or a launcher");
  }

 private:
  JobSecret secret_ = random_secret();
  std::string address_ = "127.0.0.1";
  std::map<std::string, std::string> values_;
  std::uint32_t generation_ = 0;
};

}  // namespace

Result<std::unique_ptr<Bootstrap>> connect(Place place, Milliseconds deadline) {
  auto bootstrap = std::make_unique<ConnectedBootstrap>(std::move(place), deadline);
  ESPALIER_TRY(bootstrap->connect());
  return bootstrap;
}

std::string server_address(const Bootstrap& members) {
  const auto* const connected = dynamic_cast<const ConnectedBootstrap*>(&members);
  return connected == nullptr ? "" : connected->server_address();
}

std::unique_ptr<Bootstrap> alone() { return std::make_unique<AloneBootstrap>(); }

}  // namespace espalier::bootstrap
