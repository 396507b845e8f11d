#pragma once
// Files that keep what was computed, so that not every rank of every job computes it again. They
// are in $XDG_CACHE_HOME/espalier, otherwise in ~/.cache/espalier. Their names have the digest of
// the binary that this code is in: what one binary computed says nothing of another. Host only.

#include <string>
#include <string_view>

namespace espalier::communicator {

// Returns the path of the file NAME-<digest of this binary>. Empty: nothing is kept, because the
// folder cannot be made, belongs to another user or may be written by others.
[[nodiscard]] std::string cache_path(const std::string& name);

// A file that is open and locked while this object lives. Other processes that open it wait for at
// most a second, and then do without it.
class CacheFile {
 public:
  // Makes the file if there is none, with mode 0600.
  explicit CacheFile(const std::string& path);
  ~CacheFile();
  CacheFile(const CacheFile&) = delete;
  CacheFile& operator=(const CacheFile&) = delete;

  // False: the path is empty, another process has the lock, or the file is not a regular file of
  // this user that others cannot read.
  [[nodiscard]] bool is_open() const { return descriptor_ >= 0; }
  // Returns the contents; empty if they cannot be read.
  [[nodiscard]] std::string read() const;
  // Writes at an offset. Nothing tells whether it succeeded: who reads must recognise half of it.
  void write(std::size_t offset, std::string_view bytes) const;
  // Replaces the contents, as write().
  void replace(std::string_view bytes) const;

 private:
  [[nodiscard]] bool lock(const std::string& path) const;

  int descriptor_;
};

}  // namespace espalier::communicator
