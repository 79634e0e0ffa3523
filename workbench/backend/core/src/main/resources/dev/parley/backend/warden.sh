# warden.sh EPMD SERVER: runs both in this shell's process group, which setsid made, and ends the whole group when standard input ends.
exec 3<&0
"$1" -port "$ERL_EPMD_PORT" -address 127.0.0.1 </dev/null >&2 3<&- &
"$2" </dev/null >&2 3<&- &
server=$!
# a server that ends by itself ends the group too
(exec 3<&-; while kill -0 "$server" 2>/dev/null; do sleep 1; done; kill -TERM $$) &
trap 'kill -KILL 0' TERM INT HUP
# in the background, since a shell obeys no signal while it waits for a program; a program in the background would be given no input
cat <&3 >/dev/null &
exec 3<&-
wait $!
kill -KILL 0
