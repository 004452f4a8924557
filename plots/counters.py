#!/usr/bin/env python3
"""counters.py STEP OPTIONS < ncu.csv: turn Nsight Compute's raw page (--csv --page raw) into JSON lines, one a kernel."""

import csv
import json
import sys
from pathlib import Path


def number(text):
    text = text.replace(',', '')
    value = float(text)
    return int(value) if value == int(value) else value


def main():
    step, options = sys.argv[1], sys.argv[2]
    chapter = step.removeprefix('variants/')[:3]  # "09_"
    backward = any('bwd' in folder.name for folder in (Path(__file__).parent.parent / 'steps').glob(chapter + '*'))
    rows = list(csv.reader(sys.stdin))
    names, kernels = rows[0], rows[2:]  # rows[1] holds the units
    for row in kernels:
        fields = dict(zip(names, row))
        if backward and fields['Kernel Name'].removeprefix('void ').startswith('vectorized'):
            continue  # chapter 06's, which makes O and L for the backward pass
        # ncu adds all attributes of the device, and average, least and most of each counter: the sums are enough.
        counters = {name: number(text) for name, text in fields.items()
                    if text and name.split('__')[0] in ('gpu', 'l1tex', 'smsp', 'sm', 'lts', 'dram')
                    and (name.endswith(('.sum', '.ratio', '_rate.pct')) or '.avg.pct' in name
                         or name.endswith('.sum.pct_of_peak_sustained_elapsed'))}
        counters['registers'] = number(fields['launch__registers_per_thread'])
        print(json.dumps({'step': step, 'options': options, 'kernel': fields['Kernel Name'].split('(')[0],
                          'counters': counters}))


main()
