#pragma once
// Where records are: a folder of this user alone on this host. Host only.

#include <string>
#include <vector>

#include "espalier/base/result.h"

namespace espalier::record {

// The name of a record's file: "espalier-JOB.RANK.PID". A link to a record has also pid_space, of
// Identity, because the record may not be visible to all who see the link.
struct FileName {
  std::string job = {};
  std::uint32_t rank = 0, pid = 0;
  std::uint64_t pid_space = 0;  // 0: not in the name
};
[[nodiscard]] std::string text_of(const FileName& name);
// Returns whether `text` is such a name.
[[nodiscard]] bool parse(const std::string& text, FileName& name);

// The folders in which records of this user may be, the preferred one first: `espalier` in
// /run/user/UID, espalier-UID in /dev/shm and in /tmp. If XDG_RUNTIME_DIR is another folder of this
// user, only `espalier` there: the user sets these jobs apart.
[[nodiscard]] std::vector<std::string> run_folders();
// Whether the folder is there, is of this user, and no other user can read it.
[[nodiscard]] bool is_own(const std::string& folder);
// Returns the first of these folders that is there or can be made. Empty: none.
[[nodiscard]] std::string make_run_folder();

// Returns the folder that ESPALIER_RECORD names, and makes it if its parent is there. Empty: the
// variable is not set.
// Error: this process cannot write to it.
[[nodiscard]] Result<std::string> given_folder();

// Returns the paths of the records in a folder.
// Error: the folder cannot be read.
[[nodiscard]] Result<std::vector<std::string>> list(const std::string& folder);

// How a process is, by its number.
enum class Life : std::uint8_t { kRuns, kStopped, kEnded };
// What identifies a process on this host, also after its number was given again.
struct Identity {
  std::uint32_t pid = 0;
  std::uint64_t pid_space = 0, start_ticks = 0;  // pid_space 0: /proc is of another namespace
  bool is_locked = false;                        // lock_record() succeeded
};
[[nodiscard]] Identity own_identity();
// Locks the record's file until this descriptor is closed, at the latest when the process ends.
[[nodiscard]] bool lock_record(int file);
// `path`: its record. The lock says whether a process of another namespace lives; without a lock:
// kRuns, because nothing is known.
[[nodiscard]] Life life_of(const Identity& identity, const std::string& path);

// Removes the records of this folder whose jobs have no process any more. A process that lives, in
// whatever namespace, holds the lock on its record, so its record stays. Also removes the blank
// files, at least 10 s old, of processes of this namespace that ended before they filled a record.
void remove_stale(const std::string& folder);

}  // namespace espalier::record
