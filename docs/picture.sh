#!/bin/sh
# Makes docs/screen.svg, the README's picture, and docs/view-NAME.svg of each of the six views, from real runs of the built
# program: no terminal, no X. The fit view has the probe beside it. --check says which pictures are not what the program draws
# now (those with the probe's times in them are left out), and changes nothing.
#
#     docs/picture.sh [--check] [PROGRAM]        PROGRAM is build/release/oomcast unless given
set -eu
cd "$(dirname "$0")/.."
check=no
if [ "${1-}" = --check ]; then check=yes; shift; fi
program=${1:-build/release/oomcast}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
out=docs
if [ $check = yes ]; then out=$folder; fi
unset NO_COLOR

# picture NAME OPTIONS... <KEYS: runs a script of keys and keeps the picture of what is then on the screen.
picture() {
    name=$1
    shift
    { cat; echo ":save-picture $out/$name.svg"; } >"$folder/keys"
    "$program" --no-display --script "$folder/keys" "$@"
    if [ $check = no ]; then
        echo "docs/$name.svg"
    elif ! cmp -s "$folder/$name.svg" "docs/$name.svg"; then
        echo "docs/$name.svg is not what the program draws now: run docs/picture.sh"
        bad=yes
    fi
}

bad=no
script=examples/llama3-8b-sgd-fp16.sh
llama="--set framework=megatron --set model.name=llama-3-8b --set parallel.tp=2 --set parallel.sp=true --set precision=bf16
       --set optimizer=adam --set batch.seq=8192 --set gpu=h100-80g"

if [ $check = no ]; then
    # fp16 with fp32 as the base, the probe beside it
    picture screen $script <<'KEYS'
:size 144 50
:set precision=fp32
b
:set precision=bf16
:wait
KEYS
    picture view-fit $script <<'KEYS'
:size 120 36
:set precision=fp32
bu
:wait
KEYS
fi

# shellcheck disable=SC2086
picture view-step --no-live $llama --set parallel.pp=2 --set parallel.world=8 --set batch.global=8 <<'KEYS'
:size 120 36
2
KEYS
# shellcheck disable=SC2086
picture view-pipeline --no-live $llama --set parallel.pp=8 --set parallel.world=32 --set batch.global=64 <<'KEYS'
:size 120 36
3jj
KEYS
picture view-layers --no-live $script <<'KEYS'
:size 120 36
4jjjj
KEYS
picture view-compare --no-live $script <<'KEYS'
:size 120 36
:set precision=fp32
bu5jj
KEYS
picture view-lessons --no-live $script <<'KEYS'
:size 120 36
:lesson half-precision
l
KEYS
[ $bad = no ]
