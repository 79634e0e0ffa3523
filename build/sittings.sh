# Sourced by the commands of build/ that record figures: one option each for time, folder and page, runs that are gone on with, and Python.
# Exit codes of all of them: 0 recorded, and what had to hold holds; 1 an error, or it does not hold; 2 something is left, run the same command again.
. "$(dirname "${BASH_SOURCE[0]}")/preamble.sh"
set -o pipefail
typed="build/$me${*:+ $*}"
began=$SECONDS

trap 'echo "$me: stopped; the same command goes on: $typed" >&2; exit 130' INT TERM

# sitting_options KEEP PAGE ARGUMENTS…: sets minutes, keep and page from --for, --in and --out; the rest is left in rest[].
sitting_options() {
  keep=$home/results/$1 page=$2 minutes=120 rest=() only_page=
  shift 2
  while [ $# -gt 0 ]; do
    case $1 in
      --help | -h) usage && exit 0 ;;
      --try) rest+=("$1") && shift && continue ;;
      --only-page) only_page=yes && shift && continue ;;
      --for | --in | --out) [ $# -ge 2 ] || wrong "$1: nothing (expected: a value)" ;;&
      --for)
        [[ $2 =~ ^([1-9][0-9]{0,3})([hm])$ ]] || wrong "--for: $2 (expected: hours or minutes such as 2h or 90m)"
        minutes=${BASH_REMATCH[1]}
        [ "${BASH_REMATCH[2]}" = m ] || minutes=$((minutes * 60))
        ;;
      --in) keep=$(readlink -m "$2") ;;
      --out) page=$(readlink -m "$2") ;;
      -*) wrong "$1 (expected: --for TIME, --in FOLDER, --out FILE.md, --only-page or --help)" ;;
      *) rest+=("$1") && shift && continue ;;
    esac
    shift 2
  done
}

# What is left of the sitting, in minutes.
minutes_left() { echo $((minutes - (SECONDS - began) / 60)); }

left_over() {
  echo "$me: something is left; the same command goes on: $typed"
  exit 2
}

# A path as seen from where parley runs: what is recorded names no folder of this machine.
from_home() { realpath -m --relative-to="${checkout:-$home}" "$1"; }

# sitting WORD FOLDER ARGUMENTS…: begins ./parley WORD ARGUMENTS in FOLDER, or goes on with what was begun there. Ends with 2 where trials are left.
sitting() {
  local word=$1 folder=$2 ended=0
  shift 2
  [ -z "$only_page" ] && [ ! -e "$folder/whole" ] || return 0
  [ "$(minutes_left)" -ge 1 ] || left_over
  if [ -e "$folder/results.duckdb" ] || [ -e "$folder/reproduce.txt" ]; then
    set -- --resume "$(from_home "$folder")"
  else
    set -- "$@" --out "$(from_home "$folder")"
  fi
  mkdir -p "$folder"
  echo "$me: ./parley $word $* --for $(minutes_left)m"
  (cd "${checkout:-$home}" && ./parley "$word" "$@" --for "$(minutes_left)m") | tee -i "$folder/said.txt" || ended=$?
  # where trials failed, parley has said so
  [ "$ended" = 0 ] || exit "$ended"
  if grep -q '^left: ' "$folder/said.txt"; then left_over; fi
  touch "$folder/whole"
}

# A Python that reads stores: the machine's own where it has DuckDB's package, else one in target/ that pip fetches it for.
find_duckdb() {
  command -v python3 >/dev/null || wrong "no python3 found: install Python 3.11 or later"
  python=python3
  if ! python3 -c 'import duckdb' 2>/dev/null; then
    python=$home/target/python/bin/python
    "$python" -c 'import duckdb' 2>/dev/null && return
    echo "$me: fetching DuckDB's package for Python into target/python" >&2
    { python3 -m venv "$home/target/python" && "$python" -m pip install -q duckdb; } >&2 ||
      wrong "DuckDB's package for Python could not be fetched: python3 -m venv target/python && target/python/bin/pip install duckdb"
  fi
}
