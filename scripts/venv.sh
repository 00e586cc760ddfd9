#!/usr/bin/env bash
# Makes the virtual environment in the folder $1 (default .venv) and installs Emberlog with its development tools,
# at the versions of requirements.lock. Needs Python 3.11 or newer; says what to do when there is none.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${1:-.venv}

say() { printf '%s\n' "$*" >&2; }

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    # PYTHON=... chooses; else the default python3 wins when it is new enough.
    local candidate
    for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python3.14 python; do
        # Being on the PATH is not enough: version managers put stand-ins there for versions that are not installed.
        if new_enough "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    say "Emberlog needs Python 3.11 or newer, and none was found ($(python3 --version 2>/dev/null || echo 'no python3 at all'))."
    say "Install one, then run make again:"
    say "    Debian 12+, Ubuntu 24.04+:  sudo apt-get install python3 python3-venv"
    say "    Ubuntu 22.04:               sudo apt-get install python3.11 python3.11-venv"
    say "    Fedora, RHEL 9+:            sudo dnf install python3.11"
    say "    macOS:                      brew install python@3.13"
    say "A Python in another place:      make PYTHON=/path/to/python3.12 ..."
    return 1
}

# Debian splits the part of Python that puts pip into a new environment into a package of its own.
install_ensurepip() {
    local version sudo=()
    version=$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    if [ "$(id -u)" -ne 0 ]; then
        sudo=(sudo -n)
    fi
    if command -v apt-get >/dev/null && { [ ${#sudo[@]} -eq 0 ] || sudo -n true 2>/dev/null; }; then
        say "Python's ensurepip is missing: installing python$version-venv with apt-get."
        # Without lists of packages the install below says what is wrong; with old ones it may still work.
        "${sudo[@]}" apt-get update -qq >&2 || say "apt-get update failed; trying with what is known."
        "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -qq --no-install-recommends "python$version-venv" >&2 && return
    fi
    say "This Python cannot make virtual environments, because its ensurepip module is missing."
    say "Install it, then run make again:"
    say "    Debian, Ubuntu:  sudo apt-get install python$version-venv"
    return 1
}

if [ -x "$venv/bin/python" ] && new_enough "$venv/bin/python" && "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    say "Updating $venv"
else
    python=$(find_python)
    say "Making $venv with $("$python" --version) ($python)"
    "$python" -c 'import ensurepip' 2>/dev/null || install_ensurepip "$python"
    "$python" -m venv --clear "$venv"
fi

say "Installing Emberlog and its tools (a few minutes the first time)"
# pyspark comes as source; with --use-pep517 every pip builds it the same way, and none warns about the old one.
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --use-pep517 -c requirements.lock -e '.[dev]'
