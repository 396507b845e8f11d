#pragma once
// Removes the files of "shm" endpoints of processes that ended. Needs no libfabric.
//
// libfabric keeps the queue of a shm endpoint in a file /dev/shm/PROCESS:DOMAIN:ENDPOINT, which
// stays if its process is killed. The number proves nothing: other pid namespaces may share
// /dev/shm, and other programs use libfabric. Therefore an endpoint has a second file, its claim,
// with ":claim" after the name. The claim is made and locked (flock) before libfabric makes the
// first file, and removed after that file. The kernel releases the lock when the process ends,
// whichever namespace it is in. So if a claim can be locked, its endpoint belongs to no process.
// Files without a claim are those of others.

#include <cstdint>
#include <string>

namespace espalier::ofi {

// The claim of an endpoint. A forked process that lives on keeps it, too.
class SharedMemoryClaim {
 public:
  SharedMemoryClaim() = default;  // claims nothing
  // Claims the file in /dev/shm with this name, which does not exist yet. Claims nothing if another
  // process claims it, or if the claim cannot be made.
  explicit SharedMemoryClaim(const std::string& name);
  ~SharedMemoryClaim();  // removes the claim, but not the file
  SharedMemoryClaim(SharedMemoryClaim&& other) noexcept;
  SharedMemoryClaim& operator=(SharedMemoryClaim&& other) noexcept;

  [[nodiscard]] bool is_held() const { return descriptor_ >= 0; }

 private:
  std::string path_;
  int descriptor_ = -1;
};

// Removes the file in /dev/shm with this name, and its claim, if the process that claims it has
// ended. Only files of this user.
void sweep_abandoned(const std::string& name);
// The same for all endpoints.
void sweep_abandoned();

// Removes the files with the number of this process that no process claims. Call before this
// process opens an endpoint: libfabric would believe that they belong to a live process, and
// refuse.
void sweep_own_number();

// Removes the files in /dev/shm that a killed process left of its "shm" endpoints. Call after the
// process has ended.
void sweep_shared_memory(std::int64_t process);

}  // namespace espalier::ofi
