#include "tools/formats/msccl_file.h"

#include <expat.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/parse_number.h"
#include "tools/common/failure.h"
#include "tools/common/output.h"
#include "tools/formats/msccl.h"

namespace espalier::tools::formats {
namespace {

using Type = MscclFile::Type;

constexpr std::int64_t kMaxNumber = std::int64_t{1} << 50;
constexpr std::int64_t kMaxGpus = 1024, kMaxChunks = 1 << 20;

// Reads the elements as expat gives them. Expat is C and does not pass exceptions on, so that the
// first error is kept and ends the parse.
class MscclParser {
 public:
  MscclParser(std::string path, XML_Parser parser) : path_(std::move(path)), parser_(parser) {}

  static void on_start(void* self, const char* name, const char** attributes) {
    static_cast<MscclParser*>(self)->start(name, attributes);
  }
  static void on_end(void* self, const char* /*name*/) {
    auto& reader = *static_cast<MscclParser*>(self);
    if (!reader.error_.empty()) return;
    --(reader.ignored_depth_ > 0 ? reader.ignored_depth_ : reader.depth_);
  }

  static void on_text(void* self, const char* text, int size) {
    const std::string_view words(text, static_cast<std::size_t>(size));
    if (words.find_first_not_of(" \t\r\n") == std::string_view::npos) return;
    static_cast<MscclParser*>(self)->refuse("text between elements; expected none");
  }

  MscclFile read(const std::string& text) {
    const auto size = static_cast<int>(text.size());
    if (XML_Parse(parser_, text.data(), size, 1) == XML_STATUS_ERROR && error_.empty()) {
      refuse(std::string("not XML: ") + XML_ErrorString(XML_GetErrorCode(parser_)));
    }
    if (!error_.empty()) bad_input(error_);
    check_file();
    if (!error_.empty()) bad_input(error_);
    file_.ignored = ignored_words();
    return std::move(file_);
  }

 private:
  using Attributes = std::map<std::string_view, std::string_view>;

  void refuse_at(std::uint64_t line, const std::string& what) {
    if (!error_.empty()) return;
    error_ = "'" + one_line(path_) + "', line " + std::to_string(line) + ": " + one_line(what);
  }
  // The line where the parser is.
  [[nodiscard]] std::uint64_t line() const {
#if XML_MAJOR_VERSION * 100 + XML_MINOR_VERSION >= 209
    return XML_GetCurrentLineNumber64(parser_);
#else
    return XML_GetCurrentLineNumber(parser_);
#endif
  }
  void refuse(const std::string& what) {
    refuse_at(line(), what);
    XML_StopParser(parser_, XML_FALSE);
  }

  static constexpr std::string_view kNames[] = {"algo", "gpu", "tb", "step"};

  void start(std::string_view name, const char** given) {
    if (is_ignored(name)) return;
    Attributes attributes;
    for (; *given != nullptr; given += 2) attributes[given[0]] = given[1];
    if (depth_ >= std::size(kNames) || name != kNames[depth_]) {
      refuse("element '" + std::string(name) + "'; expected " +
             (depth_ < std::size(kNames) ? "'" + std::string(kNames[depth_]) + "'" : "none here"));
      return;
    }
    element_ = name;
    attributes_ = &attributes;
    switch (depth_++) {
      case 0: start_algorithm(); break;
      case 1: start_gpu(); break;
      case 2: start_block(); break;
      default: start_step();
    }
    attributes_ = nullptr;
  }

  // MSCCL's readers pass over an element of an algo, gpu or tb that they do not know, with all that
  // it contains. (They do not survive an element in a step.)
  bool is_ignored(std::string_view name) {
    if (ignored_depth_ == 0) {
      if (depth_ == 0 || depth_ >= std::size(kNames) || name == kNames[depth_]) return false;
      ++ignored_[{depth_, std::string(name)}];
    }
    ++ignored_depth_;
    return true;
  }

  [[nodiscard]] std::string ignored_words() const {
    constexpr std::size_t kMaxKinds = 8;
    std::string words;
    std::size_t kinds = 0;
    for (const auto& [where, count] : ignored_) {
      if (++kinds > kMaxKinds) return words + ", ... (" + counted(ignored_.size(), "kind") + ")";
      words += (words.empty() ? "" : ", ") + std::to_string(count) + " '" + where.second +
               "' in '" + std::string(kNames[where.first - 1]) + "'";
    }
    return words;
  }

  std::string_view text(std::string_view name) {
    const auto found = attributes_->find(name);
    if (found != attributes_->end()) return found->second;
    refuse(std::string(element_) + " has no attribute '" + std::string(name) + "'");
    return "";
  }
  std::int64_t number(std::string_view name, std::int64_t least, std::int64_t most) {
    return whole(name, least, most);
  }
  template <typename Number>
  Number whole(std::string_view name, Number least, Number most) {
    const std::string_view digits = text(name);
    Number value = 0;
    if (parse_number(digits, value) && value >= least && value <= most) return value;
    constexpr std::size_t kMaxQuoted = 40;
    refuse(std::string(element_) + " has " + std::string(name) + "=\"" +
           std::string(digits.substr(0, kMaxQuoted)) + (digits.size() > kMaxQuoted ? "..." : "") +
           "\"; expected a number from " + std::to_string(least) + " to " + std::to_string(most));
    return least;
  }

  void start_algorithm() {
    file_.name = text("name");
    const std::string_view proto = text("proto");
    if (proto != "Simple" && proto != "LL" && proto != "LL128") {
      refuse("proto=\"" + std::string(proto) + "\"; expected Simple, LL or LL128");
    }
    std::string_view wanted = text("coll");
    if (wanted == "reducescatter") wanted = "reduce_scatter";
    for (const Collective collective : kAllCollectives) {
      if (!wanted.empty() && msccl_name(collective) == wanted) file_.collective = collective;
    }
    if (file_.collective == Collective::kNone) {
      refuse("coll=\"" + std::string(wanted) + "\" is not a collective that can be imported");
    }
    channels_ = number("nchannels", 1, kMscclChannels);
    file_.chunks = number("nchunksperloop", 1, kMaxChunks);
    gpus_ = number("ngpus", 1, kMaxGpus);
    const bool in_place = number("inplace", 0, 1) == 1;
    const auto out = attributes_->find("outofplace");  // microsoft's reader has no such attribute
    const bool out_of_place =
        out == attributes_->end() ? !in_place : number("outofplace", 0, 1) == 1;
    if (!in_place && !out_of_place)
      refuse("inplace and outofplace are both 0; expected one of them");
    file_.in_place = in_place && !out_of_place;
    check_sizes();
  }

  // Older files have none. The schedule serves all sizes.
  void check_sizes() {
    const auto size = [this](std::string_view name) {
      constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
      return attributes_->count(name) == 0 ? 0 : whole<std::uint64_t>(name, 0, kMost);
    };
    const std::uint64_t least = size("minBytes"), most = size("maxBytes");
    if (most != 0 && least > most) refuse("minBytes is above maxBytes");
  }

  void start_gpu() {
    const auto next = static_cast<std::int64_t>(file_.gpus.size());
    if (number("id", 0, gpus_ - 1) != next) {
      refuse("gpu has another id than " + std::to_string(next) + ", the next");
    }
    MscclFile::Gpu gpu{.input_chunks = number("i_chunks", 0, kMaxChunks),
                       .output_chunks = number("o_chunks", 0, kMaxChunks),
                       .scratch_chunks = number("s_chunks", 0, kMaxChunks)};
    file_.gpus.push_back(std::move(gpu));
    check_chunks();
  }

  // Buffers hold the whole message, one rank's part of it, or nothing.
  void check_chunks() {
    const MscclFile::Gpu& gpu = file_.gpus.back();
    const bool own_input =
        file_.collective == Collective::kAllgather || file_.collective == Collective::kGather;
    const bool own_output =
        file_.collective == Collective::kReduceScatter || file_.collective == Collective::kScatter;
    if (counts_per_rank(file_.collective) && file_.chunks % gpus_ != 0) {
      refuse("nchunksperloop=\"" + std::to_string(file_.chunks) + "\" is not a multiple of ngpus");
    }
    for (const auto& [name, chunks, own] :
         {std::tuple("i_chunks", gpu.input_chunks, own_input),
          std::tuple("o_chunks", gpu.output_chunks, own_output)}) {
      const std::int64_t whole = own ? file_.chunks / gpus_ : file_.chunks;
      if (chunks != 0 && chunks != whole) {
        refuse(std::string("gpu has ") + name + "=\"" + std::to_string(chunks) +
               "\"; expected 0 or " + std::to_string(whole));
      }
    }
  }

  void start_block() {
    MscclFile::Gpu& gpu = file_.gpus.back();
    const auto next = static_cast<std::int64_t>(gpu.blocks.size());
    if (number("id", 0, kMscclThreadBlocks - 1) != next) {
      refuse("tb has another id than " + std::to_string(next) + ", the next");
    }
    const auto rank = static_cast<std::int64_t>(file_.gpus.size()) - 1;
    MscclFile::Block block{.to = number("send", -1, gpus_ - 1),
                           .from = number("recv", -1, gpus_ - 1)};
    if (block.to == rank || block.from == rank) refuse("tb has its own gpu as peer");
    block.channel = number("chan", 0, channels_ - 1);
    for (const MscclFile::Block& other : gpu.blocks) {
      const bool same =
          other.channel == block.channel && ((block.to >= 0 && block.to == other.to) ||
                                             (block.from >= 0 && block.from == other.from));
      if (same)
        refuse("two thread blocks of the gpu have one connection: peer, direction, channel");
    }
    gpu.blocks.push_back(std::move(block));
  }

  void start_step() {
    static const std::map<std::string_view, Type> kTypes = {{"s", Type::kSend},
                                                            {"r", Type::kReceive},
                                                            {"rcs", Type::kReceiveCopySend},
                                                            {"rrs", Type::kReceiveReduceSend},
                                                            {"rrc", Type::kReceiveReduceCopy},
                                                            {"rrcs", Type::kReceiveReduceCopySend},
                                                            {"cpy", Type::kCopy},
                                                            {"re", Type::kReduce},
                                                            {"nop", Type::kNothing}};
    MscclFile::Block& block = file_.gpus.back().blocks.back();
    const auto next = static_cast<std::int64_t>(block.steps.size());
    if (number("s", 0, kMscclSteps - 1) != next) {
      refuse("step has another s than " + std::to_string(next) + ", the next");
    }
    const auto type = kTypes.find(text("type"));
    if (type == kTypes.end()) {
      refuse("type=\"" + std::string(text("type")) +
             "\"; expected s, r, rcs, rrs, rrc, rrcs, cpy, re or nop");
      return;
    }
    MscclFile::Step step{.type = type->second, .line = line()};
    const std::int64_t count = number("cnt", step.type == Type::kNothing ? 0 : 1, kMscclCount);
    step.from = place("srcbuf", "srcoff", count);
    step.to = place("dstbuf", "dstoff", count);
    step.block = number("depid", -1, kMscclThreadBlocks - 1);
    if (step.block >= kMscclWaitedBlocks) {
      refuse("step waits for thread block " + std::to_string(step.block) +
             " (depid); expected at most " + std::to_string(kMscclWaitedBlocks - 1) +
             ", because RCCL, msccl-executor and msccl keep this number in a signed byte");
    }
    step.step = number("deps", -1, kMscclSteps - 1);
    if ((step.block < 0) != (step.step < 0)) {
      refuse("depid and deps; expected both to be -1, or none of them");
    }
    step.has_dependents = number("hasdep", 0, 1) == 1;
    if (step.sends() && block.to < 0) refuse("a step that sends in a tb with send=\"-1\"");
    if (step.receives() && block.from < 0) refuse("a step that receives in a tb with recv=\"-1\"");
    if (step.reads()) check_place(step.from);
    if (step.writes()) check_place(step.to);
    block.steps.push_back(step);
  }

  Chunks place(std::string_view buffer_name, std::string_view offset_name, std::int64_t count) {
    const std::string_view letter = text(buffer_name);
    Chunks chunks{.buffer = letter == "i"   ? Buffer::kInput
                            : letter == "o" ? Buffer::kOutput
                            : letter == "s" ? Buffer::kScratch
                                            : Buffer::kNone};
    if (chunks.buffer == Buffer::kNone) {
      refuse(std::string(buffer_name) + "=\"" + std::string(letter) + "\"; expected i, o or s");
    }
    chunks.first = number(offset_name, -1, kMaxNumber);
    chunks.count = count;
    return chunks;
  }

  void check_place(const Chunks& chunks) {
    const MscclFile::Gpu& gpu = file_.gpus.back();
    const std::int64_t size = chunks.buffer == Buffer::kInput    ? gpu.input_chunks
                              : chunks.buffer == Buffer::kOutput ? gpu.output_chunks
                                                                 : gpu.scratch_chunks;
    if (chunks.first >= 0 && chunks.first + chunks.count <= size) return;
    refuse("chunks " + std::to_string(chunks.first) + " to " +
           std::to_string(chunks.first + chunks.count - 1) + " of a buffer of " +
           counted(static_cast<std::uint64_t>(size), "chunk"));
  }

  // What needs the whole file: the steps that are waited for, and the peers of a channel.
  void check_file() {
    const std::uint64_t end = line();
    if (static_cast<std::int64_t>(file_.gpus.size()) != gpus_) {
      refuse_at(end, "the file has " + counted(file_.gpus.size(), "gpu") + "; ngpus is " +
                         std::to_string(gpus_));
    }
    for (const MscclFile::Gpu& gpu : file_.gpus) {
      std::map<std::int64_t, std::pair<std::uint32_t, std::uint32_t>> peers;  // by channel
      for (const MscclFile::Block& block : gpu.blocks) {
        for (const MscclFile::Step& step : block.steps) check_wait(gpu, step);
        auto& [to, from] = peers[block.channel];
        to += block.to >= 0 ? 1 : 0;
        from += block.from >= 0 ? 1 : 0;
        if (std::max(to, from) > kMscclPeers) {
          refuse_at(end,
                    "a gpu has more than " + std::to_string(kMscclPeers) + " peers on a channel");
        }
      }
    }
  }

  void check_wait(const MscclFile::Gpu& gpu, const MscclFile::Step& step) {
    if (step.block < 0) return;
    const auto block = static_cast<std::size_t>(step.block);
    const auto number = static_cast<std::size_t>(step.step);
    if (block >= gpu.blocks.size() || number >= gpu.blocks[block].steps.size()) {
      refuse_at(step.line, "waits for tb " + std::to_string(block) + ", step " +
                               std::to_string(number) + ", which does not exist");
    } else if (!gpu.blocks[block].steps[number].has_dependents) {
      refuse_at(step.line, "waits for tb " + std::to_string(block) + ", step " +
                               std::to_string(number) + ", which has hasdep=\"0\"");
    }
  }

  std::string path_;
  XML_Parser parser_;
  std::string error_;
  std::size_t depth_ = 0;
  std::size_t ignored_depth_ = 0;  // elements around this one that are ignored
  std::map<std::pair<std::size_t, std::string>, std::uint64_t> ignored_;  // by depth and name
  std::string_view element_;
  const Attributes* attributes_ = nullptr;
  std::int64_t gpus_ = 0, channels_ = 1;
  MscclFile file_;
};

}  // namespace

bool MscclFile::Step::sends() const {
  return type == Type::kSend || type == Type::kReceiveCopySend ||
         type == Type::kReceiveReduceSend || type == Type::kReceiveReduceCopySend;
}
bool MscclFile::Step::receives() const {
  return type >= Type::kReceive && type <= Type::kReceiveReduceCopySend;
}
bool MscclFile::Step::reads() const {
  return type != Type::kReceive && type != Type::kReceiveCopySend && type != Type::kNothing;
}
bool MscclFile::Step::writes() const {
  return type != Type::kSend && type != Type::kReceiveReduceSend && type != Type::kNothing;
}

MscclFile read_msccl(const std::string& path, const std::string& text) {
  constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;
  if (text.size() > kMaxFileBytes) bad_input("'" + one_line(path) + "' has more than 1 GiB");
  const std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> parser(
      XML_ParserCreate(nullptr), &XML_ParserFree);
  if (parser == nullptr) bad_input("this needs more memory than there is");
  MscclParser reader(path, parser.get());
  XML_SetUserData(parser.get(), &reader);
  XML_SetElementHandler(parser.get(), &MscclParser::on_start, &MscclParser::on_end);
  XML_SetCharacterDataHandler(parser.get(), &MscclParser::on_text);
  return reader.read(text);
}

}  // namespace espalier::tools::formats
