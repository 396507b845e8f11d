#!/usr/bin/python3
"""espalier doctor: which providers serve, what the host has, what to do about a problem; and the provider that FI_PROVIDER names."""
import json
import os
import subprocess
import unittest

import espalier

# What doctor says of libfabric's shared memory, and what to do.
SHM = ("a peer that is stopped or killed can block all processes that share its memory", "use mem, which joins the processes of one host")


def call(*words, before=(), node=espalier.NODE, **variables):
    environment = {name: value for name, value in os.environ.items() if name != "FI_PROVIDER"} | variables
    return subprocess.run([*before, espalier.COMMAND, *words, "--node-binary", node], capture_output=True, text=True, env=environment,
                          stdin=subprocess.DEVNULL)


def doctor(*words, **more):
    return call("doctor", *words, **more)


class Doctor(espalier.FolderTest):
    def report(self, *words, status=0, **more):
        done = doctor("--format", "json", *words, **more)
        self.assertEqual(done.returncode, status, done.stderr)
        value = json.loads(done.stdout)
        return ({provider["provider"]: provider for provider in value["providers"]}, {fact["name"]: fact for fact in value["host"]}, done)

    def test_providers(self):
        providers, facts, _ = self.report()
        self.assertTrue(providers["tcp"]["serves"], providers["tcp"])
        self.assertIn("remote writes", providers["tcp"]["offers"])
        self.assertEqual((providers["shm"]["problem"], providers["shm"]["what_to_do"]), SHM)
        self.assertEqual(providers["mem"]["served_by"], "mem")
        self.assertIn("one host", providers["mem"]["offers"])
        for provider in providers.values():
            self.assertEqual(provider["serves"], provider["problem"] == "", provider)
            self.assertEqual(provider["serves"], provider["what_to_do"] == "", provider)
            self.assertRegex(provider["version"], r"^built-in$" if provider["provider"] == "mem" else r"^\d+\.\d+$")
        for fact in facts.values():
            self.assertTrue(fact["value"], fact)
            self.assertEqual(fact["problem"] == "", fact["what_to_do"] == "", fact)
        for name in ("interface lo", "open files", "file size", "memory of other processes", "processes", "locked memory", "hugepages", "clock", "cores", "TCP congestion control", "PMIx", "srun", "ssh", "versions"):
            self.assertIn(name, facts)
        self.assertRegex(facts["versions"]["value"], r"^libfabric \d\S*, Protobuf \d+\.\d+\.\d+, Expat \d+\.\d+\.\d+, libsodium \d+\.\d+\.\d+")
        control = facts["TCP congestion control"]
        self.assertEqual(control["value"].startswith("bbr"), "cubic" in control["what_to_do"], control)

    def test_interfaces(self):
        """Each interface has a verdict; the published addresses are those of the interfaces that the job uses, in order."""
        lines = ("ip link set lo up", "ip link add docker0 type bridge", "ip address add 172.17.0.1/16 dev docker0", "ip link set docker0 up",
                 "ip link add eth0 type veth peer name far0", "ip address add 10.0.0.1/24 dev eth0", "ip address add fd00::1/64 dev eth0 nodad",
                 "ip link set far0 up", "ip link set eth0 up", "ip link add eth1 type veth peer name far1", "ip address add 10.0.1.1/24 dev eth1",
                 "ip link set eth1 up", 'exec "$@"')
        inside = ["unshare", "-n", "sh", "-ec", "; ".join(lines), "sh"]
        if subprocess.run([*inside, "true"], capture_output=True).returncode != 0:
            self.skipTest("no network namespaces here")
        found = json.loads(doctor("--format", "json", before=inside).stdout)
        interfaces = {each["interface"]: each for each in found["interfaces"]}
        self.assertEqual({name: (each["state"], each["kind"]) for name, each in interfaces.items() if name[:3] != "far"},
                         {"lo": ("up", "loopback"), "docker0": ("up", "bridge"), "eth0": ("up", "network"), "eth1": ("no carrier", "network")})
        self.assertEqual([address for address in found["published"] if not address.startswith("fe80")], ["10.0.0.1", "fd00::1", "172.17.0.1"])
        self.assertEqual([(each["address"], each["bits"], each["place"]) for each in interfaces["eth0"]["addresses"]][:2],
                         [("10.0.0.1", 24, 1), ("fd00::1", 64, 2)])
        self.assertIn("often have the same address", interfaces["docker0"]["verdict"])
        facts = {fact["name"]: fact["value"] for fact in found["host"]}
        self.assertIn("10000 Mbit/s, as its driver says", facts["interface eth0"])
        self.assertIn("rate unknown: a job with a choice measures it", facts["interface docker0"])
        self.assertEqual(interfaces["eth1"]["verdict"], "not published: it has no carrier")
        found = json.loads(doctor("--format", "json", before=inside, ESPALIER_INTERFACE="!docker0").stdout)
        self.assertNotIn("172.17.0.1", found["published"])
        self.assertIn("ESPALIER_INTERFACE leaves it out", next(each["verdict"] for each in found["interfaces"] if each["interface"] == "docker0"))
        done = doctor(before=inside, ESPALIER_INTERFACE="eth7")
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
        self.assertIn("'eth7'", done.stderr)
        twice = inside[:4] + ["; ".join([*lines[:-1], "ip address add 10.0.0.1/24 dev docker0", lines[-1]]), "sh"]
        found = json.loads(doctor("--format", "json", before=twice).stdout)
        facts = {fact["name"]: fact for fact in found["host"]}
        self.assertIn("interface docker0 has the same address", facts["interface eth0"]["problem"])
        self.assertIn("10.0.0.1/24 (place 1)", facts["interface eth0"]["value"])

    def test_own_name(self):
        (self.path / "nsswitch").write_text("hosts: files\n")
        for line, problem in (("127.0.1.1 node7", ""), ("", "host 'node7' is unknown: Name or service not known, so MASTER_ADDR cannot be it on this host"),
                              ("203.0.113.9 node7", "this host has no such address, so rank 0 cannot listen there")):
            (self.path / "hosts").write_text(f"127.0.0.1 localhost\n{line}\n")
            inside = ["unshare", "-um", "sh", "-ec", f'hostname node7; mount --bind {self.path}/hosts /etc/hosts; mount --bind {self.path}/nsswitch /etc/nsswitch.conf; exec "$@"', "sh"]
            if subprocess.run([*inside, "true"], capture_output=True).returncode != 0:
                self.skipTest("no namespaces of names and mounts here")
            _, facts, _ = self.report(before=inside)
            self.assertEqual(facts["own name"]["problem"], problem)
            self.assertEqual("listens at all addresses" in facts["own name"]["value"], not problem, facts["own name"])

    def test_library_of_the_mpi_abi(self):
        """The library that the system's link leads to; no line if no library has the ABI, or it ends the process."""
        library = self.path / "libmpi_abi.so.1"
        library.symlink_to(os.environ["ESPALIER_OTHER_ABI"])
        for version, row in (("Open MPI v6.0.0rc2, package: Debian", "Open MPI v6.0.0rc2"),
                             ("MPICH Version:      5.0.2\nMPICH Release date: May", "MPICH Version: 5.0.2")):
            _, facts, _ = self.report(LD_LIBRARY_PATH=str(self.path), OTHER_ABI_VERSION=version)
            self.assertEqual(facts[library.name]["value"], row)
        self.assertNotIn(library.name, self.report(LD_LIBRARY_PATH=str(self.path))[1])
        library.unlink()
        library.write_text("no library")
        self.assertNotIn(library.name, self.report(LD_LIBRARY_PATH=str(self.path))[1])

    def test_text(self):
        done = doctor()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^libfabric \d")
        self.assertRegex(done.stdout, r"\n  tcp +\S+ +serves.*\n    offers: ")
        self.assertEqual(done.stdout.count("    problem: "), done.stdout.count("    what to do: "))

    def test_one_provider(self):
        self.assertEqual(list(self.report("--provider", "tcp")[0]), ["tcp"])
        providers, _, done = self.report("--provider", "tcp;ofi_rxm", status=1)
        self.assertIn("ofi_rxm crashes", providers["tcp;ofi_rxm"]["problem"])
        for variables in ({}, {"FI_PROVIDER": "mem"}, {"FI_PROVIDER": "udp"}):
            self.assertEqual(list(self.report("--provider", "mem", **variables)[0]), ["mem"])
        providers, _, done = self.report("--provider", "sockets", status=1)
        self.assertEqual(providers["sockets"]["problem"], "it is deprecated upstream and slow")
        self.assertEqual(done.stderr, 'espalier: provider "sockets" cannot serve: it is deprecated upstream and slow\n')
        providers, _, done = self.report("--provider", "shm", status=1)
        self.assertEqual((providers["shm"]["problem"], providers["shm"]["what_to_do"]), SHM)
        self.assertEqual(done.stderr, f'espalier: provider "shm" cannot serve: {SHM[0]}\n')
        self.assertIn("FI_EP_RDM", self.report("--provider", "udp", status=1)[2].stderr)

    def test_bad_input(self):
        for words, node, text in ((("--provider", "carrier-pigeon"), espalier.NODE,
                                   'provider "carrier-pigeon": libfabric has no such provider, or no device for it; expected one of: mem, net, tcp\n'),
                                  (("--format", "xml"), espalier.NODE, "xml"), ((), "/no/such", "cannot run '/no/such'")):
            self.refused(doctor(*words, node=node), text)
        done = doctor(node="/bin/false")
        self.assertEqual((done.returncode, done.stderr), (1, "espalier: /bin/false --providers failed: exit status 1\n"))
        done = doctor(node="/bin/echo")
        self.assertEqual((done.returncode, done.stderr), (1, "espalier: '--providers' is not a line of a list of providers\n"))

    def test_fi_provider(self):
        providers, _, _ = self.report(FI_PROVIDER="^udp")
        self.assertTrue(providers["tcp"]["serves"])
        self.assertEqual(providers["udp"]["problem"] if "udp" in providers else "FI_PROVIDER hides it from libfabric",
                         "FI_PROVIDER hides it from libfabric")
        self.assertIn("FI_PROVIDER=^udp restricts what libfabric shows\n    what to do: unset FI_PROVIDER", doctor(FI_PROVIDER="^udp").stdout)
        self.assertIn('problem: FI_PROVIDER=^tcp hides the provider "tcp", the default,', doctor(FI_PROVIDER="^tcp").stdout)
        for none in ("udp", "shm"):
            done = doctor(FI_PROVIDER=none)
            self.assertEqual((done.returncode, done.stderr), (1, "espalier: no provider of libfabric can serve on this host\n"))
        done = doctor("--provider", "tcp", FI_PROVIDER="udp")
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)

    def test_memory_and_a_provider(self):
        everything, _, _ = self.report()
        found = json.loads(doctor("--provider", "mem+tcp", "--format", "json").stdout)
        self.assertEqual({key: found["providers"][0][key] for key in ("version", "offers", "problem")},
                         {key: everything["tcp"][key] for key in ("version", "offers", "problem")})
        self.assertIn("lock none", next(fact["value"] for fact in found["host"] if fact["name"] == "locked memory"))

    def test_fi_provider_tcp_is_the_same_tcp(self):
        everything, _, _ = self.report()
        restricted, _, _ = self.report(FI_PROVIDER="tcp")
        self.assertEqual(restricted["tcp"], everything["tcp"])

    def test_a_poor_host(self):
        """Low limits, one core, and a network namespace of its own with loopback down: each is a problem with what to do."""
        low = ["sh", "-c", 'ulimit -Sn 100 && exec "$@"', "sh", "taskset", "-c", "0"]
        _, facts, _ = self.report(before=low)
        self.assertEqual(facts["open files"]["what_to_do"], "ulimit -Sn hard")
        if os.cpu_count() > 1:
            self.assertIn("affinity", facts["cores"]["problem"])
        small_files = ["sh", "-c", 'ulimit -f 100 && exec "$@"', "sh"]
        providers, facts, _ = self.report(before=small_files)
        self.assertFalse(providers["mem"]["serves"])
        self.assertIn("shared memory counts as a file", providers["mem"]["problem"])
        self.assertIn("mem cannot serve", facts["file size"]["problem"])
        self.assertEqual(doctor("--provider", "mem", before=small_files).returncode, 1)
        _, facts, _ = self.report(PATH=str(self.path))
        self.assertIn("slurm-client", facts["srun"]["what_to_do"])
        if subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode != 0:
            self.skipTest("no network namespaces here")
        done = doctor("--format", "json", before=["unshare", "-n"])
        facts = {fact["name"]: fact for fact in json.loads(done.stdout)["host"]}
        self.assertEqual(facts["interfaces"]["problem"], "other hosts cannot reach this one")


class Chosen(espalier.FolderTest):
    """The provider of run and measure, without --provider and with it."""

    def test_run(self):
        what = ["run", *espalier.what("complete:2", "broadcast", "chain"), "--bytes", "8"]
        for variables, words, provider in (({}, (), "tcp"), ({"FI_PROVIDER": "mem"}, (), "mem"),
                                           ({"FI_PROVIDER": "udp"}, ("--provider", "mem"), "mem"), ({"FI_PROVIDER": "tcp"}, ("--provider", "tcp"), "tcp"),
                                           ({"FI_PROVIDER": "^udp"}, (), "tcp"), ({"FI_PROVIDER": "tcp"}, (), "tcp"),
                                           ({"FI_PROVIDER": "udp,shm,tcp"}, (), "tcp")):
            done = call(*what, *words, **variables)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f", over {provider};", done.stdout)

    def test_contradictions(self):
        model = self.path / "m"
        for command in (["run"], ["measure"], ["measure", "--candidates", "complete:2", "--model", model, "-o", model]):
            refusal = f'provider "shm": {SHM[0]}; expected {SHM[1].removeprefix("use ")}\n'
            for words, name, text in (
                    (("--provider", "verbs"), "tcp", 'espalier: FI_PROVIDER=tcp hides the provider "verbs" from libfabric; expected provider '
                     '"tcp", or FI_PROVIDER unset\n'), (("--provider", "shm"), None, f"espalier: {refusal}"),
                    ((), "shm", f"espalier: FI_PROVIDER=shm: {refusal}"), ((), "udp", 'provider "udp": it has no reliable datagram endpoints'),
                    ((), "nosuch", 'or no device for it; expected one of: mem; without FI_PROVIDER also tcp\n')):
                self.refused(call(*command, *words, **({"FI_PROVIDER": name} if name else {})), text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
