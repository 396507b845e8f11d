#pragma once
// The parts of `espalier image`. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "firmware/image/image.h"
#include "firmware/image/key_file.h"
#include "tools/common/command_line.h"

namespace espalier::tools::image {

// "1.2.3" as an image's header has it, and back. Throws Failure.
[[nodiscard]] std::uint32_t parse_release(const std::string& text);
[[nodiscard]] std::string release_text(std::uint32_t release);

// The whole file. Throws Failure.
[[nodiscard]] std::vector<std::uint8_t> read_bytes(const std::string& path);

// Why check_image() refused an image, and what would be accepted: one line.
[[nodiscard]] std::string reason(Status status);

// Loads selection `index` < image.selections with its programs. Errors: those of
// Image::load_selection() and Image::load().
[[nodiscard]] Status load_selection(const Image& image, std::uint32_t index, NodeSelection& out);

// Why a program does not load from an image that check_image() took: one line.
[[nodiscard]] std::string load_reason(Status status);

// The board that an image's header names, which may be false. bytes.size() >= kImageHeaderBytes.
[[nodiscard]] std::string claimed_board(const std::vector<std::uint8_t>& bytes);

// The content of an image's header, which may be false; empty if there is no whole header.
[[nodiscard]] std::string claims(const std::vector<std::uint8_t>& bytes);

// Reads a public key. Throws Failure (bad input): unreadable, a private key, or no key.
[[nodiscard]] Key trusted_key(const std::string& path);

// The trusted signer as typed: exactly one of the two options must be given.
struct Trust {
  std::string public_key;  // file
  bool takes_unsigned = false;
  Key key{};
  Authority authority;
};
void add_trust(Command command, Trust& trust);
// Reads the key. `authority` then points into `trust`. Throws Failure.
void settle(Trust& trust);

// The subcommands of `espalier image`, a function each.
void add_build(Command image);
void add_show(Command image);
void add_sign(Command image);
void add_check(Command image);
void add_keygen(Command image);
void add_install(Command image);

}  // namespace espalier::tools::image

namespace espalier::tools {

// Adds `espalier image`.
void add_image(Command app);

}  // namespace espalier::tools
