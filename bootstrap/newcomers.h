#pragma once
// Processes that join a job while it runs: its job file. Host only.
//
// A job file is one line, the job's ticket: where its server listens, and the job secret. Whoever
// can read it can join the job, so it has mode 0600.

#include <string>

#include "bootstrap/client.h"
#include "espalier/base/result.h"
#include "espalier/bootstrap/bootstrap.h"

namespace espalier::bootstrap {

// Returns the ticket by which others find the server as the processes of this place do. A job
// without a secret has zeros.
[[nodiscard]] std::string job_ticket(const Place& place);

// Writes the ticket into a file of mode 0600, which takes the place of an older one at once.
// Error: "cannot write 'PATH': ...".
[[nodiscard]] Result<void> write_ticket(const std::string& path, const std::string& ticket);

// Writes the job file of a job that begins, and returns its path from the root. Takes the place of
// the file of a job that has ended. Errors: as write_ticket(); there is another file.
[[nodiscard]] Result<std::string> write_job_file(const std::string& path,
                                                 const std::string& ticket);
// Removes the job file that has this ticket. Another job may have written its own meanwhile.
void remove_job_file(const std::string& path, const std::string& ticket);

// Returns the ticket in the job file. Errors: it cannot be read, is not a regular file of mode
// 0600 and of this user, or is too long.
[[nodiscard]] Result<std::string> read_ticket(const std::string& path);
// The error of a file whose ticket is not a job's.
[[nodiscard]] Error malformed_ticket(const std::string& path);

// Returns whether the ticket is one, and its job then has a secret or not.
[[nodiscard]] bool take_job_ticket(const std::string& ticket, Place& place);

}  // namespace espalier::bootstrap
