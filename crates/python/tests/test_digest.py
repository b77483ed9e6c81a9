"""Digests equal those of the command line: every design that ships, eight programs, several machines."""

import pytest
import tombolo

PROGRAMS = [
    "triad,elements=8192,iterations=2",
    "vectoradd,elements=4096",
    "pathfinder,columns=4096,rows=20",
    "nw,length=128,tile=16",
    "hotspot,columns=64,rows=64,pyramid=2,steps=4",
    "stencil2d,columns=128,rows=34,iterations=2",
    "jacobi,columns=128,rows=34,iterations=2",
    "histogram,columns=64,rows=64",
]
# Designs of one module a GPU, of several, of a coherent host; of chiplets.
MACHINES = {"umh-2-pcie": "1", "gps-4-pcie4": "1/16", "hmg-4x4": "1/32", "chiplet-4": "1/4"}
WITH_A_RESULT = set()


@pytest.mark.parametrize("machine", MACHINES)
def test_every_design_and_program_has_the_digest_of_the_command_line(machine, command_line):
    designs, scale = tombolo.designs()["name"], MACHINES[machine]
    words = ["--machine", machine, "--scale", scale, "--designs", ",".join(designs), "--workload", *PROGRAMS]
    _, document, _ = command_line("compare", *words, "--json")
    try:
        own = tombolo.compare(machine, designs, PROGRAMS, scale=scale)
    except tombolo.Error as error:
        # Designs that the machine does not fit.
        own = error.result
    assert own.get("failures") and own.failures.to_list() == document["failures"] or not document["failures"]
    digests = [(run.design, run.workload, run.digest, run.statistics_digest) for run in own.runs]
    assert digests == [
        (run["design"], run["workload"], run["digest"], run["statistics_digest"]) for run in document["runs"]
    ]
    WITH_A_RESULT.update((design, workload) for design, workload, _, _ in digests)


def test_every_pair_had_a_result():
    pairs = {(design, workload) for design in tombolo.designs()["name"] for workload in PROGRAMS}
    if WITH_A_RESULT:
        assert WITH_A_RESULT == pairs


@pytest.mark.parametrize("design", ["hmg", "nhcc", "software-flat", "numa-memory-side"])
@pytest.mark.parametrize("program", PROGRAMS[:3])
def test_a_single_run_has_the_digest_of_a_single_command(design, program, command_line):
    words = ["--machine", "hmg-4x4", "--scale", "1/32", "--design", design, "--workload", program]
    _, document, _ = command_line("run", *words, "--json")
    assert tombolo.run("hmg-4x4", design, program, scale="1/32", threads=1).digest == document["digest"]
