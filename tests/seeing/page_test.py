#!/usr/bin/python3
"""The page of `espalier draw` in a real browser: nodes, links, steps, arrows and holdings against `espalier show`."""
import json
import re
import unittest

import browser
import pictures
import schedules

SCHEDULES = {
    "mesh": ("mesh:4x4", "broadcast", "two-tree"),
    "unplaced": ("mesh:4x4", "broadcast", "two-tree", "--embedding", "none"),
    "hop-by-hop": ("mesh:4x4", "allreduce", "two-tree", "--links", "hop-by-hop"),
    "allreduce": ("complete:16", "allreduce", "two-tree"),
    "tree": ("fattree:k=4,h=2,c=1", "allgather", "leaf"),
    "exchange": ("fattree:k=2,h=3,c=k", "all-to-all", "leaf"),
    "crossbar": ("crossbar:4x4", "broadcast", "fractional", "--run-length", "2"),
    "board": (f"file:{schedules.ROOT}/examples/topologies/broken-mesh.textproto", "reduce", "chain"),
    "postal": ("complete:16", "allreduce", "combine", "--lambda", "3"),
    "scatter": ("mesh:4x4", "scatter", "binomial"),
    "scan": ("complete:13", "scan", "two-tree"),
    "barrier": ("complete:16", "barrier", "dissemination"),
}


class Page(schedules.FolderTest):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()

    def draw(self, name, *more, **how):
        file = schedules.compile(self.path / f"{name}.esp", *SCHEDULES[name])
        schedules.espalier("draw", file, "-o", self.path / "page.html", *more)
        self.browser.open(self.path / "page.html", **how)
        self.assertEqual(self.browser.complaints(), [])
        return file

    def blocks(self):
        return int(self.browser.script("return document.getElementById('blocks').value"))

    def compare(self, file):
        """Compares the page in its present state with `espalier show` of its N: every step's arrows, and the blocks held at the end."""
        page, shown = self.browser, schedules.Shown(file, self.blocks())
        topology = shown.topology
        self.assertEqual(page.count(".node"), len(topology["nodes"]))
        self.assertEqual(page.count(".node.router"), sum(node["kind"] == "router" for node in topology["nodes"]))
        links = page.script("return [...document.querySelectorAll('.link')].map((it) => [+it.dataset.from, +it.dataset.to])")
        every = sorted([its["from"], its["to"]] for its in topology["links"])
        if topology["topology"].startswith("complete:"):  # only those that programs use
            used = {its[1:3] for its in shown.transfers()}
            self.assertLessEqual(used, {tuple(link) for link in links})
            self.assertLess(len(links), len(every))
        else:
            self.assertEqual(sorted(links), every)
        page.press("4")
        self.assertGreaterEqual(page.count("#gantt .column"), shown.steps)
        steps = int(page.script("return document.getElementById('slider').max"))
        self.assertEqual(page.count("#gantt .column"), steps)
        for step in range(steps):
            page.set("slider", step + 1)
            right = [(start, end, segment, block) for _, start, end, segment, block in shown.transfers(step)]
            self.assertEqual(page.arrows(), sorted(right), f"step {step}")
        self.assertEqual(page.complaints(), [])
        return shown

    def held(self):
        return self.browser.script("return [...document.querySelectorAll('.node')].map((it) => +it.dataset.held)")

    def test_every_step_of_every_kind(self):
        for name in SCHEDULES:
            with self.subTest(name=name):
                file = self.draw(name)
                shown = self.compare(file)
                ends = self.held()
                self.browser.press("HOME")
                begins = self.held()
                ranks = shown.json["ranks"]
                self.assertEqual(sum(begins), 0)
                whole = shown.json["segments"] * self.blocks()
                collective = shown.json["collective"]
                expected = {"broadcast": [whole] * (ranks - 1), "reduce": [whole], "scatter": [self.blocks()] * ranks,
                            "barrier": None}.get(collective, [whole] * ranks)
                if expected is not None:
                    self.assertEqual(sorted(count for count in ends if count), expected)

    def test_blocks_are_chosen_on_the_page(self):
        file = self.draw("mesh", "--blocks", "2")
        self.assertEqual(self.blocks(), 2)
        self.compare(file)
        self.browser.set("blocks", 11)
        self.assertEqual(self.blocks(), 11)
        shown = self.compare(file)
        self.assertEqual(shown.json["blocks"], 11)

    def test_one_block_stays_one(self):
        for name in ("scatter", "postal", "barrier"):
            file = self.draw(name)
            self.assertTrue(self.browser.script("return document.getElementById('blocks').disabled"))
            self.browser.set("blocks", 3)
            self.assertEqual(self.blocks(), 1)
            self.compare(file)

    def test_keys_move_the_step(self):
        file = self.draw("mesh", "--blocks", "4")
        shown, page = schedules.Shown(file, 4), self.browser

        def now():
            return int(page.script("return document.getElementById('slider').value"))

        # It opens on the first step with the most transfers.
        counts = [len(list(shown.transfers(step))) for step in range(shown.steps)]
        self.assertEqual(now() - 1, counts.index(max(counts)))
        page.press("HOME")
        self.assertEqual(now(), 0)
        page.press("ARROW_RIGHT", "ARROW_RIGHT", "ARROW_RIGHT", "ARROW_LEFT")
        self.assertEqual(now(), 2)
        self.assertEqual(page.arrows(), sorted(its[1:] for its in shown.transfers(1)))
        page.press("END")
        self.assertEqual(now(), shown.steps)
        page.press("HOME")
        self.assertEqual(now(), 0)
        page.press(" ")
        page.script("return 0")
        self.assertEqual(page.script("return document.getElementById('play').textContent"), "❙❙")
        page.press(" ")
        self.assertEqual(page.script("return document.getElementById('play').textContent"), "▶")

    def test_trees_and_load(self):
        for name in ("mesh", "tree"):
            file = self.draw(name, "--blocks", "3")
            shown, page = schedules.Shown(file, 3), self.browser
            page.press("2")
            page.set("segment", "all")
            pairs = {its[1:4] for its in shown.transfers()}
            self.assertEqual({its[:3] for its in page.arrows()}, pairs)
            page.press("3")
            loads = page.script("return [...document.querySelectorAll('.link')].map((it) => +it.dataset.load)")
            self.assertEqual(page.count(".arrow"), 0)
            self.assertGreater(max(loads), 0.4)
            page.press("5")
            self.assertEqual(page.count("#gantt[data-kind=link] .name"), sum(load > 0 for load in loads))
            self.assertEqual(page.complaints(), [])

    def test_more_blocks_than_lanes_show(self):
        # Two trees not placed on the mesh, routed XY: some links carry two blocks in a step.
        file = self.draw("unplaced")
        shown, seen = schedules.Shown(file, self.blocks()), 0
        for step in range(shown.steps):
            carried = {}
            for _, start, end, _, _ in shown.transfers(step):
                while start != end:
                    along = start % 4 != end % 4
                    hop = start + (1 if end % 4 > start % 4 else -1) if along else start + (4 if end > start else -4)
                    carried[start, hop] = carried.get((start, hop), 0) + 1
                    start = hop
            self.browser.set("slider", step + 1)
            over = self.browser.script("return [...document.querySelectorAll('.over')].map((it) => [+it.dataset.from, +it.dataset.to])")
            self.assertEqual(sorted(map(tuple, over)), sorted(link for link, blocks in carried.items() if blocks > 1))
            seen += len(over)
        self.assertGreater(seen, 0)

    def test_labels_do_not_overlap(self):
        self.draw("allreduce")
        for step in range(int(self.browser.script("return document.getElementById('slider').max"))):
            self.browser.set("slider", step + 1)
            boxes = self.browser.script(
                "return [...document.querySelectorAll('.arrow text')].map((it) => [+it.getAttribute('x'), +it.getAttribute('y'),"
                " it.textContent.length])")
            for i, (x, y, letters) in enumerate(boxes):
                for other, up, others in boxes[:i]:
                    self.assertFalse(abs(x - other) < 4 * letters and abs(x - other) < 4 * others and abs(y - up) < 8, f"step {step}")

    def test_it_explains_its_signs(self):
        self.draw("tree")
        text = self.browser.script("return document.getElementById('signs').textContent")
        for sign in ("a rank:", "a router:", "the ring", "a dashed arrow", "window", "contention guarantee"):
            self.assertIn(sign, text)

    def test_light_and_dark(self):
        for dark in (False, True):
            self.draw("mesh", dark=dark)
            self.assertEqual(self.browser.script("return document.documentElement.dataset.theme"), "dark" if dark else "light")
        self.browser.script("document.getElementById('theme').click()")
        self.assertEqual(self.browser.script("return document.documentElement.dataset.theme"), "light")

    def test_it_needs_no_network(self):
        self.browser.requests()
        self.draw("mesh")
        self.assertEqual([url for url in self.browser.requests() if not url.startswith("file://")], [])
        text = (self.path / "page.html").read_text()
        self.assertEqual(re.findall(r"""(?:src|href)\s*=|url\(|@import|https?://(?!www\.w3\.org/2000/svg)""", text), [])

    def test_a_real_trace_is_drawn(self):
        file = schedules.compile(self.path / "mesh.esp", *SCHEDULES["mesh"])
        schedules.espalier("run", file, "--trace", self.path / "trace.json", "--bytes", "64KiB", "--provider", "mem", "--warmup", "1")
        events = json.loads((self.path / "trace.json").read_text())["traceEvents"]
        blocks = json.loads((self.path / "trace.json").read_text())["otherData"]["blocks"]
        self.draw("mesh", "--trace", self.path / "trace.json", "--blocks", blocks)
        self.check_trace(events)
        # The same, opened by hand on a page that came without.
        self.draw("mesh", "--blocks", blocks)
        self.assertEqual(self.browser.count("#trace"), 0)
        self.browser.driver.find_element(browser.By.ID, "file").send_keys(str(self.path / "trace.json"))
        self.await_trace()
        self.check_trace(events)
        (self.path / "no.json").write_text("{}")
        self.browser.driver.find_element(browser.By.ID, "file").send_keys(str(self.path / "no.json"))
        self.browser.driver.execute_async_script(
            "const done = arguments[0], look = () => /not a trace/.test(document.getElementById('lines-note').textContent)"
            " ? done() : setTimeout(look, 20); look()")

    def await_trace(self):
        self.browser.driver.execute_async_script(
            "const done = arguments[0], look = () => document.getElementById('trace') ? done() : setTimeout(look, 20); look()")

    def check_trace(self, events):
        page = self.browser
        for kind, selector in (("X", ".slice"), ("f", ".flow")):
            self.assertEqual(page.count(selector), sum(event["ph"] == kind for event in events))
        for name, selector in (("process_name", "#trace .process"), ("thread_name", "#trace .track")):
            self.assertEqual(page.count(selector), sum(event["name"] == name for event in events))
        # A click on a slice goes to its step.
        page.script("document.querySelector('.slice.send').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
        step = page.script("return +document.querySelector('.slice.send').dataset.step")
        self.assertEqual(int(page.script("return document.getElementById('slider').value")), step + 1)
        self.assertEqual(page.complaints(), [])


    def test_pictures_of_the_documents(self):
        made = pictures.make(self.path, self.browser)
        self.assertEqual({path.name for path in made} - {path.name for path in (schedules.ROOT / "docs/pictures").iterdir()}, set())
        for path in made:
            self.assertTrue(path.read_bytes().startswith(b"\x89PNG\r\n"), path)
            self.assertGreater(path.stat().st_size, 5000)
            self.assertIn(path.name, (schedules.ROOT / "docs/seeing.md").read_text())


if __name__ == "__main__":
    browser.or_skip()
    unittest.main(verbosity=2)
