# Sourced by ./run and ./test: find out what is missing, install it, build. Silent and instant when there is nothing to do.
# The caller sets `root`, the top of the repository. What is said goes to standard error.
# Exit status: 69 when a package is missing and could not be installed, 70 when the build fails.

say() { printf '%s\n' "$*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }

# A header in one of the usual places, or a package that pkg-config knows: have_library HEADER PKG_CONFIG_NAME
have_library() {
    local prefix
    for prefix in /usr/include /usr/local/include; do
        [ -e "$prefix/$1" ] && return 0
    done
    have pkg-config && pkg-config --exists "$2" 2>/dev/null
}

# What a package is called on Debian and Ubuntu, on Fedora, and on Arch.
packages=(
    "gcc           gcc            gcc"
    "libc6-dev     glibc-devel    glibc"
    "cmake         cmake          cmake"
    "make          make           make"
    "pkg-config    pkgconf        pkgconf"
    "libncurses-dev ncurses-devel ncurses"
    "libcjson-dev  cjson-devel    cjson"
    "libcmocka-dev libcmocka-devel cmocka"
    "libvterm-dev  libvterm-devel libvterm"
    "clang         clang          clang"
    "clang-format  clang-tools-extra clang"
    "openmpi-bin   openmpi        openmpi"
)

missing=()
needs() { # needs PACKAGE COMMAND...: PACKAGE (by its Debian name) is missing unless the command succeeds
    local package=$1
    shift
    "$@" || missing+=("$package")
}

have_compiler() { have cc || have gcc || have clang; }
have_builder() { have make || have ninja; }

need_build() {
    needs gcc have_compiler
    needs libc6-dev have_library stdio.h no-such-module
    needs cmake have cmake
    needs make have_builder
    needs pkg-config have pkg-config
    needs libncurses-dev have_library curses.h ncursesw
    needs libcjson-dev have_library cjson/cJSON.h libcjson
}

need_tests() {
    needs libcmocka-dev have_library cmocka.h cmocka
    needs libvterm-dev have_library vterm.h vterm
}

need_all() {
    needs gcc have gcc
    needs clang have clang
    needs clang-format have clang-format
    needs openmpi-bin have mpirun
}

# The missing packages by their names in column $1 of the table above.
names_in_column() {
    local row package
    for package in "${missing[@]}"; do
        for row in "${packages[@]}"; do
            # shellcheck disable=SC2086 # the columns of a row are words
            set -- "$1" $row
            [ "$2" = "$package" ] && printf ' %s' "${@:$1+1:1}"
        done
    done
}

# Installs what `needs` found missing, or says what to do and exits.
install_missing() {
    [ ${#missing[@]} -eq 0 ] && return 0
    if ! have apt-get; then
        say "oomcast: these packages are missing; install them and run this again."
        say "  Debian, Ubuntu:$(names_in_column 1)"
        say "  Fedora:        $(names_in_column 2)"
        say "  Arch:          $(names_in_column 3)"
        exit 69
    fi

    local install=(apt-get install -y --no-install-recommends "${missing[@]}")
    local by_hand="apt-get update && ${install[*]}"
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        # sudo may ask for a password only where somebody can type it.
        if have sudo && { sudo -n true 2>/dev/null || [ -t 2 ]; }; then
            as_root=(sudo)
        else
            say "oomcast: packages are missing and this user may not install them. Run this as root, then try again:"
            say "  $by_hand"
            exit 69
        fi
    fi

    say "oomcast: installing ${missing[*]}"
    local log
    log=$(mktemp)
    # Standard input belongs to the program that is run afterwards (`./run report - < file`).
    if ! {
        "${as_root[@]}" apt-get update &&
            "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive "${install[@]}" -o DPkg::Lock::Timeout=120
    } </dev/null >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        rm -f "$log"
        say "oomcast: installing failed (above). The line to run as root:"
        say "  $by_hand"
        exit 69
    fi
    rm -f "$log"
}

# Everything that a build depends on. Folders count too: their time changes when a file comes or goes.
sources() { printf '%s\n' "$root"/{CMakeLists.txt,include,model,probes,themes,tui,examples} "$@"; }

# True when the stamp is of this folder and nothing changed since: no process but `find` is started.
is_current() { # is_current STAMP [MORE SOURCES]
    local stamp=$1
    shift
    [ -f "$stamp" ] && [ "$(<"$stamp")" = "$root" ] || return 1
    local paths
    mapfile -t paths < <(sources "$@")
    [ -z "$(find "${paths[@]}" -newer "$stamp" -print -quit 2>&1)" ]
}

# configure_and_build DIR TARGET CMAKE_OPTION...: quiet unless it fails.
configure_and_build() {
    local dir=$1 target=$2 log
    shift 2
    mkdir -p "$dir"
    log=$dir/build.log
    local generator=()
    [ -f "$dir/CMakeCache.txt" ] || { have ninja && generator=(-G Ninja); }
    # A folder that was configured elsewhere, or by tools that are gone, is configured afresh.
    if ! cmake -S "$root" -B "$dir" "${generator[@]}" "$@" </dev/null >"$log" 2>&1; then
        rm -rf "$dir/CMakeCache.txt" "$dir/CMakeFiles"
        if ! cmake -S "$root" -B "$dir" "$@" </dev/null >"$log" 2>&1; then
            cat "$log" >&2
            say "oomcast: configuring $dir failed (above)"
            return 70
        fi
    fi
    if ! cmake --build "$dir" --target "$target" --parallel "$(getconf _NPROCESSORS_ONLN)" </dev/null >>"$log" 2>&1; then
        grep -vE '^(-- |\[ *[0-9]+(/[0-9]+|%)\] )' "$log" >&2 # what went wrong, without the progress
        say "oomcast: building $dir failed (above)"
        return 70
    fi
}

# build DIR STAMP TARGET MORE_SOURCES CMAKE_OPTION...: brings DIR up to date, one process at a time.
build() {
    local dir=$1 stamp=$1/$2 target=$3 more=$4
    shift 4
    is_current "$stamp" ${more:+"$root/$more"} && return 0
    if ! mkdir -p "$dir" 2>/dev/null || ! [ -w "$dir" ]; then
        say "oomcast: cannot write to $dir; clone the repository where this user may write"
        return 70
    fi
    (
        if have flock; then flock 9; fi
        is_current "$stamp" ${more:+"$root/$more"} && exit 0
        say "oomcast: building ${dir#"$root"/}"
        printf '%s\n' "$root" >"$stamp.new" # dated before the build, so that a change made during it is seen
        configure_and_build "$dir" "$target" "$@" || exit
        mv "$stamp.new" "$stamp"
    ) 9>"$root/build/.lock"
}
