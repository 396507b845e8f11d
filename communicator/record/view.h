#pragma once
// A record as a reader sees it. Host only.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "communicator/record/folder.h"
#include "communicator/record/layout.h"
#include "espalier/base/result.h"

namespace espalier::record {

struct CallView {
  std::uint64_t number = 0;
  std::uint64_t word = 0;  // communicator/record/call_word.h
  std::uint64_t begun_ns = 0;
  std::string algorithm = {};
};

// Times are of CLOCK_MONOTONIC on the record's host, if their names end in _ns.
struct CommunicatorView {
  std::uint64_t id = 0;
  std::uint32_t number = 0, rank = 0, size = 0;
  bool has_left = false;
  std::uint64_t begun = 0, done = 0;  // begun >= done
  std::uint64_t changed_ns = 0;       // when these two changed last
  std::uint64_t inside_ns = 0;        // since when the program is in one call; 0: it is in none
  std::optional<Wait> wait = {};      // of the call in progress
  std::optional<Failure> failure = {};
  std::vector<CallView> calls = {};  // the last ones, the oldest first

  // Returns the call of this number; null: it is no longer known.
  [[nodiscard]] const CallView* find(std::uint64_t number) const;
};

struct PeerView {
  std::uint32_t rank = 0;  // in the job
  std::uint64_t sent = 0, received = 0;
};

struct HostRun {
  std::string host = {};
  std::uint32_t ranks = 0;  // successive ones
};

struct View {
  std::string path = {};
  Identity identity = {};
  Process process = {};
  std::uint64_t heartbeat_ns = 0, heartbeat_wall = 0;
  std::vector<PeerView> peers = {};
  PeerView other_peers = {};
  std::vector<HostRun> hosts = {};  // of all ranks, in order; empty: not known
  std::vector<CommunicatorView> communicators = {};
};

// Returns the bytes of the record in this file, as they were at one time: a part that changed again
// and again while it was read is empty.
// Errors: the file cannot be read, is no record, or is of another version.
[[nodiscard]] Result<std::string> read_bytes(const std::string& path);
// Returns what the bytes of a record say. `name`: for errors.
// Errors: as read_bytes(); a value that no process writes.
[[nodiscard]] Result<View> decode(const std::string& bytes, const std::string& name);
[[nodiscard]] Result<View> read_view(const std::string& path);

}  // namespace espalier::record
