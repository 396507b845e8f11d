#!/usr/bin/python3
"""hostile_daemon.py VERSION HOW HOST COMMAND: a remote shell whose daemon sends its launcher what no daemon sends
(tools/launch/frames.h). HOW: again (a second hello while the job runs), other (the end of another host's rank), status (an exit status
that no process has), early (the end of a rank before the job runs), word (a message that does not exist)."""
import sys

GREETING = b"\n\x01espalier-daemon\x02"


def send(*fields):
    body = b"".join(len(field).to_bytes(4, "little") + field for field in (text.encode() for text in fields))
    sys.stdout.buffer.write(len(body).to_bytes(4, "little") + body)
    sys.stdout.buffer.flush()


def receive():
    size = int.from_bytes(sys.stdin.buffer.read(4), "little")
    return sys.stdin.buffer.read(size)


def main(version, how):
    sys.stdout.buffer.write(GREETING)
    send("hello", version, "")
    receive()  # job
    if how == "early":
        send("end", "0", "0")
    send("ready")
    receive()  # go
    wrong = {"again": ["hello", version, ""], "other": ["end", "7", "0"], "status": ["end", "0", "-2147483648"],
             "word": ["\x1b[2Jhowdy"]}
    send(*wrong.get(how, ["end", "0", "0"]))
    while receive():
        pass


if __name__ == "__main__":
    main(*sys.argv[1:3])
