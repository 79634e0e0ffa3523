package dev.rpcx.versions;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.rpcx.LongForm;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests clients and servers of two releases on two versions of the JDK, in every pair and on both wires. Each client
 * and each server is a process of its own.
 */
@Timeout(300)
class VersionsTest {
    private static final List<String> RELEASES = List.of("old", "new");

    private static Process start(Jdk jdk, Stream<String> arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of(jdk.java().toString(), "-XX:TieredStopAtLevel=1", "-Xmx64m"));
        if (jdk.version() >= 22) {
            command.add("--enable-native-access=ALL-UNNAMED");
        }
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), Peer.class.getName()));
        arguments.forEach(command::add);
        return new ProcessBuilder(command).redirectErrorStream(true).start();
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 21})
    void everyPairOfJdksAndReleasesSpeaksBothWires(int older) throws Exception {
        Optional<Jdk> found = Jdk.find(older);
        assumeTrue(
                found.isPresent(),
                "no Java " + older + " in the usual folders, and JDK_" + older
                        + " names none: its pairs were left out");
        List<Jdk> jdks = List.of(found.get(), Jdk.own());
        List<Process> servers = new ArrayList<>();
        try {
            List<String> ports = new ArrayList<>();
            for (Jdk jdk : jdks) {
                for (String release : RELEASES) {
                    Process server = start(jdk, Stream.of("serve", release));
                    servers.add(server);
                    ports.add(port(server));
                }
            }
            for (Jdk jdk : jdks) {
                for (String release : RELEASES) {
                    Process client = start(jdk, Stream.concat(Stream.of("call", release), ports.stream()));
                    String said = new String(client.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
                    assertThat(client.waitFor())
                            .as("%s client on %d: %s", release, jdk.version(), said)
                            .isZero();
                    assertThat(said.lines().filter(line -> line.startsWith("native ") || line.startsWith("classic ")))
                            .as(said)
                            .containsExactlyElementsOf(ports.stream()
                                    .flatMap(port -> Stream.of("native " + port, "classic " + port))
                                    .collect(Collectors.toList()));
                }
            }
            LongForm.figure(
                    11,
                    "JDK %d and %d, an older and a newer release, each as client and as server, on both wires: all 16 pairs on each",
                    older,
                    Jdk.own().version());
        } finally {
            for (Process server : servers) {
                server.getOutputStream().close();
            }
            for (Process server : servers) {
                assertThat(server.waitFor()).isZero();
            }
        }
    }

    private static String port(Process server) throws IOException {
        BufferedReader lines =
                new BufferedReader(new InputStreamReader(server.getInputStream(), StandardCharsets.UTF_8));
        List<String> said = new ArrayList<>();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            if (line.startsWith("serving ")) {
                return line.substring("serving ".length());
            }
            said.add(line);
        }
        throw new IOException("the server ended: " + said);
    }
}
