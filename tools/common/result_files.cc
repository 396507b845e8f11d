#include "tools/common/result_files.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include "tools/common/failure.h"
#include "tools/common/output.h"

namespace espalier::tools {

namespace fs = std::filesystem;

void make_directory(const std::string& path) {
  std::error_code status;
  fs::create_directories(path, status);
  if (!status && access(path.c_str(), W_OK) != 0) {
    status = std::error_code(errno, std::generic_category());
  }
  if (status) bad_input("cannot write into '" + one_line(path) + "': " + status.message());
}

void write_results(const std::string& directory, const reference::ReferenceInput& what,
                   const std::function<RankMemory(std::uint32_t rank)>& memory) {
  for (std::uint32_t rank = 0; rank < what.ranks; ++rank) {
    const bool result = reference::has_result(what, rank);
    if (!result && what.collective != Collective::kBroadcast) continue;
    const fs::path path = fs::path(directory) / ("rank-" + std::to_string(rank) + ".bin");
    const std::uint64_t bytes = result ? reference::result_bytes(what, rank) : what.bytes;
    const RankMemory rank_memory = memory(rank);
    write_file(path.string(), {result ? rank_memory.output : rank_memory.input, bytes});
  }
}

void write_events(const std::string& directory, std::uint32_t node, const EventLog& log) {
  std::vector<std::uint8_t> bytes(std::size_t{log.retired()} * kEventBytes);
  for (std::uint32_t i = 0; i < log.retired(); ++i) {
    event_bytes(log.event(i), bytes.data() + std::size_t{i} * kEventBytes);
  }
  write_file((fs::path(directory) / ("node-" + std::to_string(node) + ".events")).string(), bytes);
}

}  // namespace espalier::tools
