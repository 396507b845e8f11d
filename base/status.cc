#include "espalier/base/status.h"

namespace espalier {

const char* status_name(Status status) {
  switch (status) {
    case Status::kOk: return "ok";
    case Status::kBusy: return "busy";
    case Status::kTryAgain: return "try again";
    case Status::kBadArgument: return "bad argument";
    case Status::kTruncated: return "truncated";
    case Status::kCorrupt: return "corrupt";
    case Status::kBadVersion: return "unknown format version";
    case Status::kUnknownFeature: return "unknown required feature";
    case Status::kWrongTopology: return "wrong topology";
    case Status::kWrongNode: return "wrong node";
    case Status::kTooLarge: return "too large";
    case Status::kMalformed: return "malformed";
    case Status::kBadOperator: return "bad operator";
    case Status::kUnsupported: return "unsupported";
    case Status::kMismatch: return "mismatch";
    case Status::kDeadLink: return "dead link";
    case Status::kStalled: return "stalled";
    case Status::kNotInSchedule: return "unforeseen block";
    case Status::kBackEnd: return "back end";
    case Status::kNoSuchPeer: return "no such peer";
    case Status::kNoImage: return "no image";
    case Status::kWrongBoard: return "wrong board";
    case Status::kRolledBack: return "rolled back";
    case Status::kUnsigned: return "unsigned";
    case Status::kBadSignature: return "bad signature";
    case Status::kUnfinished: return "unfinished";
    case Status::kUnconfirmed: return "unconfirmed";
    case Status::kNothingToBoot: return "nothing to boot";
    case Status::kOlderRelease: return "older release";
    case Status::kCancelled: return "cancelled";
  }
  return "unknown";
}

}  // namespace espalier
