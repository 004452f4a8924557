"""What Nsight Compute counts of a step on this machine's card. Standard library only."""

import csv
import json
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import tables
import truth
from runs import BIN, REFUSED, ROOT, fail, write

# The counters that the tables show, under ncu's names, and a few more.
SHOWN = {"launch__registers_per_thread" if name == "registers" else name for _, name, _, below in tables.COUNTED["rows"]
         for name in (name, *(below or "").split(" + ")) if name}
REQUESTS = {f"l1tex__t_requests_pipe_lsu_mem_global_op_{op}.sum" for op in ("ld", "st")}
TRUTH_METRICS = sorted({name for *_, names, others in truth.COMPARED for name in names + others} | REQUESTS | {"launch__registers_per_thread"})
PEER_METRICS = ["gpu__time_duration.sum", "launch__registers_per_thread", "smsp__inst_executed.sum", tables.FFMA, tables.HMMA]
METRICS = sorted(SHOWN.union(TRUTH_METRICS, PEER_METRICS, map(tables.stall_counter, tables.STALLS), {
    "l1tex__lsuin_requests.sum", "lts__t_sectors_op_read.sum", "lts__t_sectors_op_write.sum",
    "smsp__inst_executed_op_local_ld.sum", "smsp__inst_executed_op_local_st.sum"}))
# What only Hopper has, counted of the chapters for it: wgmma, and tiles copied by the TMA.
HOPPER = ["sm__inst_executed_pipe_tensor_op_gmma.sum", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_gmma.sum",
          "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld.sum", "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st.sum",
          "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", "sm__inst_executed_pipe_xu.sum",
          *map(tables.stall_counter, ["gmma", "branch_resolving", "drain", "imc_miss", "membar", "misc", "no_instruction", "not_selected", "sleeping"])]


def no_card(why):
    print(f"record.py: {why}", file=sys.stderr)
    sys.exit(3)


def count_all(pairs, jobs, file, more={}, programs=BIN):
    """Counts of the SMs do not change when other programs wait their turn beside; time and traffic to memory do."""
    with ThreadPoolExecutor(jobs) as pool:
        for lines in pool.map(lambda pair: count(*pair, TRUTH_METRICS, programs), pairs):
            write(file, *({**line, **more} for line in lines))


def count(step, size, metrics, programs=BIN):
    """Nsight Compute's counters of each kernel of a step, in the order of launch; [] when it refuses the size."""
    words = [word for word in size.split() if not word.startswith("SIMT_")]  # the simulated device's alone
    program, metrics = [programs / step, *words, "--no-time", "--no-check"], [*metrics, *(HOPPER if step >= "12" else [])]
    with tempfile.NamedTemporaryFile("r") as json_line:
        kernels = profile_program([*program, "--json", json_line.name], metrics, [])
        line = json_line.read()
    if not line or not kernels:
        if subprocess.run(program, capture_output=True).returncode != REFUSED:
            fail(f"ncu counted nothing of {step} {size}; to see why: ncu {' '.join(map(str, program))}")
        return []
    # The harness computes O and L for a backward pass by a kernel of its own.
    own = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob(f"steps/{step[:2]}_*/*.cu"))
    if json.loads(line)["pass"] == "bwd" and re.sub("^void |<.*", "", kernels[0][0]) + "(" not in own:
        kernels = kernels[1:]
    return [{"step": step, "options": size, "kernel": name, "counters": counted} for name, counted in kernels]


def profile_program(command, metrics, selection):
    """(kernel, counters) of each launch, from ncu's raw page."""
    ncu = ["ncu", "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base", "--kernel-name-base",
           "demangled", "--metrics", ",".join(metrics), *selection]
    try:
        done = subprocess.run([*ncu, *command], capture_output=True, text=True)
    except OSError:
        no_card("ncu of Nsight Compute is not on PATH")
    names, *kernels = csv.reader(line for line in [*done.stdout.splitlines(), '"ID"'] if line.startswith('"'))
    kernels = [dict(zip(names, row)) for row in kernels[1:-1]]  # the first row holds the units
    number = lambda text: float(text.replace(",", ""))
    value = lambda text: int(number(text)) if number(text).is_integer() else number(text)
    return [(fields["Kernel Name"].split("(")[0],
             {name.replace("launch__registers_per_thread", "registers"): value(fields[name]) for name in metrics
              if re.match(r"[\d.]", fields.get(name, ""))}) for fields in kernels]


def profile(arguments):
    """The rows that the chapters' tables show, a column per kernel."""
    step, size = arguments[0], " ".join(arguments[1:])
    done = subprocess.run([BIN / step, *arguments[1:], "--no-time", "--no-check"])  # ncu would hide what it says
    if done.returncode:
        sys.exit(done.returncode)
    kernels = count(step, size, METRICS)
    if not kernels:
        sys.exit(3)
    rows = tables.counter_rows(kernels)
    widths = [max(map(len, column)) for column in zip(*rows)]
    for label, *cells in rows:
        print(label.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(cells, widths[1:])), sep="  ")
