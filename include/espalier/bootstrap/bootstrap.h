#pragma once
// How the processes of a job find each other: each learns its rank and the size of the job,
// publishes values, waits for the others, and reads their values. Host only.
//
// One interface for all launchers; docs/cluster.md has their command lines. join() finds the
// launcher, in this order unless the options name one:
//  0. ESPALIER_JOIN is set: the job file that it names, of a job that runs.
//     ESPALIER_CABLES=1: over the cables of the hosts, with RANK, WORLD_SIZE and
//     ESPALIER_SECRET_FILE; docs/switchless.md.
//     Otherwise ESPALIER_RANK is set: the environment, as in 3.
//  1. PMIx: mpirun of Open MPI, srun --mpi=pmix. Its client library is loaded only then.
//  2. PMI-1: mpiexec of MPICH, srun --mpi=pmi2.
//  3. The environment: ESPALIER_RANK, ESPALIER_SIZE and ESPALIER_ADDRESS (HOST:PORT), or the names
//     of PyTorch, Gloo and NCCL: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Rank 0 listens
//     there, unless the launcher does (ESPALIER_SERVER=launcher).
//  4. None of these: a job of one process.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "espalier/base/result.h"

namespace espalier::bootstrap {

// How a process finds its job.
enum class Method : std::uint8_t {
  kAutomatic,    // as the table and the folder of the options say, otherwise in the order above
  kPmix,         // a launcher that offers PMIx
  kPmi,          // a launcher that offers PMI-1
  kEnvironment,  // the variables RANK, WORLD_SIZE, ...
  kFile,         // a file in a folder that all hosts share
  kTable,        // a table of addresses from the caller, for boards without a launcher
  kAlone,        // a job of one process
  kNewcomer,     // a job that runs, through its job file, once its processes call accept()
  kCables,       // over the cables between the hosts, without a network that reaches all of them
};

// Random bytes that all processes of a job share and no other process knows.
using JobSecret = std::array<std::uint8_t, 32>;
// Returns the job secret that a file of these 32 to 4096 random bytes stands for.
[[nodiscard]] JobSecret secret_of(const std::string& bytes);

// The parameters of join(). An option that the method does not use is refused.
struct Options {
  Method method = Method::kAutomatic;
  // Deadline for each wait. Its error names the ranks that are missing.
  std::chrono::milliseconds deadline{60'000};
  std::string job = {};  // distinguishes jobs that share a folder or a host; may be empty
  // kFile: the folder, and this process's rank and the size. kTable: rank, and one host:port per
  // rank; rank 0's is the rendezvous server. kCables: rank and size, otherwise the environment's.
  std::string folder = {};
  std::vector<std::string> table = {};
  std::int64_t rank = -1;
  std::int64_t size = -1;
  // Interfaces and subnets that the job uses, "eth0,10.0.0.0/8,!docker0". Empty: what
  // ESPALIER_INTERFACE says, otherwise all. docs/cluster.md has the rules.
  std::string interfaces = {};
  // Ports at which this process listens, "40000-40100". Empty: what ESPALIER_PORTS says, otherwise
  // the system chooses.
  std::string ports = {};
  // kEnvironment, kTable, kCables: file of mode 0600 with the job secret, at least 32 bytes. Empty:
  // the file that ESPALIER_SECRET_FILE names, otherwise none.
  std::string secret_file = {};
  // The job file, of mode 0600, through which processes join the job while it runs. kNewcomer: the
  // file to join by; empty: the file that ESPALIER_JOIN names. Otherwise rank 0 writes the file
  // and removes it when its membership ends; empty: the file that ESPALIER_JOB_FILE names, if any.
  std::string job_file = {};
};

// The processes of a job that survived: their former ranks, ascending. This process is among them.
struct Survivors {
  std::vector<std::uint32_t> ranks = {};
  std::uint32_t generation = 0;  // above all those before; 1 after the first rejoin
};

// The processes that take part in a job after accept(), ascending; this process is among them.
// Newcomers have the lowest numbers that were free, first those of processes that ended.
struct Accepted {
  std::vector<std::uint32_t> ranks = {};
  std::uint32_t generation = 0;  // above all those before
};

// Says by one line why a process ends accept(); empty: it goes on.
using EndOfAccept = std::function<std::string()>;

// One process's membership in a job. Used by one thread at a time.
class Bootstrap {
 public:
  virtual ~Bootstrap() = default;
  // Returns the rank of this process. A newcomer has none before accept() has returned.
  [[nodiscard]] virtual std::uint32_t rank() const = 0;
  // Returns the number of processes that the job was started with.
  [[nodiscard]] virtual std::uint32_t size() const = 0;
  // Returns how the job was found.
  [[nodiscard]] virtual Method method() const = 0;
  [[nodiscard]] virtual bool is_secret() const = 0;  // whether secret() is known to this job only
  // Returns the job secret; zeros unless is_secret().
  [[nodiscard]] virtual const JobSecret& secret() const = 0;
  // The address of this host by which this process reached the others' server; 127.0.0.1 if all
  // processes share this host. The processes agree on the addresses of endpoints, and take it if
  // they share no subnet.
  [[nodiscard]] virtual const std::string& local_address() const = 0;

  // Publishes a value of this process; binary, at most 64 KiB. Visible to others after fence().
  // Errors: a key used twice, too long a value, the launcher is gone.
  [[nodiscard]] virtual Result<void> put(const std::string& key, const std::string& value) = 0;
  // Waits until every process of the job has called fence() as often as this one.
  // Errors: a deadline, with the ranks that are missing; the launcher is gone.
  [[nodiscard]] virtual Result<void> fence() = 0;
  // Returns the value that `rank` published under `key` before its last fence().
  // Errors: no such value.
  [[nodiscard]] virtual Result<std::string> get(std::uint32_t rank, const std::string& key) = 0;
  // Agrees with the other processes on those that are still there, after a failure. Every survivor
  // must call it; a process that ended, or does not call it before the deadline, is left out.
  // Afterwards fence() waits for the survivors only; ranks keep their former numbers here.
  // Errors: a launcher without this service (PMIx, PMI-1, file); a deadline.
  [[nodiscard]] virtual Result<Survivors> rejoin() = 0;

  // Takes newcomers into the job. These four have defaults: such a membership has no newcomers.
  // Whether this process has joined through a job file, and complete() has not accepted it yet.
  [[nodiscard]] virtual bool is_newcomer() const { return false; }
  // Agrees with the other members on the newcomers: all that wait, once there are `least`. Every
  // member must call it with the same `least`. A newcomer's waits until the members call theirs,
  // and `least` and `time` have no effect. All must call complete() afterwards.
  // `time`: for the newcomers, once all members wait.
  // Errors, the same on all members: too few newcomers; a member that ended, or does not call it
  // before the deadline. Nothing has changed then.
  [[nodiscard]] virtual Result<Accepted> accept(std::uint32_t least,
                                                std::chrono::milliseconds time);
  // Agrees on whether all of them are connected. `failure`: one line why this process is not;
  // empty: it is. Errors, the same on all: the first failure. The job has the processes that it had
  // before then, and the newcomers may call accept() again.
  // With generation 0 and a failure: this process will not call accept(), whose next call, or the
  // one that waits, fails on all with the failure.
  [[nodiscard]] virtual Result<void> complete(const Accepted& accepted, const std::string& failure);
  // Sets what accept() asks at least every 20 ms while it waits, and so does each call after it up
  // to complete(). Once the answer is a line, both functions fail on all members with this line,
  // unless complete() has succeeded on one; newcomers may call accept() again. Null: nothing is
  // asked. The default does nothing: accept() then ends by its times.
  virtual void end_accept_by(EndOfAccept end);
};

// Joins the job. Errors, one line each: a variable that is missing, malformed or contradicts
// another; a wrong size or a rank that another process has; no server; a deadline with the ranks
// that are missing.
[[nodiscard]] Result<std::unique_ptr<Bootstrap>> join(const Options& options = {});

}  // namespace espalier::bootstrap
