#pragma once
// Reads whole files. Host only.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "espalier/base/result.h"

namespace espalier {

// The kinds of files that programs read, in the order of file_limits().
enum class FileKind : std::uint8_t {
  kSchedule,
  kImage,
  kTopology,
  kEmbedding,
  kModel,
  kBoard,
  kXml,
  kTrace,
  kInput,
  kCounts,
  kHostList,
  kKey,
  kSecret,
  kCache,
  kCount,
};

// The size up to which a file of a kind is read. A pipe without an end is refused there.
struct FileLimit {
  const char* name;  // with its article: "a schedule file"
  std::size_t max_bytes;
};

// Returns one row per kind.
[[nodiscard]] std::span<const FileLimit> file_limits();
[[nodiscard]] const FileLimit& limit_of(FileKind kind);

// Returns the bytes of the file at `path`, or of the pipe or terminal. Reads at most one byte more
// than the kind's limit; nothing of a file that is larger.
// Errors, "cannot read 'PATH': REASON": no such file, no permission, a folder, a socket, another
// device, a file of /proc, more bytes than the limit, a pipe that no process writes to within 10 s.
[[nodiscard]] Result<std::string> read_file(const std::string& path, FileKind kind);

}  // namespace espalier
