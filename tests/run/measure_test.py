#!/usr/bin/python3
"""espalier measure on real processes, and predictions from its figures."""
import json
import pathlib
import tempfile
import unittest

import espalier


class Measure(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def measure(self, *words):
        return espalier.call("measure", "--node-binary", espalier.NODE, *words)

    def refused(self, done, *texts):
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for text in texts:
            self.assertIn(text, done.stderr)

    def test_measures_and_predicts(self):
        for provider in ("shm", "tcp"):
            plot = self.path / "plot.svg"
            model = self.path / "model.textproto"
            done = self.measure("-o", model, "--provider", provider, "--bytes", "100,8,64KiB", "--receivers", "3,2", "--repeat", 3,
                                "--format", "json", "--plot", plot)
            self.assertEqual(done.returncode, 0, done.stderr)
            found = json.loads(done.stdout)
            self.assertEqual([size["bytes"] for size in found["sizes"]], [8, 100, 65536])
            self.assertEqual(found["receivers"], [1, 2, 3])
            for size in found["sizes"]:
                self.assertGreater(size["one_way_s"], 0)
                low, high = size["lambda_quartiles"]
                self.assertTrue(low is None or 0 < low <= high, size)
                self.assertEqual([(one["experiment"], one["receivers"]) for one in size["timings"]],
                                 [(name, k) for k in (1, 2, 3) for name in ("echo", "return")])
                for one in size["timings"]:
                    self.assertTrue(0 < one["least_s"] <= one["median_s"] <= one["most_s"], one)
            self.assertTrue(plot.read_text().startswith("<svg "))
            text = model.read_text()
            for field in ("alpha_low_ps", "beta_high_fs_per_byte", "gamma_fs_per_byte", "overhead_ps", "cores"):
                self.assertIn(field, text)
            what = ["--topology", "complete:4", "--collective", "broadcast", "--algorithm", "chain"]
            status, run, error = espalier.run(*what, "--bytes", "100,64KiB", "--provider", provider, "--model", model)
            self.assertEqual(status, 0, error)
            # The hops of a chain's block come one after the other; its time lies on the line of the table, and o is in it.
            one = run["runs"][0]
            hop = one["alpha_s"] + one["beta_s_per_byte"] * one["block_bytes"]
            self.assertGreater(one["predicted_s"], max(one["steps"] * hop, 0.05 * found["sizes"][1]["one_way_s"]))
            done = espalier.call("explain", *what[:4], "--bytes", "100,64KiB", "--model", model)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"predicted from espalier measure --provider {provider}, 3 repetitions", done.stdout)
            file = espalier.compile(self.path / "b.esp", "complete:4")
            simulated = espalier.call("simulate", file, "--bytes", 100, "--model", model, "--format", "json")
            self.assertEqual(simulated.returncode, 0, simulated.stderr)
            self.assertNotEqual(json.loads(simulated.stdout)["alpha"], 1e-6)

    def test_refusals(self):
        self.refused(self.measure("--provider", "carrier-pigeon"), "carrier-pigeon")
        self.refused(self.measure("--receivers", "1"), "none above 1")
        self.refused(self.measure("--receivers", "1,9"), "--receivers")
        self.refused(self.measure("--bytes", "many"), "many")
        self.refused(espalier.call("measure", "--node-binary", self.path / "nothing"), "nothing")
        file = espalier.compile(self.path / "b.esp", "complete:2")
        self.refused(self.measure("-o", self.path / "no" / "model"), "no/model")
        for text in ("", "{}", "link { }", '{"sizes": []}', "link { line { alpha_ps: 1 } }", "cores: -1"):
            model = self.path / "model"
            model.write_text(text)
            self.refused(espalier.call("simulate", file, "--bytes", 8, "--model", model), "model '", "line 1")
            self.refused(espalier.call("run", file, "--bytes", 8, "--model", model, "--node-binary", espalier.NODE),
                         "model '", "line 1")
        self.refused(espalier.call("simulate", file, "--bytes", 8, "--model", self.path / "no"), "cannot read")


if __name__ == "__main__":
    unittest.main(verbosity=2)
