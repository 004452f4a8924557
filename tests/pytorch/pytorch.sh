#!/usr/bin/env bash
# pytorch.sh FOLDER: every step of FOLDER/libattention_steps.so against PyTorch, and what the binding refuses. Exit status
# 77, "skipped", where PyTorch, a card or the library is missing.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
export ATTENTION_STEPS_LIBRARY=$1/libattention_steps.so
skip() {
    echo "SKIPPED pytorch: $1"
    exit 77
}
nvidia-smi -L >/dev/null 2>&1 || skip "this machine has no CUDA card"
[[ -e $ATTENTION_STEPS_LIBRARY ]] ||
    skip "$ATTENTION_STEPS_LIBRARY is not built (cmake --preset cuda && cmake --build --preset cuda --target attention_steps)"
# A PyTorch that is there but broken is not skipped: its import fails below.
python3 -c 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)' 2>/dev/null ||
    skip "python3 here has no torch"
python3 -c 'import torch, sys; sys.exit(torch.version.cuda is None)' || skip "the torch of this python3 is without CUDA"
status=0
python3 compare.py || status=1
python3 compare_variants.py || status=1
python3 check_binding.py || status=1
python3 train.py || status=1
exit $status
