#pragma once
// Finds the records of jobs: of this user on this host, on other hosts through a remote shell, or
// in a folder. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "communicator/record/diagnosis.h"
#include "tools/launch/hosts.h"

namespace espalier::status {

// Reads the running ranks of this user on this host, and removes the records of jobs that have
// ended. Records that cannot be read are left out.
[[nodiscard]] std::vector<record::RankView> read_here();

// Reads the records in a folder, of jobs that have ended.
// Errors: the folder cannot be read or has no record; the first record that is malformed or of
// another version.
[[nodiscard]] Result<std::vector<record::RankView>> read_folder(const std::string& folder);

// A record on this host, as its file has it.
struct OwnRecord {
  std::string bytes;
  record::RankView rank;
};
// As read_here(), with the bytes.
[[nodiscard]] std::vector<OwnRecord> own_records();

struct Asking {
  std::string remote_shell;  // words for sh; the host's name and one command follow them
  std::uint32_t deadline_ms = 10'000;
};
// Ranks on other hosts, and one line per host that did not answer.
struct Answers {
  std::vector<record::RankView> ranks = {};
  std::vector<std::string> refusals = {};
};
// Runs `espalier status-records` on each host, all at once.
[[nodiscard]] Answers ask(const std::vector<launch::Host>& hosts, const Asking& asking);

// The other end of ask(): writes this host's records to stdout. Returns the exit status.
[[nodiscard]] int serve_records();

// The hosts on which the jobs have ranks without a record here, by the names that the ranks gave.
[[nodiscard]] std::vector<std::string> other_hosts(const std::vector<record::JobView>& jobs);

}  // namespace espalier::status
