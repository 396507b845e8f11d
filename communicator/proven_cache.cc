#include "communicator/proven_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include "espalier/base/digest.h"

namespace espalier::communicator {
namespace {

// A file that is open and locked while this object lives.
class LockedFile {
 public:
  explicit LockedFile(const std::string& path)
      : descriptor_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) {
    struct stat status {};
    if (descriptor_ < 0) return;
    const bool is_ours = fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode) &&
                         status.st_uid == geteuid() && (status.st_mode & 077) == 0;
    if (is_ours && flock(descriptor_, LOCK_EX) == 0) return;
    close(descriptor_);
    descriptor_ = -1;
  }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;
  ~LockedFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  [[nodiscard]] bool is_open() const { return descriptor_ >= 0; }

  [[nodiscard]] bool contains(std::uint64_t digest) const {
    struct stat status {};
    if (fstat(descriptor_, &status) != 0) return false;
    std::vector<std::uint64_t> all(static_cast<std::size_t>(status.st_size) / sizeof(digest));
    const auto bytes = static_cast<ssize_t>(all.size() * sizeof(digest));
    if (pread(descriptor_, all.data(), static_cast<std::size_t>(bytes), 0) != bytes) return false;
    return std::find(all.begin(), all.end(), digest) != all.end();
  }
  // A digest that is written in part is at the end, and never read: contains() reads whole ones.
  void add(std::uint64_t digest) const {
    struct stat status {};
    if (fstat(descriptor_, &status) != 0) return;
    const off_t end =
        status.st_size / static_cast<off_t>(sizeof(digest)) * static_cast<off_t>(sizeof(digest));
    (void)!pwrite(descriptor_, &digest, sizeof(digest), end);
  }

 private:
  int descriptor_;
};

// Identifies the binary whose code generates and proves. 0: unknown.
std::uint64_t binary_digest() {
  const int descriptor = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return 0;
  std::uint64_t digest = kDigestSeed;
  std::vector<std::uint8_t> bytes(1 << 20);
  ssize_t count = 0;
  while ((count = read(descriptor, bytes.data(), bytes.size())) > 0) {
    digest = digest_bytes(digest, bytes.data(), static_cast<std::size_t>(count));
  }
  close(descriptor);
  return count < 0 ? 0 : digest;
}

// What the file holds of a schedule with this digest and verdict.
std::uint64_t entry_of(std::uint64_t digest, Proof proof) {
  return digest_u64(digest, static_cast<std::uint64_t>(proof));
}

std::string cache_folder() {
  if (const char* given = std::getenv("XDG_CACHE_HOME"); given != nullptr && *given == '/') {
    return std::string(given) + "/espalier";
  }
  const char* home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? std::string(home) + "/.cache/espalier" : "";
}

}  // namespace

ProvenCache::ProvenCache() {
  const std::string folder = cache_folder();
  const std::uint64_t binary = binary_digest();
  if (folder.empty() || binary == 0) return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  struct stat status {};
  if (stat(folder.c_str(), &status) != 0 || status.st_uid != geteuid() ||
      (status.st_mode & 022) != 0) {
    return;
  }
  char name[40];
  std::snprintf(name, sizeof name, "/proven-%016llx", static_cast<unsigned long long>(binary));
  path_ = folder + name;
}

Proof ProvenCache::obtain(std::uint64_t digest, const std::function<Proof()>& prove) {
  if (path_.empty()) return prove();
  const LockedFile file(path_);
  if (!file.is_open()) return prove();
  for (const Proof known : {Proof::kValidInPlace, Proof::kValid}) {
    if (file.contains(entry_of(digest, known))) return known;
  }
  const Proof proof = prove();
  if (proof != Proof::kInvalid) file.add(entry_of(digest, proof));
  return proof;
}

}  // namespace espalier::communicator
