#pragma once
// Programs as people read them: formulas of counts and indices, places, actions.

#include <cstdint>
#include <string>

#include "collectives/schedule/expand.h"

namespace espalier::tools {

// "2N+3", "ceil((N+1)/2)"
[[nodiscard]] std::string count_text(const Count& count);
// a + b*N: "2N+3"
[[nodiscard]] std::string line_text(std::int64_t a, std::int64_t b);
// A function of the instance i: "3", "2i+1", "(i+4) mod 8", "floor((3i-1)/2)"
[[nodiscard]] std::string index_text(const Program& program, std::uint32_t ref);
// "output[0, 2i+1]" is block 2i+1 of segment 0; "scratch#(i mod 8)[0, i]" lies in a slot.
[[nodiscard]] std::string operand_text(const Program& program, const Operand& operand);
// The same of one instance.
[[nodiscard]] std::string operand_text(const OperandAt& operand);
// "input", "send", ...
[[nodiscard]] const char* buffer_name(Buffer buffer);
[[nodiscard]] const char* kind_name(ActionKind kind);
[[nodiscard]] const char* port_model_name(PortModel model);
[[nodiscard]] const char* contention_name(ContentionGuarantee contention);
// The effect of an action, without its times: "send output[0, i] to 3", "into = a (+) b".
[[nodiscard]] std::string action_text(const Program& program, const Action& action);
[[nodiscard]] std::string instance_text(const Instance& instance);

}  // namespace espalier::tools
