#pragma once
// A program's view of Espalier in C, for C11 and C++: the calls of communicator.h with the same
// names, and functions for calls with a count for each rank, for plans and for the end.
//
//     espalier_comm* world = NULL;
//     if (espalier_join(NULL, &world) != 0) return report(espalier_error());
//     espalier_allreduce(sums, sums, 1000, ESPALIER_F32, ESPALIER_SUM, world);  // in place
//     espalier_leave(world);
//
//  * Functions that can fail return 0 (ESPALIER_OK) or another number of espalier_status.
//    espalier_error() then returns the reason.
//  * All ranks of a communicator start the same collectives in the same order.
//  * Counts are elements. A pointer that only the root uses may be null elsewhere.
//  * In place: pass the same pointer as `send` and `receive`; there is no MPI_IN_PLACE. Otherwise
//    the two must not overlap. Scatter and gather: the root's part is at its place in the root's
//    whole message, and so are an allgather's and a reduce-scatter's own parts.
//  * After a failure every surviving rank gets the same cause, within twice the deadline. The
//    communicator is then of no more use, except for espalier_cause_of(), espalier_rejoin() and
//    espalier_leave(). The process lives on.
//  * A C++ exception of `combine` is such a failure, ESPALIER_BAD_OPERATOR. espalier_error() has
//    its text on all ranks. No rank gets a result of that operator. No function throws.
//  * Threads: at most one thread uses a communicator at any time; the call of another thread
//    is an error, and changes nothing. Different threads may use different communicators.
//  * Forks: a forked child is no rank. There, every call fails with ESPALIER_BAD_ARGUMENT, and
//    espalier_leave() does nothing. It may exit, run programs, and join a job of its own.
//  * Once all ranks have left all their communicators, they may join the job again.
//  * ABI: numbers of enumerators never change. Functions and enumerators are only added. A struct
//    with a member `struct_size` only grows at its end, and the library takes shorter ones; a
//    struct without it does not change. Initialize structs with the function below each.

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "espalier/espalier_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// Returns one line about this thread's most recent failed call: the fault, its place, the correct
// form. Valid until the thread's next failed call. Empty if none failed.
const char* espalier_error(void);
// Returns the version of the library: "1.0.0".
const char* espalier_version(void);

// The ranks of a job, or some of them, that call collectives together.
typedef struct espalier_comm espalier_comm;
// A started collective.
typedef struct espalier_request espalier_request;
// A collective that is planned once and started any number of times.
typedef struct espalier_plan espalier_plan;

// How the processes of a job find each other (bootstrap/bootstrap.h).
typedef enum espalier_method {
  ESPALIER_AUTOMATIC = 0,    // by the first of the next three that is there, otherwise alone
  ESPALIER_PMIX = 1,         // mpirun of Open MPI, srun --mpi=pmix
  ESPALIER_PMI = 2,          // mpiexec of MPICH, srun --mpi=pmi2
  ESPALIER_ENVIRONMENT = 3,  // RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, or the names ESPALIER_*
  ESPALIER_FILE = 4,         // by files in espalier_join_options.folder
  ESPALIER_TABLE = 5,        // by espalier_join_options.table
  ESPALIER_ALONE = 6,        // a job of this process only
  ESPALIER_NEWCOMER = 7,     // a job that runs, through espalier_join_options.job_file
  ESPALIER_CABLES = 8        // over the cables between hosts; size 0: RANK and WORLD_SIZE
} espalier_method;

// The parameters of espalier_join(). Zero or null: the default. Whatever is set and cannot be used
// is an error of espalier_join().
typedef struct espalier_join_options {
  size_t struct_size;  // sizeof(espalier_join_options)
  // "tcp", "mem" or "mem+tcp", as JoinOptions::provider (espalier/communicator.h) says.
  // Default: mem between processes of one host, FI_PROVIDER's or tcp between hosts.
  const char* provider;
  const char* local_address;  // IP that the fabric binds to; default: as the processes agree
  // D: how long an awaited rank may stay silent before it is declared dead, ns; default: 60 s.
  // A rank replies while its process runs, also while the program computes.
  uint64_t deadline_ns;
  const char* const* schedules;  // schedule files for the whole job (`espalier compile`)
  size_t schedule_count;         // number of `schedules`
  const char* model;             // file of a model that chooses schedules (`espalier measure`)
  int progress_thread;           // nonzero: started collectives go on every 200 us without a call
  espalier_method method;        // how the processes find each other
  uint64_t join_deadline_ms;     // of joining, which names the missing ranks; default: 60,000
  const char* job;               // distinguishes jobs that share a folder or a host
  const char* secret_file;       // file of mode 0600 with the job secret, at least 32 bytes
  // The last four: ESPALIER_FILE uses folder, rank and size; ESPALIER_TABLE table, size and rank.
  const char* folder;        // that all hosts share
  const char* const* table;  // host:port of each rank, `size` of them; rank 0's is the server
  uint32_t rank;             // of this process
  uint32_t size;             // of the job
  // The image of this node (`espalier image build`), whose programs serve their collectives and
  // roots in the communicator of the whole job: a file or a flash with slots. %r in the name is the
  // rank. The image and its signature are checked; a flash gets no marks.
  const char* image;       // file
  const char* flash;       // excludes `image`
  const char* public_key;  // file of the key of its signature
  int takes_unsigned;      // nonzero: takes any image; excludes public_key
  // Nonzero: authenticates the payload of long messages, too, with the job secret: one that another
  // process changed is an error, not a result. All processes must set the same. "mem"
  // refuses it; with "mem+tcp" it holds between hosts.
  int authenticate_data;
  const char* interfaces;  // and subnets, "eth0,10.0.0.0/8,!docker0"; default: ESPALIER_INTERFACE
  const char* ports;       // to listen at, "40000-40100"; default: ESPALIER_PORTS
  // The job file, of mode 0600, through which processes join the job while it runs.
  // ESPALIER_NEWCOMER: the file to join by; default: the file that ESPALIER_JOIN names. Otherwise
  // rank 0 writes the file, and removes it at its end; default: the file of ESPALIER_JOB_FILE.
  const char* job_file;
} espalier_join_options;

// Returns an espalier_join_options with every default.
static inline espalier_join_options espalier_default_join_options(void) {
  espalier_join_options options;
  memset(&options, 0, sizeof(options));
  options.struct_size = sizeof(options);
  return options;
}

// Joins the job that the launcher started: `*comm` has all its processes. Without a launcher: this
// process alone. `options` null: every default. Errors: ESPALIER_BAD_ARGUMENT: `options` breaks its
// contract; ESPALIER_BACK_END: the processes did not find each other, an option cannot be used, or
// the provider is not there.
int espalier_join(const espalier_join_options* options, espalier_comm** comm);
// Ends the communicator. A communicator of espalier_join() or espalier_rejoin() waits for its
// collectives and for the other ranks to end theirs. A communicator of espalier_split() waits for
// no other rank while that communicator lives. Requests and plans must have ended before. Null:
// does nothing. Errors: ESPALIER_BAD_ARGUMENT: another thread uses `comm`, with nothing changed;
// with `comm` freed all the same: the failure; ESPALIER_BACK_END: another rank did not end, or this
// process was forked from the rank.
int espalier_leave(espalier_comm* comm);
// Returns this process's rank in `comm`. Null: UINT32_MAX, and espalier_error() says so.
uint32_t espalier_rank(const espalier_comm* comm);
// Returns the number of ranks of `comm`. Null: 0, and espalier_error() says so.
uint32_t espalier_size(const espalier_comm* comm);

// Blocking collectives: arguments in the order of MPI. `count` is that of the whole message, from
// scatter() on that of one rank's part. Errors: ESPALIER_BAD_ARGUMENT, or the failure.
int espalier_broadcast(void* data, uint64_t count, espalier_type type, uint32_t root,
                       espalier_comm* comm);
// Reduces to the root.
int espalier_reduce(const void* send, void* receive, uint64_t count, espalier_type type,
                    espalier_op op, uint32_t root, espalier_comm* comm);
// Reduces, and gives all ranks the result.
int espalier_allreduce(const void* send, void* receive, uint64_t count, espalier_type type,
                       espalier_op op, espalier_comm* comm);
// Gives rank r the result of ranks 0 .. r.
int espalier_scan(const void* send, void* receive, uint64_t count, espalier_type type,
                  espalier_op op, espalier_comm* comm);
// Gives rank r the result of ranks 0 .. r-1; writes nothing on rank 0.
int espalier_exscan(const void* send, void* receive, uint64_t count, espalier_type type,
                    espalier_op op, espalier_comm* comm);
// send: size parts at the root; receive: one part.
int espalier_scatter(const void* send, void* receive, uint64_t count, espalier_type type,
                     uint32_t root, espalier_comm* comm);
// send: one part; receive: size parts at the root.
int espalier_gather(const void* send, void* receive, uint64_t count, espalier_type type,
                    uint32_t root, espalier_comm* comm);
// send: one part; receive: size parts.
int espalier_allgather(const void* send, void* receive, uint64_t count, espalier_type type,
                       espalier_comm* comm);
// send: size parts; receive: this rank's part of the result.
int espalier_reduce_scatter(const void* send, void* receive, uint64_t count, espalier_type type,
                            espalier_op op, espalier_comm* comm);
// Both: size parts.
int espalier_all_to_all(const void* send, void* receive, uint64_t count, espalier_type type,
                        espalier_comm* comm);
// Complete when every rank has entered it.
int espalier_barrier(espalier_comm* comm);

// The same with a count for each rank: `counts` has the elements of each rank's part, the same
// vector on all ranks. Parts follow each other without gaps, in order of ranks.
int espalier_scatterv(const void* send, void* receive, const uint64_t* counts, espalier_type type,
                      uint32_t root, espalier_comm* comm);
// As espalier_gather(), with `counts`.
int espalier_gatherv(const void* send, void* receive, const uint64_t* counts, espalier_type type,
                     uint32_t root, espalier_comm* comm);
// As espalier_allgather(), with `counts`.
int espalier_allgatherv(const void* send, void* receive, const uint64_t* counts, espalier_type type,
                        espalier_comm* comm);
// As espalier_reduce_scatter(), with `counts`.
int espalier_reduce_scatterv(const void* send, void* receive, const uint64_t* counts,
                             espalier_type type, espalier_op op, espalier_comm* comm);
// As espalier_all_to_all(), with size * size counts: counts[o * size + d] elements go from rank o
// to rank d.
int espalier_all_to_allv(const void* send, void* receive, const uint64_t* counts,
                         espalier_type type, espalier_comm* comm);

// Any collective with its memory, to be run, started or planned; also custom operators and types.
typedef struct espalier_call {
  size_t struct_size;              // sizeof(espalier_call)
  espalier_collective collective;  // which one
  espalier_type type;              // of the elements
  espalier_op op;                  // of a reduction
  uint32_t root;                   // of a broadcast, reduce, scatter, gather
  const void* send;                // as in the functions above; a broadcast uses `receive` only
  void* receive;                   // must, like `send`, last until the collective is complete
  uint64_t count;                  // as in the functions above
  // A count for each rank, as in the functions with v; null: `count` holds for all. Must last until
  // the collective is complete.
  const uint64_t* counts;
  uint32_t element_bytes;    // ESPALIER_CUSTOM_TYPE only: bytes of an element
  uint32_t custom_id;        // ESPALIER_CUSTOM_OP, barriers: any number, the same on all ranks
  int commutes;              // ESPALIER_CUSTOM_OP only: whether `combine` commutes
  espalier_combine combine;  // ESPALIER_CUSTOM_OP only
  void* context;             // passed to `combine`
} espalier_call;

// Returns an espalier_call without a collective, whose other members are zero or null.
static inline espalier_call espalier_default_call(void) {
  espalier_call call;
  memset(&call, 0, sizeof(call));
  call.struct_size = sizeof(call);
  return call;
}

// Runs the call and waits. Errors: as the blocking collectives.
int espalier_run(const espalier_call* call, espalier_comm* comm);
// Starts the call, and returns a request. Calls that are started on one communicator run in the
// order of their starts; those on different communicators run at once. Errors:
// ESPALIER_BAD_ARGUMENT, with `*request` null; the failure.
int espalier_start(const espalier_call* call, espalier_comm* comm, espalier_request** request);
// Sets `*complete` to 1 if the collective is complete, otherwise to 0; makes progress. The request
// remains. Errors: the failure.
int espalier_test(espalier_request* request, int* complete);
// Waits until the collective is complete, and frees the request, also after a failure. Each request
// needs this call once. Null: returns 0. Errors: the failure.
int espalier_wait(espalier_request* request);

// Plans the call (MPI_Allreduce_init). The four functions below allocate no memory and make no
// system call except libfabric's; a wait for other ranks also yields the core or blocks. Errors:
// ESPALIER_BAD_ARGUMENT, with `*plan` null; the failure.
int espalier_plan_call(const espalier_call* call, espalier_comm* comm, espalier_plan** plan);
// Starts it with the memory that espalier_plan_call() got. Errors: ESPALIER_BAD_ARGUMENT: the last
// start is not complete; the failure.
int espalier_plan_start(espalier_plan* plan);
// As espalier_test().
int espalier_plan_test(espalier_plan* plan, int* complete);
// Waits until the collective is complete. Errors: the failure.
int espalier_plan_wait(espalier_plan* plan);
// Returns the algorithm that serves it: "two-tree"; or, for a schedule of a file, its path. Valid
// as long as the plan. Null: "", and espalier_error() says so.
const char* espalier_plan_algorithm(const espalier_plan* plan);
// Waits, and frees the plan. Null: does nothing.
void espalier_plan_free(espalier_plan* plan);

// What a rank exchanges with another one, or with itself, in elements.
typedef struct espalier_neighbor {
  uint32_t rank;
  uint64_t send;
  uint64_t receive;
} espalier_neighbor;
// Sets the size * size `counts` of an espalier_all_to_allv() between neighbors in any graph, from
// what each rank knows of its own (MPI_Neighbor_alltoallv): no message goes to other ranks. All
// ranks must call it. The parts in `send` and `receive` follow each other in order of ranks,
// whatever the order of `neighbors`. Errors: ESPALIER_BAD_ARGUMENT: a rank that does not exist or
// comes twice, or, on all ranks, two ranks that do not expect the same of each other; the failure.
int espalier_neighbor_counts(const espalier_neighbor* neighbors, size_t neighbors_count,
                             uint64_t* counts, espalier_comm* comm);

// Makes a communicator of the ranks with the same color, ordered by key, then by rank. All ranks
// must call it. A rank of a negative color gets none: `*part` is null. Errors: the failure.
int espalier_split(espalier_comm* comm, int64_t color, int64_t key, espalier_comm** part);
// After a failure: makes a communicator of the processes of the job that are still there, in the
// order of their ranks. Every survivor must call it, on the communicator of espalier_join().
// Errors: ESPALIER_BACK_END: the launcher cannot count survivors, or a deadline.
int espalier_rejoin(espalier_comm* comm, espalier_comm** rest);
// Ends `comm` early on all ranks. Every call that runs or starts afterwards returns
// ESPALIER_CANCELLED, and espalier_error() has "cancelled by rank R: REASON", the same on all
// ranks. Waits for no rank. Any thread may call it while another thread is in a call of `comm`, but
// not at the same time as espalier_leave(). `reason` may be null: a line of at most 119 bytes; the
// rest is cut off, and control characters become spaces. Without effect if `comm` has failed.
// Errors: ESPALIER_BAD_ARGUMENT: `comm` is null, or this process was forked from the rank.
int espalier_cancel(espalier_comm* comm, const char* reason);
// As espalier_cancel(), once *flag is not 0, which a signal handler may set. While a call waits,
// the library reads the flag at least every 50 ms. The flag must last until espalier_leave() or the
// next espalier_cancel_on(). Null: no flag is watched any more. Errors: as espalier_cancel();
// another thread uses `comm`.
int espalier_cancel_on(espalier_comm* comm, const volatile sig_atomic_t* flag, const char* reason);
// Takes processes into the job that have joined through its job file: all that wait, once there are
// `least`, and makes a communicator with them. Every rank must call it with the same `least`, on
// the last communicator of the whole job. Newcomers get the numbers of ranks that ended, then
// those after the last one; their espalier_join() makes the same communicator. `comm` goes on, and
// may be left. `time_ms`: how long to wait for newcomers, once all ranks have called. `least` 0:
// newcomers are welcome and not needed. Errors: ESPALIER_BACK_END, the same on all ranks, with
// nothing changed: too few newcomers; a rank that ended, or did not call it; a process that cannot
// connect; a launcher without this service. ESPALIER_CANCELLED: `comm` was cancelled.
int espalier_accept(espalier_comm* comm, uint32_t least, uint64_t time_ms, espalier_comm** grown);

// Why a communicator failed: the same on all survivors.
typedef struct espalier_cause {
  int status;         // a number of espalier_status; ESPALIER_OK: none, or a thread calls
  uint32_t detector;  // the rank that detected it
  uint32_t peer;      // the rank that ended, disagrees, ...
} espalier_cause;
// Returns the cause of the failure of `comm`. Null: status ESPALIER_BAD_ARGUMENT, and
// espalier_error() says so.
espalier_cause espalier_cause_of(const espalier_comm* comm);

// Returns `bytes` bytes of memory, zeros, at a multiple of 4096; null if there is none. Messages
// from it to ranks of the same host are copied once instead of twice (allocate.h).
void* espalier_allocate(size_t bytes);
// Gives memory of espalier_allocate() back. Call when no collective uses it. Null: nothing happens.
// If the memory is not of espalier_allocate(), or was given back before, nothing is freed:
// espalier_error() and a line on standard error name its address.
void espalier_deallocate(void* bytes);

#ifdef __cplusplus
}  // extern "C"
#endif
