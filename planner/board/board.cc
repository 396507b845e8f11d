#include "planner/board/board.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>

#include "base/counted.h"
#include "base/one_line.h"
#include "base/read_file.h"
#include "base/try.h"
#include "firmware/boot/file_flash.h"
#include "firmware/image/image.h"
#include "planner/board/board_limits.h"

namespace espalier::planner {
namespace {

using board::BoardFile;
using google::protobuf::TextFormat;

// Keeps the first error.
class Reader final : public google::protobuf::io::ErrorCollector {
 public:
  explicit Reader(std::string path) : path_(std::move(path)) {}
  [[nodiscard]] Result<BoardFile> read(const std::string& text);
  void AddError(int line, int /*column*/, const std::string& message) override {
    refuse(line, message);
  }

 private:
  void refuse(int line, const std::string& what) {
    if (error_) return;
    error_ = Error{one_line(path_) + (line < 0 ? "" : ", line " + std::to_string(line + 1)) + ": " +
                   one_line(what) + "; docs/boards.md describes these files"};
  }
  // Complains about a field of the file, entry `index` of a repeated one.
  void complain(const char* field, const std::string& what, int index = -1) {
    refuse(tree_.GetLocation(BoardFile::descriptor()->FindFieldByName(field), index).line, what);
  }
  void check_name(const std::string& name);
  void check_links(const BoardFile& file);
  void check_limits(board::BoardFile::Limits& limits);
  void check_rooms(const board::BoardFile::Limits& limits);
  void check_flash(const board::BoardFile::Flash& flash);
  void check_fabric(const board::BoardFile::Fabric& fabric);

  std::string path_;
  std::optional<Error> error_;
  TextFormat::ParseInfoTree tree_;
};

void Reader::check_name(const std::string& name) {
  const bool letters = std::all_of(name.begin(), name.end(), [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '.' || letter == '_' || letter == '-';
  });
  if (name == "template") {
    complain("name", "name 'template': expected the board's own name, which its folder has");
  }
  if (letters && !name.empty() && name.size() < kBoardNameBytes) return;
  complain("name", "name '" + name + "': expected 1 to " + std::to_string(kBoardNameBytes - 1) +
                       " letters, digits, '.', '_' and '-'");
}

void Reader::check_links(const BoardFile& file) {
  std::set<std::uint32_t> peers;
  std::set<std::pair<std::uint32_t, std::uint32_t>> ports;
  for (int i = 0; i < file.link_size(); ++i) {
    const BoardFile::Link& link = file.link(i);
    const std::string name = "link " + std::to_string(i) + ": ";
    if (link.device() > UINT16_MAX || link.port() > UINT16_MAX) {
      complain("link", name + "device and port are at most 65535", i);
    }
    if (!ports.emplace(link.device(), link.port()).second) {
      complain("link",
               name + "device " + std::to_string(link.device()) + " port " +
                   std::to_string(link.port()) + " is another link's",
               i);
    }
    if (link.has_peer() != file.link(0).has_peer()) {
      complain("link", name + "all links name their peers, or none does", i);
    }
    if (link.has_peer() && !peers.insert(link.peer()).second) {
      complain("link", name + "node " + std::to_string(link.peer()) + " has another link", i);
    }
  }
}

// Fills in the defaults.
void Reader::check_limits(BoardFile::Limits& limits) {
  if (!limits.has_rotated_scratch()) limits.set_rotated_scratch(true);
  for (const Limit& limit : limits_of_boards()) {
    const auto* field = BoardFile::Limits::descriptor()->FindFieldByName(limit.name);
    const auto* fields = limits.GetReflection();
    if (!fields->HasField(limits, field)) {
      fields->SetUInt32(&limits, field, limit.normal);
      continue;
    }
    const std::uint32_t value = fields->GetUInt32(limits, field);
    const std::uint32_t least = std::min(limit.normal, 1u);  // 0 if the default is none
    if (value >= least && value <= limit.most) continue;
    complain("limits", "limits: " + std::string(limit.name) + " is " + std::to_string(value) +
                           "; expected " + std::to_string(least) + " to " +
                           std::to_string(limit.most));
  }
}

// Rooms of a bare-metal node, which the firmware is built with (boards/limits.py).
void Reader::check_rooms(const BoardFile::Limits& limits) {
  const struct {
    const char* name;
    bool is_given;
    std::uint32_t value, least, most;
  } rooms[] = {
      {"max_mtu", limits.has_max_mtu(), limits.max_mtu(), 96, 65535},
      {"room_bytes", limits.has_room_bytes(), limits.room_bytes(), 64, 1u << 30},
      {"room_events", limits.has_room_events(), limits.room_events(), 1, 1u << 24},
  };
  for (const auto& room : rooms) {
    if (!room.is_given || (room.value >= room.least && room.value <= room.most)) continue;
    complain("limits", "limits: " + std::string(room.name) + " is " + std::to_string(room.value) +
                           "; expected " + std::to_string(room.least) + " to " +
                           std::to_string(room.most));
  }
}

// Each field of a fabric belongs to one kind.
void Reader::check_fabric(const BoardFile::Fabric& fabric) {
  const bool is_serial = fabric.kind() == BoardFile::Fabric::SERIAL;
  if (fabric.kind() == BoardFile::Fabric::NONE) {
    complain("fabric", "no fabric kind: expected OFI, SERIAL or MEMORY");
  }
  if (!fabric.provider().empty() && fabric.kind() != BoardFile::Fabric::OFI) {
    complain("fabric", "fabric: a provider is libfabric's; expected none, or kind: OFI");
  }
  if (!fabric.carrier().empty() && !is_serial) {
    complain("fabric", "fabric: a carrier is of serial links; expected none, or kind: SERIAL");
  }
  if (fabric.baud() != 0 && fabric.carrier() != "uart") {
    complain("fabric", "fabric: baud is of a UART; expected none, or carrier: \"uart\"");
  }
}

void Reader::check_flash(const BoardFile::Flash& flash) {
  if (!is_flash_shape({flash.bytes(), flash.block_bytes(), flash.unit_bytes()})) {
    complain("flash",
             "flash: expected unit_bytes of 1 to 64, block_bytes a multiple of them, and bytes for "
             "at least 6 whole blocks");
  }
}

Result<BoardFile> Reader::read(const std::string& text) {
  BoardFile file;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(this);
  parser.WriteLocationsTo(&tree_);
  if (!parser.ParseFromString(text, &file)) refuse(-1, "no board's description");
  if (error_) return fail(*error_);
  check_name(file.name());
  check_links(file);
  check_rooms(file.limits());
  check_limits(*file.mutable_limits());
  if (!file.limits().has_spares()) {
    file.mutable_limits()->set_spares(file.fabric().kind() != BoardFile::Fabric::SERIAL);
  }
  if (static_cast<std::uint32_t>(file.link_size()) > file.limits().links()) {
    complain("limits",
             "limits: links is " + std::to_string(file.limits().links()) + ", below the " +
                 counted(static_cast<std::uint64_t>(file.link_size()), "link") + " of the board");
  }
  if (file.has_flash()) check_flash(file.flash());
  const BoardFile::Timing& timing = file.timing();
  if (!(timing.alpha() >= 0 && timing.alpha() <= 1e6) ||
      !(timing.beta() >= 0 && timing.beta() <= 1)) {
    complain("timing", "timing: expected alpha from 0 to 1e6 s, and beta from 0 to 1 s per byte");
  }
  check_fabric(file.fabric());
  if (file.signature() == BoardFile::UNSAID) {
    complain("signature",
             "no signature: expected ED25519, or UNSIGNED if its nodes take any image");
  }
  if (error_) return fail(*error_);
  return file;
}

}  // namespace

Result<BoardFile> read_board(const std::string& path) {
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(path, ignored);
  const std::string file =
      folder ? (std::filesystem::path(path) / "board.textproto").string() : path;
  ESPALIER_TRY_TO(const auto text, read_file(file, FileKind::kBoard));
  return Reader(file).read(text);
}

}  // namespace espalier::planner
