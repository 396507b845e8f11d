// The text format of models: proto/model.proto.

#include <google/protobuf/text_format.h>

#include <algorithm>

#include "base/read_file.h"
#include "collectives/predict/model.h"
#include "espalier/collectives/schedule/program.h"
#include "model.pb.h"
#include "topology/text_file.h"

namespace espalier::predict {
namespace {

using google::protobuf::TextFormat;
using model::ModelFile;

constexpr const char* kGuide = "; expected text as docs/choosing.md describes it";

bool is_collective(const std::string& name) {
  for (std::uint32_t each = Collective::kBroadcast; each <= _espalier_Collective_MAX; ++each) {
    if (name == collective_name(static_cast<Collective>(each))) return true;
  }
  return false;
}

// Reads one text, and keeps its first error.
class ModelReader {
 public:
  explicit ModelReader(std::string name) : name_(std::move(name)) {}

  Result<Model> read(const std::string& text) {
    topology::FirstError errors(kGuide);
    TextFormat::Parser parser;
    parser.RecordErrorsTo(&errors);
    parser.WriteLocationsTo(&tree_);
    if (!parser.ParseFromString(text, &file_)) {
      errors.AddError(0, 0, "the text cannot be parsed");  // ignored if there is an error already
      refuse(errors.error->source.line, errors.error->what);
      return fail(error_);
    }
    model_ = default_model();
    model_.found_by = file_.found_by();
    if (file_.link_size() == 0) refuse(0, "no link; expected at least one link { ... }");
    for (int i = 0; i < file_.link_size(); ++i) add_link(i);
    for (int i = 0; i < file_.combine_size(); ++i) add_combine(i);
    model_.gamma_fs = checked("gamma_fs_per_byte", file_.gamma_fs_per_byte(), kMaxFsPerByte);
    model_.overhead_ps = checked("overhead_ps", file_.overhead_ps(), kMaxTimePs);
    model_.overhead_fs =
        checked("overhead_fs_per_byte", file_.overhead_fs_per_byte(), kMaxFsPerByte);
    model_.copy_fs = checked("copy_fs_per_byte", file_.copy_fs_per_byte(), kMaxFsPerByte);
    model_.overhead = interval("overhead_ps", file_.overhead_low_ps(), file_.overhead_high_ps(),
                               model_.overhead_ps, line_of("overhead_ps"));
    model_.cores = file_.cores();
    model_.wake_ps = checked("wake_ps", file_.wake_ps(), kMaxTimePs);
    if (model_.wake_ps > 0 && model_.cores == 0) {
      refuse(line_of("wake_ps"), "wake_ps without cores; expected cores, which ranks share");
    }
    for (int i = 0; i < file_.tuning_size(); ++i) add_tuning(i);
    if (!error_.empty()) return fail(error_);
    return std::move(model_);
  }

 private:
  // line counts from 0; below 0: unknown.
  void refuse(int line, const std::string& what) {
    if (!error_.empty()) return;
    error_ = "model '" + name_ + "'" + (line < 0 ? "" : ", line " + std::to_string(line + 1)) +
             ": " + what;
  }
  [[nodiscard]] int line_of(const char* field, int index = -1) const {
    return tree_.GetLocation(ModelFile::descriptor()->FindFieldByName(field), index).line;
  }

  std::uint64_t checked(const char* field, std::uint64_t value, std::uint64_t most, int line) {
    if (value > most) {
      refuse(line, std::string(field) + " is " + std::to_string(value) + "; expected at most " +
                       std::to_string(most));
    }
    return value;
  }
  std::uint64_t checked(const char* field, std::uint64_t value, std::uint64_t most) {
    return checked(field, value, most, line_of(field));
  }
  Interval interval(const char* field, std::uint64_t low, std::uint64_t high, std::uint64_t value,
                    int line) {
    const bool measured = low != 0 || high != 0;
    if (measured && (low > value || high < value)) {
      refuse(line, std::string(field) + " is " + std::to_string(value) +
                       ", outside its interval from " + std::to_string(low) + " to " +
                       std::to_string(high) + "; expected a value inside it");
    }
    return {low, high};
  }

  void add_link(int index) {
    const ModelFile::Link& link = file_.link(index);
    const int line = line_of("link", index);
    const auto which = static_cast<std::size_t>(link.link_class());
    const std::string name =
        std::string("link of class ") + ModelFile::LinkClass_Name(link.link_class());
    if (model_.is_given[which]) refuse(line, name + ": a second one; expected one per class");
    model_.is_given[which] = true;
    LinkCost& cost = model_.links[which];
    cost.lines.clear();
    const auto* lines = ModelFile::Link::descriptor()->FindFieldByName("line");
    const auto* tree =
        tree_.GetTreeForNested(ModelFile::descriptor()->FindFieldByName("link"), index);
    for (int i = 0; i < link.line_size(); ++i) {
      add_line(link.line(i), name, tree == nullptr ? line : tree->GetLocation(lines, i).line, cost);
    }
    if (cost.lines.empty()) {
      refuse(line, name + ": no line; expected line { alpha_ps: A beta_fs_per_byte: B }");
      cost.lines.emplace_back();
    }
    cost.lambda_permille = link.has_lambda_permille() ? link.lambda_permille() : 1000;
    if (cost.lambda_permille < 1000 || cost.lambda_permille > kMaxLambdaPermille) {
      refuse(line, name + ": lambda_permille is " + std::to_string(cost.lambda_permille) +
                       "; expected 1000 to " + std::to_string(kMaxLambdaPermille));
    }
    cost.burst_bytes = checked("burst_bytes", link.burst_bytes(), kMaxBurstBytes, line);
  }

  void add_line(const ModelFile::Line& line, const std::string& name, int where, LinkCost& cost) {
    if (!line.has_alpha_ps() || !line.has_beta_fs_per_byte()) {
      refuse(where, name + ": a line without " +
                        (line.has_alpha_ps() ? "beta_fs_per_byte" : "alpha_ps") +
                        "; expected both");
    }
    if (cost.lines.empty() ? line.from_bytes() != 0
                           : line.from_bytes() <= cost.lines.back().from_bytes) {
      refuse(where, name + ": from_bytes is " + std::to_string(line.from_bytes()) + "; expected " +
                        (cost.lines.empty()
                             ? "0 for the first line"
                             : "more than " + std::to_string(cost.lines.back().from_bytes)));
    }
    CostLine read{
        .from_bytes = line.from_bytes(),
        .alpha_ps = checked("alpha_ps", line.alpha_ps(), kMaxTimePs, where),
        .beta_fs = checked("beta_fs_per_byte", line.beta_fs_per_byte(), kMaxFsPerByte, where)};
    if (read.alpha_ps == 0 && read.beta_fs == 0) {
      refuse(where, name + ": alpha and beta are 0; expected a time above 0");
    }
    read.alpha =
        interval("alpha_ps", line.alpha_low_ps(), line.alpha_high_ps(), read.alpha_ps, where);
    read.beta = interval("beta_fs_per_byte", line.beta_low_fs_per_byte(),
                         line.beta_high_fs_per_byte(), read.beta_fs, where);
    cost.lines.push_back(read);
  }

  void add_combine(int index) {
    const ModelFile::Combine& combine = file_.combine(index);
    const int line = line_of("combine", index);
    CombineCost cost;
    const std::string name = "combine of '" + combine.op() + "' and '" + combine.type() + "'";
    Operator op;
    if (!parse_op(combine.op().c_str(), op.op) || !parse_type(combine.type().c_str(), op.type) ||
        !can_combine(op)) {
      refuse(line, name +
                       ": no such operator and type; expected a pair such as op: \"sum\" type: "
                       "\"f32\"");
    }
    if (!combine.has_gamma_fs_per_byte()) {
      refuse(line, name + ": no gamma_fs_per_byte; expected the time per byte");
    }
    cost.op = op.op;
    cost.type = op.type;
    cost.gamma_fs = checked("gamma_fs_per_byte", combine.gamma_fs_per_byte(), kMaxFsPerByte, line);
    cost.gamma = interval("gamma_fs_per_byte", combine.gamma_low_fs_per_byte(),
                          combine.gamma_high_fs_per_byte(), cost.gamma_fs, line);
    for (const CombineCost& other : model_.combines) {
      if (other.op != cost.op || other.type != cost.type) continue;
      refuse(line, name + ": a second one; expected one per operator and type");
    }
    model_.combines.push_back(cost);
  }

  void add_tuning(int index) {
    const ModelFile::Tuning& read = file_.tuning(index);
    const int line = line_of("tuning", index);
    const std::string name = "tuning of '" + read.collective() + "' on '" + read.topology() + "'";
    if (!is_collective(read.collective())) {
      refuse(line, name + ": no such collective; expected one such as \"broadcast\"");
    }
    if (const auto topology = topology::parse(read.topology());
        !topology || (*topology)->spec() != read.topology()) {
      refuse(line, name + ": no such topology; expected one such as \"complete:8\"");
    }
    if (model_.tuning(read.topology(), read.collective()) != nullptr) {
      refuse(line, name + ": a second one; expected one per topology and collective");
    }
    if (read.size_size() == 0) refuse(line, name + ": no size; expected size { ... }");
    Tuning tuning{read.topology(), read.collective(), {}};
    const auto* sizes = ModelFile::Tuning::descriptor()->FindFieldByName("size");
    const auto* tree =
        tree_.GetTreeForNested(ModelFile::descriptor()->FindFieldByName("tuning"), index);
    for (int i = 0; i < read.size_size(); ++i) {
      add_tuned_size(read.size(i), name, tree == nullptr ? line : tree->GetLocation(sizes, i).line,
                     tuning);
    }
    model_.tunings.push_back(std::move(tuning));
  }

  void add_tuned_size(const ModelFile::Tuning::Size& read, const std::string& name, int line,
                      Tuning& tuning) {
    if (!tuning.sizes.empty() && read.bytes() <= tuning.sizes.back().bytes) {
      refuse(line, name + ": bytes is " + std::to_string(read.bytes()) + "; expected more than " +
                       std::to_string(tuning.sizes.back().bytes));
    }
    if (read.factor_size() == 0) {
      refuse(line, name + ": no factor; expected factor { candidate: \"chain\" permille: 1000 }");
    }
    Tuning::Size size{read.bytes(), {}};
    for (const ModelFile::Tuning::Factor& factor : read.factor()) {
      if (factor.permille() < 1 || factor.permille() > kMaxTuningPermille) {
        refuse(line, name + ": permille of '" + factor.candidate() + "' is " +
                         std::to_string(factor.permille()) + "; expected 1 to " +
                         std::to_string(kMaxTuningPermille));
      }
      const bool again = std::any_of(
          size.factors.begin(), size.factors.end(),
          [&](const Tuning::Factor& other) { return other.candidate == factor.candidate(); });
      if (again || factor.candidate().empty()) {
        refuse(line, name + ": '" + factor.candidate() + "' " +
                         (again ? "twice; expected one factor per candidate"
                                : "is no candidate; expected a name such as \"chain\""));
      }
      size.factors.push_back({factor.candidate(), factor.permille()});
    }
    tuning.sizes.push_back(std::move(size));
  }

  std::string name_;
  ModelFile file_;
  Model model_;
  TextFormat::ParseInfoTree tree_;
  std::string error_;
};

}  // namespace

Result<Model> parse_model(const std::string& text, const std::string& name) {
  return ModelReader(name).read(text);
}

Result<Model> read_model(const std::string& path) {
  const auto text = read_file(path, FileKind::kModel);
  if (!text) return fail(text.error());
  return parse_model(*text, path);
}

std::string model_text(const Model& model) {
  ModelFile file;
  file.set_found_by(model.found_by);
  for (std::size_t which = 0; which < model.links.size(); ++which) {
    if (!model.is_given[which]) continue;
    ModelFile::Link* link = file.add_link();
    link->set_link_class(static_cast<ModelFile::LinkClass>(which));
    link->set_lambda_permille(model.links[which].lambda_permille);
    if (model.links[which].burst_bytes != 0) {
      link->set_burst_bytes(model.links[which].burst_bytes);
    }
    for (const CostLine& cost : model.links[which].lines) {
      ModelFile::Line* line = link->add_line();
      line->set_from_bytes(cost.from_bytes);
      line->set_alpha_ps(cost.alpha_ps);
      line->set_beta_fs_per_byte(cost.beta_fs);
      if (cost.alpha.high != 0) {
        line->set_alpha_low_ps(cost.alpha.low);
        line->set_alpha_high_ps(cost.alpha.high);
      }
      if (cost.beta.high != 0) {
        line->set_beta_low_fs_per_byte(cost.beta.low);
        line->set_beta_high_fs_per_byte(cost.beta.high);
      }
    }
  }
  for (const CombineCost& cost : model.combines) {
    ModelFile::Combine* combine = file.add_combine();
    combine->set_op(op_name(cost.op));
    combine->set_type(type_name(cost.type));
    combine->set_gamma_fs_per_byte(cost.gamma_fs);
    if (cost.gamma.high == 0) continue;
    combine->set_gamma_low_fs_per_byte(cost.gamma.low);
    combine->set_gamma_high_fs_per_byte(cost.gamma.high);
  }
  file.set_gamma_fs_per_byte(model.gamma_fs);
  file.set_overhead_ps(model.overhead_ps);
  if (model.overhead.high != 0) {
    file.set_overhead_low_ps(model.overhead.low);
    file.set_overhead_high_ps(model.overhead.high);
  }
  if (model.overhead_fs != 0) file.set_overhead_fs_per_byte(model.overhead_fs);
  if (model.copy_fs != 0) file.set_copy_fs_per_byte(model.copy_fs);
  file.set_cores(model.cores);
  if (model.wake_ps != 0) file.set_wake_ps(model.wake_ps);
  for (const Tuning& tuning : model.tunings) {
    ModelFile::Tuning* written = file.add_tuning();
    written->set_topology(tuning.topology);
    written->set_collective(tuning.collective);
    for (const Tuning::Size& size : tuning.sizes) {
      ModelFile::Tuning::Size* at = written->add_size();
      at->set_bytes(size.bytes);
      for (const Tuning::Factor& factor : size.factors) {
        ModelFile::Tuning::Factor* one = at->add_factor();
        one->set_candidate(factor.candidate);
        one->set_permille(factor.permille);
      }
    }
  }
  std::string text;
  TextFormat::PrintToString(file, &text);
  return text;
}

}  // namespace espalier::predict
