#include "espalier/communicator.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>

#include "base/counted.h"
#include "base/process/forks.h"
#include "base/try.h"
#include "communicator/cables/rank_graph.h"
#include "communicator/channel.h"
#include "communicator/job.h"
#include "communicator/job_part.h"
#include "communicator/no_memory.h"
#include "communicator/own_counts.h"

namespace espalier {
namespace {

using communicator::Caller;
using communicator::Channel;
using communicator::Operation;

// Names the call of the program whose collectives the channel runs meanwhile.
class Calling {
 public:
  Calling(Channel& channel, Caller caller) : channel_(channel) { channel.set_caller(caller); }
  ~Calling() { channel_.set_caller(Caller::kProgram); }
  Calling(const Calling&) = delete;
  Calling& operator=(const Calling&) = delete;

 private:
  Channel& channel_;
};

// Connects the channel of a part to the ranks `group` of `parent`. `address_of`: the address that
// member i of the group published; empty: it has none.
Result<void> connect_part(Channel& part, const Channel& parent,
                          const std::vector<std::uint32_t>& group,
                          const std::function<Result<std::string>(std::uint32_t i)>& address_of) {
  Channel::Members members;
  members.is_part = true;
  members.generation = parent.members().generation;
  for (std::uint32_t i = 0; i < group.size(); ++i) {
    ESPALIER_TRY_TO(auto address, address_of(i));
    if (address.empty() && group.size() > 1) {
      return fail("rank " + std::to_string(group[i]) +
                  " cannot open an endpoint for the new group");
    }
    members.jobs.push_back(parent.members().jobs[group[i]]);
    members.addresses.push_back(std::move(address));
  }
  return part.connect(std::move(members));
}

// A channel of this process in the part `group` of `parent`, not yet open.
std::shared_ptr<Channel> make_part_channel(const Channel& parent,
                                           const std::vector<std::uint32_t>& group) {
  const auto me = std::find(group.begin(), group.end(), parent.rank());
  return make_of_process<Channel>(parent.shared_job(),
                                  static_cast<std::uint32_t>(me - group.begin()),
                                  static_cast<std::uint32_t>(group.size()));
}

// Opens the channel of the part `group` of `parent`, with the links that its ranks have.
Result<void> open_part(Channel& part, Channel& parent, const std::vector<std::uint32_t>& group,
                       const std::string& caller) {
  std::shared_ptr<const communicator::RankGraph> graph;
  if (const auto cables = parent.job().cables(); cables != nullptr) {
    std::vector<std::uint32_t> jobs;
    for (const std::uint32_t rank : group) jobs.push_back(parent.members().jobs[rank]);
    auto made = communicator::RankGraph::make(*cables, jobs);
    if (!made) {
      return fail(caller + made.error().message +
                  "; expected ranks that cables connect without ranks of other groups");
    }
    graph = *std::move(made);
  }
  return part.open(parent.job().options().deadline, true, std::move(graph));
}

// Calls `function`, which returns a Result, unless the object has no channel. No exception for want
// of memory leaves the library.
template <typename Function>
auto guarded(Channel* channel, const char* object, Function function) -> decltype(function()) {
  if (channel != nullptr) return channel->guard(function);
  try {
    const std::string_view name = object;
    return fail("this " + std::string(name) + " was moved from" +
                (name == "plan" ? "; expected the object that it was moved to"
                 : name == "request"
                     ? ", or was never started; expected one that start() returned"
                     : ", or has left; expected one that join() or split() returned"));
  } catch (const std::bad_alloc&) {
    return fail(communicator::memory_error(""));
  }
}

Channel* channel_of(const std::shared_ptr<Operation>& operation) {
  return operation == nullptr ? nullptr : operation->channel.get();
}

}  // namespace

Request::Request(std::shared_ptr<Operation> operation) : operation_(std::move(operation)) {}
Request::~Request() = default;

Result<bool> Request::test() {
  return guarded(channel_of(operation_), "request",
                 [this] { return operation_->channel->test(*operation_); });
}

Result<void> Request::wait() {
  return guarded(channel_of(operation_), "request",
                 [this] { return operation_->channel->wait(*operation_); });
}

Plan::Plan(std::shared_ptr<Operation> operation) : operation_(std::move(operation)) {}
Plan::~Plan() = default;

Result<void> Plan::start() {
  return guarded(channel_of(operation_), "plan",
                 [this] { return operation_->channel->start(*operation_); });
}

Result<bool> Plan::test() {
  return guarded(channel_of(operation_), "plan",
                 [this] { return operation_->channel->test(*operation_); });
}

Result<void> Plan::wait() {
  return guarded(channel_of(operation_), "plan",
                 [this] { return operation_->channel->wait(*operation_); });
}

const std::string& Plan::algorithm() const {
  static const std::string none = "none: one rank", empty;
  if (operation_ == nullptr) return empty;
  return operation_->planned == nullptr ? none : operation_->planned->algorithm;
}

Communicator::Communicator(std::shared_ptr<Channel> channel, bool is_world)
    : channel_(std::move(channel)), is_world_(is_world) {}

Communicator& Communicator::operator=(Communicator&& other) noexcept {
  if (this == &other) return *this;
  (void)end();
  channel_ = std::move(other.channel_);
  is_world_ = other.is_world_;
  return *this;
}

Communicator::~Communicator() { (void)end(); }

Result<void> Communicator::leave() {
  const std::shared_ptr<Channel> channel = channel_;  // lasts until end() has returned
  return guarded(channel.get(), "communicator", [&]() -> Result<void> {
    ESPALIER_TRY(channel->check_unused());
    return end();
  });
}

Result<void> Communicator::end() {
  const std::shared_ptr<Channel> channel = std::exchange(channel_, nullptr);
  if (channel == nullptr) return {};
  auto left =
      channel->guard([&] { return is_world_ ? channel->leave_whole() : channel->leave_part(); });
  if (!channel->is_kept()) channel->close();
  return left;
}

std::uint32_t Communicator::rank() const { return channel_ == nullptr ? 0 : channel_->rank(); }
std::uint32_t Communicator::size() const { return channel_ == nullptr ? 0 : channel_->size(); }
Cause Communicator::cause() const { return channel_ == nullptr ? Cause() : channel_->cause(); }

Result<void> Communicator::cancel(std::string_view reason) {
  return guarded(channel_.get(), "communicator", [&] { return channel_->cancel(reason); });
}

Result<void> Communicator::cancel_on(const std::atomic<std::sig_atomic_t>* flag,
                                     std::string_view reason) {
  return guarded(channel_.get(), "communicator", [&] { return channel_->cancel_on(flag, reason); });
}

Result<void> Communicator::run(const Call& call) {
  return guarded(channel_.get(), "communicator", [&] { return channel_->run(call); });
}

Result<Request> communicator::OwnCounts::start(Communicator& communicator, const Call& call,
                                               bool has_own) {
  Channel* const channel = communicator.channel_.get();
  return guarded(channel, "communicator", [&]() -> Result<Request> {
    ESPALIER_TRY_TO(auto operation, channel->make(call, has_own));
    ESPALIER_TRY(channel->start(*operation));
    return Request(std::move(operation));
  });
}

Result<Request> Communicator::start(const Call& call) {
  return communicator::OwnCounts::start(*this, call, false);
}

Error communicator::NoMemory::end(const Communicator& communicator) {
  if (communicator.channel_ == nullptr) return memory_error("");
  return communicator.channel_->end_without_memory();
}

Result<Plan> Communicator::plan(const Call& call) {
  return guarded(channel_.get(), "communicator", [&]() -> Result<Plan> {
    ESPALIER_TRY_TO(auto operation, channel_->plan(call));
    return Plan(std::move(operation));
  });
}

Result<std::vector<std::uint64_t>> Communicator::neighbor_counts(
    std::span<const Neighbor> neighbors) {
  return guarded(channel_.get(), "communicator", [&] { return exchange_counts(neighbors); });
}

Result<std::vector<std::uint64_t>> Communicator::exchange_counts(
    std::span<const Neighbor> neighbors) {
  const std::size_t ranks = size();
  // Each rank's row: what it sends to every rank, then what it receives from every rank.
  std::vector<std::uint64_t> rows(2 * ranks * ranks);
  std::uint64_t* const mine = rows.data() + 2 * ranks * rank();
  std::vector<bool> is_named(ranks);
  for (const Neighbor& neighbor : neighbors) {
    if (neighbor.rank >= ranks || is_named[neighbor.rank]) {
      return fail("neighbor " + std::to_string(neighbor.rank) +
                  (neighbor.rank < ranks ? " comes twice" : " is not a rank of this communicator") +
                  "; expected each of 0 to " + std::to_string(ranks - 1) + " at most once");
    }
    is_named[neighbor.rank] = true;
    mine[neighbor.rank] = neighbor.send;
    mine[ranks + neighbor.rank] = neighbor.receive;
  }
  const std::span<const std::uint64_t> own(mine, 2 * ranks);
  const Calling calling(*channel_, Caller::kNeighborCounts);
  ESPALIER_TRY(allgather(own, rows));
  std::vector<std::uint64_t> counts(ranks * ranks);
  for (std::size_t from = 0; from < ranks; ++from) {
    for (std::size_t to = 0; to < ranks; ++to) {
      const std::uint64_t sent = rows[2 * ranks * from + to];
      const std::uint64_t expected = rows[2 * ranks * to + ranks + from];
      if (sent != expected) {
        return fail("neighbors: rank " + std::to_string(from) + " sends " +
                    counted(sent, "element") + " to rank " + std::to_string(to) +
                    ", which expects " + std::to_string(expected));
      }
      counts[from * ranks + to] = sent;
    }
  }
  return counts;
}

Result<std::optional<Communicator>> Communicator::split(std::int64_t color, std::int64_t key) {
  return guarded(channel_.get(), "communicator", [&] { return make_part(color, key); });
}

Result<std::optional<Communicator>> Communicator::make_part(std::int64_t color, std::int64_t key) {
  struct Wish {
    std::int64_t color, key;
  };
  const Calling calling(*channel_, Caller::kSplit);
  const std::uint32_t ranks = size();
  std::vector<Wish> wishes(ranks);
  wishes[rank()] = {color, key};
  const Operator bytes{.type = Type::kBytes};
  const auto gather = [&](void* all, std::size_t each) {
    return run({.collective = Collective::kAllgather,
                .send = static_cast<std::uint8_t*>(all) + rank() * each,
                .receive = all,
                .count = each,
                .op = bytes});
  };
  ESPALIER_TRY(gather(wishes.data(), sizeof(Wish)));
  std::vector<std::uint32_t> group;
  for (std::uint32_t other = 0; other < ranks; ++other) {
    if (color >= 0 && wishes[other].color == color) group.push_back(other);
  }
  std::stable_sort(group.begin(), group.end(), [&wishes](std::uint32_t a, std::uint32_t b) {
    return wishes[a].key < wishes[b].key;
  });
  // A rank whose endpoint cannot be opened must still take part in the exchange: its address is
  // empty, and all ranks of its color learn of it.
  std::shared_ptr<Channel> channel;
  std::string address, error;
  if (!group.empty()) {
    channel = make_part_channel(*channel_, group);
    if (auto opened = open_part(*channel, *channel_, group, "split: "); opened) {
      address = channel->address();
    } else {
      error = opened.error().message;
    }
  }
  std::uint64_t longest = address.size();
  ESPALIER_TRY(allreduce(longest, Op::kMax));
  const std::size_t each = sizeof(std::uint64_t) + longest;
  std::vector<std::uint8_t> all(each * ranks);
  const std::uint64_t length = address.size();
  std::memcpy(all.data() + rank() * each, &length, sizeof(length));
  std::memcpy(all.data() + rank() * each + sizeof(length), address.data(), address.size());
  ESPALIER_TRY(gather(all.data(), each));
  Result<void> connected;
  if (!error.empty()) {
    connected = fail(error);
  } else if (!group.empty()) {
    connected = connect_part(*channel, *channel_, group, [&](std::uint32_t i) {
      std::uint64_t size = 0;
      std::memcpy(&size, all.data() + group[i] * each, sizeof(size));
      const auto* published = reinterpret_cast<const char*>(all.data()) + group[i] * each;
      return std::string(published + sizeof(size), size);
    });
  }
  // If a rank dies while the others connect to it, all get the cause here.
  ESPALIER_TRY(barrier());
  if (!connected) return fail(connected.error());
  if (group.empty()) return std::nullopt;
  return Communicator(std::move(channel), false);
}

void communicator::JobPart::silence(const Communicator& communicator) {
  communicator.channel_->job().end_thread();
}

Result<Communicator> communicator::JobPart::make(const Communicator& whole,
                                                 const std::vector<std::uint32_t>& ranks,
                                                 bootstrap::Bootstrap& exchange) {
  return guarded(whole.channel_.get(), "communicator",
                 [&] { return connect(whole, ranks, exchange); });
}

Result<Communicator> communicator::JobPart::connect(const Communicator& whole,
                                                    const std::vector<std::uint32_t>& ranks,
                                                    bootstrap::Bootstrap& exchange) {
  Channel& of = *whole.channel_;
  if (std::find(ranks.begin(), ranks.end(), of.rank()) == ranks.end()) {
    return fail("this process is not in its part");
  }
  auto channel = make_part_channel(of, ranks);
  // A rank whose endpoint cannot be opened takes part in the exchange: its address is empty.
  const auto opened = open_part(*channel, of, ranks, "");
  const std::string key = "espalier.address";
  ESPALIER_TRY(exchange.put(key, opened ? channel->address() : ""));
  ESPALIER_TRY(exchange.fence());
  if (!opened) return fail(opened.error());
  ESPALIER_TRY(
      connect_part(*channel, of, ranks, [&](std::uint32_t i) { return exchange.get(i, key); }));
  return Communicator(std::move(channel), false);
}

Result<Communicator> Communicator::rejoin() {
  return guarded(channel_.get(), "communicator", [this] { return join_survivors(); });
}

Result<Communicator> Communicator::accept(std::uint32_t least, std::chrono::milliseconds time) {
  return guarded(channel_.get(), "communicator", [&] { return take_newcomers(least, time); });
}

}  // namespace espalier
