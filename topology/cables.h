#pragma once
// The cables of a topology file: which interfaces of which hosts they join. Host only.

#include <google/protobuf/text_format.h>

#include <string>
#include <vector>

#include "topology.pb.h"
#include "topology/custom_content.h"

namespace espalier::topology {

// Reads the cables of a parsed file. Errors: not two ends; a host that is not a node's, or is two
// nodes'; both ends at one host; an interface of two cables; a value that is out of range.
[[nodiscard]] Result<std::vector<Cable>, ParseError> read_cables(
    const TopologyFile& file, const google::protobuf::TextFormat::ParseInfoTree& tree,
    const std::vector<CustomContent::NodeEntry>& nodes);

}  // namespace espalier::topology
