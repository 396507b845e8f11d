#!/usr/bin/python3
"""espalier measure, also with --candidates, on real processes, and predictions from their figures."""
import unittest

import espalier


class Measure(espalier.FolderTest):
    def measure(self, *words):
        return espalier.call("measure", "--node-binary", espalier.NODE, *words)

    def test_measures_and_predicts(self):
        for provider in ("mem", "tcp"):
            plot = self.path / "plot.svg"
            model = self.path / "model.textproto"
            found = espalier.told("measure", "--node-binary", espalier.NODE, "-o", model, "--provider", provider, "--bytes", "100,8,64KiB",
                                  "--receivers", "3,2", "--repeat", 3, "--plot", plot)
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
            what = espalier.what("complete:4", "broadcast", "chain")
            run = self.right(*what, "--bytes", "100,64KiB", "--provider", provider, "--model", model)
            # The hops of a chain's block come one after the other; its time lies on the line of the table, and o is in it.
            one = run["runs"][0]
            hop = one["alpha_s"] + one["beta_s_per_byte"] * one["block_bytes"]
            self.assertGreater(one["predicted_s"], max(one["steps"] * hop, 0.05 * found["sizes"][1]["one_way_s"]))
            self.assertIn(f"predicted from espalier measure --provider {provider}, 3 repetitions",
                          espalier.said("explain", *what[:4], "--bytes", "100,64KiB", "--model", model))
            file = espalier.compile(self.path / "b.esp", "complete:4")
            self.assertNotEqual(espalier.told("simulate", file, "--bytes", 100, "--model", model)["alpha"], 1e-6)

    def tune(self, *words):
        return self.measure("--candidates", *words)

    def test_tuned_models_make_auto_take_what_was_fastest(self):
        model, tuned = self.path / "model.textproto", self.path / "tuned.textproto"
        model.write_text('found_by: "a guess"\nlink { line { alpha_ps: 50000000 beta_fs_per_byte: 300000 } }\n')
        where = ("complete:4", "--model")
        short = ("--provider", "mem", "--rounds", 2, "--repeat", 2)
        rows = espalier.told("measure", "--node-binary", espalier.NODE, "--candidates", *where, model, "-o", tuned, "--collective",
                             "allreduce,scatter,barrier", "--bytes", "4KiB,8", *short)
        self.assertEqual([(row["collective"], row["bytes"]) for row in rows],
                         [("allreduce", 8), ("allreduce", 4096), ("scatter", 8), ("scatter", 1024), ("barrier", 0)])
        for row in rows:
            size = [] if row["collective"] == "barrier" else ["--bytes", row["bytes"]]
            explained = espalier.told("explain", "--topology", *where, tuned, "--collective", row["collective"], *size)
            self.assertTrue(explained["tuned"])
            found = {one["candidate"]: one["predicted_ps"] for one in explained["sizes"][0]["ranking"]}
            for one in row["candidates"]:
                # The factor is rounded to thousandths.
                self.assertAlmostEqual(found[one["candidate"]], one["measured_s"] * 1e12, delta=one["predicted_ps"] * 0.001 + 1)
            best = min(row["candidates"], key=lambda one: one["measured_s"])
            taken = explained["sizes"][0]["ranking"][0]["candidate"]
            # Both factors are rounded to thousandths: each time is off by at most half of one.
            rounding = {one["candidate"]: one["predicted_ps"] * 0.0005 + 1 for one in row["candidates"]}
            self.assertAlmostEqual(found[taken], found[best["candidate"]], delta=rounding[taken] + rounding[best["candidate"]])
        # The prediction of a run is that of the ranking.
        run = self.right("--topology", *where, tuned, "--collective", "allreduce", "--bytes", "4KiB", "--provider", "mem")
        explained = espalier.told("explain", "--topology", *where, tuned, "--collective", "allreduce", "--bytes", "4KiB")
        self.assertAlmostEqual(run["runs"][0]["predicted_s"], explained["sizes"][0]["ranking"][0]["predicted_ps"] * 1e-12, delta=1e-9)
        # Tuned again, a collective has its new factors, and the others keep theirs.
        again = self.tune(*where, tuned, "-o", tuned, "--collective", "scatter", "--bytes", "64", *short)
        self.assertEqual(again.returncode, 0, again.stderr)
        text = tuned.read_text()
        self.assertEqual([text.count(f'collective: "{name}"') for name in ("allreduce", "scatter", "barrier", "reduce")], [1, 1, 1, 0])
        self.assertIn("bytes: 16", text)
        self.assertNotIn("bytes: 1024", text)
        self.assertIn('found_by: "a guess"', text)

    def test_tunes_every_kind_of_topology(self):
        model, tuned = self.path / "model.textproto", self.path / "tuned.textproto"
        model.write_text("link { line { alpha_ps: 50000000 beta_fs_per_byte: 300000 } }\n")
        for topology in ("mesh:2x2", "hosts:2x2", "crossbar:2x2", "fattree:k=2,h=2,c=1"):
            where = (topology, "--collective", "allgather", "--bytes")
            done = self.tune(*where, 32, "--model", model, "-o", tuned, "--provider", "mem", "--rounds", 1, "--repeat", 1)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f'topology: "{topology}"', tuned.read_text())
            self.assertIn("and tuned by runs", espalier.call("explain", "--topology", *where, 8, "--model", tuned).stdout)
        self.assertIn('candidate: "leaf"', tuned.read_text())  # whose routers are nodes, too

    def test_refused_tuning_writes_nothing(self):
        model, tuned = self.path / "model.textproto", self.path / "tuned.textproto"
        model.write_text("link { line { alpha_ps: 20000000 beta_fs_per_byte: 1000000 } }\n")
        words = ("complete:4", "--model", model, "-o", tuned)
        self.refused(self.tune(*words[:-2]), "--output")
        self.refused(self.tune(words[0], *words[3:]), "--model")
        self.refused(self.measure(*words[1:]), "--model applies only to --candidates")
        self.refused(self.tune(*words, "--receivers", 2), "--receivers excludes --candidates")
        self.refused(espalier.call("tune"), "espalier measure --candidates")
        self.refused(self.tune(*words, "--collective", "sum"), "'sum'")
        self.refused(self.tune(*words, "--collective", "scan,scan"), "twice")
        self.refused(self.tune(*words, "--bytes", "many"), "many")
        self.refused(self.tune(*words, "--provider", "carrier-pigeon"), "carrier-pigeon")
        self.refused(self.tune(*words, "--ranks-per-host", 4), "--model with cores")
        self.refused(self.tune("circle:4", *words[1:]), "circle:4")
        self.refused(self.tune(*words[:3], "-o", self.path / "no" / "model"), "no/model")
        self.assertFalse(tuned.exists())

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
            self.refused(espalier.run_text(file, "--bytes", 8, "--model", model), "model '", "line 1")
        self.refused(espalier.call("simulate", file, "--bytes", 8, "--model", self.path / "no"), "cannot read")


if __name__ == "__main__":
    unittest.main(verbosity=2)
