"""Sweeps: their points, their axes, their folder."""

import pytest
import tombolo
from conftest import SMALL

VARY = {"gpu_link.rate": ["100GB/s", "200GB/s"], "l2.bytes": ["3MB", "6MB"]}


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    out = tmp_path_factory.mktemp("sweep") / "out"
    return tombolo.sweep("hmg-4x4", ["hmg", "nhcc"], SMALL["workload"], VARY, scale="1/32", chart="heat", out=out)


def test_points_have_their_settings(swept):
    points = [row for row in swept.points if row["set.l2.bytes"] is not None]
    assert len(points) == 2 * 2 * 2
    assert {row["set.gpu_link.rate"] for row in points} == {100e9, 200e9}
    assert {row["set.gpu_link.rate.text"] for row in points} == {"100GB/s", "200GB/s"}


def test_a_dataset_has_the_axes_and_the_values_of_the_points(swept):
    pytest.importorskip("xarray")
    data = swept.to_xarray()
    assert dict(data.sizes) == {"design": 2, "set.gpu_link.rate": 2, "set.l2.bytes": 2}
    assert data.attrs["workload"] == SMALL["workload"]
    for row in swept.points:
        if row["set.l2.bytes"] is not None:
            at = {name: row[name] for name in data.dims}
            assert float(data["time.region_s"].sel(at)) == row["time.region_s"]
            assert str(data["digest"].sel(at).item()) == row["digest"]
    run = tombolo.run(**{**SMALL, "set": {"gpu_link.rate": "200GB/s", "l2.bytes": "3MB"}})
    at = {"design": "hmg", "set.gpu_link.rate": 200e9, "set.l2.bytes": 3e6}
    near = data["time.region_s"].sel(at, method=None) if 3e6 in data["set.l2.bytes"] else data["time.region_s"].sel(
        {**at, "set.l2.bytes": 3 * 2**20}
    )
    assert float(near) == run.time.region_s


def test_the_figure_is_drawn(swept):
    axes = swept.plot()
    assert len(axes.images) == 1 and axes.get_title() == swept.figures[0].title
    assert "100GB/s" in swept._repr_html_()


def test_finished_points_are_reused(swept):
    again = tombolo.sweep(
        "hmg-4x4", ["hmg", "nhcc"], SMALL["workload"], VARY, scale="1/32", chart="heat", out=swept.folder
    )
    assert again.points.to_list() == swept.points.to_list()


def test_the_default_folder_is_that_of_the_command_line(folder):
    lines = tombolo.sweep("hmg-4x4", "hmg", SMALL["workload"], {"l2.ways": [8, 16]}, scale="1/32")
    assert lines.folder == "tombolo-sweep" and (folder / "tombolo-sweep" / "report.html").exists()
    assert len(lines.plot().lines) >= 1
