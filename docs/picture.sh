#!/bin/sh
# Makes docs/screen.svg, the README's picture, from a real run of the built program: the screen on the example script, in fp16 with
# fp32 as the base, the probe beside it. Needs the program and nothing else: no X, no terminal.
#
#     docs/picture.sh [PROGRAM]        PROGRAM is build/release/oomcast unless given
set -eu
cd "$(dirname "$0")/.."
program=${1:-build/release/oomcast}
script=$(mktemp)
trap 'rm -f "$script"' EXIT
cat >"$script" <<'END'
:size 144 50
Hbl
:wait
:save-picture docs/screen.svg
END
env -u NO_COLOR "$program" --no-display --script "$script" examples/llama3-8b-sgd-fp16.sh
echo "docs/screen.svg"
