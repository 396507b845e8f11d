#pragma once
// A process of the soak test: it takes part in one job after the other.

#include <chrono>

#include "tests/whole.h"

namespace espalier::soak {

// How long a member may stay silent before the others declare it dead. Long, because planning a
// collective stops its job, and may take seconds if other programs have the cores.
constexpr std::chrono::milliseconds kDeadline{is_sanitized() ? 30'000 : 10'000};

// Reads orders from stdin until its end, one a line:
//   job SEED RANK SIZE METHOD PLACE SECRET PROVIDER RANKS THREAD
//       joins the job and runs random collectives with the other members. METHOD: server (a
//       rendezvous server listens at PLACE), first (rank 0 listens there) or folder (PLACE).
//       SECRET: a file, or - for none. RANKS: so many successive ranks are on each of several
//       emulated hosts; 0: all ranks are on this host. THREAD: 1 for a progress thread.
//   end
//       leaves the job once all its members have this order.
// Prints, one a line:
//   joined
//   failed STATUS DETECTOR PEER MESSAGE    a collective failed: the cause
//   rejoined SIZE                          and the survivors go on
//   left COLLECTIVES BYTES                 the job is over; this member completed so many, and so
//                                          many bytes of its heap are in use
//   error MESSAGE                          anything else, a wrong result among them. The last line.
// Returns the exit status: 1 after an error.
int run_member();

}  // namespace espalier::soak
