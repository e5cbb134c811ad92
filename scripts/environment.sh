# Sourced by scripts/demo and scripts/test: makes or renews .venv, with the package installed from this checkout.
# Editable, because Python started in this folder would otherwise import the source folder, which has no native module.

fail() {
    echo "$1" >&2
    exit 2
}

find_python() {
    for python in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python3.10; do
        if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
            return
        fi
    done
    fail "Python 3.10 or newer is needed: none was found on the path (PYTHON=/path/to/python names one)."
}

check_prerequisites() {
    "$python" -c 'import venv, ensurepip' 2>/dev/null ||
        fail "$python can't make a virtual environment: install its venv module (on Debian and Ubuntu: python3-venv)."
    if [ "$(uname -s)" = Linux ]; then
        "${CXX:-c++}" --version >/dev/null 2>&1 ||
            fail "A C++ compiler is needed: ${CXX:-c++} can't be run (on Debian and Ubuntu: g++)."
        "$python" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' ||
            fail "$python's C headers are needed: Python.h is missing (on Debian and Ubuntu: python3-dev)."
    fi
}

# copy_all_but_the_package FOLDER: to test an installed package from there, which sources beside the tests would hide.
copy_all_but_the_package() {
    mkdir -p "$1" || return
    git ls-files -z -- . ':(exclude)cuda_fork_guard' ':(exclude)_cuda_fork_guard_entry.py' | xargs -0 cp --parents -t "$1"
}

# What an editable install was made from; Python files are read from the checkout itself.
fingerprint() {
    {
        find CMakeLists.txt pyproject.toml csrc -type f | LC_ALL=C sort | xargs cat
        find . -maxdepth 1 -name '*.py'
        find cuda_fork_guard -name '*.py' | LC_ALL=C sort
    } | cksum | tr ' ' -
}

# prepare EXTRAS: .venv with `pip install -e .EXTRAS`, once for each state of what it is built from.
prepare() {
    stamp=.venv/installed
    sources=$(fingerprint)
    if [ -x .venv/bin/python ] && grep -qxF "$sources$1" "$stamp" 2>/dev/null; then
        return
    fi
    if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
        find_python
        check_prerequisites
        echo "Making .venv with $("$python" --version)" >&2
        "$python" -m venv --clear .venv || fail "$python could not make the virtual environment .venv."
    fi
    python=.venv/bin/python
    check_prerequisites
    echo "Installing cuda_fork_guard$1 into .venv (minutes the first time)" >&2
    .venv/bin/python -m pip install --quiet --disable-pip-version-check -e ".$1" ||
        fail "cuda_fork_guard could not be installed: pip's own words are above."
    # Lines of an older state go: what is installed now was built from this one.
    { grep -F "$sources" "$stamp" 2>/dev/null || true; echo "$sources$1"; } >"$stamp.new"
    mv "$stamp.new" "$stamp"
}
