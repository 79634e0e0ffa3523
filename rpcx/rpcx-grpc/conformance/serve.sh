# Sourced by the scripts beside it: starts a server of RPCX that speaks gRPC, and ends it when the script ends. Sets
# port and folder, which is removed then.
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../../../build/preamble.sh"
case "${1:-}" in
  --help | -h) usage && exit 0 ;;
  ?*) wrong "$1 (expected: nothing)" ;;
esac
here=$home/rpcx/rpcx-grpc
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$folder"' EXIT

# prints the path of a tool: the one on the PATH, or one that Go builds
tool() {
  local name=$1 package=$2
  if command -v "$name"; then
    return
  fi
  command -v go >/dev/null || wrong "there is neither $name nor Go on the PATH (expected: $package)"
  GOBIN=$folder go install "$package" >&2
  echo "$folder/$(basename "${package%@*}")"
}

serve() {
  find_jdk
  find_maven
  (cd "$home" && mvn -q -B -ntp -Dspotless.skip=true -Dmdep.includeScope=test -Dmdep.outputFile="$folder/classpath" \
    test-compile dependency:build-classpath -pl rpcx/rpcx-grpc -am)
  mkfifo "$folder/port"
  "$JAVA_HOME/bin/java" --enable-native-access=ALL-UNNAMED \
    -cp "$here/target/classes:$here/target/test-classes:$(cat "$folder/classpath")" \
    dev.rpcx.grpc.ServedUntilKilled >"$folder/port" 2>"$folder/errors" &
  server=$!
  read -r port <"$folder/port" || wrong "the server has not started: $(cat "$folder/errors")"
}
