"""Programs of a user: columns in memory, as tables on the command line."""

import array
import pathlib
import re
import runpy
import subprocess
import sys

import pytest
import tombolo
from conftest import ROOT

numpy = pytest.importorskip("numpy")

EXAMPLE = ROOT / "examples" / "python" / "ring_allreduce.py"


def stream(program, kind, rows=4096, **more):
    """A kernel that reads its array once, in rows of `kind` integers."""
    data = program.array("data", bytes=128 * rows)
    row = numpy.arange(rows)
    program.launch(
        "read",
        operation="load",
        array=data,
        gpu=(row // (rows // 4)).astype(kind),
        cta=(row // 64 % 16).astype(kind),
        warp=(row // 16 % 4).astype(kind),
        address=128 * row.astype("u8"),
        bytes=128,
        **more,
    )
    return program


@pytest.fixture
def ring(monkeypatch):
    """What the example leaves."""
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE)])
    return runpy.run_path(str(EXAMPLE))


def test_the_ring_is_checked_and_moves_what_it_must(ring, capsys):
    lines = EXAMPLE.read_text().split('"""\n', 1)[1].splitlines()
    assert len([line for line in lines if line.strip()]) <= 40
    run, gpus, size = ring["run"], ring["gpus"], ring["size"]
    assert run.status == 0 and run.check.violations == 0 and run.check.loads > 0
    # Each GPU sends 2 (n - 1) / n of its bytes, and a flag of 4 bytes a warp and step.
    sent = {row.name: row.data_bytes for row in run.links if row.name.endswith(".out")}
    payload = 2 * (gpus - 1) * size // gpus
    flags = 4 * ring["warps"] * 2 * (gpus - 1)
    assert all(payload + flags <= bytes <= payload + 8 * flags for bytes in sent.values()), (sent, payload, flags)


@pytest.mark.parametrize("kind", ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8"])
def test_every_type_of_whole_numbers_is_the_same_program(kind):
    digests = {
        tombolo.run("hmg-4x4", "hmg", stream(tombolo.Program(), one), scale="1/32").digest for one in ("u8", kind)
    }
    assert len(digests) == 1


def test_columns_rows_and_the_table_of_the_command_line_are_one_program(tmp_path, command_line):
    folder = ROOT / "examples" / "traces"
    table = tmp_path / "ring"
    with table.open("w") as file:
        subprocess.run([sys.executable, folder / "ring_allreduce.py", "4", "65536"], stdout=file, check=True)
    words = ["--machine", "gps-4-pcie4", "--design", "gps", "--workload", f"trace:{table}", "--check", "--json"]
    status, document, _ = command_line("run", *words)
    assert (status, document["check"]["violations"]) == (0, 0)
    head, *lines = [line.split(",") for line in table.read_text().splitlines()]
    rows = [{key: value for key, value in zip(head, line) if value} for line in lines]
    program = tombolo.Program("ring")
    sizes = {}
    for row in rows:
        if "array" in row:
            end = int(row["address"]) + int(row["bytes"])
            sizes[row["array"]] = max(sizes.get(row["array"], 0), end)
    for name, size in sizes.items():
        program.array(name, size)
    numbers = ("gpu", "warp", "address", "bytes")
    for kernel in dict.fromkeys(row["kernel"] for row in rows):
        own = [row for row in rows if row["kernel"] == kernel]
        typed = [{key: int(value) if key in numbers else value for key, value in row.items()} for row in own]
        program.launch(kernel, [{key: value for key, value in row.items() if key != "kernel"} for row in typed])
    run = tombolo.run("gps-4-pcie4", "gps", program, check=True)
    assert run.digest == document["digest"]
    assert run.check.to_dict() == document["check"]


def test_codes_with_words_and_lists_are_one_program():
    def built(operation, name):
        program = tombolo.Program()
        program.array("data", 4096)
        program.launch("k", operation=operation, array=name, address=[0, 128, None], bytes=[128, 128, None], warp=0)
        return tombolo.run("hmg-4x4", "hmg", program, scale="1/32").digest

    words = built(["store", "load", "use"], ["data", "data", None])
    codes = built((numpy.array([2, 0, 1], "u1"), ["load", "use", "store"]), (array.array("b", [0, 0, -1]), ["data"]))
    objects = built(numpy.array(["store", "load", "use"], object), numpy.array(["data", "data", None], object))
    assert words == codes == objects


def test_streams_copies_and_several_launches():
    program = tombolo.Program("copies")
    data = program.array("data", bytes=1 << 20, element=4)
    program.copy_to_device(data)
    for kernel in ("first", "second"):
        program.launch(kernel, operation="load", array=data, warp=numpy.arange(32), address=numpy.arange(32) * 128, bytes=128, threads=1024, stream=1)
    program.synchronize()
    program.copy_to_host(data, address=4096, bytes=4096)
    run = tombolo.run("gps-4-pcie4", "numa-memory-side", program)
    assert [row.name for row in run.kernels] == ["first", "second"] and {row.stream for row in run.kernels} == {1}
    with pytest.raises(tombolo.ProgramError, match="the program is complete"):
        program.synchronize()


def test_a_program_is_a_file_for_the_command_line(tmp_path, command_line):
    program = stream(tombolo.Program("saved"), "u4")
    program.save(tmp_path / "saved.tombolo")
    words = ["--machine", "hmg-4x4", "--scale", "1/32", "--design", "hmg", "--workload", "trace:saved.tombolo"]
    _, document, _ = command_line("run", *words, "--json")
    comparison = tombolo.compare("hmg-4x4", ["hmg", "nhcc"], [program, tmp_path / "saved.tombolo"], scale="1/32")
    assert comparison.runs[0].digest == document["digest"] == comparison.runs[2].digest
    path = pathlib.Path(program.path())
    assert path.exists()
    del program
    assert not path.exists()


WRONG = [
    (dict(bytes=numpy.array([128, 1 << 20])), "row 1: expected in column bytes, a number from 1 to 65280"),
    (dict(operation=["load", "lod"]), "row 1: expected in column operation, an operation of a warp: load,"),
    (dict(address=[0, 4096]), "row 1: expected in column address, an offset inside array data, of 4096 bytes"),
    (dict(array="dat"), "row 0: expected in column array, an array that was declared, found `dat`"),
    (dict(scope="sys"), "row 0: expected in column scope, nothing"),
    (dict(flag=[None, 3]), "row 1: expected in column flag, nothing"),
    (dict(adress=0), "expected a column: gpu, stream,"),
    (dict(warp=[0, 1, 2]), "expected 3 rows in column address, as in column warp, found 2"),
]


@pytest.mark.parametrize("change, text", WRONG, ids=[str(change) for change, _ in WRONG])
def test_a_wrong_column_is_refused_with_its_row(change, text):
    program = tombolo.Program("p")
    data = program.array("data", bytes=4096)
    columns = dict(operation="load", array=data, address=[0, 128], bytes=128)
    with pytest.raises(tombolo.ProgramError, match=re.escape(text)) as raised:
        program.launch("k", **{**columns, **change})
    assert str(raised.value).startswith("program p, kernel k")


def test_values_of_wrong_types_are_refused_with_their_column():
    program = tombolo.Program("p")
    columns = dict(operation="load", bytes=128)
    for wrong in (numpy.zeros(2), [0, 0.5], [0, "x"], numpy.zeros((2, 2), "u4"), object(), numpy.arange(8)[::2]):
        with pytest.raises((TypeError, ValueError), match="column address: "):
            program.launch("k", address=wrong, **columns)
    with pytest.raises(TypeError, match="column warp: given for all rows and for a row"):
        program.launch("k", [dict(warp=0)], warp=1)
    with pytest.raises(ValueError, match="name: expected a file's name, found 'a/b'"):
        tombolo.Program("a/b")
    with pytest.raises(tombolo.ProgramError, match="host operation array: expected in column bytes"):
        program.array("none", 0)
    with pytest.raises(tombolo.ProgramError, match="expected a launch"):
        program.path()


def test_large_columns_are_read_in_place():
    # 4 million rows: 32 MB of addresses, 4 MB of each other column.
    code = """
import resource, numpy, tombolo
rows = 1 << 22
row = numpy.arange(rows)
address = 128 * (row % (1 << 20))
cta, warp = (row // 1024).astype("u2"), (row // 64 % 16).astype("u1")
del row
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
program = tombolo.Program()
data = program.array("data", bytes=128 << 20)
before = peak()
program.launch("k", operation="load", array=data, cta=cta, warp=warp, address=address, bytes=128)
print(peak() - before, address.nbytes + cta.nbytes + warp.nbytes)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    grown, columns = map(int, done.stdout.split())
    assert grown < 2 * columns
