"""A ring all-reduce over eight GPUs, with flags, checked against the memory model: python3 ring_allreduce.py

Each GPU adds its part to what its neighbour sent, and sends the sum on. A store with release order leaves the event that
the next GPU waits for. docs/python.md explains the columns.
"""
import sys
import tombolo

gpus, size = 8, 1 << 18
warps, burst = 4, 512
share = size // gpus // warps  # A warp's part of a chunk, in bytes.
program = tombolo.Program("ring-allreduce")
data, sums, result = ([program.array(f"{name}{gpu}", size) for gpu in range(gpus)] for name in ("data", "sums", "result"))
flags = [program.array(f"flags{gpu}", 8 * gpus * warps) for gpu in range(gpus)]

def parts(chunk, warp):
    first = (chunk % gpus * warps + warp) * share
    return range(first, first + share, burst)

def ring(gpu, warp):
    who, after = dict(gpu=gpu, warp=warp), (gpu + 1) % gpus
    for step in range(2 * gpus - 1):
        last, place = step == 2 * gpus - 2, 4 * (step * warps + warp)
        inbox = (sums[gpu] if step else data[gpu]) if step < gpus else result[gpu]
        outbox = sums[after] if step < gpus - 1 else result[after]
        if step:
            yield dict(who, operation="wait", array=flags[gpu], address=place, bytes=4, order="acquire", scope="sys", flag=f"{gpu}.{step}.{warp}")
        for at in parts(gpu - step, warp):
            line = dict(who, address=at, bytes=burst)
            yield dict(line, operation="load", array=inbox)
            if 0 < step < gpus:
                yield from (dict(line, operation="load", array=data[gpu]), dict(who, operation="fp32"))
            yield dict(who, operation="use")
            yield from (dict(line, operation="store", array=array) for array in [outbox] * (not last) + [result[gpu]] * (step == gpus - 1))
        if not last:
            yield dict(who, operation="store", array=flags[after], address=place + 4 * warps, bytes=4, order="release", scope="sys", flag=f"{after}.{step + 1}.{warp}")

# Each GPU writes its arrays first, so that they lie in its memory.
whole = [(gpu, a, at) for gpu in range(gpus) for a in (data, sums, result, flags) for at in range(0, a[gpu].bytes, burst)]
program.launch("fill", [dict(gpu=gpu, array=a[gpu], address=at, bytes=min(burst, a[gpu].bytes - at)) for gpu, a, at in whole], operation="store")
program.launch("ring", (row for gpu in range(gpus) for warp in range(warps) for row in ring(gpu, warp)))
run = tombolo.run(sys.argv[1] if sys.argv[1:] else "dgx-h100", "peer", program, check=True)
print(f"{run.time.region_s * 1e6:.1f} us, {run.inter_gpu_bytes} bytes between GPUs, {run.check.violations} wrong values")
