# Sourced by the scripts of this repository: where it is, how a script says what is wrong, a JDK 25 and a Maven, and
# what Maven has packaged. A function that does not find what it needs says so in one line and ends the script with
# exit code 1.
set -eu
home=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
# The script's name in messages: that of its file, unless the script has set another.
me=${me:-$(basename "$0")}

wrong() {
  echo "$me: $1" >&2
  exit 1
}

# prints the comment at the script's top
usage() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; }

is_java() { [ -x "$2/bin/java" ] && grep -qs "^JAVA_VERSION=\"$1[\".]" "$2/release"; }

is_jdk() { is_java "$1" "$2" && [ -x "$2/bin/javac" ]; }

# prints the first of the folders, from the named ones to the usual ones, that is_java or is_jdk with this version
java_home() {
  local is=$1 version=$2 name tool candidate candidates=()
  for name in "JDK_$version" "${!JAVA_HOME@}"; do
    candidates+=("${!name:-}")
  done
  for tool in javac java; do
    if candidate=$(command -v "$tool" 2>/dev/null); then
      candidates+=("$(dirname "$(dirname "$(readlink -f "$candidate" 2>/dev/null || echo "$candidate")")")")
    fi
  done
  for candidate in "${candidates[@]}" /usr/lib/jvm/* /usr/java/* /opt/*jdk* /opt/java/* \
    /Library/Java/JavaVirtualMachines/*/Contents/Home "$HOME"/.sdkman/candidates/java/* "$HOME"/.jdks/* "$HOME"/.local/share/mise/installs/java/*; do
    if [ -n "$candidate" ] && "$is" "$version" "$candidate"; then
      echo "$candidate"
      return
    fi
  done
}

# prints the folder of a JDK of this version, where the machine has one
jdk_of() { java_home is_jdk "$1"; }

# prints the folder of a Java of this version, where the machine has one: what JDK_21, say, names; otherwise a JDK rather than a Java without compiler
java_of() {
  local name=JDK_$1 home
  if [ -n "${!name:-}" ] && is_java "$1" "${!name}"; then
    echo "${!name}"
    return
  fi
  home=$(jdk_of "$1")
  if [ -n "$home" ]; then echo "$home"; else java_home is_java "$1"; fi
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
  wrong "no JDK 25 found (JDK_25, JAVA_HOME, PATH and the usual folders were searched; the default Java is ${found:-unknown}): install one or set JAVA_HOME"
}

find_maven() {
  command -v mvn >/dev/null || wrong "no Maven found: install Maven 3.8.7 or later and put mvn on the PATH"
}

# package MODULES: these, as Maven's -pl takes them, and what they stand on, without tests
package() {
  find_maven
  (cd "$home" && mvn -q -B -ntp -Dmaven.test.skip=true -Dspotless.skip=true package -pl "$1" -am)
}

# class_path MODULE ARTIFACT: prints what a packaged module runs from, its own jar and all that it needs
class_path() { echo "$(echo "$home/$1/target/$2"-*.jar):$(cat "$home/$1/target/runtime.classpath")"; }
