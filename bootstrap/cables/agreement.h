#pragma once
// How the processes of a job agree on who they are and on their cables: from what each of them
// knows, without sockets and clocks. Host only.
//
// The lowest rank that the others reach proposes. A process accepts proposals with growing numbers
// only. The newest proposal that a process accepted holds once all seats have accepted it. If a
// seat goes by an older proposal, that seat will not accept the newest, which cannot hold. Then the
// older proposal holds, if all its seats have accepted it. So two proposals of one number that have
// a process in common never both hold, wherever cables are cut.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bootstrap/cables/job_graph.h"
#include "bootstrap/cables/logs.h"
#include "bootstrap/cables/packet.h"

namespace espalier::cables {

// Returns the records of hosts with processes of a job, by name, one per host: of its last agent.
[[nodiscard]] std::vector<HostRecord> hosts_with_members(const std::vector<HostRecord>& records);

// Returns the processes that run, with the place of their host in `hosts`.
[[nodiscard]] std::map<LogId, std::size_t> running(const std::vector<HostRecord>& hosts);

// Returns the hosts of these processes and the cables between them. Processes that do not run are
// left out.
[[nodiscard]] JobGraph graph_between(const std::vector<HostRecord>& hosts,
                                     const std::vector<Seat>& seats);
// Returns, for each host, the first host that cables connect it to.
[[nodiscard]] std::vector<std::uint32_t> islands_of(const JobGraph& graph);
// Returns the ranks of each island.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> parts_of(const JobGraph& graph);
// Returns those seats that cables connect to `rank`, which is among them, over hosts of such seats.
[[nodiscard]] std::vector<Seat> connected_seats(const std::vector<HostRecord>& hosts,
                                                const std::vector<Seat>& seats, std::uint32_t rank);

// Returns the number of the next proposal: above all that are known.
[[nodiscard]] std::uint32_t next_number(const Logs& logs);
// Returns the proposal to accept: the newest one above `above` with this process, unless it has
// accepted a newer one. Null: none.
[[nodiscard]] const Proposal* to_accept(const Logs& logs, LogId own, std::uint32_t above,
                                        bool is_first);
// Returns the proposal above `above` that holds, as far as this process knows. Null: none.
[[nodiscard]] const Proposal* find_decided(const Logs& logs, LogId own, std::uint32_t above);
// Whether a proposal can hold no longer, because one of its seats has accepted another one since.
[[nodiscard]] bool is_overtaken(const Logs& logs, const Proposal& proposal);

// Returns "rank 3", "ranks 3, 4".
[[nodiscard]] std::string ranks_text(const std::vector<std::uint32_t>& ranks);
// Returns what is odd about the ports of these hosts, "; " between: cables seen from one side only,
// and interfaces at which no host answers. With addresses. Empty: nothing.
[[nodiscard]] std::string oddities(const std::vector<HostRecord>& hosts);

}  // namespace espalier::cables
