"""The rules that a trace must keep: of the Trace Event Format, and of its schedule."""


def check(trace):
    """Complaints: each event that Perfetto or chrome://tracing would refuse, misplace or draw wrongly."""
    bad = []
    names, tracks, slices, starts, ends = {}, {}, {}, {}, {}
    last = 0
    for event in trace["traceEvents"]:
        kind = event["ph"]
        if kind not in "MXsf" or not isinstance(event["pid"], int):
            bad.append(f"unknown event {event}")
            continue
        if kind == "M":
            if event["name"] == "process_name":
                names[event["pid"]] = event["args"]["name"]
            if event["name"] == "thread_name":
                tracks[event["pid"], event["tid"]] = event["args"]["name"]
            continue
        if event["ts"] < last:
            bad.append(f"time goes back from {last} to {event['ts']}")
        last = event["ts"]
        place = event["pid"], event["tid"]
        if kind == "X":
            if event["dur"] < 0:
                bad.append(f"a slice of negative duration {event}")
            slices.setdefault(place, []).append(event)
        else:
            if event["id"] in (starts if kind == "s" else ends):
                bad.append(f"two arrows of id {event['id']}")
            (starts if kind == "s" else ends)[event["id"]] = event
    ns = 0.0015  # times are rounded to ns, written in us
    for place, row in slices.items():
        if place not in tracks or place[0] not in names:
            bad.append(f"track {place} has no name")
        for before, after in zip(row, row[1:]):
            if before["ts"] + before["dur"] > after["ts"] + ns:
                bad.append(f"slices of track {place} overlap: {before} {after}")
    for key in starts.keys() ^ ends.keys():
        bad.append(f"arrow {key} has no {'end' if key in starts else 'start'}")

    def inside(event):
        return any(its["ts"] - ns <= event["ts"] <= its["ts"] + its["dur"] + ns
                   for its in slices.get((event["pid"], event["tid"]), []))

    for key in starts.keys() & ends.keys():
        if ends[key]["ts"] < starts[key]["ts"]:
            bad.append(f"arrow {key} goes back in time")
        if ends[key].get("bp") != "e":
            bad.append(f"arrow {key} would end at the slice after its own")
        for event in (starts[key], ends[key]):
            if not inside(event):
                bad.append(f"arrow {key} hangs in the air at {event}")
    return bad


def compare(trace, shown):
    """Complaints: where the trace differs from the schedule (schedules.Shown of its N)."""
    bad = []
    events = trace["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    tracks = {(event["pid"], event["tid"]) for event in events if event["ph"] == "M" and event["name"] == "thread_name"}
    wanted = 0
    for program in shown.programs:
        node = program["node"]
        for kind in ("send", "receive", "combine", "copy"):
            drawn = sorted((its["args"]["step"], its["args"]["action"]) for its in slices
                           if its["pid"] == node and its["cat"] == kind)
            right = sorted((its["step"], its["action"]) for its in shown.of(node, kind))
            if drawn != right:
                bad.append(f"node {node}: {len(drawn)} {kind}s drawn, {len(right)} in the schedule, or other ones")
        steps = {its["step"] for its in shown.of(node)}
        if sum(its["pid"] == node and its["cat"] == "step" for its in slices) != len(steps):
            bad.append(f"node {node}: not its {len(steps)} steps")
        links = {(its["kind"], its["peer"]) for its in shown.of(node, "send", "receive")}
        wanted += len(links) + bool(steps) + bool(shown.of(node, "combine", "copy"))
    arrows = sum(event["ph"] == "s" for event in events)
    if arrows != len(shown.transfers()):
        bad.append(f"{arrows} arrows for {len(shown.transfers())} transfers")
    processes = sum(event["ph"] == "M" and event["name"] == "process_name" for event in events)
    if processes != len(shown.programs):
        bad.append(f"{processes} processes for {len(shown.programs)} nodes")
    if len(tracks) != wanted:
        bad.append(f"{len(tracks)} tracks, {wanted} links and directions, steps and operations")
    # An arrow goes from the send of a block to its receive at the peer.
    at, rows = {}, {}
    for event in slices:
        rows.setdefault((event["pid"], event["tid"]), []).append(event)
    for event in events:
        if event["ph"] in "sf":
            at.setdefault(event["id"], {})[event["ph"]] = event  # s comes before f
    for key, ends in at.items():
        here = [[its for its in rows.get((event["pid"], event["tid"]), []) if its["ts"] <= event["ts"]] for event in ends.values()]
        if len(ends) < 2 or not all(here):
            continue  # a complaint of check()
        send, receive = (max(row, key=lambda its: its["ts"]) for row in here)
        if send["args"]["peer"] != receive["pid"] or receive["args"]["peer"] != send["pid"]:
            bad.append(f"arrow {key} joins {send} and {receive}")
    return bad
