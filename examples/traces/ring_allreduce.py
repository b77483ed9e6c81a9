"""A ring all-reduce over GPUs as a table that tombolo runs: python3 ring_allreduce.py 8 65536 > ring.csv

Each GPU adds its part to what its neighbour sent and sends the sum on. A store with release order leaves the event that
the next GPU waits for. docs/traces.md explains the columns.
"""
import csv, sys

gpus, size = int(sys.argv[1]), int(sys.argv[2])
warps, burst = 4, 512
share = size // gpus // warps  # A warp's part of a chunk.
assert share % burst == 0, f"give a multiple of {gpus * warps * burst} bytes"
columns = "kernel gpu warp operation order scope array address bytes flag".split()
table = csv.DictWriter(sys.stdout, columns, lineterminator="\n")
table.writeheader()

def row(kernel, gpu, warp, operation, array="", address="", bytes="", **more):
    table.writerow(dict(kernel=kernel, gpu=gpu, warp=warp, operation=operation, array=array, address=address, bytes=bytes, **more))

def parts(chunk, warp):
    first = (chunk % gpus * warps + warp) * share
    return range(first, first + share, burst)

for gpu in range(gpus):  # Each GPU writes its arrays first, so that they lie in its memory.
    for array in (f"data{gpu}", f"sums{gpu}", f"result{gpu}"):
        for chunk in range(gpus):
            [row("fill", gpu, warp, "store", array, at, burst) for warp in range(warps) for at in parts(chunk, warp)]
    row("fill", gpu, 0, "store", f"flags{gpu}", 0, 8 * gpus * warps)
for gpu, warp, step in ((g, w, s) for g in range(gpus) for w in range(warps) for s in range(2 * gpus - 1)):
    after, last = (gpu + 1) % gpus, step == 2 * gpus - 2
    inbox = (f"data{gpu}" if step == 0 else f"sums{gpu}") if step < gpus else f"result{gpu}"
    outbox = f"sums{after}" if step < gpus - 1 else f"result{after}"
    if step > 0:
        row("ring", gpu, warp, "wait", f"flags{gpu}", 4 * (step * warps + warp), 4, order="acquire", scope="sys", flag=f"{gpu}.{step}.{warp}")
    for at in parts(gpu - step, warp):
        row("ring", gpu, warp, "load", inbox, at, burst)
        if 0 < step < gpus:
            row("ring", gpu, warp, "load", f"data{gpu}", at, burst)
            row("ring", gpu, warp, "fp32")
        row("ring", gpu, warp, "use")
        [row("ring", gpu, warp, "store", array, at, burst) for array in ([] if last else [outbox]) + ([f"result{gpu}"] if step == gpus - 1 else [])]
    if not last:
        row("ring", gpu, warp, "store", f"flags{after}", 4 * ((step + 1) * warps + warp), 4, order="release", scope="sys", flag=f"{after}.{step + 1}.{warp}")
