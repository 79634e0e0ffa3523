# rabbitmq.sh EPMD SERVER: epmd on its own port, then the server.
"$1" -port "$ERL_EPMD_PORT" -address 127.0.0.1 </dev/null >&2 &
exec "$2"
