#include "tools/report/show_json.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "collectives/schedule/expand.h"
#include "planner/make/blocks.h"
#include "tools/common/output.h"
#include "tools/report/bound.h"
#include "tools/report/show_text.h"

namespace espalier::tools {
namespace {

Json count_json(const Count& count) {
  return {{"a", count.a},
          {"b", count.b},
          {"c", count.c},
          {"d", count.d},
          {"e", std::max<std::uint32_t>(1, count.e)}};
}

Json term_json(const Program& program, const Term& term) {
  Json json = {{"coef", term.coef},
               {"mul", term.mul},
               {"add", term.add},
               {"div", std::max<std::uint32_t>(1, term.div)},
               {"mod", term.mod}};
  if (term.digits != 0) {
    json["base"] = term.base;
    json["digits"] = term.digits;
  }
  if (term.table != 0) {
    json["table"] = Json::array();
    const std::uint8_t* const entries = table_entries(program, term);
    for (std::uint32_t x = 0; x < term.mod; ++x) json["table"].push_back(table_entry(entries, x));
  }
  return json;
}

Json index_json(const Program& program, std::uint32_t ref) {
  const Index& index = program.indices[ref];
  Json json = {{"base", index.base}, {"coef", index.coef},
               {"off", index.off},   {"div", std::max<std::uint32_t>(1, index.div)},
               {"mod", index.mod},   {"terms", Json::array()}};
  for (std::uint32_t i = 0; i < index.terms; ++i) {
    json["terms"].push_back(term_json(program, program.terms[index.first_term + i]));
  }
  return json;
}

Json operand_json(const Program& program, const Operand& operand) {
  Json json = {{"buffer", buffer_name(operand.buffer)},
               {"segment", index_json(program, operand.segment_ref)},
               {"segments", operand_segment_count(operand)},
               {"block", index_json(program, operand.block_ref)}};
  if (operand.buffer == Buffer::kScratch) json["slot"] = index_json(program, operand.slot_ref);
  return json;
}

Json operand_json(const OperandAt& operand) {
  Json json = {{"buffer", buffer_name(operand.buffer)},
               {"segment", operand.segment},
               {"segments", operand.segment_count},
               {"block", operand.block}};
  if (operand.buffer == Buffer::kScratch) json["slot"] = operand.slot;
  return json;
}

Json action_json(const Program& program, std::uint32_t phase, const Action& action) {
  Json json = {{"phase", phase},
               {"kind", kind_name(action.kind)},
               {"first_step", count_json(program.counts[action.t0_ref])},
               {"instances", count_json(program.counts[action.instances_ref])},
               {"after", action.after},
               {"clamp", action.clamp}};
  if (action.pace_ref != 0) json["pace"] = index_json(program, action.pace_ref);
  if (action.kind == ActionKind::kSend || action.kind == ActionKind::kReceive) {
    json["link"] = index_json(program, action.link_ref);
  }
  for (const auto& [name, present, operand] :
       {std::tuple("into", action.has_into, &action.into), std::tuple("a", action.has_a, &action.a),
        std::tuple("b", action.has_b, &action.b)}) {
    if (present) json[name] = operand_json(program, *operand);
  }
  return json;
}

Json instance_json(const Instance& instance) {
  Json json = {{"step", instance.step},
               {"action", instance.action},
               {"i", instance.i},
               {"kind", kind_name(instance.kind)}};
  if (instance.peer >= 0) json["peer"] = instance.peer;
  for (const auto& [name, operand] : {std::pair("into", &instance.into),
                                      std::pair("a", &instance.a), std::pair("b", &instance.b)}) {
    if (operand->buffer != Buffer::kNone) json[name] = operand_json(*operand);
  }
  return json;
}

Json program_json(const planner::LoadedSchedule& loaded, std::uint32_t node, std::int64_t blocks) {
  const Program& program = loaded.programs[node];
  Json json = {{"node", node},
               {"bytes", descriptor_bytes(loaded, node)},
               {"scratch_blocks", program.scratch_blocks},
               {"peers", Json::array()},
               {"phases", Json::array()},
               {"actions", Json::array()}};
  for (std::uint32_t link = 0; link < links_count(program); ++link) {
    json["peers"].push_back(peer_of(program, link));
  }
  std::uint32_t action = 0;
  for (std::uint32_t phase_at = 0; phase_at < program.phases_count; ++phase_at) {
    const Phase& phase = program.phases[phase_at];
    json["phases"].push_back(
        {{"period", phase.period}, {"steps", count_json(program.counts[phase.steps_ref])}});
    for (std::uint32_t end = action + phase.actions; action < end; ++action) {
      json["actions"].push_back(action_json(program, phase_at, program.actions[action]));
    }
  }
  if (blocks > 0) {
    json["steps"] = Json::array();
    for (const Instance& instance : expand(program, blocks)) {
      json["steps"].push_back(instance_json(instance));
    }
  }
  return json;
}

}  // namespace

std::size_t descriptor_bytes(const planner::LoadedSchedule& loaded, std::uint32_t node) {
  const std::uint8_t* bytes = nullptr;
  std::size_t size = 0;
  return loaded.file.descriptor(node, bytes, size) == Status::kOk ? size : 0;
}

Json schedule_json(const planner::LoadedSchedule& loaded, std::int64_t node, std::int64_t blocks) {
  const Program& program = loaded.programs.front();
  Json json = {{"file", loaded.name},
               {"producer", program.producer},
               {"topology", loaded.topology->spec()},
               {"collective", collective_name(program.collective)},
               {"algorithm", program.algorithm},
               {"ranks", program.ranks},
               {"nodes", program_nodes(program)},
               {"window", program.window},
               {"port_model", port_model_name(program.port_model)},
               {"contention", contention_name(program.contention)},
               {"send_ticks", std::max(1u, program.send_ticks)},
               {"latency_ticks", std::max(1u, program.latency_ticks)},
               {"needs_commutative", program.needs_commutative},
               {"rotated_scratch", has_rotated_scratch(program)},
               {"segments", program.segments},
               {"cuts_messages", planner::cuts_messages(program)},
               {"residue", program.residue},
               {"residue_mod", program.residue_mod},
               {"block_rules", Json::array()},
               {"steps", count_json(program.counts[program.steps_ref])},
               {"claimed_bound", count_json(program.counts[program.bound_ref])},
               {"bounds", Json::array()},
               {"certificate", certificate_of(loaded)},
               {"schedule_digest", hex(program.schedule_digest)},
               {"topology_digest", hex(program.topology_digest)},
               {"bytes", loaded.bytes.size()}};
  for (const verify::LowerBound& bound :
       verify::greatest(bounds_of(loaded), planner::allowed_blocks(program, 1))) {
    json["bounds"].push_back({{"a", bound.a}, {"b", bound.b}, {"d", bound.d}});
  }
  for (std::uint32_t rule = 0; rule < program.blocks_count; ++rule) {
    json["block_rules"].push_back({{"from_bytes", program.blocks[rule].from_bytes},
                                   {"block_bytes", program.blocks[rule].block_bytes}});
  }
  if (has_root(program.collective)) json["root"] = program.root;
  if (blocks > 0) json["blocks"] = blocks;
  json["programs"] = Json::array();
  for (std::uint32_t each = 0; each < loaded.programs.size(); ++each) {
    if (node < 0 || node == each) json["programs"].push_back(program_json(loaded, each, blocks));
  }
  return json;
}

}  // namespace espalier::tools
