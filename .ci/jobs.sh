# The jobs of .ci/run, sourced by it. Each leaves its JUnit report in $results.

source scripts/environment.sh

# COMMAND:PACKAGE, for what the tests start and a bare system may lack.
# The last two run the tripwire of aarch64.
SYSTEM_PACKAGES=(c++:g++ cc:gcc gdb:gdb aarch64-linux-gnu-g++:g++-aarch64-linux-gnu qemu-aarch64:qemu-user)

install_system_packages() {
    local missing=() entry
    for entry in "${SYSTEM_PACKAGES[@]}"; do
        command -v "${entry%%:*}" >/dev/null || missing+=("${entry##*:}")
    done
    if [ ${#missing[@]} -eq 0 ]; then
        return
    fi
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        echo "missing, and not installed without root and apt-get: ${missing[*]}" >&2
        return
    fi
    apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends "${missing[@]}"
}

# Before the tests, which run against what is in the cache. Its last line names what could not be had.
fetch_drivers() {
    python3 scripts/fetch_drivers.py 2>&1 | tee "$results/drivers.log"
    return "${PIPESTATUS[0]}"
}

readme_tests() {
    PYTEST_ADDOPTS="${PYTEST_ADDOPTS:-} --junitxml=$results/readme.xml" sh scripts/test </dev/null
}

# MINOR PATH, the newest of each minor version, from pyenv's folder and the path.
installed_pythons() {
    local minor candidate
    for minor in 3.10 3.11 3.12 3.13; do
        for candidate in $(ls -d "${PYENV_ROOT:-$HOME/.pyenv}/versions/$minor".*/bin/python 2>/dev/null | sort -rV) \
            "$(command -v "python$minor")"; do
            if [ -n "$candidate" ] && "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then
                echo "$minor $candidate"
                break
            fi
        done
    done
}

# The built wheel in a clean environment, tested from a folder that holds everything but the package, without torch.
wheel_on() {
    local minor=$1 python=$2
    local folder=$results/cp$minor
    copy_all_but_the_package "$folder/elsewhere" &&
        "$python" -m venv "$folder/venv" &&
        "$folder/venv/bin/python" -m pip wheel -q --no-deps -w "$folder" . &&
        "$folder/venv/bin/python" -m pip install -q "$(echo "$folder"/*.whl)[test-without-torch]" &&
        (cd "$folder/elsewhere" && CFG_TEST_WHEEL=$(echo "$folder"/*.whl) "$folder/venv/bin/python" -m pytest --junitxml="$results/cp$minor.xml" </dev/null)
}

# Two at a time; each one's words are printed when it has ended.
each_python() {
    local list failed=0
    list=$(installed_pythons)
    echo "Pythons:" $(echo "$list" | cut -d' ' -f1)
    export results
    export -f wheel_on copy_all_but_the_package
    echo "$list" | xargs -P 2 -L 1 bash -c 'wheel_on "$0" "$1" >"$results/cp$0.log" 2>&1; echo $? >"$results/cp$0.code"'
    local minor
    for minor in $(echo "$list" | cut -d' ' -f1); do
        echo "---- CPython $minor, wheel, without torch"
        tail -n 40 "$results/cp$minor.log"
        [ "$(cat "$results/cp$minor.code")" = 0 ] || failed=1
    done
    return "$failed"
}

skipped_everywhere() {
    # Libraries too heavy for each run are the business of a script of their own.
    local excuses=(--excuse '^no GPU' --excuse 'scripts/forkers_with_real_packages has it') major
    for major in $(sed -n 's/.*; not to be had: //p' "$results/drivers.log"); do
        excuses+=(--excuse "^no driver $major\b")
    done
    python3 scripts/skipped_everywhere.py "${excuses[@]}" "$results"/*.xml
}
