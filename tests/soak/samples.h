#pragma once
// What processes of the soak test keep: memory, descriptors, threads, mappings and files.

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace espalier::soak {

struct ProcessSample {
  std::uint64_t resident_kib = 0;
  std::uint64_t descriptors = 0, threads = 0, mappings = 0;
};

struct FileSample {
  std::uint64_t temporary = 0;  // in TMPDIR
  std::uint64_t cache = 0;      // in the cache folder of schedules
};

// After a job, while no member is in one.
struct Sample {
  double time_s = 0;
  ProcessSample spared;        // the member that is never killed
  double spared_heap_kib = 0;  // its heap in use, as the C library counts it
  ProcessSample controller;    // the process that starts members and has the rendezvous servers
  double others_mib = 0;       // mean resident memory of the other members
  FileSample files;
};

[[nodiscard]] ProcessSample sample_process(pid_t process);
// Returns the number of files in the folder and below it.
[[nodiscard]] std::uint64_t count_files(const std::string& folder);

}  // namespace espalier::soak
