#include <google/protobuf/text_format.h>

#include <set>
#include <string>

#include "base/counted.h"
#include "base/read_file.h"
#include "embedding.pb.h"
#include "espalier/internal/base/assert.h"
#include "espalier/topology/topology.h"
#include "topology/text_file.h"

namespace espalier::topology {
namespace {

using google::protobuf::TextFormat;

// Reads one text, and keeps its first error.
class EmbeddingReader {
 public:
  // The error's column is 0.
  Result<Embedding, ParseError> read(std::string_view text) {
    FirstError errors("; expected text as docs/embeddings.md describes it");
    TextFormat::Parser parser;
    parser.RecordErrorsTo(&errors);
    parser.WriteLocationsTo(&tree_);
    if (!parser.ParseFromString(std::string(text), &file_)) {
      errors.AddError(0, 0, "the text cannot be parsed");  // ignored if there is an error already
      return espalier::fail(ParseError{{errors.error->source.line, 0}, errors.error->what});
    }
    Embedding embedding{.name = {},
                        .topology = file_.topology(),
                        .collective = file_.collective(),
                        .algorithm = file_.algorithm(),
                        .run_length = file_.run_length(),
                        .switching = file_.switching() == EmbeddingFile::STORE_AND_FORWARD
                                         ? Switching::kStoreAndForward
                                         : Switching::kCutThrough,
                        .node_of = {file_.node().begin(), file_.node().end()},
                        .groups = {},
                        .found_by = file_.found_by()};
    if (embedding.collective.empty())
      fail("collective", -1, "the collective is missing; expected collective: \"NAME\"");
    if (embedding.algorithm.empty())
      fail("algorithm", -1, "the algorithm is missing; expected algorithm: \"NAME\"");
    nodes(embedding);
    groups(embedding);
    if (error_) return espalier::fail(*error_);
    return embedding;
  }

 private:
  // index: of an entry in a list; -1: the field itself, or a missing list, which has no line.
  void fail(const char* field, int index, const std::string& what) {
    if (error_) return;
    error_ = ParseError{{}, what};
    const auto* descriptor = EmbeddingFile::descriptor()->FindFieldByName(field);
    if (descriptor->is_repeated() && index < 0) return;
    int line = tree_.GetLocation(descriptor, index).line;
    // The tokenizer records only the beginning of a list in brackets.
    if (line < 0 && index > 0) line = tree_.GetLocation(descriptor, 0).line;
    error_->source.line = std::max(0, line);
  }

  void nodes(Embedding& embedding) {
    const auto parsed = parse(embedding.topology);
    if (!parsed) {
      fail("topology", -1, "topology: " + parsed.error().message);
      return;
    }
    const Topology* topology = parsed->get();
    embedding.topology = topology->spec();
    const std::uint32_t ranks = topology->ranks();
    if (embedding.node_of.size() != ranks) {
      fail("node", embedding.node_of.empty() ? -1 : 0,
           counted(embedding.node_of.size(), "node") + "; expected each of the " +
               counted(ranks, "rank") + " of " + topology->title() + " once");
    }
    std::set<std::uint32_t> taken;
    for (int index = 0; index < file_.node_size(); ++index) {
      const std::uint32_t node = file_.node(index);
      if (node < ranks && taken.insert(node).second) continue;
      fail("node", index,
           "node " + std::to_string(node) +
               (node < ranks ? " is listed twice" : " is not a rank of " + topology->title()) +
               "; expected 0 to " + std::to_string(ranks - 1) + ", each once");
    }
  }

  void groups(Embedding& embedding) {
    if (file_.group_size() == 0) return;
    const auto count = static_cast<std::uint32_t>(file_.group_size());
    if (std::uint64_t{count} * embedding.run_length != embedding.node_of.size()) {
      fail("group", 0,
           counted(count, "group") + " of " + counted(embedding.run_length, "rank") +
               "; expected all " + counted(embedding.node_of.size(), "rank"));
    }
    std::set<std::pair<std::uint32_t, bool>> taken;
    for (std::uint32_t number = 0; number < count; ++number) {
      const EmbeddingFile::TreeGroup& group = file_.group(static_cast<int>(number));
      embedding.groups.push_back({group.parent(), group.right()});
      if (number == 0
              ? group.parent() == 0 && !group.right()
              : group.parent() < number && taken.insert({group.parent(), group.right()}).second) {
        continue;
      }
      fail("group", static_cast<int>(number),
           number == 0 ? "the first group is the source's; expected group {}"
                       : "group " + std::to_string(number) + " cannot be " +
                             (group.right() ? "right of" : "below") + " group " +
                             std::to_string(group.parent()) +
                             "; expected a group before it, with nothing there yet");
    }
  }

  EmbeddingFile file_;
  TextFormat::ParseInfoTree tree_;
  std::optional<ParseError> error_;
};

}  // namespace

Result<Embedding> parse_embedding(std::string_view text, const std::string& name) {
  auto embedding = EmbeddingReader().read(text);
  if (!embedding) {
    const ParseError& error = embedding.error();
    return fail(name + ":" + std::to_string(error.source.line + 1) + ": " + error.what);
  }
  embedding->name = name;
  return *std::move(embedding);
}

Result<Embedding> read_embedding(const std::string& path) {
  const Result<std::string> text = read_file(path, FileKind::kEmbedding);
  if (!text) {
    return fail(text.error().message +
                "; expected an embedding as docs/embeddings.md describes it");
  }
  return parse_embedding(*text, path);
}

Embedding reversed(Embedding embedding, const std::string& collective) {
  const auto topology = parse(embedding.topology);
  ESPALIER_ASSERT(topology && (*topology)->shape().rows > 0);
  const Shape mesh = (*topology)->shape();
  embedding.topology = "mesh:" + std::to_string(mesh.columns) + "x" + std::to_string(mesh.rows);
  embedding.collective = collective;
  for (std::uint32_t& node : embedding.node_of) {
    node = node % mesh.columns * mesh.rows + node / mesh.columns;
  }
  return embedding;
}

std::string write_embedding(const Embedding& embedding) {
  std::string text = "# proto-file: proto/embedding.proto\n# proto-message: EmbeddingFile\n";
  const auto quoted = [](const std::string& value) {
    std::string result;
    for (const char c : value) {
      const bool is_control = static_cast<unsigned char>(c) < ' ';  // not possible as it is
      if (is_control || c == '"' || c == '\\') result += '\\';
      if (is_control) {
        for (const int shift : {6, 3, 0}) result += static_cast<char>('0' + (c >> shift & 7));
      } else {
        result += c;
      }
    }
    return "\"" + result + "\"\n";
  };
  text += "topology: " + quoted(embedding.topology);
  text += "collective: " + quoted(embedding.collective);
  text += "algorithm: " + quoted(embedding.algorithm);
  if (embedding.run_length != 0)
    text += "run_length: " + std::to_string(embedding.run_length) + "\n";
  text += embedding.switching == Switching::kStoreAndForward ? "switching: STORE_AND_FORWARD\n"
                                                             : "switching: CUT_THROUGH\n";
  text += "found_by: " + quoted(embedding.found_by);
  constexpr std::size_t kALine = 16;
  for (std::size_t i = 0; i < embedding.node_of.size(); ++i) {
    text += i == 0 ? "node: [" : i % kALine == 0 ? ",\n       " : ", ";
    text += std::to_string(embedding.node_of[i]);
  }
  text += "]\n";
  for (std::size_t i = 0; i < embedding.groups.size(); ++i) {
    const Embedding::TreeGroup& group = embedding.groups[i];
    text += i == 0 ? "group {}" : i % (kALine / 4) == 0 ? "\n" : " ";
    if (i == 0) continue;
    text += "group { parent: " + std::to_string(group.parent) +
            (group.is_right ? " right: true }" : " }");
  }
  if (!embedding.groups.empty()) text += "\n";
  return text;
}

}  // namespace espalier::topology
