#include "bootstrap/client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>
#include <utility>

#include "bootstrap/message.h"
#include "bootstrap/stream.h"

namespace espalier::bootstrap {
namespace {

using Milliseconds = std::chrono::milliseconds;

// Pause between two attempts to reach a server that does not listen yet.
constexpr auto kRetryPause = Milliseconds(20);
// After this time a wait says whom it waits for, if somebody watches.
constexpr auto kPatience = Milliseconds(2'000);
// Time for a reply that the server gives without waiting for other processes.
constexpr auto kReplyTime = Milliseconds(10'000);

bool is_watched() {
  return isatty(STDERR_FILENO) != 0 || std::getenv("ESPALIER_VERBOSE") != nullptr;
}

std::string list_of(const std::string& data) {
  std::string text;
  std::size_t count = data.size() / sizeof(std::uint32_t);
  for (std::size_t i = 0; i < count && i < 16; ++i) {
    std::uint32_t rank = 0;
    std::memcpy(&rank, data.data() + i * sizeof(rank), sizeof(rank));
    text += (i == 0 ? "" : ", ") + std::to_string(rank);
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

  [[nodiscard]] Result<void> connect();

  [[nodiscard]] std::uint32_t rank() const override { return place_.rank; }
  [[nodiscard]] std::uint32_t size() const override { return place_.size; }
  [[nodiscard]] Method method() const override { return place_.method; }
  [[nodiscard]] bool is_secret() const override { return place_.is_secret; }
  [[nodiscard]] const JobSecret& secret() const override { return place_.secret; }
  [[nodiscard]] const std::string& local_address() const override { return local_address_; }

  [[nodiscard]] Result<void> put(const std::string& key, const std::string& value) override {
    if (value.size() > (std::size_t{64} << 10) || key.size() > 512) {
      return fail("'" + key.substr(0, 40) + "' has " + std::to_string(value.size()) +
                  " bytes; expected at most 65536, and a key of at most 512");
    }
    auto reply = ask({.kind = Kind::kPut, .text = key, .data = value}, Kind::kDone, kReplyTime);
    if (!reply) return fail(reply.error());
    return {};
  }

  [[nodiscard]] Result<void> fence() override {
    auto reply = ask({.kind = Kind::kFence}, Kind::kDone, deadline_);
    if (!reply) return fail(reply.error());
    return {};
  }

  [[nodiscard]] Result<std::string> get(std::uint32_t rank, const std::string& key) override {
    auto reply = ask({.kind = Kind::kGet, .a = rank, .text = key}, Kind::kValue, kReplyTime);
    if (!reply) return fail(reply.error());
    return std::move(reply->data);
  }

  [[nodiscard]] Result<Survivors> rejoin() override {
    const auto ms = static_cast<std::uint32_t>(std::min<std::int64_t>(deadline_.count(), 1 << 30));
    // The server answers at the deadline at the latest.
    auto reply =
        ask({.kind = Kind::kRejoin, .a = ms}, Kind::kSurvivors, deadline_ + Milliseconds(5'000));
    if (!reply) return fail(reply.error());
    Survivors survivors;
    survivors.generation = reply->a;
    survivors.ranks.resize(reply->data.size() / sizeof(std::uint32_t));
    std::memcpy(survivors.ranks.data(), reply->data.data(),
                survivors.ranks.size() * sizeof(std::uint32_t));
    return survivors;
  }

 private:
  enum class Attempt : std::uint8_t { kConnected, kNotYet };
  [[nodiscard]] Result<Attempt> try_connect(const Address& address);
  [[nodiscard]] Result<void> say_hello(Clock::time_point until);
  // Sends a request and waits for its reply, of the kind `wanted`.
  [[nodiscard]] Result<Message> ask(const Message& request, Kind wanted, Milliseconds time);
  // Nothing: not within the time.
  [[nodiscard]] Result<std::optional<Message>> receive(Clock::time_point until);
  [[nodiscard]] Result<std::string> missing();
  [[nodiscard]] Error lost() const {
    return {"the connection to the job's server at " + place_.address + " has ended"};
  }

  Place place_;
  Milliseconds deadline_;
  Stream stream_;
  std::string local_address_;
  std::optional<Message> early_;  // arrived before it was waited for
};

Result<ConnectedBootstrap::Attempt> ConnectedBootstrap::try_connect(const Address& address) {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
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
  Address local;
  local.ip = own.sin_addr.s_addr;
  local_address_ = local.host();
  stream_ = Stream(std::move(socket), false);
  return stream_.greet() ? Attempt::kConnected : Attempt::kNotYet;
}

Result<void> ConnectedBootstrap::connect() {
  auto address = resolve(place_.address);
  if (!address) return fail(address.error());
  const Clock::time_point until = Clock::now() + deadline_;
  while (true) {
    auto attempt = try_connect(*address);
    if (!attempt) return fail(attempt.error());
    if (*attempt == Attempt::kConnected) return say_hello(until);
    if (Clock::now() > until) {
      return fail("no server of the job at " + place_.address + " within " +
                  seconds_text(deadline_) + "; expected rank 0 or the launcher there");
    }
    std::this_thread::sleep_for(kRetryPause);
  }
}

Result<void> ConnectedBootstrap::say_hello(Clock::time_point until) {
  while (!stream_.is_ready()) {
    pollfd waiting{stream_.descriptor(), POLLIN, 0};
    (void)poll(&waiting, 1, 100);
    if (!stream_.read()) {
      return fail("the server at " + place_.address +
                  " is not one of Espalier; expected another ESPALIER_ADDRESS or MASTER_PORT");
    }
    if (Clock::now() > until) {
      return fail("the server at " + place_.address + " does not answer");
    }
  }
  auto reply =
      ask({.kind = Kind::kHello, .a = place_.rank, .b = place_.size}, Kind::kWelcome, kReplyTime);
  if (reply) return {};
  if (reply.error().message == lost().message) {
    return fail("the job's server at " + place_.address +
                " has another secret; expected the file that ESPALIER_SECRET_FILE names to be the "
                "same for all processes");
  }
  return fail(reply.error());
}

Result<std::optional<Message>> ConnectedBootstrap::receive(Clock::time_point until) {
  if (early_) return std::exchange(early_, std::nullopt);
  while (true) {
    if (auto bytes = stream_.next(place_.secret)) {
      auto message = decode(*bytes);
      if (!message) return fail(lost());
      return message;
    }
    if (stream_.is_broken()) return fail(lost());
    const auto left = std::chrono::duration_cast<Milliseconds>(until - Clock::now()).count();
    if (left < 0) return std::optional<Message>();
    pollfd waiting{stream_.descriptor(), POLLIN, 0};
    (void)poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(left + 1, 1000)));
    if ((waiting.revents & (POLLIN | POLLHUP | POLLERR)) != 0 && !stream_.read()) {
      return fail(lost());
    }
  }
}

Result<Message> ConnectedBootstrap::ask(const Message& request, Kind wanted, Milliseconds time) {
  if (!stream_.send(encode(request), place_.secret)) return fail(lost());
  const Clock::time_point until = Clock::now() + time;
  bool has_told = false;
  while (true) {
    Clock::time_point next = until;
    if (!has_told && is_watched()) next = std::min(until, Clock::now() + kPatience);
    auto reply = receive(next);
    if (!reply) return fail(reply.error());
    if (reply->has_value()) {
      if ((*reply)->kind == Kind::kRefused) return fail((*reply)->text);
      if ((*reply)->kind != wanted) return fail(lost());
      return *std::move(*reply);
    }
    auto who = missing();
    if (!who) return fail(who.error());
    if (who->empty()) continue;  // They have just come: the reply is on its way.
    if (Clock::now() >= until) {
      return fail(*who + " of " + std::to_string(place_.size) + " did not come within " +
                  seconds_text(time));
    }
    std::fprintf(stderr, "espalier: rank %u waits for %s of %u\n", place_.rank, who->c_str(),
                 place_.size);
    has_told = true;
  }
}

// Those that a fence or rejoin waits for; empty: none.
Result<std::string> ConnectedBootstrap::missing() {
  if (!stream_.send(encode({.kind = Kind::kMissing}), place_.secret)) return fail(lost());
  auto reply = receive(Clock::now() + kReplyTime);
  if (!reply) return fail(reply.error());
  if (!reply->has_value()) return fail(lost());
  if ((*reply)->kind != Kind::kRanks) {
    // The awaited reply was on its way; that of this question follows it.
    early_ = *std::move(*reply);
    auto ranks = receive(Clock::now() + kReplyTime);
    if (!ranks) return fail(ranks.error());
    if (!ranks->has_value() || (*ranks)->kind != Kind::kRanks) return fail(lost());
    return std::string();
  }
  return (*reply)->data.empty() ? std::string() : list_of((*reply)->data);
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
  JobSecret secret_ = {};
  std::string address_ = "127.0.0.1";
  std::map<std::string, std::string> values_;
  std::uint32_t generation_ = 0;
};

}  // namespace

Result<std::unique_ptr<Bootstrap>> connect(Place place, Milliseconds deadline) {
  auto bootstrap = std::make_unique<ConnectedBootstrap>(std::move(place), deadline);
  if (auto connected = bootstrap->connect(); !connected) return fail(connected.error());
  return bootstrap;
}

std::unique_ptr<Bootstrap> alone() { return std::make_unique<AloneBootstrap>(); }

}  // namespace espalier::bootstrap
