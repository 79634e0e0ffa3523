# warden.sh SIGNAL SECONDS PROGRAM ARG...: runs the program in this shell's process group, which setsid made. When
# standard input ends, the program gets the signal and that many seconds, and then the whole group is killed.
signal=$1
seconds=$2
shift 2
exec 3<&0
"$@" </dev/null >&2 3<&- &
program=$!
# This subshell is a process of its own, so it ends the group also when the shell above was killed. It uses read and
# not cat, which would be one more process to end.
(
  while read -r _; do :; done <&3
  kill -"$signal" "$program" 2>/dev/null
  tenths=$((seconds * 10))
  while [ "$tenths" -gt 0 ] && kill -0 "$program" 2>/dev/null; do
    sleep 0.1
    tenths=$((tenths - 1))
  done
  kill -KILL 0
) &
exec 3<&-
wait "$program"
status=$?
# a program that ended by itself takes what it started with it, and its exit code is told
trap '' TERM
kill -TERM 0
exit "$status"
