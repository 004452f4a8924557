#!/usr/bin/env bash
# circles.sh FILE.o...: no two of these files of C may call each other's functions, neither directly nor by way of
# others. Exit status: 0 when the files have an order, 1 when some form a circle (each of its calls is shown), 2 for wrong use.
set -uo pipefail
(($# >= 2)) || { echo 'usage: circles.sh FILE.o...' >&2 && exit 2; }
symbols=$(nm -A "$@") || exit 2
awk '
    {
        match($0, /:[^:]*$/) # path:address kind symbol; no address where it is undefined
        file = substr($0, 1, RSTART - 1)
        sub(".*[.]dir/", "", file)
        sub("[.]o$", "", file)
        files[file]
        if ($(NF - 1) ~ /^[TW]$/) defined_in[$NF] = file
        else if ($(NF - 1) == "U") uses[file, $NF]
    }
    END {
        for (use in uses) {
            split(use, part, SUBSEP)
            if (!(part[2] in defined_in) || defined_in[part[2]] == part[1]) continue
            calls[use]
            reaches[part[1], defined_in[part[2]]]
            edges++
        }
        if (edges == 0) {
            print "no call between two files was found" >"/dev/stderr"
            exit 1
        }
        for (k in files) for (i in files) if ((i, k) in reaches) for (j in files) if ((k, j) in reaches) reaches[i, j]
        for (call in calls) {
            split(call, part, SUBSEP)
            if (!((defined_in[part[2]], part[1]) in reaches)) continue
            print "circle  " part[1] " calls " part[2] "() of " defined_in[part[2]] | "sort >&2"
            wrong = 1
        }
        close("sort >&2")
        if (wrong) exit 1
        print "ok      no circle in " edges " calls"
    }' <<<"$symbols"
