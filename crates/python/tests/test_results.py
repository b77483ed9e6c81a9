"""Results have the keys of the command line's documents."""

import json

import pytest
import tombolo
from conftest import SMALL

# What depends on the host, the day, and the way in.
VARYING = ("host", "provenance")


def without_host(document):
    return {key: value for key, value in document.items() if key not in VARYING}


def test_a_run_is_the_document_of_the_command_line(small, command_line):
    words = [f"--{key}={value}" for key, value in SMALL.items()]
    status, document, _ = command_line("run", *words, "--json")
    assert status == small.status == 0
    assert without_host(small.to_dict()) == without_host(document)
    assert small.to_dict().keys() == document.keys()


def test_keys_are_attributes_and_items(small):
    assert small.time.region_s == small["time"]["region_s"] > 0
    assert small.digest == small.to_dict()["digest"]
    assert "digest" in small and "digest" in dir(small)
    assert json.loads(small.to_json()) == small.to_dict()
    with pytest.raises(AttributeError, match="digits: not one of tombolo, machine"):
        small.digits
    with pytest.raises(KeyError, match="digits: not one of tombolo, machine"):
        small["digits"]


def test_options_reach_the_run(small):
    checked = tombolo.run(**SMALL, check=True, latency=True, set={"l2.ways": 8}, threads=2)
    assert checked.check.violations == 0
    assert "latency" in checked and checked["set"] == ["l2.ways=8"]
    assert "check" not in small


def test_descriptions_are_names_paths_and_dicts(small, tmp_path):
    path = tmp_path / "fast.toml"
    path.write_text('base = "hmg-4x4"\ngpu_link.rate = "400GB/s"\n')
    values = {"name": "fast", "base": "hmg-4x4", "gpu_link.rate": "400GB/s"}
    nested = {"base": "hmg-4x4", "gpu_link": {"rate": "400GB/s"}}
    rest = {key: value for key, value in SMALL.items() if key != "machine"}
    runs = [tombolo.run(machine=machine, **rest) for machine in (path, str(path), values, nested)]
    assert len({run.digest for run in runs}) == 1
    assert runs[0].digest != small.digest
    assert [run.machine for run in runs] == ["fast", "fast", "fast", "machine"]
    back = tombolo.compare("hmg-4x4", ["hmg", {"name": "back", "base": "hmg", "l2_write": "back"}], SMALL["workload"], scale="1/32")
    assert back.designs == ["hmg", "back"]


def test_workloads_take_keyword_parameters():
    assert tombolo.workload("jacobi", rows=64, columns=32) == "jacobi,rows=64,columns=32"
    assert tombolo.workload("bfs", graph='a,"b".gr') == 'bfs,graph="a,""b"".gr"'
    with pytest.raises(TypeError, match="name: expected the name of a workload, found 5"):
        tombolo.workload(5)


def test_lists_name_what_ships():
    assert "hmg-4x4" in tombolo.machines()["name"]
    assert "gps" in tombolo.designs()["name"]
    triad = next(row for row in tombolo.workloads() if row.name == "triad")
    assert [parameter.name for parameter in triad.parameters][:2] == ["elements", "iterations"]


def test_a_comparison_has_speedups_and_draws_them():
    comparison = tombolo.compare("hmg-4x4", ["hmg", "nhcc"], ["triad,elements=65536", "vectoradd,elements=4096"], scale="1/32")
    assert comparison.speedups["triad,elements=65536"]["hmg"] == 1.0
    assert [row.design for row in comparison.runs] == ["hmg", "nhcc"] * 2
    page = comparison._repr_html_()
    assert "speed-up over hmg" in page and "geometric mean" in page
    axes = comparison.plot()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["hmg", "nhcc"]
    assert len(axes.patches) == 2 * 3


def test_an_explanation_and_a_run_draw_their_stalls(small):
    explanation = tombolo.explain("hmg-4x4", ["nhcc", "hmg"], SMALL["workload"], scale="1/32")
    axes = explanation.plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["nhcc", "hmg"]
    for container in zip(*axes.containers):
        assert sum(bar.get_width() for bar in container) == pytest.approx(1.0)
    assert "nhcc" in explanation._repr_html_()
    assert small.plot().get_xlabel() == "share of warp-slot cycles"
    assert small.digest in small._repr_html_() and "busiest link" in small._repr_html_()


def test_the_other_commands_give_their_documents():
    shared = tombolo.share("umh-2-pcie", "stencil2d,columns=256,rows=64,iterations=2")
    assert shared.ranking[0].time_s <= shared.ranking[1].time_s and shared.advice
    assert len(shared.plot().patches) == len(shared.ranking)
    assert shared.ranking[0].design in shared._repr_html_()
    verified = tombolo.check("ideal", random=3)
    assert verified.violations == 0 and verified.verdicts() == {"ideal": {"not promised": 3}}
    assert verified.plot().get_ylabel() == "tests" and "not promised" in verified._repr_html_()
    validated = tombolo.validate(benchmarks=["vectoradd"])
    assert {row.benchmark for row in validated.rows} == {"vectoradd"}
    assert validated.plot().get_xscale() == "log" and "vectoradd" in validated._repr_html_()


def test_progress_is_told_to_a_function():
    told = []
    tombolo.compare(
        "hmg-4x4", ["hmg", "nhcc"], "triad,elements=4194304,iterations=4", progress=lambda *state: told.append(state)
    )
    assert told, "the runs take longer than an interval"
    done, all, running, left = told[-1]
    assert all == 2 and 0 <= done <= 2 and isinstance(running, str)
    with pytest.raises(ZeroDivisionError):
        tombolo.compare("hmg-4x4", ["hmg", "nhcc"], "triad,elements=4194304,iterations=4", progress=lambda *_: 1 / 0)


def test_warnings_of_a_run_are_python_warnings():
    with pytest.warns(tombolo.Notice, match="."):
        tombolo.run("gps-4-pcie4", "memcpy", "stencil2d,columns=257,rows=129,iterations=2")
