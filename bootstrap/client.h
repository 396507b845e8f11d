#pragma once
// A process of a job, connected to its rendezvous server. Host only.

#include <memory>
#include <string>

#include "bootstrap/candidates.h"
#include "bootstrap/observer.h"
#include "bootstrap/server.h"
#include "espalier/base/result.h"
#include "espalier/bootstrap/bootstrap.h"

namespace espalier::bootstrap {

// How a process found its job.
struct Place {
  Method method = Method::kAlone;
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::string address = {};  // of the rendezvous server; empty: `candidates`
  Candidates candidates = {};
  std::vector<network::Interface> interfaces = {};  // that the job uses here; for `candidates`
  JobSecret secret = {};
  bool is_secret = false;
  std::unique_ptr<Server> server = nullptr;  // in this process; null: elsewhere
  std::string file = {};      // of rank 0, with the secret: removed when all have joined
  std::string job_file = {};  // of rank 0: removed when its membership ends
  bool is_newcomer = false;   // rank and size are not known yet
  std::shared_ptr<Observer> observer = nullptr;  // null: none
};

// Connects to the server, which may start later. Errors: no server within the deadline, with what
// became of each address; one that speaks another protocol or has another secret; it refuses the
// rank or size.
[[nodiscard]] Result<std::unique_ptr<Bootstrap>> connect(Place place,
                                                         std::chrono::milliseconds deadline);
// The files that a rank opens in a job of several, beside its connection to the server.
struct RankFiles {
  std::uint64_t fixed = 0;
  std::uint64_t per_doubling = 0;  // of the number of ranks
};

// As join() of bootstrap.h. Error also: this process cannot open as many files. It says so before
// the others wait for it.
[[nodiscard]] Result<std::unique_ptr<Bootstrap>> join(const Options& options,
                                                      const RankFiles& files,
                                                      std::shared_ptr<Observer> observer = nullptr);
// Returns the address at which a process reached the server: of another host, unless the server is
// on this one. Empty: `members` is of another kind.
[[nodiscard]] std::string server_address(const Bootstrap& members);
// A job of this process alone.
[[nodiscard]] std::unique_ptr<Bootstrap> alone();

}  // namespace espalier::bootstrap
