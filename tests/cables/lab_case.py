"""What the tests of one laboratory each share: its hosts, and the secret of its job."""
import os
import pathlib
import tempfile
import unittest

import lab as cables


def secret_file(folder, name="secret"):
    path = pathlib.Path(folder, name)
    path.touch(mode=0o600)
    path.write_bytes(os.urandom(32))
    return path


class LabCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="espalier-cables-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.secret = secret_file(folder.name)

    def lab(self, *words, **more):
        lab = cables.Lab(*words, **more)
        lab.__enter__()
        self.addCleanup(lab.__exit__)
        return lab
