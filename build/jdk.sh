# Sourced by ./parley, ./check and RPCX's scripts: finds a JDK 25 and a Maven, or says in one line what is missing and ends with exit code 1.

is_jdk() { [ -x "$2/bin/javac" ] && grep -qs "^JAVA_VERSION=\"$1[\".]" "$2/release"; }

# prints the folder of a JDK of this version, where the machine has one
jdk_of() {
  local candidate on_path
  on_path=$(command -v javac 2>/dev/null) && on_path=$(dirname "$(dirname "$(readlink -f "$on_path" 2>/dev/null || echo "$on_path")")")
  for candidate in "${JAVA_HOME:-}" "${on_path:-}" /usr/lib/jvm/* /usr/java/* /opt/*jdk* /opt/java/* \
    /Library/Java/JavaVirtualMachines/*/Contents/Home "$HOME"/.sdkman/candidates/java/* "$HOME"/.jdks/* "$HOME"/.local/share/mise/installs/java/*; do
    if [ -n "$candidate" ] && is_jdk "$1" "$candidate"; then
      echo "$candidate"
      return
    fi
  done
}

find_jdk() {
  local home
  home=$(jdk_of 25)
  if [ -n "$home" ]; then
    JAVA_HOME=$home
    export JAVA_HOME
    return
  fi
  local found=none
  [ -n "${JAVA_HOME:-}" ] && [ -x "$JAVA_HOME/bin/java" ] && found=$(sed -n 's/^JAVA_VERSION="\(.*\)"/\1/p' "$JAVA_HOME/release" 2>/dev/null)
  [ "$found" = none ] && command -v java >/dev/null && found=$(java -version 2>&1 | sed -n '1s/.*"\(.*\)".*/\1/p')
  echo "$1: no JDK 25 found (JAVA_HOME, PATH and the usual folders were searched; the default Java is ${found:-unknown}): install one or set JAVA_HOME" >&2
  exit 1
}

find_maven() {
  command -v mvn >/dev/null || { echo "$1: no Maven found: install Maven 3.8.7 or later and put mvn on the PATH" >&2; exit 1; }
}
