// Finds the launcher.

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>
#include <thread>

#include "base/counted.h"
#include "base/network/filter.h"
#include "base/one_line.h"
#include "base/process/open_files.h"
#include "base/process/variables.h"
#include "base/read_file.h"
#include "base/try.h"
#include "bootstrap/candidates.h"
#include "bootstrap/client.h"
#include "bootstrap/first_word.h"
#include "bootstrap/message.h"
#include "bootstrap/newcomers.h"
#include "bootstrap/over_cables.h"
#include "bootstrap/process_manager.h"
#include "bootstrap/secret.h"
#include "bootstrap/stream.h"
#include "espalier/bootstrap/bootstrap.h"

namespace espalier::bootstrap {
namespace {

// The files of a rank: the connection to the server, and a file for a moment.
constexpr std::uint64_t kOwnFiles = 2;
// The files of a server beside a connection per process: its listener, the event that wakes its
// thread, and a connection that it refuses.
constexpr std::uint64_t kServerFiles = 3;
// How long rank 0 waits for the port of its server in a job that it has left.
constexpr std::chrono::milliseconds kPortTime(5'000);

// A number with a name of Espalier's and one that other libraries use. Nothing: neither is set.
// Errors: a wrong value; they differ.
Result<std::optional<std::uint32_t>> either(Variable own, Variable usual, std::uint32_t min,
                                            std::uint32_t max) {
  ESPALIER_TRY_TO(const auto a, read_number(own, min, max));
  ESPALIER_TRY_TO(const auto b, read_number(usual, min, max));
  if (a && b && *a != *b) {
    return fail(std::string(row_of(own).name) + "=" + std::to_string(*a) + " contradicts " +
                row_of(usual).name + "=" + std::to_string(*b));
  }
  return a ? a : b;
}

Error none_of(const std::string& name) {
  return {"the environment has no " + name +
          "; expected RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT together"};
}

Error none_of_cables(const std::string& name) {
  return {"the environment has no " + name +
          "; expected RANK, WORLD_SIZE and ESPALIER_SECRET_FILE together with ESPALIER_CABLES"};
}

// The address of rank 0. Errors: a wrong value; none; two that differ.
Result<std::string> address_of_environment() {
  ESPALIER_TRY_TO(const auto own, read_text(Variable::kEspalierAddress));
  ESPALIER_TRY_TO(const auto host, read_text(Variable::kMasterAddr));
  ESPALIER_TRY_TO(const auto port, read_number(Variable::kMasterPort, 1, UINT16_MAX));
  const std::string usual =
      host && port ? network::join(*host, static_cast<std::uint16_t>(*port)) : "";
  const auto is_same = [&usual](const std::string& other) {
    const auto one = network::split(usual), two = network::split(other);
    return one && two && one->host == two->host && one->port == two->port;
  };
  if (own && !usual.empty() && !is_same(*own)) {
    return fail("ESPALIER_ADDRESS=" + one_line(*own) +
                " contradicts MASTER_ADDR and MASTER_PORT, " + one_line(usual));
  }
  if (own) return *own;
  if (usual.empty()) return fail(none_of("ESPALIER_ADDRESS, or MASTER_ADDR and MASTER_PORT"));
  return usual;
}

Result<void> add_secret(const Options& options, Place& place) {
  std::string path = options.secret_file;
  if (path.empty()) {
    ESPALIER_TRY_TO(const auto given, read_text(Variable::kSecretFile));
    path = given.value_or("");
  }
  if (!path.empty()) {
    ESPALIER_TRY_TO(auto secret, read_secret(path));
    place.secret = secret;
    place.is_secret = true;
    return {};
  }
  ESPALIER_TRY(network::split(place.address));
  return {};
}

// A server at the loopback interface needs no secret.
void warn_without_secret(const Place& place) {
  const auto at = network::split(place.server->address());
  const auto bound = at ? network::parse_ip(at->host) : std::nullopt;
  if (place.is_secret || (bound && bound->is_loopback())) return;
  std::fprintf(stderr,
               "espalier: the job at %s has no secret, so any host can join it; expected "
               "ESPALIER_SECRET_FILE, a file of mode 0600\n",
               place.address.c_str());
}

// Checks that this process can open the files of its rank, and if it `serves`, of the server.
Result<void> check_files(const Place& place, const RankFiles& files, bool serves) {
  if (place.size == 1) return {};
  const auto doublings = static_cast<std::uint64_t>(std::bit_width(place.size - 1));
  std::uint64_t needed = kOwnFiles + files.fixed + files.per_doubling * doublings;
  if (serves) needed += kServerFiles + place.size;
  return check_free_files(
      needed, "rank " + std::to_string(place.rank) + " of " + std::to_string(place.size));
}

// Checks addresses between commas, except their form. Error, behind `where`: a host cannot have one
// of them.
Result<void> check_hosts(const std::string& addresses, const std::string& where) {
  std::istringstream list(addresses);
  for (std::string each; std::getline(list, each, ',');) {
    const auto parts = network::split(each);
    const auto right = parts ? network::check_host(parts->host) : Result<void>();
    if (!right) return fail(where + ": " + right.error().message);
  }
  return {};
}

// How a server of this process listens where it takes all addresses. `is_restricted`: only those of
// the interfaces that the job uses, because no process is told another one.
Result<ListenOptions> listening(const Options& options, bool is_restricted) {
  ListenOptions all{.lookup_time = options.deadline};
  ESPALIER_TRY_TO(all.ports, network::port_range(options.ports));
  if (is_restricted) {
    ESPALIER_TRY_TO(all.interfaces, network::interface_filter(options.interfaces));
  }
  return all;
}

// Rank 0 is the server, unless the launcher is.
Result<void> serve(const Options& options, Place& place, const RankFiles& files) {
  ESPALIER_TRY(check_files(place, files, place.rank == 0));
  if (place.rank != 0) return {};
  bool is_in_use = false;
  ESPALIER_TRY_TO(const auto listens, listening(options, false));
  auto server = Server::start(place.address, place.size, place.secret, &is_in_use, listens);
  if (!server) return is_in_use ? Result<void>() : fail(server.error());
  place.server = *std::move(server);
  warn_without_secret(place);
  return {};
}

Result<Place> from_environment(const Options& options, const RankFiles& files) {
  ESPALIER_TRY_TO(const auto size,
                  either(Variable::kEspalierSize, Variable::kWorldSize, 1, kMaxRanks));
  ESPALIER_TRY_TO(const auto rank, either(Variable::kEspalierRank, Variable::kRank, 0,
                                          size.value_or(kMaxRanks) - 1));
  if (!rank) return fail(none_of("RANK"));
  if (!size) return fail(none_of("WORLD_SIZE"));
  ESPALIER_TRY_TO(const auto address, address_of_environment());
  ESPALIER_TRY(check_hosts(
      address, is_set(Variable::kEspalierAddress) ? "ESPALIER_ADDRESS" : "MASTER_ADDR"));
  Place place{.method = Method::kEnvironment, .rank = *rank, .size = *size, .address = address};
  ESPALIER_TRY_TO(const auto server, read_text(Variable::kServer));
  if (server && server != "launcher")
    return fail(wrong_value(Variable::kServer, row_of(Variable::kServer).expected));
  if (!server && place.address.find(',') != std::string::npos) {
    return fail("ESPALIER_ADDRESS=" + one_line(place.address) +
                " has several addresses; expected one, at which rank 0 listens, or "
                "ESPALIER_SERVER=launcher");
  }
  ESPALIER_TRY(add_secret(options, place));
  if (server) {
    ESPALIER_TRY(check_files(place, files, false));
    return place;
  }
  ESPALIER_TRY(serve(options, place, files));
  return place;
}

Result<void> take_rank(const Options& options, const char* method, Place& place) {
  if (options.size < 1 || options.size > kMaxRanks || options.rank < 0 ||
      options.rank >= options.size) {
    return fail(std::string(method) + ": rank " + std::to_string(options.rank) + " of " +
                std::to_string(options.size) + "; expected 0 <= rank < size");
  }
  place.rank = static_cast<std::uint32_t>(options.rank);
  place.size = static_cast<std::uint32_t>(options.size);
  return {};
}

Result<Place> from_table(const Options& options, const RankFiles& files) {
  Place place{.method = Method::kTable};
  Options sized = options;
  if (sized.size < 0) sized.size = static_cast<std::int64_t>(options.table.size());
  ESPALIER_TRY(take_rank(sized, "table", place));
  if (options.table.size() != place.size) {
    return fail("table: " + counted(options.table.size(), "address") + " for " +
                counted(place.size, "rank"));
  }
  for (const std::string& each : options.table) ESPALIER_TRY(check_hosts(each, "table"));
  place.address = options.table.front();
  ESPALIER_TRY(add_secret(options, place));
  ESPALIER_TRY(serve(options, place, files));
  return place;
}

// Takes what rank 0 handed to all.
bool take_ticket(const std::string& text, Place& place) {
  const auto ticket = decode_ticket(text);
  if (!ticket) return false;
  place.secret = ticket->secret;
  place.is_secret = true;
  place.candidates = ticket->server;
  return true;
}

// The interfaces that the job uses on this host.
Result<std::vector<network::Interface>> used_interfaces(const Options& options) {
  ESPALIER_TRY_TO(const auto filter, network::interface_filter(options.interfaces));
  return filter.apply(network::running_interfaces());
}

// The job file that rank 0 writes, if any.
Result<std::string> job_file_of(const Options& options, Method method) {
  if (method == Method::kNewcomer || !options.job_file.empty()) return options.job_file;
  ESPALIER_TRY_TO(const auto given, read_text(Variable::kJobFile));
  return given.value_or("");
}

// Rank 0 starts the server, with a fresh secret. Returns the ticket. `is_local`: only processes of
// this host reach it.
Result<std::string> serve_fresh(const Options& options, bool is_local, Place& place) {
  randombytes_buf(place.secret.data(), place.secret.size());
  place.is_secret = true;
  ESPALIER_TRY_TO(const auto listens, listening(options, true));
  const char* const where = is_local ? "127.0.0.1:0" : "[::]:0";
  auto server = Server::start(where, place.size, place.secret, nullptr, listens);
  if (!server && !is_local) {  // IPv6 is off
    server = Server::start("0.0.0.0:0", place.size, place.secret, nullptr, listens);
  }
  if (!server) return fail(server.error());
  place.server = *std::move(server);
  ESPALIER_TRY_TO(const auto at, network::split(place.server->address()));
  place.candidates = own_candidates(place.interfaces, at.port);
  if (is_local) place.candidates.addresses = {network::loopback_v4().with_port(at.port)};
  return encode_ticket({place.secret, place.candidates});
}

// The job that a process manager gave this process. It gives each job once.
struct JoinedBefore {
  Method method = Method::kAlone;
  std::uint32_t rank = 0, size = 0;
  std::string ticket;
  std::string address;  // rank 0: of its server
};
JoinedBefore joined_before;

// Joins the same job again, without its process manager: rank 0 serves at the same address.
Result<Place> join_again(const Options& options) {
  Place place{
      .method = joined_before.method, .rank = joined_before.rank, .size = joined_before.size};
  (void)take_ticket(joined_before.ticket, place);
  ESPALIER_TRY_TO(place.interfaces, used_interfaces(options));
  if (place.rank != 0) return place;
  ESPALIER_TRY_TO(const auto listens, listening(options, true));
  const Clock::time_point until = Clock::now() + kPortTime;
  while (true) {
    bool is_in_use = false;
    auto server =
        Server::start(joined_before.address, place.size, place.secret, &is_in_use, listens);
    if (server) {
      place.server = *std::move(server);
      return place;
    }
    if (!is_in_use || Clock::now() > until) return fail(server.error());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

Result<Place> from_process_manager(Method method, const Options& options, const RankFiles& files,
                                   const std::shared_ptr<Observer>& observer) {
  if (joined_before.method == method) return join_again(options);
  ESPALIER_TRY_TO(auto manager, method == Method::kPmix ? open_pmix() : open_pmi());
  Place place{.method = method, .rank = manager->rank(), .size = manager->size()};
  ESPALIER_TRY(check_files(place, files, place.rank == 0));
  ESPALIER_TRY_TO(place.interfaces, used_interfaces(options));
  if (observer != nullptr) {
    ESPALIER_TRY(observer->started({.name = manager->job(),
                                    .rank = place.rank,
                                    .size = place.size,
                                    .is_one_host = manager->is_one_host()}));
    manager->set_observer(observer);
  }
  std::string ticket;
  if (place.rank == 0) {
    // Newcomers may be on other hosts.
    ESPALIER_TRY_TO(const std::string job_file, job_file_of(options, method));
    const bool is_local = manager->is_one_host() && job_file.empty();
    ESPALIER_TRY_TO(ticket, serve_fresh(options, is_local, place));
  }
  ESPALIER_TRY_TO(auto received, manager->from_rank_zero(ticket, options.deadline));
  if (!take_ticket(received, place)) return fail("rank 0 published a malformed address");
  joined_before = {method, place.rank, place.size, received,
                   place.server == nullptr ? "" : place.server->address()};
  return place;
}

// A file in a shared folder that holds rank 0's ticket. Its name has the job's name; its
// permissions keep the secret.
Result<Place> from_folder(const Options& options, const RankFiles& files) {
  Place place{.method = Method::kFile};
  ESPALIER_TRY(take_rank(options, "file", place));
  if (options.job.empty() || options.job.find('/') != std::string::npos) {
    return fail("file: job '" + options.job + "'; expected a name of this start of the job");
  }
  ESPALIER_TRY(check_files(place, files, place.rank == 0));
  ESPALIER_TRY_TO(place.interfaces, used_interfaces(options));
  const std::string path = options.folder + "/espalier-" + options.job;
  if (place.rank == 0) {
    ESPALIER_TRY_TO(const auto ticket, serve_fresh(options, false, place));
    ESPALIER_TRY(write_ticket(path, ticket));
    place.file = path;
    return place;
  }
  const Clock::time_point until = Clock::now() + options.deadline;
  FirstWord word;
  Speaker speaker;
  while (true) {
    if (const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        descriptor >= 0) {
      const Socket file(descriptor);
      struct stat status {};
      if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
        return fail("'" + one_line(path) +
                    "' is not a regular file; expected the file that rank 0 writes");
      }
      if ((status.st_mode & 077) != 0 || status.st_uid != geteuid()) {
        return fail("'" + one_line(path) + "' is not this user's alone; expected mode 0600");
      }
      char text[512] = {};
      const ssize_t count = pread(descriptor, text, sizeof text - 1, 0);
      std::string ticket(text, count > 0 ? static_cast<std::size_t>(count) : 0);
      if (!ticket.empty() && ticket.back() == '\n') ticket.pop_back();
      if (!take_ticket(ticket, place)) return fail("'" + one_line(path) + "' is malformed");
      return place;
    }
    if (Clock::now() > until) {
      return fail("rank 0 did not write '" + one_line(path) + "' within " +
                  std::to_string(options.deadline.count()) + " ms");
    }
    if (word.is_due() && (FirstWord::is_watched() || speaker.may_speak(path))) {
      std::fprintf(stderr, "espalier: rank %u of %u waits for rank 0 to write '%s'\n", place.rank,
                   place.size, one_line(path).c_str());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

// Through the file that a job wrote.
Result<Place> from_job_file(const Options& options, const RankFiles& files) {
  std::string path = options.job_file;
  if (path.empty()) {
    ESPALIER_TRY_TO(const auto given, read_text(Variable::kJoin));
    if (!given) return fail("no job file to join by; expected job_file, or ESPALIER_JOIN");
    path = *given;
    for (const Variable other :
         {Variable::kEspalierRank, Variable::kEspalierSize, Variable::kEspalierAddress}) {
      if (!is_set(other)) continue;
      return fail("ESPALIER_JOIN contradicts " + std::string(row_of(other).name) +
                  "; expected ESPALIER_JOIN alone, because a newcomer's rank is given to it");
    }
  }
  ESPALIER_TRY_TO(const auto ticket, read_ticket(path));
  Place place{.method = Method::kNewcomer, .size = 2, .is_newcomer = true};
  ESPALIER_TRY(check_files(place, files, false));
  ESPALIER_TRY_TO(place.interfaces, used_interfaces(options));
  if (!take_job_ticket(ticket, place)) {
    return fail(malformed_ticket(path));
  }
  return place;
}

// The files of a rank over cables: two sockets per interface are counted for eight interfaces.
constexpr std::uint64_t kCableFiles = 20;

// Over the cables of the hosts. MASTER_ADDR and MASTER_PORT may be set: scripts for PyTorch set
// them always.
Result<std::unique_ptr<Bootstrap>> from_cables(const Options& options, const RankFiles& files) {
  for (const Variable other :
       {Variable::kEspalierAddress, Variable::kServer, Variable::kJoin, Variable::kJobFile}) {
    if (!is_set(other)) continue;
    return fail("ESPALIER_CABLES contradicts " + std::string(row_of(other).name) +
                "; expected one of them, because a job over its cables has no server");
  }
  if (!options.job_file.empty()) {
    return fail("job_file: a job that is joined over its cables takes no newcomers");
  }
  Place place{.method = Method::kCables};
  if (options.rank >= 0 || options.size >= 0) {
    ESPALIER_TRY(take_rank(options, "cables", place));
  } else {
    ESPALIER_TRY_TO(const auto size,
                    either(Variable::kEspalierSize, Variable::kWorldSize, 1, kMaxRanks));
    ESPALIER_TRY_TO(const auto rank, either(Variable::kEspalierRank, Variable::kRank, 0,
                                            size.value_or(kMaxRanks) - 1));
    if (!rank || !size) return fail(none_of_cables(rank ? "WORLD_SIZE" : "RANK"));
    place.rank = *rank;
    place.size = *size;
  }
  ESPALIER_TRY(add_secret(options, place));
  if (!place.is_secret) return fail(none_of_cables("ESPALIER_SECRET_FILE"));
  ESPALIER_TRY(check_free_files(
      kCableFiles + files.fixed,
      "rank " + std::to_string(place.rank) + " of " + std::to_string(place.size) + " over cables"));
  CablesPlace over{.rank = place.rank, .size = place.size, .secret = place.secret};
  ESPALIER_TRY_TO(over.interfaces, network::interface_filter(options.interfaces));
  ESPALIER_TRY_TO(over.ports, network::port_range(options.ports));
  return join_over_cables(over, options.deadline);
}

// A job of one process that others join while it runs.
Result<Place> from_nothing(const Options& options, const RankFiles& files) {
  Place place{.method = Method::kAlone};
  ESPALIER_TRY(check_files(place, files, true));
  ESPALIER_TRY_TO(place.interfaces, used_interfaces(options));
  ESPALIER_TRY(serve_fresh(options, false, place));
  return place;
}

// Rank 0 writes the job file, before it waits for the others.
Result<void> offer(const std::string& path, Place& place) {
  if (path.empty() || place.rank != 0 || place.is_newcomer) return {};
  ESPALIER_TRY_TO(place.job_file, write_job_file(path, job_ticket(place)));
  return {};
}

// Whether the user asks for cables. Error: another value than 1.
Result<bool> wants_cables() {
  ESPALIER_TRY_TO(const auto given, read_text(Variable::kCables));
  if (given && *given != "1") {
    return fail(wrong_value(Variable::kCables, row_of(Variable::kCables).expected));
  }
  return given.has_value();
}

Result<Method> find_method(const Options& options) {
  ESPALIER_TRY_TO(const bool is_over_cables, wants_cables());
  if (options.method != Method::kAutomatic) return options.method;
  if (!options.table.empty()) return Method::kTable;
  if (!options.folder.empty()) return Method::kFile;
  if (is_over_cables) return Method::kCables;
  if (is_set(Variable::kJoin)) return Method::kNewcomer;
  if (is_set(Variable::kEspalierRank)) return Method::kEnvironment;
  if (has_pmix()) return Method::kPmix;
  if (has_pmi()) return Method::kPmi;
  for (const Variable variable : {Variable::kEspalierSize, Variable::kEspalierAddress,
                                  Variable::kRank, Variable::kWorldSize, Variable::kMasterAddr}) {
    if (is_set(variable)) return Method::kEnvironment;
  }
  return Method::kAlone;
}

// Options that the method does not use are refused.
Result<void> check_used(const Options& options, Method method) {
  const bool takes_rank =
      method == Method::kFile || method == Method::kTable || method == Method::kCables;
  std::string unused;
  if (!options.table.empty() && method != Method::kTable) unused = "table";
  if (!options.folder.empty() && method != Method::kFile) unused = "folder";
  if ((options.rank >= 0 || options.size >= 0) && !takes_rank) unused = "rank and size";
  if (!options.job.empty() && method != Method::kFile) unused = "job";
  if (!options.secret_file.empty() && method != Method::kEnvironment && method != Method::kTable &&
      method != Method::kCables) {
    unused = "secret_file";
  }
  if (unused.empty()) return {};
  return fail("bootstrap option '" + unused + "' is not used by this way to join");
}

}  // namespace

JobSecret secret_of(const std::string& bytes) {
  JobSecret secret;
  crypto_generichash(secret.data(), secret.size(),
                     reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), nullptr,
                     0);
  return secret;
}

Result<std::unique_ptr<Bootstrap>> join(const Options& options) { return join(options, {}); }

Result<std::unique_ptr<Bootstrap>> join(const Options& options, const RankFiles& files,
                                        std::shared_ptr<Observer> observer) {
  if (sodium_init() < 0) return fail("libsodium cannot be initialized");
  if (options.deadline.count() <= 0) return fail("a deadline of 0 or less; expected more");
  ESPALIER_TRY(network::interface_filter(options.interfaces));
  ESPALIER_TRY(network::port_range(options.ports));
  ESPALIER_TRY(patience());
  ESPALIER_TRY_TO(const Method method, find_method(options));
  if (method != Method::kAlone && method != Method::kCables) ESPALIER_TRY(used_interfaces(options));
  ESPALIER_TRY(check_used(options, method));
  if (method == Method::kCables) return from_cables(options, files);
  ESPALIER_TRY_TO(const std::string job_file, job_file_of(options, method));
  Result<Place> place;
  switch (method) {
    case Method::kPmix:
    case Method::kPmi: place = from_process_manager(method, options, files, observer); break;
    case Method::kEnvironment: place = from_environment(options, files); break;
    case Method::kFile: place = from_folder(options, files); break;
    case Method::kTable: place = from_table(options, files); break;
    case Method::kNewcomer: place = from_job_file(options, files); break;
    default:
      if (job_file.empty()) return alone();
      place = from_nothing(options, files);
  }
  if (!place) return fail(place.error());
  ESPALIER_TRY(offer(job_file, *place));
  place->observer = std::move(observer);
  return connect(*std::move(place), options.deadline);
}

}  // namespace espalier::bootstrap
