#pragma once
// The daemon of one host of a job: starts the host's processes for a launcher. Host only.

namespace espalier::launch {

// Serves the launcher at stdin and stdout until the launcher is gone;
// then ends every process that remains. Returns the daemon's exit status.
[[nodiscard]] int serve_launcher();

}  // namespace espalier::launch
