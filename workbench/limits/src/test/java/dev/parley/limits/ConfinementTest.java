package dev.parley.limits;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.parley.model.Limits;
import dev.parley.model.Limits.Bandwidth;
import dev.parley.model.Limits.Proxy;
import dev.parley.model.Limits.Share;
import dev.parley.model.Topology;
import dev.rpcx.probe.ByteRelay;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests of what the machine cannot do are skipped, with the reason. */
class ConfinementTest {
    private static final Topology PAIR = Topology.parse("line:2");

    @TempDir
    Path folder;

    private static Limits shares(double cores, Optional<Long> memoryBytes) {
        return new Limits(
                new Share(Optional.of(cores), memoryBytes), Map.of(), Map.of(), Optional.empty(), Optional.empty());
    }

    private static Process start(List<String> prefix, String... command) throws IOException {
        List<String> whole = new ArrayList<>(prefix);
        whole.addAll(Arrays.asList(command));
        return new ProcessBuilder(whole)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
    }

    private static void needGroups() {
        Optional<String> why = Cgroups.obstacle(Cgroups.ROOT);
        assumeTrue(why.isEmpty(), why::get);
    }

    private static void needHosts() {
        Optional<String> why = Hosts.obstacle();
        assumeTrue(why.isEmpty(), why::get);
    }

    /** Two busy threads would use two cores, or what there is of them; the group holds them together to its share. */
    @Test
    void aServiceGivenAShareOfACoreUsesNoMore() throws IOException, InterruptedException {
        needGroups();
        for (double cores : new double[] {1, 0.25}) {
            Process busy;
            try (Confinement confinement = Confinement.of(shares(cores, Optional.empty()), PAIR)) {
                busy = start(confinement.prefix("m1"), "/bin/sh", "-c", "(while :; do :; done) & while :; do :; done");
                try {
                    Awaitility.await().until(() -> cpuTicks(busy) > 5);
                    long beganNs = System.nanoTime();
                    long before = cpuTicks(busy);
                    Awaitility.await()
                            .pollInterval(Duration.ofMillis(50))
                            .until(() -> System.nanoTime() - beganNs > 1_000_000_000L);
                    double used = (cpuTicks(busy) - before) * 1e7 / (System.nanoTime() - beganNs);
                    System.out.printf("given %.2f cores, used %.3f%n", cores, used);
                    // a period's quota more than the share at each edge of the window
                    assertThat(used).isLessThanOrEqualTo(cores * 1.1 + 0.01).isGreaterThan(0.05);
                } finally {
                    busy.descendants().forEach(ProcessHandle::destroyForcibly);
                    busy.destroyForcibly().waitFor();
                }
                Awaitility.await().until(() -> busy.descendants().findAny().isEmpty());
            }
        }
    }

    /** What a service is given is written where the kernel reads it. */
    @Test
    void aServiceHasWholeCoresUntilItIsConfined() throws IOException {
        needGroups();
        try (Confinement confinement = Confinement.of(shares(0.25, Optional.empty()), PAIR)) {
            confinement.relax();
            String entrance = confinement.prefix("m1").get(2);
            Path group = Path.of(entrance.substring(entrance.indexOf('>') + 1).split(" ")[0])
                    .getParent();
            Path quota = Files.exists(group.resolve("cpu.max"))
                    ? group.resolve("cpu.max")
                    : group.resolve("cpu.cfs_quota_us");
            assertThat(Files.readString(quota)).startsWith("10000");
            confinement.tighten();
            assertThat(Files.readString(quota)).startsWith("2500");
        }
    }

    private static long cpuTicks(Process process) {
        return java.util.stream.Stream.concat(java.util.stream.Stream.of(process.toHandle()), process.descendants())
                .mapToLong(p -> {
                    try {
                        String stat = Files.readString(Path.of("/proc", Long.toString(p.pid()), "stat"));
                        String[] fields =
                                stat.substring(stat.lastIndexOf(')') + 2).split(" ");
                        return Long.parseLong(fields[11]) + Long.parseLong(fields[12]);
                    } catch (IOException gone) {
                        return 0;
                    }
                })
                .sum();
    }

    @Test
    void aServiceThatNeedsMoreMemoryIsKilled() throws IOException, InterruptedException {
        needGroups();
        try (Confinement confinement = Confinement.of(shares(1, Optional.of(64_000_000L)), PAIR)) {
            Process greedy =
                    start(confinement.prefix("m1"), java(), "-Xms200m", "-XX:+AlwaysPreTouch", "-Xint", "-version");
            assertThat(greedy.waitFor(30, TimeUnit.SECONDS)).isTrue();
            assertThat(greedy.exitValue()).isNotZero();
        }
    }

    /** A JVM that sees its share sizes itself by it. */
    @Test
    void aServiceSeesItsShareFromTheStart() throws IOException, InterruptedException {
        needGroups();
        try (Confinement confinement = Confinement.of(shares(1, Optional.of(512_000_000L)), PAIR)) {
            List<String> command = new ArrayList<>(confinement.prefix("m1"));
            command.addAll(List.of(java(), "-XshowSettings:system", "-version"));
            Process asked =
                    new ProcessBuilder(command).redirectErrorStream(true).start();
            String said = new String(asked.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            assertThat(asked.waitFor()).isZero();
            assertThat(said).contains("Effective CPU Count: 1");
        }
    }

    @Test
    void aLinkOfOneMegabitCarriesNoMore() throws IOException, InterruptedException {
        needHosts();
        Limits limits = new Limits(
                Share.ALL,
                Map.of(),
                Map.of("left", List.of("m1"), "right", List.of("m2")),
                Optional.of(new Bandwidth(1_000_000)),
                Optional.empty());
        try (Confinement confinement = Confinement.of(limits, PAIR)) {
            assertThat(confinement.address("m1")).startsWith("10.77.").isNotEqualTo(confinement.address("m2"));
            String classes = System.getProperty("java.class.path");
            Process receiver = start(
                    confinement.prefix("m2"),
                    java(),
                    "-cp",
                    classes,
                    BytePump.class.getName(),
                    "receive",
                    confinement.address("m2"));
            BufferedReader lines =
                    new BufferedReader(new InputStreamReader(receiver.getInputStream(), StandardCharsets.UTF_8));
            Process sender = start(
                    confinement.prefix("m1"),
                    java(),
                    "-cp",
                    classes,
                    BytePump.class.getName(),
                    "send",
                    confinement.address("m2"),
                    lines.readLine());
            try {
                String[] counted = lines.readLine().split(" ");
                double bitsPerSecond = Long.parseLong(counted[0]) * 8e9 / Long.parseLong(counted[1]);
                System.out.printf("a link of 1 Mbit/s carried %.3f Mbit/s of payload%n", bitsPerSecond / 1e6);
                assertThat(bitsPerSecond).isBetween(0.7e6, 1e6);
            } finally {
                sender.destroyForcibly().waitFor();
                receiver.destroyForcibly().waitFor();
            }
        }
        assertThat(Shell.run("ip", "netns", "list"))
                .doesNotContain("py" + Long.toString(ProcessHandle.current().pid(), 36));
    }

    @Test
    void hostsOfALabThatIsGoneAreTakenDown() throws IOException, InterruptedException {
        needHosts();
        Process gone = new ProcessBuilder("/bin/true").start();
        gone.waitFor();
        String abandoned = "py" + Long.toString(gone.pid(), 36) + "h2";
        Shell.run("ip", "netns", "add", abandoned);
        Hosts.make(List.of("a"), Optional.empty()).close();
        assertThat(Shell.run("ip", "netns", "list")).doesNotContain(abandoned);
    }

    @Test
    void groupsOfVersionTwoAreWrittenInItsForm() throws IOException {
        Files.writeString(folder.resolve("cgroup.controllers"), "cpuset cpu io memory pids\n");
        assertThat(Cgroups.obstacle(folder)).isEmpty();
        Cgroups groups = Cgroups.in(folder);
        List<Path> doors = groups.group("m1", new Share(Optional.of(0.5), Optional.of(512_000_000L)));
        Path group = doors.getFirst().getParent();
        assertThat(group.resolve("cpu.max")).hasContent("5000 10000");
        assertThat(group.resolve("memory.max")).hasContent("512000000");
        assertThat(folder.resolve("cgroup.subtree_control")).hasContent("+cpu +memory");
        assertThat(doors).containsExactly(group.resolve("cgroup.procs"));
    }

    @Test
    void aMachineWithoutControlGroupsSaysSo() {
        assertThat(Cgroups.obstacle(folder)).contains("no control groups with cpu and memory below " + folder);
    }

    @Test
    void withoutLimitsNothingIsSetUp() {
        Confinement.check(Limits.NONE);
        try (Confinement confinement = Confinement.of(Limits.NONE, PAIR)) {
            assertThat(confinement.prefix("m1")).isEmpty();
            assertThat(confinement.address("m1")).isEqualTo("127.0.0.1");
            assertThat(confinement.relayTo("m1", 80)).isEmpty();
        }
    }

    /** Behind each relay is a server that sends back what it receives. */
    @Test
    void aRelayStandsInFrontOfAServiceAndDoesAllThatItsProxySays() throws IOException {
        Proxy proxy = new Proxy(Duration.ofMillis(50), Optional.of(100_000L), Optional.of(Duration.ofSeconds(3)));
        Limits limits = new Limits(Share.ALL, Map.of(), Map.of(), Optional.empty(), Optional.of(proxy));
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                Confinement confinement = Confinement.of(limits, PAIR)) {
            Thread.ofVirtual().start(() -> sendBack(server));
            ByteRelay relay = confinement.relayTo("m1", server.getLocalPort()).orElseThrow();
            try (Socket socket = new Socket(relay.host(), relay.port())) {
                assertThat(secondsFor(socket, 1)).as("delay, both ways").isGreaterThanOrEqualTo(0.1);
                assertThat(secondsFor(socket, 50_000)).as("rate").isGreaterThan(0.45);
                assertThatThrownBy(() -> {
                            if (socket.getInputStream().read() < 0) {
                                throw new IOException("an orderly end");
                            }
                        })
                        .as("cut")
                        .hasMessageContaining("reset");
            }
        }
    }

    private static void sendBack(ServerSocket server) {
        try (Socket socket = server.accept()) {
            socket.getInputStream().transferTo(socket.getOutputStream());
        } catch (IOException cut) {
            // what the relay does to it
        }
    }

    private static double secondsFor(Socket socket, int bytes) throws IOException {
        long beganNs = System.nanoTime();
        socket.getOutputStream().write(new byte[bytes]);
        assertThat(socket.getInputStream().readNBytes(bytes)).hasSize(bytes);
        return (System.nanoTime() - beganNs) / 1e9;
    }

    @Test
    void aHostThatIsNotThereIsNamed() {
        needHosts();
        try (Hosts hosts = Hosts.make(List.of("a"), Optional.empty())) {
            assertThatThrownBy(() -> hosts.address("b")).hasMessage("no host b (there are [a])");
        }
    }

    private static String java() {
        return Path.of(System.getProperty("java.home"), "bin", "java").toString();
    }
}
