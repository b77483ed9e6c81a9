"""Ctrl-C ends a command soon; other threads of Python run meanwhile."""

import os
import signal
import threading
import time

import pytest
import tombolo

# Each takes minutes.
LONG = {
    "recording and simulation": lambda: tombolo.run("hmg-4x4", "hmg", "bfs"),
    "simulation": lambda: tombolo.run("hmg-4x4", "hmg", "triad,iterations=64", threads=1),
    "points": lambda: tombolo.compare("hmg-4x4", ["hmg", "nhcc"], "triad,iterations=64"),
    "exploration": lambda: tombolo.check("hmg", mutants="all"),
    "attack": lambda: tombolo.check("hmg", timed=100000),
}
SOON = float(os.environ.get("TOMBOLO_SOON", "5"))


def threads():
    return len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 0


@pytest.mark.parametrize("work", LONG)
def test_an_interrupt_raises_and_ends_all_threads(work):
    before = threads()
    sent = []

    def interrupt():
        time.sleep(1.5)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    killer = threading.Thread(target=interrupt)
    killer.start()
    with pytest.raises(KeyboardInterrupt):
        LONG[work]()
    taken = time.monotonic() - sent[0]
    killer.join()
    print(f"{work}: {taken:.2f} s")
    assert taken < SOON
    assert threads() <= before


def test_finished_points_of_an_interrupted_sweep_are_kept(folder):
    arguments = ("hmg-4x4", "hmg", "triad,elements=65536,iterations=2", {"l2.ways": [4, 8, 16, 32]})

    def at_the_second_point(done, all, running, left):
        if done >= 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        slow = ("hmg-4x4", "hmg", "triad,elements=2097152,iterations=2", {"l2.ways": [4, 8, 16, 32]})
        tombolo.sweep(*slow, scale="1/4", threads=1, progress=at_the_second_point)
    assert not (folder / "tombolo-sweep" / "report.html").exists()
    assert len(list((folder / "tombolo-sweep" / "points").rglob("*.json"))) >= 1
    assert len(tombolo.sweep(*arguments, scale="1/32").points) >= 4


def test_other_threads_run_during_a_command():
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.wait(0.01):
            ticks.append(time.monotonic())

    ticker = threading.Thread(target=tick)
    ticker.start()
    began = time.monotonic()
    tombolo.run("hmg-4x4", "hmg", "triad,elements=4194304,iterations=4", scale="1/4")
    taken = time.monotonic() - began
    stop.set()
    ticker.join()
    assert len([at for at in ticks if at >= began]) > 10 * taken


def test_runs_in_several_threads_have_the_results_of_runs_one_by_one():
    programs = [f"triad,elements={size},iterations=2" for size in (16384, 32768, 65536, 131072)]
    digests = {}

    def run(program):
        digests[program] = tombolo.run("hmg-4x4", "hmg", program, scale="1/32").digest

    workers = [threading.Thread(target=run, args=(program,)) for program in programs]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    assert digests == {program: tombolo.run("hmg-4x4", "hmg", program, scale="1/32").digest for program in programs}
