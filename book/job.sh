# shellcheck shell=bash
# ./run.sh book. Sourced by run.sh, which defines die, say, build, install_missing and the steps.
# shellcheck disable=SC2154,SC2034

book_job() { # [--serve [PORT]] [--trace FILE]
    local serve='' trace='' sphinx name line traced=0 begun
    while (($# > 0)); do
        case $1 in
        --serve)
            serve=8000
            if [[ ${2-} =~ ^[0-9]{1,5}$ ]]; then serve=$2 && shift; fi
            ;;
        --trace)
            (($# > 1)) || die "$exit_usage" '--trace needs a file, as --trace FILE of a step or of a program writes it'
            trace=$(cd "$invoked_from" && realpath -- "$2" 2>/dev/null) || true
            [[ -r $trace ]] || die "$exit_usage" "no file $2 can be read"
            shift
            ;;
        *) die "$exit_usage" "unknown option \"$1\"; book takes --serve [PORT] and --trace FILE" ;;
        esac
        shift
    done
    install_missing
    sphinx=$(find_sphinx) || die "$exit_missing" 'no python3 here can import sphinx, myst_parser and PIL, though they are installed'
    preset=sim
    if [[ ! $trace || ! -e build/book/index.html ]]; then
        for name in "${all_steps[@]}"; do [[ ! ${name:0:2} =~ ^(0[3-9]|1[0-3])$ ]] || steps+=("$name"); done
        build sim "${steps[@]}" step_cc_parts
        say "Building the site (pages, pictures and traces of ${#steps[@]} kernels), $(how_long site 200)"
        begun=$SECONDS
        { echo '[0] writing the pages' && "$sphinx" -B book/build.py --bin build/sim/bin --out build/book "${steps[@]}"; } |
            while IFS= read -r line; do # mawk would keep its input back
                [[ $line != 'traced '* ]] || line="[$((++traced))/${#steps[@]}] $line"
                say "$line"
            done | pulse || exit "$exit_wrong"
        note_time site "$((SECONDS - begun))"
        say "The book: file://$PWD/build/book/index.html"
        ((${#failed[@]} == 0)) || say "Without a tile walk, since they do not compile: ${failed[*]}"
    fi
    [[ ! $trace ]] || "$sphinx" -B book/build.py --out build/book --trace "$trace" --sources "$invoked_from"
    [[ $serve ]] || say 'Next: ./run.sh book --serve, or open this file in a browser'
    if [[ $serve ]]; then
        say "Showing it at http://127.0.0.1:$serve/ until you press Ctrl-C"
        exec "$sphinx" -m http.server --bind 127.0.0.1 --directory build/book "$serve"
    fi
    ((${#failed[@]} == 0)) || return "$exit_wrong"
}
