"""Boards for tests: the bare-metal node as a process of this host (espalier-bare-hosted), behind a gateway."""
import os

import espalier

GATEWAY = os.environ.get("ESPALIER_GATEWAY", str(espalier.ROOT / "build/firmware/gateway/espalier-gateway"))
HOSTED = os.environ.get("ESPALIER_BARE_HOSTED", str(espalier.ROOT / "build/firmware/bare/espalier-bare-hosted"))
BOARD = espalier.ROOT / "boards/mps2-an385"


class BoardTest(espalier.FolderTest):
    def flash(self, board, *schedules, node=None, description=BOARD):
        """A flash that boots these schedules' programs of the node. description: of the board."""
        flash = self.path / f"{board}.flash"
        flash.unlink(missing_ok=True)
        espalier.make_flash(flash, schedules, description, board if node is None else node)

    def start(self, boards, wired=False, keys=("", "")):
        """The words of --start for these boards. wired: gateway and board address the two ends of a Wire instead of each other. keys:
        the link keys of gateway and board, files in the test's folder."""
        at = self.path
        of_gateway, of_board = (f"--link-key {at}/{key}" if key else "" for key in keys)
        board, gateway = ("h%r", "w%r") if wired else ("b%r", "g%r")
        return ["--start", f"{boards}={GATEWAY} --device unix:{at}/g%r,{at}/{board} --console {at}/console-%r {of_gateway} --start '"
                f"{HOSTED} {of_board} --device unix:{at}/b%r,{at}/{gateway} --flash {at}/%r.flash --unsigned'"]

    def compile(self, collective, ranks=8):
        return espalier.compile(self.path / f"{collective}.esp", f"complete:{ranks}", collective, espalier.COLLECTIVES[collective])
