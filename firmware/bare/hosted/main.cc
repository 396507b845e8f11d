// espalier-bare-hosted: the bare-metal node as a process of a Linux host, for tests and for trying
// a gateway without an emulator. It restarts by executing itself again.

#include <cstdio>
#include <cstring>
#include <string>

#include "firmware/bare/board.h"
#include "firmware/bare/hosted/hosted.h"
#include "firmware/bare/node.h"

namespace {

constexpr const char* kUsage =
    "usage: espalier-bare-hosted --device SPEC --flash FILE (--public-key FILE | --unsigned)\n"
    "                            [--board NAME]\n"
    "\n"
    "Boots from the newest valid slot of the flash, says so on standard output, and serves the\n"
    "gateway at the other end of the device, until it is killed.\n"
    "\n"
    "  --device SPEC      unix:LOCAL,REMOTE   udp:LOCALPORT,HOST:PORT   tty:PATH,BAUD   "
    "stream:PATH\n"
    "  --flash FILE       as `espalier image install --flash` makes it; 1 MiB\n"
    "  --public-key FILE  take only images that this key's owner signed; --unsigned: any\n"
    "  --board NAME       what images must say (default mps2-an385)\n";

int fail(const std::string& line) {
  std::fprintf(stderr, "espalier-bare-hosted: %s\n", line.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  espalier::board::HostedOptions options;
  const auto unknown = [](const char* word) {
    return fail(std::string("unexpected argument ") + word + "; see espalier-bare-hosted --help");
  };
  for (int at = 1; at < argc; ++at) {
    const std::string word = argv[at];
    if (word == "--help") {
      std::fputs(kUsage, stdout);
      return 0;
    }
    if (word == "--unsigned") {
      options.takes_unsigned = true;
      continue;
    }
    std::string* value = word == "--device"       ? &options.device
                         : word == "--flash"      ? &options.flash
                         : word == "--public-key" ? &options.public_key
                         : word == "--board"      ? &options.board
                                                  : nullptr;
    if (value == nullptr) return unknown(argv[at]);
    if (++at == argc) return fail("no value after " + word + "; see espalier-bare-hosted --help");
    *value = argv[at];
  }
  if (options.device.empty() || options.flash.empty()) {
    return fail("give --device SPEC and --flash FILE; see espalier-bare-hosted --help");
  }
  if (options.public_key.empty() != options.takes_unsigned) {
    return fail("whom to trust? give one of --public-key FILE and --unsigned");
  }
  options.arguments = argv;
  std::string error;
  if (!espalier::board::open_hosted(options, error)) return fail(error);
  espalier::bare::run_node();
  espalier::board::restart();
}
