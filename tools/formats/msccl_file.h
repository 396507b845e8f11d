#pragma once
// An MSCCL XML file, read and checked as MSCCL's readers check it. docs/formats.md. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/collectives/schedule/program.h"
#include "tools/formats/operations.h"

namespace espalier::tools::formats {

struct MscclFile {
  enum class Type : std::uint8_t {
    kSend,
    kReceive,
    kReceiveCopySend,
    kReceiveReduceSend,
    kReceiveReduceCopy,
    kReceiveReduceCopySend,
    kCopy,
    kReduce,
    kNothing
  };
  struct Step {
    Type type = Type::kNothing;
    Chunks from = {}, to = {};  // srcbuf, srcoff, cnt and dstbuf, dstoff, cnt
    std::int64_t block = -1, step = -1;
    bool has_dependents = false;
    std::uint64_t line = 0;

    [[nodiscard]] bool sends() const;
    [[nodiscard]] bool receives() const;
    [[nodiscard]] bool reads() const;   // `from`
    [[nodiscard]] bool writes() const;  // `to`
  };
  struct Block {
    std::int64_t to = -1, from = -1;
    std::int64_t channel = 0;
    std::vector<Step> steps = {};
  };
  struct Gpu {
    std::int64_t input_chunks = 0, output_chunks = 0, scratch_chunks = 0;
    std::vector<Block> blocks = {};
  };

  std::string name;
  Collective collective;
  std::int64_t chunks = 0;  // nchunksperloop: of the whole message
  bool in_place = false;    // only in place: input and output are one buffer
  std::vector<Gpu> gpus;
  std::string ignored;  // elements that MSCCL's readers ignore: "64 'copy' in 'gpu'"
};

// Reads the text of the file at `path`. Throws Failure (bad input), with the line: it is not XML,
// or MSCCL's readers would refuse it.
[[nodiscard]] MscclFile read_msccl(const std::string& path, const std::string& text);

}  // namespace espalier::tools::formats
