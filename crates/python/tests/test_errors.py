"""Wrong input raises an exception with the text of the command line, which names the input."""

import warnings

import pytest
import tombolo
from conftest import SMALL

WRONG = [
    (dict(design="hgm"), tombolo.DescriptionError, 'no design is called "hgm"; there are '),
    (dict(machine="hmg-4x5"), tombolo.DescriptionError, 'no machine is called "hmg-4x5"'),
    (dict(workload="tria"), tombolo.ProgramError, 'no workload is called "tria" (did you mean triad?)'),
    (dict(workload="triad,elemens=4"), tombolo.ProgramError, "elements"),
    (dict(set={"l2.wais": 8}), tombolo.DescriptionError, "l2.ways"),
    (dict(set={"l2.ways": 0}), tombolo.DescriptionError, "l2.ways"),
    (dict(scale="2"), tombolo.ArgumentError, "invalid value '2' for '--scale <F>'"),
    (dict(threads=0), tombolo.ArgumentError, "'--threads <N>'"),
    (dict(time="regoin"), tombolo.ArgumentError, "a similar value exists: 'region'"),
    (dict(check=True, sample=True), tombolo.ArgumentError, "'--check' cannot be used with '--sample'"),
    (dict(out="/nowhere/run.json"), tombolo.FileError, "/nowhere/run.json"),
    (dict(workload="trace:/nowhere"), tombolo.ProgramError, "/nowhere"),
]


@pytest.mark.parametrize("change, kind, text", WRONG, ids=[str(change) for change, _, _ in WRONG])
def test_the_text_is_that_of_the_command_line(change, kind, text, command_line):
    arguments = {**SMALL, **change}
    with pytest.raises(kind) as raised:
        tombolo.run(**arguments)
    assert text in str(raised.value)
    words = []
    for key, value in arguments.items():
        if key == "set":
            words += [word for path, one in value.items() for word in ("--set", f"{path}={one}")]
        else:
            words.append(f"--{key}" if value is True else f"--{key}={value}")
    status, document, printed = command_line("run", *words, "--json")
    assert (status, document) == (2, None)
    # The name of a temporary file differs from run to run.
    assert f"error: {raised.value}".split(" at path ")[0] in printed


def test_the_key_of_a_dict_is_named():
    with pytest.raises(tombolo.DescriptionError, match=r"^mine\.toml:\d.*gpu_link\.rat"):
        tombolo.run(**{**SMALL, "machine": {"name": "mine", "base": "hmg-4x4", "gpu_link.rat": "1GB/s"}})
    with pytest.raises(TypeError, match="design, key l2_write: expected a number, a string"):
        tombolo.run(**{**SMALL, "design": {"base": "hmg", "l2_write": object()}})


@pytest.mark.parametrize("name", ["machine", "design", "workload"])
def test_a_value_of_a_wrong_type_is_named(name):
    with pytest.raises(TypeError, match=f"{name}: expected a name, a path or a .*, found 5"):
        tombolo.run(**{**SMALL, name: 5})


def test_wrong_arguments_of_functions_are_named(folder):
    with pytest.raises(TypeError, match="desing"):
        tombolo.run("hmg-4x4", desing="hmg", workload="triad")
    with pytest.raises(TypeError, match="vary: expected a dict"):
        tombolo.sweep("hmg-4x4", "hmg", "triad", vary=["l2.bytes=3MB"])
    with pytest.raises(TypeError, match="sweep\\(\\) needs workloads"):
        tombolo.sweep("hmg-4x4", "hmg", vary={"l2.ways": [8]})
    with pytest.raises(TypeError, match="spec: .* machine"):
        tombolo.sweep("hmg-4x4", spec="own.toml")
    with pytest.raises(tombolo.ExperimentError, match="own.toml"):
        tombolo.sweep(spec="own.toml")
    with pytest.raises(TypeError, match="progress: expected True"):
        tombolo.run(**SMALL, progress=3)
    with pytest.raises(ValueError, match="designs: expected at least one"):
        tombolo.compare("hmg-4x4", [], "triad")


def test_a_part_that_fails_leaves_the_rest_in_the_error():
    with pytest.raises(tombolo.Error, match="memcopy") as raised:
        tombolo.compare("hmg-1x4", "nhcc", ["memcopy,mib=1,direction=h2d", "triad,elements=4096"])
    assert [run.workload for run in raised.value.result.runs] == ["triad,elements=4096"]


def test_a_violation_is_an_answer():
    elided = dict(machine="chiplet-4", design="cpelide", workload="hotspot,columns=128,rows=128,pyramid=2,steps=4")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tombolo.Notice)
        run = tombolo.run(**elided, set={"elision.labels": "split"}, check=True)
    assert run.status == 1 and run.check.violations > 0
