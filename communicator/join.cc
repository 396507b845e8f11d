// How the processes of a job become a communicator: join(), rejoin() after a failure, and accept().

#include <algorithm>
#include <cstdio>
#include <new>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/network/filter.h"
#include "base/one_line.h"
#include "base/process/forks.h"
#include "base/process/system_error.h"
#include "base/process/variables.h"
#include "base/try.h"
#include "bootstrap/cables/job_graph.h"
#include "bootstrap/cables/rates.h"
#include "bootstrap/client.h"
#include "bootstrap/data_address.h"
#include "communicator/begin_record.h"
#include "communicator/cables/rank_graph.h"
#include "communicator/channel.h"
#include "communicator/guarded_membership.h"
#include "communicator/job.h"
#include "communicator/measure_network.h"
#include "communicator/no_memory.h"
#include "espalier/communicator.h"
#include "hal/fabric/provider_list.h"
#include "hal/mem/host/access.h"

namespace espalier {
namespace {

using communicator::Caller;
using communicator::Channel;
using communicator::Job;

// Files of a rank. Over tcp: its endpoint, a port for long messages, and a file for a moment; for
// each link of the backbone (backbone.h), a connection for short and one for long messages. Counted
// on libfabric 1.17; over mem, also those that are opened for a moment.
constexpr bootstrap::RankFiles kFabricFiles{14, 2};
constexpr bootstrap::RankFiles kMemoryFiles{6, 0};

// The processes of a job that connect: their numbers in the job.
struct Connecting {
  std::vector<std::uint32_t> ranks;
  std::uint32_t generation = 0;            // of the agreement on them
  std::chrono::nanoseconds deadline = {};  // for a rank that does not connect
  bool is_certain = true;                  // that they are of the job, whether they connect or not
};

// Agrees with the other processes on the address of each for the fabric.
Result<void> agree_on_addresses(Job& job, const std::vector<std::uint32_t>& ranks) {
  const JoinOptions& options = job.options();
  if (!ofi::binds_address(options.provider)) {
    job.set_address(options.local_address);  // which some refuse
    return {};
  }
  // No address reaches all: each cable has its own.
  const auto cables = cables::job_graph(job.members());
  if (cables != nullptr && cables->hosts.size() > 1) {
    if (!options.local_address.empty()) {
      return fail(
          "local_address is not used by a job over its cables; expected ESPALIER_INTERFACE");
    }
    job.set_address(job.members().local_address());
    return {};
  }
  const auto ip = network::parse_ip(options.local_address);
  if (!ip && !options.local_address.empty()) {
    return fail("local_address '" + one_line(options.local_address) +
                "' is not an IP address; expected e.g. 10.0.0.7, fd00::7 or fe80::7%eth0, with an "
                "interface of this host");
  }
  if (ip) {
    const auto right = network::check_host_address(*ip);
    if (!right) return fail("local_address: " + right.error().message);
  }
  const std::string given = ip ? ip->host() : "";  // without brackets
  bootstrap::Bootstrap& members = job.members();
  if (ranks.size() == 1) {
    job.set_address(given.empty() ? members.local_address() : given);
    return {};
  }
  ESPALIER_TRY_TO(const auto filter, network::interface_filter(options.bootstrap.interfaces));
  ESPALIER_TRY_TO(const auto ports, network::port_range(options.bootstrap.ports));
  ESPALIER_TRY_TO(const auto address, bootstrap::agree_on_address(members, ranks, given, filter,
                                                                  ports, !options.host.empty()));
  job.set_address(address);
  return {};
}

// How often a process that connects in accept() asks the server whether the others still do.
constexpr std::chrono::milliseconds kServerLook{50};

// Returns a function that ends accept() as `end` does, and once the server no longer gives this
// process its own value: then another process has failed.
bootstrap::EndOfAccept while_published(bootstrap::Bootstrap& members, const std::string& key,
                                       const bootstrap::EndOfAccept& end) {
  using Clock = std::chrono::steady_clock;
  return [&members, &key, &end, next = Clock::now() + kServerLook]() mutable -> std::string {
    std::string reason = end();
    if (!reason.empty() || Clock::now() < next) return reason;
    const auto own = members.get(members.rank(), key);
    next = Clock::now() + kServerLook;
    return own ? "" : own.error().message;
  };
}

// Learns the cables of the job as they are now, with their rates: measured once, unless the cables
// are emulated. Each process of the job calls it.
Result<void> find_cables(Job& job) {
  const auto found = cables::job_graph(job.members());
  const auto before = job.cables();
  if (found == nullptr) return {};
  auto graph = std::make_shared<cables::JobGraph>(*found);
  if (before != nullptr) {
    communicator::take_rates(*before, *graph);
  } else if (communicator::has_link_local(*graph)) {
    ESPALIER_TRY_TO(const auto ports, network::port_range(job.options().bootstrap.ports));
    cables::JobGraph measured = *graph;
    ESPALIER_TRY(cables::measure_rates(job.members(), ports, measured));
    communicator::scale_rates(measured, *graph);
  }
  job.set_cables(std::move(graph));
  return {};
}

// Opens a channel of these processes and connects it. `cards`: are exchanged; the record has them
// then if the processes are certain.
Result<std::shared_ptr<Channel>> connect_members(const std::shared_ptr<Job>& job,
                                                 const Connecting& connecting,
                                                 record::Exchange& cards,
                                                 const bootstrap::EndOfAccept& end = {}) {
  const std::vector<std::uint32_t>& ranks = connecting.ranks;
  bootstrap::Bootstrap& members = job->members();
  const auto me = std::find(ranks.begin(), ranks.end(), members.rank());
  if (me == ranks.end()) return fail("this process is not among the survivors of the job");
  auto channel = make_of_process<Channel>(job, static_cast<std::uint32_t>(me - ranks.begin()),
                                          static_cast<std::uint32_t>(ranks.size()));
  ESPALIER_TRY(find_cables(*job));
  std::shared_ptr<const communicator::RankGraph> graph;
  if (const auto cables = job->cables(); cables != nullptr) {
    ESPALIER_TRY_TO(graph, communicator::RankGraph::make(*cables, ranks));
  }
  ESPALIER_TRY(channel->open(connecting.deadline, false, std::move(graph)));
  const std::string key = "espalier.address." + std::to_string(connecting.generation);
  ESPALIER_TRY(members.put(key, cards.publish(channel->address())));
  ESPALIER_TRY(members.fence());
  Channel::Members all;
  all.generation = connecting.generation;
  for (const std::uint32_t rank : ranks) {
    ESPALIER_TRY_TO(auto address, members.get(rank, key));
    cards.take(address);
    all.jobs.push_back(rank);
    all.addresses.push_back(std::move(address));
  }
  if (connecting.is_certain) cards.note(members.rank());
  ESPALIER_TRY(channel->connect(std::move(all), end ? while_published(members, key, end) : end));
  return channel;
}

// How long a process of a running job may take to connect: the others wait for it for the
// bootstrap's deadline.
std::chrono::nanoseconds connect_time(const JoinOptions& options) {
  return std::min<std::chrono::nanoseconds>(options.deadline, options.bootstrap.deadline / 2);
}

// Whether all these processes are connected. Each calls it, whether it is or not.
bool all_connected(bootstrap::Bootstrap& members, const Connecting& connecting, bool is_connected) {
  const std::string key = "espalier.connected." + std::to_string(connecting.generation);
  if (!members.put(key, is_connected ? "yes" : "no") || !members.fence()) return false;
  return std::all_of(connecting.ranks.begin(), connecting.ranks.end(), [&](std::uint32_t rank) {
    const auto there = members.get(rank, key);
    return there && *there == "yes";
  });
}

// Connects the processes of a job that accepts newcomers: all, or none. `end`: what ends it on all
// members. Errors: as Bootstrap::complete().
Result<std::shared_ptr<Channel>> connect_accepted(const std::shared_ptr<Job>& job,
                                                  const bootstrap::Accepted& accepted,
                                                  const bootstrap::EndOfAccept& end) {
  const Connecting connecting{.ranks = accepted.ranks,
                              .generation = accepted.generation,
                              .deadline = connect_time(job->options()),
                              .is_certain = false};
  std::optional<record::Exchange> cards;
  const auto connect = [&]() -> Result<std::shared_ptr<Channel>> {
    if (job->record() == nullptr) {
      std::shared_ptr<record::Writer> record;
      ESPALIER_TRY(record::begin_joined(job->options(), job->members().rank(),
                                        static_cast<std::uint32_t>(accepted.ranks.size()), record));
      job->set_record(std::move(record));
    }
    // Newcomers may be on hosts of which the others did not know.
    ESPALIER_TRY(agree_on_addresses(*job, connecting.ranks));
    return connect_members(job, connecting, cards.emplace(job->record()), end);
  };
  auto channel = connect();
  ESPALIER_TRY(job->members().complete(accepted, channel ? "" : channel.error().message));
  job->note_growth();
  if (channel && cards) cards->note(job->members().rank());
  return channel;
}

// If other processes cannot map this one's memory: refuses a provider that needs that, if the
// program has named it. Otherwise the messages of this process take the fabric.
Result<void> check_sharing(const std::string& given, const std::string& provider) {
  if (ofi::fabric_provider(provider) == provider) return {};
  const std::string refusal = mem::sharing_refusal();
  if (refusal.empty()) return {};
  const std::string fabric = ofi::fabric_provider(provider);
  if (!given.empty()) {
    return fail("provider \"" + given + "\": " + refusal + "; expected provider " + fabric);
  }
  if (is_set(Variable::kVerbose)) {
    std::fprintf(stderr, "espalier: messages within this host go over %s: %s\n", fabric.c_str(),
                 refusal.c_str());
  }
  return {};
}

Result<std::string> provider_of(const JoinOptions& options) {
  ESPALIER_TRY_TO(const auto filter, read_text(Variable::kFiProvider));
  auto provider = ofi::choose_provider(options.provider, filter ? filter->c_str() : nullptr);
  if (!provider || !options.provider.empty()) return provider;
  return ofi::with_memory(*provider);
}

}  // namespace

namespace {

// While it lives, a cancel of the communicator of this channel ends accept().
class CancelledAccept {
 public:
  explicit CancelledAccept(Channel& channel)
      : members_(channel.job().members()), end_([&channel] { return channel.end_of_accept(); }) {
    members_.end_accept_by(end_);
  }
  ~CancelledAccept() { members_.end_accept_by(nullptr); }
  CancelledAccept(const CancelledAccept&) = delete;
  CancelledAccept& operator=(const CancelledAccept&) = delete;
  [[nodiscard]] const bootstrap::EndOfAccept& end() const { return end_; }

 private:
  bootstrap::Bootstrap& members_;
  bootstrap::EndOfAccept end_;
};

}  // namespace

// The communicator of all processes of the job, which takes the network's costs from it.
Result<Communicator> Communicator::of_job(std::shared_ptr<Channel> channel, Caller caller) {
  Communicator made(channel, true);
  channel->job().begin_whole();
  if (!channel->is_measuring()) return made;
  channel->set_caller(caller);
  const std::string& host = channel->job().options().host;
  ESPALIER_TRY_TO(const auto cost,
                  channel->graph() != nullptr
                      ? communicator::measure_cables(made, *channel->graph(), host)
                      : communicator::measure_network(made, channel->ranks_per_host(), host));
  channel->job().set_network(cost);
  channel->measured(cost);
  channel->set_caller(Caller::kProgram);
  return made;
}

Result<Communicator> Communicator::join_survivors() {
  ESPALIER_TRY(check_whole("rejoin"));
  const std::shared_ptr<Job> job = channel_->shared_job();
  const record::InAgreement agreement(job->record(), {.communicator = channel_->record_id(),
                                                      .kind = record::AgreementKind::kRejoin});
  channel_->await_early_end();
  channel_->decline_accept();
  if (job->has_grown()) job->set_network({});
  bootstrap::Bootstrap& members = job->members();
  Connecting connecting;
  connecting.deadline = connect_time(job->options());
  // If another rank dies before all are connected, the survivors agree anew.
  while (true) {
    ESPALIER_TRY_TO(auto survivors, members.rejoin());
    channel_->note_survivors(survivors.ranks);
    const bool is_fewer = survivors.ranks != connecting.ranks;
    connecting.ranks = std::move(survivors.ranks);
    connecting.generation = survivors.generation;
    record::Exchange cards(job->record());
    auto channel = connect_members(job, connecting, cards);
    if (all_connected(members, connecting, channel.has_value()) && channel) {
      return of_job(*std::move(channel), Caller::kRejoin);
    }
    if (!is_fewer) return fail(channel ? "another rank cannot connect" : channel.error().message);
  }
}

Result<void> Communicator::check_whole(const char* function) const {
  ESPALIER_TRY(channel_->check_process());
  const std::string name = std::string(function) + "()";
  if (!is_world_) {
    return fail(name + " of a part of the job; expected the communicator of join()");
  }
  if (channel_->members().generation >= channel_->job().growth()) return {};
  return fail(name + " of a communicator before accept(); expected the one that accept() returned");
}

Result<Communicator> Communicator::take_newcomers(std::uint32_t least,
                                                  std::chrono::milliseconds time) {
  ESPALIER_TRY(check_whole("accept"));
  if (time.count() < 0) return fail("accept(): a time below 0; expected 0 or more");
  const std::shared_ptr<Job> job = channel_->shared_job();
  channel_->await_early_end();
  if (const auto alive = channel_->check_alive(); !alive) {
    channel_->decline_accept();
    const std::string cancelled = channel_->end_of_accept();
    return fail("accept(): " + (cancelled.empty() ? alive.error().message : one_line(cancelled)));
  }
  try {
    job->provide_thread();
  } catch (const std::system_error& error) {
    return fail("accept() cannot start a thread: " + system_error_text(error.code().value()));
  }
  const record::InAgreement agreement(job->record(), {.communicator = channel_->record_id(),
                                                      .kind = record::AgreementKind::kAccept,
                                                      .newcomers = least});
  const CancelledAccept cancel(*channel_);
  auto accepted = job->members().accept(least, time);
  if (!accepted) return fail("accept(): " + accepted.error().message);
  const auto network = job->network();
  job->set_network({});
  auto channel = connect_accepted(job, *accepted, cancel.end());
  if (!channel) {
    job->set_network(network);
    return fail("accept(): " + channel.error().message);
  }
  auto grown = of_job(*std::move(channel), Caller::kAccept);
  if (grown) job->set_growth(accepted->generation);
  return grown;
}

namespace {

// Returns the channel of this process in the job.
Result<std::shared_ptr<Channel>> join_job(const JoinOptions& given) {
  JoinOptions options = given;
  ESPALIER_TRY_TO(auto provider, provider_of(options));
  options.provider = std::move(provider);
  const NodeImage& image = options.image;
  if (image.file.empty() && image.flash.empty() &&
      (!image.public_key.empty() || image.takes_unsigned)) {
    return fail("image: public_key or takes_unsigned without an image; expected file or flash");
  }
  if (options.deadline.count() <= 0) return fail("a deadline of 0 or less; expected more");
  if (const auto serves = ofi::check_provider(options.provider); !serves) {
    const char* const filter = given.provider.empty() ? raw_value(Variable::kFiProvider) : nullptr;
    const bool is_named = filter != nullptr && *filter != '\0' && *filter != '^';
    return fail((is_named ? "FI_PROVIDER=" + one_line(filter) + ": " : "") +
                serves.error().message);
  }
  ESPALIER_TRY(check_sharing(given.provider, options.provider));
  if (options.authenticate_data && !ofi::authenticates_data(options.provider)) {
    return fail("authenticate_data: provider '" + options.provider +
                "' cannot authenticate payloads; expected tcp");
  }
  ESPALIER_TRY_TO(auto record, record::begin_joining(options));
  const auto observer = std::make_shared<record::JobObserver>(options, record);
  std::shared_ptr<bootstrap::Bootstrap> members;
  if (options.membership != nullptr) {
    ESPALIER_TRY_TO(members, communicator::guard_membership(options.membership));
  } else {
    const bool has_connections = ofi::binds_address(options.provider);
    bootstrap::RankFiles files = has_connections ? kFabricFiles : kMemoryFiles;
    if (record == nullptr) ++files.fixed;  // it begins later
    auto joined = bootstrap::join(options.bootstrap, files, observer);
    record = observer->writer();
    if (!joined && record != nullptr) record->join_failed(joined.error().message);
    if (!joined) return fail(joined.error());
    members = *std::move(joined);
  }
  if (options.authenticate_data && !members->is_secret()) {
    return fail(
        "authenticate_data needs a job secret; expected ESPALIER_SECRET_FILE, or a launcher that "
        "makes one");
  }
  if (!members->is_newcomer() && members->size() > 1) {
    ESPALIER_TRY(record::begin_joined(options, members->rank(), members->size(), record));
  }
  observer->set_writer(record);
  auto job = make_of_process<Job>(std::move(options), members, std::move(record));
  job->set_observer(observer);
  // If another process fails meanwhile, a newcomer waits for the next accept().
  while (members->is_newcomer()) {
    ESPALIER_TRY_TO(const auto accepted, members->accept(0, {}));
    auto channel = connect_accepted(job, accepted, [] { return std::string(); });
    if (!channel) continue;
    job->provide_thread();
    job->set_growth(accepted.generation);
    return channel;
  }
  Connecting connecting;
  for (std::uint32_t rank = 0; rank < members->size(); ++rank) connecting.ranks.push_back(rank);
  const auto agreed = agree_on_addresses(*job, connecting.ranks);
  connecting.deadline = job->options().bootstrap.deadline;
  record::Exchange cards(job->record());
  auto channel = agreed ? connect_members(job, connecting, cards)
                        : Result<std::shared_ptr<Channel>>(fail(agreed.error()));
  if (!channel && job->record() != nullptr) job->record()->join_failed(channel.error().message);
  return channel;
}

}  // namespace

// Neither the memory nor the threads that it needs may end the program.
Result<Communicator> join(const JoinOptions& given) {
  try {
    ESPALIER_TRY_TO(auto channel, join_job(given));
    return Communicator::of_job(std::move(channel), Caller::kJoin);
  } catch (const std::bad_alloc&) {
    return fail(communicator::memory_error("join(): "));
  } catch (const std::system_error& error) {
    return fail("join() cannot start a thread: " + system_error_text(error.code().value()));
  }
}

}  // namespace espalier
