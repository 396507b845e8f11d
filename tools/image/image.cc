// espalier image: what its subcommands share, and the small ones: show, sign, keygen.

#include "tools/image/image.h"

#include <fcntl.h>
#include <sodium/randombytes.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/counted.h"
#include "base/read_file.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/internal/base/little_endian.h"
#include "firmware/image/image_writer.h"
#include "tools/common/failure.h"
#include "tools/common/held_signals.h"
#include "tools/common/json.h"
#include "tools/common/output.h"
#include "tools/image/spares.h"

namespace espalier::tools {
namespace image {
namespace {

struct ShowArguments {
  std::string file;
  Format format = Format::kText;
};

struct SignArguments {
  std::string file, key, output;
};

struct KeygenArguments {
  std::string output, public_key;
};

// Opens an image regardless of its signer, board and node. Throws Failure.
Image open_any(const std::string& path, const std::vector<std::uint8_t>& bytes) {
  Expectation own;
  const std::string board = bytes.size() < kImageHeaderBytes ? "" : claimed_board(bytes);
  own.board = board.c_str();
  own.authority = &kTakesUnsigned;
  Image image;
  Status status = check_image(bytes.data(), bytes.size(), own, image);
  if (status == Status::kOk && image.size != bytes.size()) status = Status::kMalformed;
  if (status != Status::kOk) bad_input("'" + one_line(path) + "': " + reason(status));
  return image;
}

const char* signed_text(const Image& image) { return image.is_signed ? "signed" : "unsigned"; }

// A line for each loss: the bytes of its programs, and which are missing.
void print_spares(const Image& image) {
  for (std::uint32_t i = 0; i < image.spares; ++i) {
    if (image.spare(i).loss.kind == Loss::Kind::kNothing) {  // its programs are those above
      std::printf("  for a node that comes back: an agreement, %u bytes\n",
                  image.spare_program(i, 0).size);
      continue;
    }
    std::uint32_t bytes = 0, missing = 0;
    for (std::uint32_t k = 0; k <= image.programs; ++k) {
      const std::uint32_t size = image.spare_program(i, k).size;
      bytes += size;
      missing += size == 0 ? 1 : 0;
    }
    std::printf("  without %s: %s and an agreement, %u bytes\n",
                loss_text(image.spare(i).loss).c_str(),
                counted(image.programs - missing, "program").c_str(), bytes);
  }
}

void print_text(const std::string& path, const Image& image) {
  std::printf("%s: image for board '%s', node %u of topology %s\n", one_line(path).c_str(),
              one_line(image.board).c_str(), image.node, hex(image.topology_digest).c_str());
  std::printf("  release %s, security counter %u, %s, %u bytes\n",
              release_text(image.release).c_str(), image.counter, signed_text(image), image.size);
  for (std::uint32_t i = 0; i < image.links; ++i) {
    const LinkRow row = image.link(i);
    std::printf("  link %u: to node %u, device %u port %u\n", i, row.peer, row.device, row.port);
  }
  const auto program = std::make_unique<DecodedProgram>();
  for (std::uint32_t i = 0; i < image.programs; ++i) {
    const ProgramRow row = image.program(i);
    const std::string root = has_root(row.collective) ? ", root " + std::to_string(row.root) : "";
    std::printf("  program %u: %s by %s%s: %u bytes", i, collective_name(row.collective),
                one_line(row.algorithm).c_str(), root.c_str(), row.size);
    const Status status = image.load(i, *program);
    if (status == Status::kOk) {
      std::printf(", %s, window %u, schedule %s\n",
                  counted(program->actions_count, "action").c_str(), program->window,
                  hex(program->schedule_digest).c_str());
    } else {
      std::printf(", does not load: %s\n", load_reason(status).c_str());
    }
  }
  for (std::uint32_t i = 0; i < image.selections; ++i) {
    NodeSelection selection;
    if (const Status status = load_selection(image, i, selection); status != Status::kOk) {
      std::printf("  selection %u: does not load: %s\n", i, load_reason(status).c_str());
      continue;
    }
    const SelectionTable& table = selection.table;
    std::printf("  selection %u: %s, %s\n", i, collective_name(Collective(table.collective)),
                hex(selection.digest).c_str());
    for (std::uint32_t k = 0; k < table.rows_count; ++k) {
      const SelectionRow& row = table.rows[k];
      const std::uint32_t number = selection.first_program + row.program;
      std::printf("    from %s%s: program %u, %s\n", counted(row.from_bytes, "byte").c_str(),
                  row.needs_commutative ? ", operators that commute" : "", number,
                  one_line(image.program(number).algorithm).c_str());
    }
  }
  print_spares(image);
}

void print_as_json(const std::string& path, const Image& image) {
  Json json = {{"file", path},
               {"board", one_line(image.board)},
               {"topology_digest", hex(image.topology_digest)},
               {"node", image.node},
               {"release", release_text(image.release)},
               {"counter", image.counter},
               {"signed", image.is_signed},
               {"bytes", image.size},
               {"links", Json::array()},
               {"programs", Json::array()}};
  for (std::uint32_t i = 0; i < image.links; ++i) {
    const LinkRow row = image.link(i);
    json["links"].push_back({{"peer", row.peer}, {"device", row.device}, {"port", row.port}});
  }
  const auto program = std::make_unique<DecodedProgram>();
  for (std::uint32_t i = 0; i < image.programs; ++i) {
    const ProgramRow row = image.program(i);
    json["programs"].push_back({{"collective", collective_name(row.collective)},
                                {"algorithm", one_line(row.algorithm)},
                                {"bytes", row.size},
                                {"status", status_name(image.load(i, *program))},
                                {"schedule_digest", hex(program->schedule_digest)}});
    if (has_root(row.collective)) json["programs"].back()["root"] = row.root;
  }
  json["selections"] = Json::array();
  for (std::uint32_t i = 0; i < image.selections; ++i) {
    NodeSelection selection;
    const Status status = load_selection(image, i, selection);
    Json one = {{"status", status_name(status)}, {"digest", hex(selection.digest)}};
    one["rows"] = Json::array();
    for (std::uint32_t k = 0; status == Status::kOk && k < selection.table.rows_count; ++k) {
      const SelectionRow& row = selection.table.rows[k];
      one["rows"].push_back({{"from_bytes", row.from_bytes},
                             {"needs_commutative", row.needs_commutative},
                             {"program", selection.first_program + row.program}});
    }
    json["selections"].push_back(std::move(one));
  }
  json["spares"] = Json::array();
  for (std::uint32_t i = 0; i < image.spares; ++i) {
    const SpareRow row = image.spare(i);
    json["spares"].push_back(
        {{"loss", loss_text(row.loss)}, {"topology_digest", hex(row.topology_digest)}});
  }
  print_json(json);
}

void run_show(const ShowArguments& arguments) {
  const std::vector<std::uint8_t> bytes = read_bytes(arguments.file);
  const Image image = open_any(arguments.file, bytes);
  if (arguments.format == Format::kJson) {
    print_as_json(arguments.file, image);
  } else {
    print_text(arguments.file, image);
  }
}

void run_sign(const SignArguments& arguments) {
  check_writable(arguments.output.empty() ? arguments.file : arguments.output);
  std::vector<std::uint8_t> bytes = read_bytes(arguments.file);
  (void)open_any(arguments.file, bytes);
  const Key seed = or_bad_input(read_private_key(arguments.key));
  sign_image(bytes, [&seed](std::span<const std::uint8_t> part) {
    return sign(seed, part.data(), part.size());
  });
  const std::string& output = arguments.output.empty() ? arguments.file : arguments.output;
  write_file(output, bytes);
  std::printf("%s: signed\n", one_line(output).c_str());
}

// Never overwrites: a lost key is an image that can no longer be made.
void write_key(const std::string& path, const std::string& text, unsigned mode) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  const auto size = static_cast<ssize_t>(text.size());
  const bool written = file >= 0 && write(file, text.data(), text.size()) == size;
  const int error = errno;
  if (written && (file < 0 || close(file) == 0)) return;
  if (file >= 0) unlink(path.c_str());
  bad_input("cannot write the key '" + one_line(path) + "': " + std::strerror(error));
}

void run_keygen(const KeygenArguments& arguments) {
  Key seed;
  randombytes_buf(seed.data(), seed.size());
  const std::string& other = arguments.public_key;
  const std::string path = other.empty() ? arguments.output + ".pub" : other;
  const HeldSignals held;  // both files, or none
  write_key(arguments.output, private_pem(seed), 0600);
  try {
    write_key(path, public_pem(public_key_of(seed)), 0644);
  } catch (const Failure&) {
    unlink(arguments.output.c_str());
    throw;
  }
  std::printf("%s: a private key; keep it\n%s: its public key, for the nodes\n",
              one_line(arguments.output).c_str(), one_line(path).c_str());
}

}  // namespace

Status load_selection(const Image& image, std::uint32_t index, NodeSelection& out) {
  std::vector<DecodedProgram> programs(image.programs);
  for (std::uint32_t i = 0; i < image.programs; ++i) {
    if (const Status status = image.load(i, programs[i]); status != Status::kOk) return status;
  }
  return image.load_selection(index, programs.data(), out);
}

std::uint32_t parse_release(const std::string& text) {
  unsigned major = 0, minor = 0, patch = 0;
  int end = -1;
  const bool digits = text.find_first_not_of("0123456789.") == std::string::npos;
  if (digits && text.size() <= 13 &&
      std::sscanf(text.c_str(), "%u.%u.%u%n", &major, &minor, &patch, &end) == 3 &&
      static_cast<std::size_t>(end) == text.size() && major <= 255 && minor <= 255 &&
      patch <= 65535) {
    return major << 24 | minor << 16 | patch;
  }
  bad_input("--release '" + one_line(text) +
            "': expected three numbers like 1.2.3, at most 255.255.65535");
}

std::string release_text(std::uint32_t release) {
  return std::to_string(release >> 24) + "." + std::to_string(release >> 16 & 255) + "." +
         std::to_string(release & 65535);
}

std::vector<std::uint8_t> read_bytes(const std::string& path) {
  const std::string text = read_given(path, FileKind::kImage);
  return {text.begin(), text.end()};
}

std::string reason(Status status) {
  switch (status) {
    case Status::kTruncated: return "truncated: the bytes end before the image does";
    case Status::kNoImage: return "no image: 'espalier image build' makes images";
    case Status::kBadVersion: return "of a format or signature that this espalier does not know";
    case Status::kMalformed: return "malformed: its layout is not that of an image";
    case Status::kCorrupt: return "corrupt: its SHA-256 does not match";
    case Status::kUnsigned: return "unsigned: 'espalier image sign' signs it";
    case Status::kBadSignature: return "bad signature: another key signed it";
    case Status::kWrongBoard: return "wrong board: it was built for another one";
    case Status::kWrongTopology: return "wrong topology: it was built for another one";
    case Status::kWrongNode: return "wrong node: it was built for another one";
    case Status::kRolledBack: return "rolled back: its security counter is below the expected one";
    case Status::kOlderRelease:
      return "older release: its release is below that of the image that boots";
    case Status::kTooLarge: return "too large: more links or programs than a node has room for";
    default: return status_name(status);
  }
}

std::string load_reason(Status status) {
  switch (status) {
    case Status::kTruncated: return "its descriptor ends early or is not a descriptor";
    case Status::kBadVersion:
      return "its descriptor is of a format that this espalier does not know";
    case Status::kUnknownFeature: return "it needs a feature that this espalier does not know";
    case Status::kTooLarge: return "it is larger than a node has room for";
    case Status::kMalformed:
      return "its descriptor breaks the format's rules, or is not the one that the index names";
    case Status::kWrongTopology: return "it was compiled for another topology than the image's";
    case Status::kWrongNode: return "it is another node's";
    case Status::kNoSuchPeer: return "it has a peer that the link table does not list";
    default: return status_name(status);
  }
}

std::string claimed_board(const std::vector<std::uint8_t>& bytes) {
  const auto* board = reinterpret_cast<const char*>(bytes.data()) + kImageBoardAt;
  return std::string(board, strnlen(board, kBoardNameBytes - 1));
}

std::string claims(const std::vector<std::uint8_t>& bytes) {
  if (bytes.size() < kImageHeaderBytes) return "";
  return "it says: board '" + one_line(claimed_board(bytes)) + "', node " +
         std::to_string(load_u32(bytes.data() + kImageNodeAt)) + " of topology " +
         hex(load_u64(bytes.data() + kImageTopologyAt)) + ", release " +
         release_text(load_u32(bytes.data() + kImageReleaseAt)) + ", counter " +
         std::to_string(load_u32(bytes.data() + kImageCounterAt));
}

void add_trust(Command command, Trust& trust) {
  Option key = command.text("--public-key", trust.public_key,
                            "Take only images that this key's owner has signed");
  command.flag("--unsigned", trust.takes_unsigned, "Accept any image, signed or not").excludes(key);
}

Key trusted_key(const std::string& path) {
  if (read_given(path, FileKind::kKey).find("PRIVATE KEY-----") != std::string::npos) {
    bad_input("'" + one_line(path) +
              "' is a private key; expected its public key, which 'espalier image keygen' writes "
              "beside it");
  }
  return or_bad_input(read_public_key(path));
}

void settle(Trust& trust) {
  if (trust.takes_unsigned) return;
  if (trust.public_key.empty())
    bad_input("no key to check signatures with; expected --public-key FILE or --unsigned");
  trust.key = trusted_key(trust.public_key);
  trust.authority = ed25519_authority(trust.key.data());
}

void add_show(Command image) {
  Command command = image.add_command("show", "Prints the contents of an image");
  auto& arguments = command.bind<ShowArguments>(run_show);
  command.text("image", arguments.file, "The image").required();
  add_format(command, arguments.format);
  command.set_footer("Example:\n  espalier image show node-3.img");
}

void add_sign(Command image) {
  Command command = image.add_command("sign", "Signs an image with Ed25519");
  auto& arguments = command.bind<SignArguments>(run_sign);
  command.text("image", arguments.file, "The image").required();
  command.text("--key", arguments.key, "The private key: PEM or 32 bytes, mode 0600").required();
  command.text("-o,--output", arguments.output,
               "The signed image; default: replace the unsigned one");
  command.set_footer("Example:\n  espalier image sign node-3.img --key release.key");
}

void add_keygen(Command image) {
  Command command = image.add_command("keygen", "Makes an Ed25519 key");
  auto& arguments = command.bind<KeygenArguments>(run_keygen);
  command.text("-o,--output", arguments.output, "The private key, a new file, mode 0600")
      .required();
  command.text("--public", arguments.public_key, "The public key; default: OUTPUT.pub");
  command.set_footer("Example:\n  espalier image keygen -o release.key");
}

}  // namespace image

void add_image(Command app) {
  Command command = app.add_command(
      "image", "Makes, shows, signs and checks images: the links and programs that a node boots");
  image::add_build(command);
  image::add_show(command);
  image::add_sign(command);
  image::add_check(command);
  image::add_keygen(command);
  image::add_install(command);
  command.set_footer(
      "docs/images.md describes images, slots and keys.\nExamples:\n"
      "  espalier image keygen -o release.key\n"
      "  espalier image build b.esp a.esp --board boards/linux-x86_64 --release 1.0.0 \\\n"
      "      --key release.key -o node-%r.img\n"
      "  espalier image check node-3.img --public-key release.key.pub --node 3");
}

}  // namespace espalier::tools
