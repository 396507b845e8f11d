#include "tools/report/show_text.h"

namespace espalier::tools {
namespace {

// A sum under construction: "2i-1". Nothing added reads "0".
class Sum {
 public:
  void add(std::int64_t factor, const std::string& of) {
    if (factor == 0) return;
    const std::int64_t size = factor < 0 ? -factor : factor;
    text_ += factor < 0 ? "-" : (text_.empty() ? "" : "+");
    if (of.empty())
      text_ += std::to_string(size);
    else
      text_ += (size == 1 ? "" : std::to_string(size)) + of;
    ++summands_;
  }
  [[nodiscard]] std::string text() const { return text_.empty() ? "0" : text_; }
  // The text as an operand, in parentheses if necessary.
  [[nodiscard]] std::string grouped() const { return summands_ > 1 ? "(" + text_ + ")" : text(); }

 private:
  std::string text_;
  int summands_ = 0;
};

std::string divided(const Sum& sum, std::uint32_t div, std::uint32_t mod) {
  std::string text = sum.text();
  if (div > 1) text = "floor(" + sum.grouped() + "/" + std::to_string(div) + ")";
  if (mod != 0) text = (div > 1 ? text : sum.grouped()) + " mod " + std::to_string(mod);
  return text;
}

std::string term_text(const Term& term) {
  Sum inner;
  inner.add(term.mul, "i");
  inner.add(term.add, "");
  const std::string text = divided(inner, term.div, term.mod);
  if (term.table != 0) {
    const std::uint32_t first = term.table - 1;
    return "table[" + (first == 0 ? text : std::to_string(first) + " + " + text) + "]";
  }
  if (term.digits == 0) return "(" + text + ")";
  return "reverse_" + std::to_string(term.base) + "^" + std::to_string(term.digits) + "(" + text +
         ")";
}

std::string operand_text(Buffer buffer, const std::string& slot, const std::string& segment,
                         const std::string& block) {
  std::string text = buffer_name(buffer);
  if (buffer == Buffer::kScratch) {
    const bool plain = slot.find_first_of(" +-") == std::string::npos;
    text += plain ? "#" + slot : "#(" + slot + ")";
  }
  return text + "[" + segment + ", " + block + "]";
}

std::string sentence(ActionKind kind, const std::string& peer, const std::string& into,
                     const std::string& a, const std::string& b) {
  switch (kind) {
    case ActionKind::kSend: return a + " to " + peer;
    case ActionKind::kReceive: return into + " from " + peer;
    case ActionKind::kCombine: return into + " = " + a + " (+) " + b;
    case ActionKind::kCopy: return into + " = " + a;
    default: return "nothing";
  }
}

}  // namespace

const char* buffer_name(Buffer buffer) {
  switch (buffer) {
    case Buffer::kInput: return "input";
    case Buffer::kOutput: return "output";
    case Buffer::kScratch: return "scratch";
    default: return "nowhere";
  }
}

std::string count_text(const Count& count) {
  Sum rounded;
  rounded.add(1, "N");
  rounded.add(count.d, "");
  const bool whole = count.e <= 1;
  Sum sum;
  const std::int64_t c = count.c;
  sum.add(count.b + (whole ? c : 0), "N");
  if (!whole) sum.add(c, "ceil(" + rounded.grouped() + "/" + std::to_string(count.e) + ")");
  sum.add(count.a + (whole ? c * count.d : 0), "");
  return sum.text();
}

std::string line_text(std::int64_t a, std::int64_t b) {
  Sum sum;
  sum.add(b, "N");
  sum.add(a, "");
  return sum.text();
}

std::string index_text(const Program& program, std::uint32_t ref) {
  if (ref >= program.indices_count) return "?";
  const Index& index = program.indices[ref];
  Sum inner;
  inner.add(index.coef, "i");
  for (std::uint32_t i = 0; i < index.terms; ++i) {
    const Term& term = program.terms[index.first_term + i];
    inner.add(term.coef, term_text(term));
  }
  inner.add(index.off, "");
  if (index.div <= 1 && index.mod == 0) {
    Sum plain;
    plain.add(index.coef, "i");
    for (std::uint32_t i = 0; i < index.terms; ++i) {
      const Term& term = program.terms[index.first_term + i];
      plain.add(term.coef, term_text(term));
    }
    plain.add(std::int64_t{index.off} + index.base, "");
    return plain.text();
  }
  const std::string text = divided(inner, index.div, index.mod);
  return index.base == 0 ? text : std::to_string(index.base) + " + " + text;
}

std::string operand_text(const Program& program, const Operand& operand) {
  return operand_text(operand.buffer, index_text(program, operand.slot_ref),
                      index_text(program, operand.segment_ref),
                      index_text(program, operand.block_ref));
}

std::string operand_text(const OperandAt& operand) {
  return operand_text(operand.buffer, std::to_string(operand.slot), std::to_string(operand.segment),
                      std::to_string(operand.block));
}

const char* kind_name(ActionKind kind) {
  switch (kind) {
    case ActionKind::kSend: return "send";
    case ActionKind::kReceive: return "receive";
    case ActionKind::kCombine: return "combine";
    case ActionKind::kCopy: return "copy";
    default: return "none";
  }
}

const char* port_model_name(PortModel model) {
  switch (model) {
    case PortModel::kOnePortDuplex: return "one-port duplex";
    case PortModel::kSimplex: return "simplex";
    case PortModel::kSingleSend: return "single send";
    case PortModel::kMultiport: return "multiport";
    default: return "none";
  }
}

const char* contention_name(ContentionGuarantee contention) {
  switch (contention) {
    case ContentionGuarantee::kSlot: return "slot";
    case ContentionGuarantee::kAsync: return "async";
    default: return "none";
  }
}

std::string action_text(const Program& program, const Action& action) {
  std::string peer;
  if (action.kind == ActionKind::kSend || action.kind == ActionKind::kReceive) {
    const Index& link = program.indices[action.link_ref];
    // A constant link is one peer; otherwise the reader gets the position in the list of peers.
    const bool constant = link.coef == 0 && link.terms == 0;
    const std::int64_t link_index = index_value(program, action.link_ref, 0);
    if (constant && link_index >= 0 && link_index < links_count(program))
      peer = std::to_string(peer_of(program, static_cast<std::uint32_t>(link_index)));
    else
      peer = "peers[" + index_text(program, action.link_ref) + "]";
  }
  return sentence(action.kind, peer, operand_text(program, action.into),
                  operand_text(program, action.a), operand_text(program, action.b));
}

std::string instance_text(const Instance& instance) {
  return sentence(instance.kind, std::to_string(instance.peer), operand_text(instance.into),
                  operand_text(instance.a), operand_text(instance.b));
}

}  // namespace espalier::tools
