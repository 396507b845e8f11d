// espalier-bare-hosted: the bare-metal node as a process of a Linux host, for tests and to try a
// gateway without an emulator. It restarts by executing itself.

#include <cstdio>
#include <string>

#include "base/command_line.h"
#include "firmware/bare/board.h"
#include "firmware/bare/hosted/hosted.h"
#include "firmware/bare/node.h"

namespace {

constexpr const char* kUsage =
    "usage: espalier-bare-hosted --device SPEC --flash FILE (--public-key FILE | --unsigned)\n"
    "                            [--otp FILE] [--link-key FILE] [--board NAME]\n"
    "\n"
    "Boots from the newest valid slot of the flash, prints the boot report, and serves the\n"
    "gateway at the other end of the device until it is killed.\n"
    "\n"
    "  --device SPEC      unix:LOCAL,REMOTE   udp:LOCALPORT,HOST:PORT   tty:PATH,BAUD   "
    "stream:PATH\n"
    "  --flash FILE       1 MiB, as `espalier image install --flash` writes it\n"
    "  --public-key FILE  accept only images signed with this key's private key\n"
    "  --unsigned         accept any image, signed or not\n"
    "  --otp FILE         one-time bits, all 0 at first, that store the security counter; without "
    "it\n"
    "                     the counter is in the flash\n"
    "  --link-key FILE    the key of the links, its 16 bytes, mode 0600; the gateway has the same\n"
    "  --board NAME       refuse images for another board (default mps2-an385)\n";

int fail(const std::string& line) {
  std::fprintf(stderr, "espalier-bare-hosted: %s\n", line.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr espalier::OptionSpec kSpecs[] = {
      {"device"},   {"flash"}, {"public-key"},      {"otp"},
      {"link-key"}, {"board"}, {"unsigned", false}, {"help", false}};
  espalier::board::HostedOptions options;
  const auto given =
      espalier::split_options("espalier-bare-hosted", espalier::words_of(argc, argv), kSpecs);
  if (!given) return fail(given.error().message);
  for (const espalier::GivenOption& option : *given) {
    if (option.name == "device") options.device = option.value;
    if (option.name == "flash") options.flash = option.value;
    if (option.name == "public-key") options.public_key = option.value;
    if (option.name == "otp") options.otp = option.value;
    if (option.name == "link-key") options.link_key = option.value;
    if (option.name == "board") options.board = option.value;
    if (option.name == "unsigned") options.takes_unsigned = true;
    if (option.name != "help") continue;
    std::fputs(kUsage, stdout);
    return 0;
  }
  if (options.device.empty() || options.flash.empty()) {
    return fail(std::string(options.device.empty() ? "no --device" : "no --flash") +
                "; expected --device SPEC and --flash FILE; see espalier-bare-hosted --help");
  }
  if (options.public_key.empty() != options.takes_unsigned) {
    return fail("expected exactly one of --public-key FILE and --unsigned");
  }
  options.arguments = argv;
  const auto opened = espalier::board::open_hosted(options);
  if (!opened) return fail(opened.error().message);
  if (!espalier::bare::run_node()) return 2;
  espalier::board::restart();
}
