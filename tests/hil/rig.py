"""Rigs and test lists (proto/rig.proto): read, checked, with their defaults."""
import math
import pathlib
import re
import subprocess
import sys

try:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
except ImportError as error:
    print(f"hil.py: {error}; expected python3-protobuf, which ./setup.sh installs", file=sys.stderr)
    sys.exit(2)

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAME = re.compile(r"[A-Za-z0-9._-]{1,31}")
REFUSALS = {"corrupted": "corrupt", "truncated": "truncated", "rolled-back": "rolled back", "wrong-board": "wrong board",
            "wrong-node": "wrong node", "unsigned": "unsigned", "bad-signature": "bad signature", "unfinished": "unfinished"}
MAX_DEVICES = 4096
LOSS = re.compile(r"(link):(\d{1,4}),(\d{1,4})|(node):(\d{1,4})")
PAIR = re.compile(r"unix:[^,]+,[^,]+")
BAUD = 115200  # of a cable, whose pseudo terminals have no rate
# Those that spares-cluster knows.
LOSABLE = ("allreduce", "broadcast", "allgather", "reduce", "reduce-scatter", "barrier")
MAX_RETURNS = 3  # Recovery::kReturns, and one that is refused
DEFAULTS = {"provider": "tcp", "deadline_ms": 5000, "limit_s": 120}
GATEWAY = "build/firmware/gateway/espalier-gateway"


class BadRig(Exception):
    """One line: the error, where it is, and the expected input."""


def schema(name, folder=ROOT / "proto"):
    """Returns the class of a message of proto/NAME.proto ("rig.Rig": Rig of rig.proto)."""
    file, message = name.split(".")
    made = subprocess.run(["protoc", f"--proto_path={folder}", "--descriptor_set_out=/dev/stdout", f"{file}.proto"],
                          capture_output=True, check=True).stdout
    pool = descriptor_pool.DescriptorPool()
    for each in descriptor_pb2.FileDescriptorSet.FromString(made).file:
        pool.Add(each)
    return message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName(f"espalier.{file}.{message}"))


def read(path, name):
    try:
        return text_format.Parse(pathlib.Path(path).read_text(), schema(name)())
    except OSError as error:
        raise BadRig(f"{path}: {error.strerror}") from None
    except (text_format.ParseError, ValueError) as error:  # ValueError: not UTF-8, or a path with a zero byte
        raise BadRig(f"{path}: " + " ".join(str(error).split())) from None


def counted(number, noun):
    return f"{number} {noun}" + ("" if str(number) == "1" else "s")


def is_file(path):
    """Whether the path is that of a file; False for one that no file can have."""
    try:
        return path.is_file()
    except OSError:
        return False


class Seat:
    """One device of a rig: its name, its entry, and the name of its board, for which its image is made."""

    def __init__(self, name, device, file):
        self.name, self.device, self.board, self.limits = name, device, file.name, file.limits
        self.kind = device.WhichOneof("start")
        self.how = getattr(device, self.kind)
        if self.kind != "process" and not self.how.gateway:
            self.how.gateway = GATEWAY

    def is_bare(self):
        """Whether a bare-metal node runs there, which gets its number from its image and has rooms of a fixed size."""
        return self.kind in ("emulator", "wire")

    def has_cable(self):
        return self.kind == "wire" and self.how.HasField("cable")

    def has_sockets(self):
        """Whether frames between the board and its gateway pass a pair of sockets."""
        return self.kind == "emulator" or self.kind == "wire" and PAIR.fullmatch(self.how.carrier) is not None


class Rig:
    """A checked rig. seats: its devices, each instance separately."""

    def __init__(self, path):
        path = pathlib.Path(path)
        self.path, self.entry = path, read(path, "rig.Rig")
        for field, value in DEFAULTS.items():
            if not getattr(self.entry, field):
                setattr(self.entry, field, value)
        self.seats, self.fixed, self.files = [], [], {}
        self._check_head()
        for at, device in enumerate(self.entry.device):
            self._check_device(at, device)
        for at, device in enumerate(self.entry.device):
            self._check_instead(at, device)
        names = [seat.name for seat in self.seats]
        for name in names:
            if names.count(name) > 1:
                self._bad(f"two devices are called '{name}'; expected a name of its own for each")
        if self.fixed and len(self.fixed) != len(self.seats):
            self._bad("some devices say their ranks and others do not; expected all or none")
        for rank in self.fixed:
            if self.fixed.count(rank) > 1 or rank >= len(self.fixed):
                self._bad(f"rank {rank} among the devices' ranks; expected each of 0 to {len(self.fixed) - 1} once")
        self.tests = path.parent / self.entry.tests
        self.patience = max(seat.device.patience for seat in self.seats)

    def _bad(self, line):
        raise BadRig(f"{self.path}: {line}")

    def _check_head(self):
        rig = self.entry
        if not NAME.fullmatch(rig.name):
            self._bad(f"the rig's name is '{rig.name}'; expected 1 to 31 letters, digits, '.', '_' and '-'")
        if rig.provider not in ("tcp", "mem"):
            self._bad(f"unknown provider '{rig.provider}'; expected tcp or mem")
        if not rig.device:
            self._bad("no device; expected device { name: ... board: ... } for each")
        if not rig.tests:
            self._bad("no tests; expected tests: \"FILE\", a test list beside the rig's file")

    def _check_device(self, at, device):
        where = f"device {at}" + (f" ('{device.name}')" if device.name else "")
        if not NAME.fullmatch(device.name):
            self._bad(f"{where}: its name is '{device.name}'; expected 1 to 31 letters, digits, '.', '_' and '-'")
        kind = device.WhichOneof("start")
        if kind is None:
            self._bad(f"{where}: how is it started? expected one of process, emulator, ssh, wire")
        needed = {"process": ["program"], "emulator": ["machine", "program"], "ssh": ["host", "program", "address"],
                  "wire": ["carrier"]}[kind]
        if kind == "wire" and device.wire.HasField("cable"):
            if device.wire.carrier:
                self._bad(f"{where}: carrier and cable; expected one of them")
            needed = []
        for field in needed:
            if not getattr(getattr(device, kind), field):
                self._bad(f"{where}: {kind} without {field}; it needs " + " and ".join(needed))
        folder = ROOT / device.board
        if not device.board or not is_file(folder / "board.textproto"):
            self._bad(f"{where}: no board '{device.board}'; expected a folder with a board.textproto, e.g. boards/linux-x86_64")
        if self.entry.provider == "mem" and kind != "process":
            self._bad(f"{where}: provider mem joins processes of this host alone; expected tcp")
        if kind == "ssh" and not self.entry.address:
            self._bad(f"{where}: the rig says no address; expected this host's IP, for the board to reach it")
        device.patience = device.patience or 1
        if not (math.isfinite(device.patience) and 1 <= device.patience <= 1000):
            self._bad(f"{where}: patience is {device.patience:g}; expected a factor from 1 to 1000")
        if device.rank and device.count not in (0, len(device.rank)):
            self._bad(f"{where}: count is {device.count}, and it has {counted(len(device.rank), 'rank')}; expected as many")
        self.fixed += device.rank
        count = len(device.rank) or device.count or 1
        if len(self.seats) + count > MAX_DEVICES:
            self._bad(f"{where}: it is one of more than {MAX_DEVICES} devices; expected fewer in all")
        self.files[device.name] = file = read(folder / "board.textproto", "board.BoardFile")
        for one in range(count):
            self.seats.append(Seat(device.name if count == 1 else f"{device.name}-{one}", device, file))

    def _check_instead(self, at, device):
        if device.instead and device.WhichOneof("start") not in ("emulator", "wire"):
            self._bad(f"device {at} ('{device.name}'): instead of a {device.WhichOneof('start')}; expected it on an emulator or a wire")
        if device.instead and all(other.name != device.instead or other.instead for other in self.entry.device):
            self._bad(f"device {at} ('{device.name}'): instead is '{device.instead}'; expected the name of another device of the "
                      "rig, itself without instead")

    def stand_in(self, seat):
        """Returns the seat that takes the place of one whose board cannot hold a case."""
        device = next(device for device in self.entry.device if device.name == seat.device.instead)
        return Seat(f"{device.name}-for-{seat.name}", device, self.files[device.name])

    @property
    def ranks(self):
        return len(self.seats)

    @property
    def deadline_ms(self):
        return round(self.entry.deadline_ms * self.patience)

    @property
    def limit_s(self):
        return self.entry.limit_s * self.patience

    def kinds(self):
        """Returns the first seat of each kind of board, in the rig's order."""
        found = {}
        for seat in self.seats:
            found.setdefault(seat.board, seat)
        return list(found.values())

    def rotations(self, tests):
        """Returns lists of seats by rank, one per rotation. Rotations with the same boards for all ranks count as one."""
        p = self.ranks
        if self.fixed:
            seats = [None] * p
            for seat, rank in zip(self.seats, self.fixed):
                seats[rank] = seat
            return [seats]
        step = tests.entry.rotate % p
        turns = p // math.gcd(p, step) if step else 1
        found = {}
        for turn in range(turns):
            seats = [self.seats[(rank - turn * step) % p] for rank in range(p)]
            found.setdefault(tuple(seat.board for seat in seats), seats)
        return list(found.values())


class Tests:
    """A checked test list."""

    def __init__(self, path):
        self.path, self.entry = pathlib.Path(path), read(path, "rig.TestList")
        if not self.entry.topology:
            self._bad("no topology; expected e.g. topology: \"complete:8\"")
        if not self.entry.test:
            self._bad("no test; expected test { collective: ... algorithm: ... }")
        seen = set()
        for at, test in enumerate(self.entry.test):
            if not test.collective or not test.algorithm:
                self._bad(f"test {at}: expected collective and algorithm, as `espalier list` has them")
            self._check_names(at, test, "collective", "algorithm")
            key = (test.collective, test.algorithm, test.root)
            if key in seen:
                self._bad(f"test {at}: {test.collective} by {test.algorithm}, root {test.root}, is there already; expected "
                          "more messages there")
            seen.add(key)
            if not test.message:
                test.message.add(bytes="0")
            for message in test.message:
                if not message.bytes:
                    self._bad(f"test {at}: a message without bytes; expected e.g. bytes: \"64KiB\"")
                message.type, message.op = message.type or "f32", message.op or "sum"
                self._check_names(at, message, "bytes", "type", "op")
            for message in test.message:
                if list(test.message).count(message) > 1:
                    self._bad(f"test {at}: a message of {counted(message.bytes, 'byte')} twice; expected each once")
            if test.collective == "barrier" and (len(test.message) > 1 or test.message[0].bytes != "0"):
                self._bad(f"test {at}: a barrier with messages; expected none")
        if self.entry.HasField("kill"):
            self.entry.kill.after_ms = self.entry.kill.after_ms or 1000
            if self.entry.kill.test >= len(self.entry.test):
                self._bad(f"kill: no test {self.entry.kill.test}; they are 0 to {len(self.entry.test) - 1}")
        for refusal in self.entry.refuse:
            if refusal not in REFUSALS:
                self._bad(f"unknown refusal '{refusal}'; expected one of " + ", ".join(REFUSALS))
            if refusal == "wrong-node" and self.entry.together:
                self._bad("wrong-node together: bare-metal boards do not join then; expected together: false")
            if list(self.entry.refuse).count(refusal) > 1:
                self._bad(f"refuse: '{refusal}' twice; expected each once")
        if self.entry.together and not self.entry.refuse:
            self._bad("together without refuse; expected a refusal")
        self._check_losses()

    def _check_losses(self):
        """Sets `losses`: the ends of each, one of a node."""
        entry, self.losses = self.entry, []
        if entry.spares not in ("", "links", "nodes", "both"):
            self._bad(f"unknown spares '{entry.spares}'; expected links, nodes or both")
        if entry.spares and entry.HasField("kill"):
            self._bad("kill with spares, with which the others go on; expected lose { what: \"node:0\" }")
        for lose in entry.lose:
            found = LOSS.fullmatch(lose.what)
            if found is None:
                self._bad(f"lose: what is '{lose.what}'; expected link:A,B or node:V")
            kind = found[1] or found[4]
            if entry.spares not in (f"{kind}s", "both"):
                self._bad(f"lose: {lose.what} without spares for it; expected spares: \"{kind}s\" or \"both\"")
            if [(other.what, other.moment) for other in entry.lose].count((lose.what, lose.moment)) > 1:
                self._bad(f"lose: {lose.what} at moment {lose.moment} twice; expected another moment")
            if lose.returns > MAX_RETURNS or lose.returns and kind == "link":
                self._bad(f"lose: {lose.returns} returns of {lose.what}; expected 0 to {MAX_RETURNS}, and of a node")
            self.losses.append([int(number) for number in (found[2], found[3], found[5]) if number])
        for test in entry.test:
            if entry.lose and test.collective not in LOSABLE:
                self._bad(f"lose with {test.collective}; expected " + ", ".join(LOSABLE))

    def _bad(self, line):
        raise BadRig(f"{self.path}: {line}")

    def _check_names(self, at, entry, *fields):
        """Checks values that become parts of the names of files."""
        for field in fields:
            value = getattr(entry, field)
            if not NAME.fullmatch(value):
                self._bad(f"test {at}: {field} is '{value}'; expected 1 to 31 letters, digits, '.', '_' and '-'")
