#include "bootstrap/client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sodium.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>
#include <utility>

#include "base/counted.h"
#include "base/one_line.h"
#include "base/process/system_error.h"
#include "base/process/variables.h"
#include "base/try.h"
#include "bootstrap/message.h"
#include "bootstrap/stream.h"

namespace espalier::bootstrap {
namespace {

using Milliseconds = std::chrono::milliseconds;

// Pause between two attempts to reach a server that does not listen yet.
constexpr auto kRetryPause = Milliseconds(20);
// After this time a wait says whom it waits for, if somebody watches.
constexpr auto kPatience = Milliseconds(2'000);
// How long a server that ends may still close connections that it has accepted.
constexpr auto kEndTime = Milliseconds(1'000);
// Time for the reply to kLeave, whose loss harms nothing but a join after it.
constexpr auto kLeaveTime = Milliseconds(2'000);
// Time for a reply that the server gives without waiting for other processes.
constexpr auto kReplyTime = Milliseconds(10'000);

bool is_watched() { return isatty(STDERR_FILENO) != 0 || is_set(Variable::kVerbose); }

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

  [[nodiscard]] Result<void> put(const std::string& key, const std::string& value) override {
    if (value.size() > (std::size_t{64} << 10) || key.size() > 512) {
      return fail("'" + key.substr(0, 40) + "' has " + counted(value.size(), "byte") +
                  "; expected at most 65536, and a key of at most 512");
    }
    ESPALIER_TRY(ask({.kind = Kind::kPut, .text = key, .data = value}, Kind::kDone, kReplyTime));
    return {};
  }

  [[nodiscard]] Result<void> fence() override {
    ESPALIER_TRY(ask({.kind = Kind::kFence}, Kind::kDone, deadline_));
    remove_file();  // All have joined.
    return {};
  }

  [[nodiscard]] Result<std::string> get(std::uint32_t rank, const std::string& key) override {
    ESPALIER_TRY_TO(auto reply,
                    ask({.kind = Kind::kGet, .a = rank, .text = key}, Kind::kValue, kReplyTime));
    return std::move(reply.data);
  }

  [[nodiscard]] Result<Survivors> rejoin() override {
    const auto ms = static_cast<std::uint32_t>(std::min<std::int64_t>(deadline_.count(), 1 << 30));
    // The server answers at the deadline at the latest.
    ESPALIER_TRY_TO(auto reply, ask({.kind = Kind::kRejoin, .a = ms}, Kind::kSurvivors,
                                    deadline_ + Milliseconds(5'000)));
    return Survivors{.ranks = decode_ranks(reply.data), .generation = reply.a};
  }

 private:
  // Removes the file through which the others join.
  void remove_file() {
    if (!place_.file.empty()) (void)unlink(place_.file.c_str());
    place_.file.clear();
  }
  enum class Attempt : std::uint8_t { kConnected, kNotYet };
  [[nodiscard]] Result<Attempt> try_connect(const Address& address);
  [[nodiscard]] Result<bool> say_hello(Clock::time_point until);
  // Sends a request and waits for its reply, of the kind `wanted`.
  [[nodiscard]] Result<Message> ask(Message request, Kind wanted, Milliseconds time);
  // Receives the reply to a request. Nothing: not within the time.
  [[nodiscard]] Result<std::optional<Message>> receive(Clock::time_point until,
                                                       std::uint32_t number);
  // Tells the server that this end is not a failure, and waits until it knows.
  void leave();
  [[nodiscard]] Result<std::string> missing();
  [[nodiscard]] bool is_without_server() const {
    return place_.server != nullptr && place_.server->is_without_memory();
  }
  [[nodiscard]] Error lost() const {
    if (is_without_server()) {
      return {"the job's server, which is in this process, has no memory" + limit_suffix(ENOMEM)};
    }
    return {"the connection to the job's server at " + place_.address + " has ended"};
  }

  Place place_;
  Milliseconds deadline_;
  Stream stream_;
  std::string local_address_;
  Clock::time_point closed_since_ = {};  // connections that the server closed after its greeting
  std::optional<Message> early_;         // arrived before it was waited for
  std::uint32_t requests_ = 0;
  bool has_ended_ = false;  // the connection
  bool has_joined_ = false;
  std::string not_left_;  // ranks of the job before, which this process has left already
  std::uint32_t generation_ = process_generation();
};

Result<ConnectedBootstrap::Attempt> ConnectedBootstrap::try_connect(const Address& address) {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0)
    return fail(std::string("cannot open a socket: ") + system_error_text(errno));
  sockaddr_in server{};
  server.sin_family = AF_INET;
  server.sin_addr.s_addr = address.ip;
  server.sin_port = htons(address.port);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&server), sizeof server) != 0) {
    const bool may_come = errno == ECONNREFUSED || errno == ETIMEDOUT || errno == EHOSTUNREACH ||
                          errno == EINTR || errno == ECONNRESET || errno == EAGAIN;
    if (may_come) return Attempt::kNotYet;
    return fail("cannot reach the job's server at " + place_.address + ": " + std::strerror(errno));
  }
  sockaddr_in own{};
  socklen_t length = sizeof own;
  (void)getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &length);
  // A connection to a port of this host that nothing listens to can connect to itself.
  if (own.sin_port == server.sin_port && own.sin_addr.s_addr == server.sin_addr.s_addr) {
    return Attempt::kNotYet;
  }
  local_address_ = Address{.ip = own.sin_addr.s_addr}.host();
  stream_ = Stream(std::move(socket), false);
  has_ended_ = false;
  return stream_.greet() ? Attempt::kConnected : Attempt::kNotYet;
}

Result<void> ConnectedBootstrap::connect() {
  ESPALIER_TRY_TO(auto address, resolve(place_.address));
  const Clock::time_point until = Clock::now() + deadline_;
  while (true) {
    if (is_without_server()) return fail(lost());
    ESPALIER_TRY_TO(auto attempt, try_connect(address));
    if (attempt == Attempt::kConnected) {
      ESPALIER_TRY_TO(has_joined_, say_hello(until));
      if (has_joined_) return {};
    } else {
      closed_since_ = {};
    }
    if (Clock::now() > until && !not_left_.empty()) {
      return fail(not_left_ + " of " + std::to_string(place_.size) +
                  " did not leave the job within " + seconds_text(deadline_) +
                  "; expected all to end each of its communicators before this one joins again");
    }
    if (Clock::now() > until) {
      return fail("no server of the job at " + place_.address + " within " +
                  seconds_text(deadline_) + "; expected rank 0 or the launcher there");
    }
    std::this_thread::sleep_for(kRetryPause);
  }
}

// False: the server ends, or still serves the job that this process has left.
Result<bool> ConnectedBootstrap::say_hello(Clock::time_point until) {
  while (!stream_.is_ready()) {
    pollfd waiting{stream_.descriptor(), POLLIN, 0};
    (void)poll(&waiting, 1, 100);
    const bool is_open = stream_.read();
    if (stream_.is_foreign()) {
      return fail("the server at " + place_.address +
                  " is not one of Espalier; expected another ESPALIER_ADDRESS or MASTER_PORT");
    }
    if (!is_open && !stream_.is_ready()) return false;
    if (Clock::now() > until && !not_left_.empty()) return false;
    if (Clock::now() > until && not_left_.empty()) {
      return fail("the server at " + place_.address + " does not answer");
    }
  }
  auto reply =
      ask({.kind = Kind::kHello, .a = place_.rank, .b = place_.size}, Kind::kWelcome, kReplyTime);
  if (reply && reply->kind == Kind::kLater) {
    not_left_ = list_of(reply->data);
    closed_since_ = {};
    return false;
  }
  if (reply) return true;
  if (!is_without_server() && reply.error().message == lost().message) {
    // The server of a job that this process has left closes its connections, too, when it ends.
    if (closed_since_ == Clock::time_point()) closed_since_ = Clock::now();
    if (Clock::now() - closed_since_ < kEndTime) return false;
    return fail("the job's server at " + place_.address +
                " has another secret; expected the file that ESPALIER_SECRET_FILE names to be the "
                "same for all processes");
  }
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
    (void)poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(left + 1, 1000)));
    if (waiting.revents != 0) has_ended_ = !stream_.read();
  }
}

Result<Message> ConnectedBootstrap::ask(Message request, Kind wanted, Milliseconds time) {
  if (generation_ != process_generation()) {
    return fail("this process was forked from rank " + std::to_string(place_.rank) +
                " of the job and has no rank of its own");
  }
  const std::uint32_t number = request.number = ++requests_;
  early_.reset();
  if (!stream_.send(encode(request), place_.secret)) return fail(lost());
  const Clock::time_point until = Clock::now() + time;
  bool has_told = false;
  while (true) {
    Clock::time_point next = until;
    if (!has_told && is_watched()) next = std::min(until, Clock::now() + kPatience);
    ESPALIER_TRY_TO(auto reply, receive(next, number));
    if (reply) {
      if (reply->kind == Kind::kRefused) return fail(one_line(reply->text));
      if (reply->kind != wanted && reply->kind != Kind::kLater) return fail(lost());
      return std::move(*reply);
    }
    ESPALIER_TRY_TO(auto who, missing());
    if (who.empty()) continue;  // They have just come: the reply is on its way.
    if (Clock::now() >= until) {
      return fail(who + " of " + std::to_string(place_.size) + " did not come within " +
                  seconds_text(time));
    }
    std::fprintf(stderr, "espalier: rank %u waits for %s of %u\n", place_.rank, who.c_str(),
                 place_.size);
    has_told = true;
  }
}

void ConnectedBootstrap::leave() {
  // A server in this process ends at once, and with it the job.
  if (!has_joined_ || has_ended_ || place_.server != nullptr) return;
  const std::uint32_t number = ++requests_;
  if (!stream_.send(encode({.kind = Kind::kLeave, .number = number}), place_.secret)) return;
  (void)receive(Clock::now() + kLeaveTime, number);
}

// Those that a fence or rejoin waits for; empty: none. The reply of the request that waits may
// arrive first: receive() keeps it.
Result<std::string> ConnectedBootstrap::missing() {
  const std::uint32_t number = ++requests_;
  if (!stream_.send(encode({.kind = Kind::kMissing, .number = number}), place_.secret)) {
    return fail(lost());
  }
  ESPALIER_TRY_TO(auto reply, receive(Clock::now() + kReplyTime, number));
  if (!reply || reply->kind != Kind::kRanks) return fail(lost());
  return reply->data.empty() ? std::string() : list_of(reply->data);
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

std::unique_ptr<Bootstrap> alone() { return std::make_unique<AloneBootstrap>(); }

}  // namespace espalier::bootstrap
