#pragma once
// The rows of the generators: each stands at the end of its generator's file. algorithms.cc joins
// them; within a collective, `espalier list` and `auto` keep the order in which it does.

#include "espalier/collectives/algorithms/algorithms.h"

namespace espalier {

// A row: the fields that each row has, and by their names in `rest` those that only some have.
constexpr Algorithm row(const char* name, Collective collective, Generator* generator,
                        const char* summary, Algorithm rest = {}) {
  rest.name = name, rest.collective = collective;
  rest.generator = generator, rest.summary = summary;
  return rest;
}

extern const Algorithm kBinomialRows[1], kKnomialRows[3], kScatterAllgatherRows[1], kChainRows[3],
    kChainEndsRows[1], kBinaryRows[2], kTwoTreeRows[3], kTwoTreeMirrorBroadcastRows[1],
    kTwoTreeSimplexRows[3], kTwoTreeMirrorReduceRows[1], kFractionalRows[2],
    kFractionalSimplexRows[2], kCirculantTreeRows[2], kLambdaTreeRows[1], kAlphaTreeRows[2],
    kChainScanRows[2], kTwoTreeScanRows[4], kDoublyPipelinedScanRows[2], kTwoTreeSimplexScanRows[2],
    kDoublingScanRows[3], kKnomialScatterRows[4], kLinearRows[2], kChainScatterRows[2],
    kRingRows[2], kRecursiveHalvingRows[1], kPairwiseRows[1], kBruckRows[1], kDisseminationRows[1],
    kRecursiveDoublingRows[3], kCombineRows[1], kRabenseifnerRows[2], kRingAllreduceRows[1],
    kCirculantRows[4], kDualRootRows[1], kLeafBroadcastRows[2], kLeafScatterRows[2],
    kLeafAllgatherRows[1], kLeafAllToAllRows[2], kHostsTreesRows[6], kHostsReduceBarrierRows[2],
    kHostsRingsRows[3], kHostsScanRows[2], kHostsAllToAllRows[1], kHostsScatterRows[2],
    kBucketRows[6];

}  // namespace espalier
