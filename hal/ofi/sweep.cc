#include "hal/ofi/sweep.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace espalier::ofi {
namespace {

constexpr char kFolder[] = "/dev/shm/";
constexpr std::string_view kClaim = ":claim";
// A sweep that holds the lock of a claim ends at once; its process may have to wait for a core.
constexpr int kLockAttempts = 200;
constexpr useconds_t kLockPauseUs = 500;

// Returns the names of the files in /dev/shm with this beginning and end.
std::vector<std::string> names_with(std::string_view begin, std::string_view end) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& file : std::filesystem::directory_iterator(kFolder, ignored)) {
    std::string name = file.path().filename().string();
    if (name.starts_with(begin) && name.ends_with(end)) names.push_back(std::move(name));
  }
  return names;
}

std::string mark_of(std::int64_t process) { return std::to_string(process) + ":"; }

std::string claim_of(const std::string& name) { return kFolder + name + std::string(kClaim); }

// Whether the path still leads to the open file, and that is a regular file of this user.
bool is_own_file(int file, const std::string& path) {
  struct stat opened {
  }, named{};
  return fstat(file, &opened) == 0 && S_ISREG(opened.st_mode) && opened.st_uid == geteuid() &&
         lstat(path.c_str(), &named) == 0 && named.st_ino == opened.st_ino &&
         named.st_dev == opened.st_dev;
}

}  // namespace

SharedMemoryClaim::SharedMemoryClaim(const std::string& name) : path_(claim_of(name)) {
  for (int attempt = 0; attempt < kLockAttempts; ++attempt) {
    const int file = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) return;
    const bool is_locked = flock(file, LOCK_EX | LOCK_NB) == 0;
    if (is_locked && is_own_file(file, path_)) {
      descriptor_ = file;
      return;
    }
    // A sweep has it, or has just removed it; or it belongs to a live process.
    close(file);
    if (!is_locked) usleep(kLockPauseUs);
  }
}

SharedMemoryClaim::~SharedMemoryClaim() {
  if (descriptor_ < 0) return;
  (void)unlink(path_.c_str());
  close(descriptor_);
}

SharedMemoryClaim::SharedMemoryClaim(SharedMemoryClaim&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

SharedMemoryClaim& SharedMemoryClaim::operator=(SharedMemoryClaim&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

void sweep_abandoned(const std::string& name) {
  const std::string claim = claim_of(name);
  const int file = open(claim.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return;
  // While this process has the lock no other one claims the name.
  if (flock(file, LOCK_EX | LOCK_NB) == 0 && is_own_file(file, claim)) {
    (void)unlink((kFolder + name).c_str());
    (void)unlink(claim.c_str());
  }
  close(file);
}

void sweep_abandoned() {
  for (const std::string& claim : names_with("", kClaim)) {
    sweep_abandoned(claim.substr(0, claim.size() - kClaim.size()));
  }
}

void sweep_own_number() {
  const std::string mark = mark_of(getpid());
  for (const std::string& name : names_with(mark, "")) {
    if (name.ends_with(kClaim)) continue;
    sweep_abandoned(name);
    if (access(claim_of(name).c_str(), F_OK) != 0) (void)unlink((kFolder + name).c_str());
  }
}

void sweep_shared_memory(std::int64_t process) {
  for (const std::string& name : names_with(mark_of(process), "")) {
    (void)unlink((kFolder + name).c_str());
  }
}

}  // namespace espalier::ofi
