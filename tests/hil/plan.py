"""Makes the commands of a rig's cases. Runs none of them."""
import dataclasses
import pathlib
import shlex

import rig as rigs

QEMU = "qemu-system-arm -M {machine} -nographic -kernel {program} -semihosting-config {semihosting} -netdev {netdev} -net nic,netdev=link"
COMBINING = ("reduce", "allreduce", "scan", "exscan", "reduce-scatter")
BACK_TO_BACK = 1_000_000_000  # more runs than end before the kill


@dataclasses.dataclass
class Case:
    """One `espalier run`. seats: by node, ranks first. victim: the node that is killed. refused: (nodes, name of the refusal).
    loss: what is lost, as TestList.Lose.what, and the nodes at its ends. ranks: number of ranks; None: all nodes are. replaced:
    (node, seat, reason) for each seat whose board cannot hold the case. left_out: why the case cannot run at all."""
    name: str
    folder: pathlib.Path
    rotation: int
    seats: list
    test: int
    message: object
    simulated: pathlib.Path
    victim: int = None
    refused: tuple = None
    loss: object = None
    ends: list = None
    ranks: int = None
    replaced: list = ()
    left_out: str = ""


def test_name(test):
    return f"{test.collective}-{test.algorithm}" + (f"-root-{test.root}" if test.root else "")


def message_name(test, message):
    if test.collective == "barrier":
        return test_name(test)
    return f"{test_name(test)}-{message.bytes}" + (f"-{message.op}-{message.type}" if test.collective in COMBINING else "")


class Plan:
    """The paths of all files of one run of a rig, and the words of its commands."""

    def __init__(self, rig, tests, out, command, node, sockets, cluster=rigs.ROOT / "build/tests/hil/spares-cluster"):
        self.rig, self.tests = rig, tests
        self.out, self.sockets = pathlib.Path(out), pathlib.Path(sockets)
        self.command, self.node, self.cluster = str(command), str(node), str(cluster)
        self.key, self.foreign_key = self.out / "release.key", self.out / "foreign.key"
        self.single = False  # whether images have one program each. A release has the same programs on all nodes

    def path(self, relative):
        return rigs.ROOT / relative  # an absolute path stays unchanged

    def schedule(self, test):
        return self.out / "schedules" / f"{test_name(test)}.esp"

    def image_tests(self, test):
        """Returns the tests whose programs are in the images with which the test (a position in the list) runs."""
        return [self.tests.entry.test[test]] if self.single else self.tests.entry.test

    def image(self, rank, board, test):
        folder = self.out / "images" / board
        if self.single:
            folder /= test_name(self.tests.entry.test[test])
        return folder / f"node-{rank}.img"

    def flash(self, case, rank):
        """Returns the slots of a rank."""
        return self.flashes(case) / f"node-{rank}.flash"

    def flashes(self, case):
        """Returns the folder of node-RANK.flash: one for each refusal; otherwise one for each rotation, only program, and stand-ins."""
        if case.refused:
            return case.folder
        folder = self.out / "flash" / f"rotation-{case.rotation}"
        if self.single:
            folder /= test_name(self.tests.entry.test[case.test])
        return folder / "-".join(["without", *(str(rank) for rank, _, _ in case.replaced)]) if case.replaced else folder

    def public(self, key=None):
        return f"{key or self.key}.pub"

    def public_bytes(self):
        return f"{self.key}.bin"

    # Preparation.

    def compile(self, test):
        return [self.command, "compile", "--topology", self.tests.entry.topology, "--collective", test.collective,
                "--algorithm", test.algorithm, "--root", test.root, "-o", self.schedule(test),
                *(["--links", "hop-by-hop"] if self.tests.entry.spares else [])]

    def verify(self, test):
        return [self.command, "verify", self.schedule(test)]

    def keygen(self, key):
        return [self.command, "image", "keygen", "-o", key]

    def build_image(self, board, rank, path, tests, release="1.0.0", counter=1, key=None):
        """rank: None for all, with %r in the path. key: "" for an unsigned one; None: the rig's own."""
        words = [self.command, "image", "build", *map(self.schedule, tests), "--board", self.path(board), "--release", release,
                 "--counter", counter, "-o", path]
        words += ["--node", rank] if rank is not None else []
        if self.tests.entry.spares:
            words += ["--spares", self.tests.entry.spares]
        return words + (["--key", key or self.key] if key != "" else [])

    def show(self, test):
        return [self.command, "show", self.schedule(test), "--format", "json"]

    def show_image(self, image):
        return [self.command, "image", "show", image, "--format", "json"]

    def install(self, board, rank, image, flash, confirmed=True, key=None):
        """Installs into the flash's free slot. key: only images with its signature; None: the rig's key; "": any image."""
        words = [self.command, "image", "install", image, "--board", self.path(board), "--flash", flash, "--node", rank]
        words += ["--public-key", self.public(key)] if key != "" else ["--unsigned"]
        return words + (["--confirmed"] if confirmed else [])

    def simulate(self, test, message, folder):
        return [self.command, "simulate", self.schedule(test), *self._message(test, message), *self._kept(test, folder),
                "--format", "json"]

    # Running.

    def cases(self):
        found = []
        rotations = self.rig.rotations(self.tests)
        for turn, seats in enumerate(rotations):
            for at, test in enumerate(self.tests.entry.test):
                for message in test.message:
                    found.append(self._case(f"rotation-{turn}/{message_name(test, message)}", turn, seats, at, message))
        seats = rotations[0]
        for kind in self.rig.kinds():
            rank = seats.index(kind)
            kill = self.tests.entry.kill
            if self.tests.entry.HasField("kill"):
                case = self._case(f"kill/{kind.board}", 0, seats, kill.test, self.tests.entry.test[kill.test].message[0])
                found.append(dataclasses.replace(case, victim=rank))
            for name in self.tests.entry.refuse if not self.tests.entry.together else []:
                found.append(self._refusal(f"refuse/{kind.board}-{name}", [rank], name, seats))
        for name in self.tests.entry.refuse if self.tests.entry.together else []:
            found.append(self._refusal(f"refuse/{name}", [seats.index(kind) for kind in self.rig.kinds()], name, seats))
        for lose, ends in zip(self.tests.entry.lose, self.tests.losses):
            name = f"lose/{lose.what.replace(':', '-').replace(',', '-')}/{lose.moment}"
            case = self._case(name, 0, seats, 0, self.tests.entry.test[0].message[0])
            found.append(dataclasses.replace(case, loss=lose, ends=ends))
            self._check_loss(found[-1])
        return found

    def _refusal(self, name, ranks, refusal, seats):
        case = self._case(name, 0, seats, 0, self.tests.entry.test[0].message[0])
        return dataclasses.replace(case, refused=(ranks, refusal))

    def _check_loss(self, case):
        what = f"{self.tests.path}: lose: {case.loss.what}"
        for field in ("window", "address"):  # spares-cluster has none
            if getattr(self.rig.entry, field):
                raise rigs.BadRig(f"{what}: with '{field}', which {self.rig.path} has; expected none")
        if self.rig.entry.provider != "tcp":
            raise rigs.BadRig(f"{what}: with the provider {self.rig.entry.provider} of {self.rig.path}; expected tcp")
        if max(case.ends) >= len(case.seats):
            raise rigs.BadRig(f"{what}: the devices of {self.rig.path} are {len(case.seats)}; expected numbers below that")
        if len(case.ends) == 2 and not any(case.seats[end].has_sockets() for end in case.ends):
            raise rigs.BadRig(f"{what}: no frames of it pass this host; expected an emulator, or a wire device with a carrier unix:, "
                              "at one end")

    def _case(self, name, turn, seats, test, message):
        simulated = self.out / "simulated" / message_name(self.tests.entry.test[test], message)
        return Case(name, self.out / name, turn, seats, test, message, simulated)

    @staticmethod
    def _kept(test, folder):
        """Returns the options that leave results and logs in the folder; a barrier has no results."""
        results = [] if test.collective == "barrier" else ["--output", folder]
        return [*results, "--events", folder]

    def _message(self, test, message):
        words = ["--bytes", message.bytes]
        if test.collective in COMBINING:
            words += ["--type", message.type, "--op", message.op]
        return words

    def run(self, case):
        """Returns the words of `espalier run`."""
        test = self.tests.entry.test[case.test]
        entry = self.rig.entry
        words = [self.command, "run", self.schedule(test), *self._message(test, case.message), "--provider", entry.provider,
                 "--deadline", self.rig.deadline_ms, "--node-binary", self.node, "--format", "json"]
        hosts = [str(rank) for rank, seat in enumerate(case.seats) if seat.kind in ("process", "ssh")]
        if hosts:  # the others boot from their board's own flash
            words += ["--public-key", self.public(), "--flash", f"{','.join(hosts)}={self.flashes(case) / 'node-%r.flash'}"]
        if entry.window:
            words += ["--window", entry.window]
        if entry.address:
            words += ["--address", entry.address]
        for rank, seat in enumerate(case.seats):
            start = self.start(case, rank, seat)
            words += ["--start", f"{rank}={start}"] if start else []
        if case.victim is None:
            return words + self._kept(test, case.folder / "real")
        words = ["env", "ESPALIER_TEST_FAULTS=1", *words]  # it takes --kill
        return words + ["--back-to-back", BACK_TO_BACK, "--kill", f"{case.victim}@{self.tests.entry.kill.after_ms}"]

    def lose(self, case, peers):
        """Returns the words of spares-cluster. peers: by node, the nodes to which its links lead."""
        tests = self.tests.entry
        words = [self.cluster, "--topology", tests.topology, "--nodes", len(case.seats), "--programs",
                 ",".join(f"{test.collective}:{test.root}" for test in tests.test), "--loss", case.loss.what, "--seed",
                 case.loss.moment, "--deadline-ms", self.rig.deadline_ms]
        if case.loss.returns:
            words += ["--returns", case.loss.returns]
        hosts = [rank for rank, seat in enumerate(case.seats) if seat.kind in ("process", "ssh")]
        if hosts:
            words += ["--boots", ",".join(map(str, hosts)), "--flash", self.flashes(case) / "node-%r.flash", "--public-key",
                      self.public()]
        for rank, seat in enumerate(case.seats):
            words += ["--start", f"{rank}={self.start(case, rank, seat)}"]
            if not seat.has_sockets():
                continue
            ours, theirs = self.socket_pair(case, rank, seat)
            words += ["--relay", f"{rank}:{len(peers[rank])}={ours},{theirs},{ours}-s,{ours}-g"]
            for link, peer in enumerate(peers[rank]):
                if {rank, peer} == set(case.ends) or len(case.ends) == 1 and case.ends[0] in (rank, peer):
                    words += ["--at", f"{rank}:{link}"]
        return words

    def socket_pair(self, case, rank, seat):
        """Returns the sockets of a board's gateway and of the board."""
        if seat.kind == "emulator":
            return tuple(str(self.sockets / f"{seat.name}-{end}") for end in ("gateway", "board"))
        return tuple(shlex.split(self.fill(seat.how.carrier, case, rank))[0].removeprefix("unix:").split(","))

    def cable_ends(self, seat):
        """Returns the paths of a cable's pseudo terminals: the gateway's and the board's."""
        return [self.sockets / f"{seat.name}-{end}" for end in ("gateway", "board")]

    def cables(self, case):
        """Returns the words that start all cables of a case; [] if it has none."""
        seats = [seat for seat in case.seats if seat.has_cable()]
        return [str(rigs.ROOT / "tests/hil/cable.py"), *(
            ",".join(map(str, [*self.cable_ends(seat), seat.how.cable.lose, seat.how.cable.repeat, seat.how.cable.cut]))
            for seat in seats)] if seats else []

    def device(self, case, rank, seat):
        """Returns the gateway's --device. If something is lost, spares-cluster is between it and the board."""
        if seat.has_cable():
            return f"tty:{self.cable_ends(seat)[0]},{rigs.BAUD}"
        if not seat.has_sockets():
            return self.fill(seat.how.carrier, case, rank)
        ours, theirs = self.socket_pair(case, rank, seat)
        return f"unix:{ours}-g,{ours}-s" if case.loss else f"unix:{ours},{theirs}"

    def start(self, case, rank, seat):
        """Returns the command, for sh, that starts a rank; the node's options follow it."""
        flash, console = self.flash(case, rank), case.folder / f"console-{seat.name}"
        how = seat.how
        if seat.kind == "process":
            return " ".join([how.under, shlex.quote(str(self.path(how.program)))]).strip()
        gateway = [str(self.path(how.gateway))]
        if seat.kind == "ssh":
            there = [how.program, "--stdio", "--address", how.address]
            return shlex.join([*gateway, "--node-command", f"{how.command or 'ssh'} {how.host} {shlex.join(there)}"])
        if seat.kind == "wire":
            words = [*gateway, "--device", self.device(case, rank, seat), "--console", str(console)]
            return shlex.join(words + (["--start", self.fill(how.start, case, rank)] if how.start else []))
        ours, theirs = self.socket_pair(case, rank, seat)
        under = how.under + " " if how.under else ""
        board = under + QEMU.format(
            machine=how.machine, program=shlex.quote(str(self.path(how.program))),
            semihosting=shlex.quote(f"enable=on,target=native,arg=node,arg={flash},arg={self.public()}"),
            netdev=shlex.quote(f"dgram,id=link,local.type=unix,local.path={theirs},remote.type=unix,remote.path={ours}"))
        return shlex.join([*gateway, "--device", self.device(case, rank, seat), "--console", str(console), "--start", board])

    def fill(self, command, case, rank):
        """Fills in the placeholders of a command of a rig's file."""
        seat = case.seats[rank]
        program = self.path(seat.how.program) if seat.kind == "wire" else ""
        for mark, value in (("%f", self.flash(case, rank)), ("%k", self.public()), ("%b", self.public_bytes()), ("%r", rank),
                            ("%d", case.folder), ("%s", self.sockets), ("%p", program), ("%c", self.cable_ends(seat)[1])):
            command = command.replace(mark, shlex.quote(str(value)))
        return command

    def bring(self, case, rank, seat):
        """Returns the command, for sh, that copies its flash to a device before it starts; None if that file is the flash."""
        if seat.kind == "wire" and seat.how.flash:
            return self.fill(seat.how.flash, case, rank)
        if seat.kind != "ssh":
            return None
        ssh = f"{seat.how.command or 'ssh'} {seat.how.host} "
        commands = []
        for path in (self.flash(case, rank), pathlib.Path(self.public())):
            folder, here, new = (shlex.quote(str(name)) for name in (path.parent, path, f"{path}.new"))
            take = f"mkdir -p {folder} && cat > {new} && mv {new} {here}"  # the target may be this host
            commands.append(f"{ssh}{shlex.quote(take)} < {here}")
        return " && ".join(commands)

    def programs(self):
        """Returns the files of this host that must exist."""
        found = [pathlib.Path(self.command), pathlib.Path(self.node)]
        if self.tests.entry.lose:
            found.append(pathlib.Path(self.cluster))
        for seat in self.rig.seats:
            if seat.kind in ("process", "emulator") or seat.kind == "wire" and seat.how.program:
                found.append(self.path(seat.how.program))
            if seat.kind != "process":
                found.append(self.path(seat.how.gateway))
        return list(dict.fromkeys(found))
