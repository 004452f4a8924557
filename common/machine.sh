# shellcheck shell=bash
# What the machine must have: packages, a toolkit, a card. Sourced by run.sh, which defines say, die, have and job.
: "${job:=main}" "${preset:=}" "${exit_missing:=3}"

python_with() { # MODULE...: the first python3 that has them: the one on PATH may not be the one that apt installs for; to import them takes longer
    local python
    for python in python3 /usr/bin/python3 /usr/local/bin/python3; do
        if have "$python" && "$python" -c 'import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, sys.argv[1:])))' "$@" 2>/dev/null; then say "$python" && return; fi
    done
    return 1
}
find_python() { [[ ${python-} ]] || python=$(python_with matplotlib); }
find_sphinx() { python_with sphinx myst_parser PIL; } # that can build the site

# A library counts as there when the compiler finds it, wherever it came from.
have_library() { have gcc && [[ $(gcc -print-file-name="$1") == /* ]]; }

missing_packages() {
    local pair
    { have gcc && have g++ && have make; } || say build-essential
    for pair in cmake:cmake objcopy:binutils; do have "${pair%:*}" || say "${pair#*:}"; done
    for pair in cjson boost_context:boost-context dw seccomp; do have_library "lib${pair%:*}.so" || say "lib${pair#*:}-dev"; done
    have bwrap || [[ ! $job =~ ^(start|grade|test)$ ]] || say bubblewrap
    if [[ $job == book || ($job == test && ${CI-}) ]]; then
        find_sphinx >/dev/null || printf '%s\n' python3-sphinx python3-myst-parser python3-pil
        have node || say nodejs
        [[ -e /usr/share/nodejs/katex ]] || say katex
        [[ -e /usr/share/nodejs/lunr ]] || say node-lunr
        [[ -e /usr/share/javascript/katex/fonts ]] || printf '%s\n' libjs-katex fonts-katex
    fi
    if [[ $job == test && ${CI-} ]]; then # tests/book/browser.py
        have chromium || say chromium
        have chromedriver || say chromium-driver
        have pdftotext || say poppler-utils
        /usr/bin/python3 -c 'import selenium' 2>/dev/null || say python3-selenium
    fi
    [[ $job == main || $job == test ]] || return 0
    have_library libcriterion.so || say libcriterion-dev
    if [[ $job == test && ${CI-} ]]; then for pair in clang-tidy clang-format mypy; do have "$pair" || say "$pair"; done; fi # tests/sizes.sh, check_hosted.py
    [[ ${python-} ]] || say python3-matplotlib
}

install_missing() {
    local -a packages as_root=()
    local log=build/apt.log advice
    [[ $job != main && $job != test ]] || find_python || true # kept: the list is made in a process of its own
    mapfile -t packages < <(missing_packages)
    if ((${#packages[@]} > 0)); then
        have ninja || packages+=(ninja-build) # Make would do: its absence alone is no reason to stop
        advice="apt-get update && apt-get install --no-install-recommends ${packages[*]}"
        have apt-get || die "$exit_missing" "these are missing, by their Debian names: ${packages[*]}"
        if ((EUID != 0)); then
            have sudo || die "$exit_missing" "please run, as root: $advice"
            as_root=(sudo)
            [[ -t 0 ]] || as_root+=(-n) # nobody is there to type a password
        fi
        mkdir -p build
        say "Installing: ${packages[*]}"
        [[ " ${packages[*]} " != *' bubblewrap '* ]] || say '  (bubblewrap: the grader runs your kernel behind a wall)'
        as_root+=(env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=120)
        # A failed update is not the end: the lists that are there may do.
        "${as_root[@]}" update >"$log" 2>&1 || true
        "${as_root[@]}" install --no-install-recommends "${packages[@]}" >>"$log" 2>&1 || {
            tail -n 5 "$log" >&2
            die "$exit_missing" "apt failed (all of it is in $log); please run, as root: $advice"
        }
    fi
    [[ $job != main && $job != test ]] || find_python ||
        die "$exit_missing" 'no python3 here can import matplotlib, though python3-matplotlib is installed'
}

# The toolkit's own installer does not add itself to PATH.
find_nvcc() { have nvcc || { [[ -x /usr/local/cuda/bin/nvcc ]] && export PATH="$PATH:/usr/local/cuda/bin"; }; }
have_card() { if have nvidia-smi; then [[ $(nvidia-smi -L 2>/dev/null) == GPU* ]]; else [[ -e /dev/nvidia0 ]]; fi; }

need_card() { # WHAT TOOL
    find_nvcc || die "$exit_missing" "$1 needs nvcc of the CUDA toolkit, on PATH or in /usr/local/cuda/bin"
    have "$2" || die "$exit_missing" "$1 needs $2, which comes with the CUDA toolkit, on PATH"
    have_card || die "$exit_missing" "$1 needs a CUDA card, and this machine has none"
}

compiled=compiled-$(uname -m) # in a handout for students, the folders of rungs that are there without their source
in_handout() { compgen -G "steps/*/$compiled" >/dev/null; }

choose_preset() {
    if [[ $preset == cuda ]]; then need_card '--preset cuda' nvcc; fi
    [[ -z $preset ]] || return 0
    preset=sim
    if ! in_handout && find_nvcc && have_card; then preset=cuda; fi
}
