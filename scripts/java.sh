#!/usr/bin/env bash
# Prints the home of a Java that Spark runs on (17 or newer); everything else it says goes to standard error.
# Looks at JAVA_HOME, the PATH and the usual folders; where it may (root or password-free sudo on Debian and Ubuntu) it
# installs a headless runtime; else it says what to do and fails.
set -euo pipefail
oldest=17

say() { printf '%s\n' "$*" >&2; }

# The home of the Java whose binary is $1, if it runs and is new enough. The JVM itself is asked: a path says little.
home_of() {
    local settings version
    settings=$("$1" -XshowSettings:properties -version 2>&1) || return 1
    version=$(sed -n 's/^ *java\.specification\.version = \([0-9]*\).*/\1/p' <<<"$settings")
    [ "${version:-0}" -ge "$oldest" ] || return 1
    sed -n 's/^ *java\.home = //p' <<<"$settings"
}

candidates() {
    [ -z "${JAVA_HOME:-}" ] || printf '%s\n' "$JAVA_HOME/bin/java"
    command -v java || true
    # Versions that Spark is tested on first, then whatever there is.
    local pattern
    for pattern in '*17*' '*21*' '*'; do
        compgen -G "/usr/lib/jvm/$pattern/bin/java" || true
        compgen -G "/opt/homebrew/opt/openjdk$pattern/bin/java" || true
        compgen -G "/usr/local/opt/openjdk$pattern/bin/java" || true
        compgen -G "/Library/Java/JavaVirtualMachines/$pattern/Contents/Home/bin/java" || true
    done
}

find_java() {
    local candidate
    while IFS= read -r candidate; do
        home_of "$candidate" && return
    done < <(candidates)
    return 1
}

install_java() {
    local package sudo=()
    command -v apt-get >/dev/null || return 1
    if [ "$(id -u)" -ne 0 ]; then
        sudo -n true 2>/dev/null || return 1
        sudo=(sudo -n)
    fi
    # Without lists of packages the install below says what is wrong; with old ones it may still work.
    "${sudo[@]}" apt-get update -qq >&2 || say "apt-get update failed; trying with what is known."
    # Not every distribution has 17; the default of an old one may be too old, so it comes last.
    for package in openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless; do
        if [ -n "$(apt-cache show "$package" 2>/dev/null)" ]; then
            say "No Java $oldest or newer was found: installing $package with apt-get."
            "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
                apt-get install -y -qq --no-install-recommends "$package" >&2 && return
        fi
    done
    return 1
}

if find_java; then
    exit
fi
if install_java && find_java; then
    exit
fi
say "Spark needs Java $oldest or newer, and none was found (JAVA_HOME is '${JAVA_HOME:-}')."
say "Install one, then run make again:"
say "    Debian, Ubuntu:  sudo apt-get install openjdk-17-jre-headless   (or openjdk-21-jre-headless)"
say "    Fedora, RHEL:    sudo dnf install java-21-openjdk-headless      (or java-17-openjdk-headless)"
say "    macOS:           brew install openjdk@21"
say "A Java in another place: set JAVA_HOME to its folder."
exit 1
