package dev.parley.service;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.parley.model.BadInput;
import dev.parley.protocol.Protocol;
import dev.parley.protocol.ServiceCommand;
import dev.parley.protocol.ServiceEvent;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintWriter;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ServiceMainTest {
    private final HttpClient http = HttpClient.newHttpClient();

    private static Process start(String... args) throws IOException {
        return start(List.of(), args);
    }

    private static Process start(List<String> jvmFlags, String... args) throws IOException {
        List<String> command = new ArrayList<>();
        command.add(ProcessHandle.current().info().command().orElseThrow());
        command.addAll(jvmFlags);
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), ServiceMain.class.getName()));
        command.addAll(List.of(args));
        return new ProcessBuilder(command).start();
    }

    /** Waits until it serves, and returns the port of its health. */
    private static int listening(Process process) throws IOException {
        BufferedReader events = process.inputReader(StandardCharsets.UTF_8);
        assertThat(events.readLine()).isEqualTo(Protocol.greeting());
        return ((ServiceEvent.Listening) Protocol.read(events.readLine(), ServiceEvent.class)).healthPort();
    }

    private HttpResponse<String> get(int port, String path) throws Exception {
        return http.send(
                HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path))
                        .build(),
                HttpResponse.BodyHandlers.ofString());
    }

    @Test
    void theEmptyServiceIsHealthyAndEndsWithItsInput() throws Exception {
        Process process = start("name=empty");
        int port = listening(process);
        assertThat(get(port, "/health").body()).contains("\"UP\"");
        assertThat(get(port, "/metrics").body())
                .contains("# TYPE process_cpu_seconds_total counter")
                .contains("process_resident_memory_bytes ");
        process.getOutputStream().close();
        assertThat(process.waitFor(10, TimeUnit.SECONDS)).isTrue();
        assertThat(process.exitValue()).isZero();
    }

    private static long allocated(Process process, BufferedReader answers) throws IOException {
        process.outputWriter().write(Protocol.line(new ServiceCommand.TellServed()) + "\n");
        process.outputWriter().flush();
        ServiceEvent.Served served = (ServiceEvent.Served) Protocol.read(answers.readLine(), ServiceEvent.class);
        assertThat(served).isEqualTo(new ServiceEvent.Served(0, 0, served.allocatedBytes()));
        return served.allocatedBytes();
    }

    /** A request takes kilobytes; a thousand answers to the lab would take hundreds of them, if they counted. */
    @Test
    void whatItAllocatesIsToldWithoutWhatTellingTakes() throws Exception {
        Process process = start("name=empty");
        BufferedReader answers = process.inputReader(StandardCharsets.UTF_8);
        int port = listening(process);
        process.outputWriter().write(Protocol.greeting() + "\n");
        long before = allocated(process, answers);
        assertThat(get(port, "/metrics").statusCode()).isEqualTo(200);
        long asked = allocated(process, answers);
        assertThat(asked - before).isGreaterThan(1_000);
        for (int i = 0; i < 1_000; i++) {
            allocated(process, answers);
        }
        assertThat(allocated(process, answers) - asked).isNotNegative().isLessThan(100_000);
        process.outputWriter().close();
        assertThat(process.waitFor(10, TimeUnit.SECONDS)).isTrue();
    }

    /** They take memory, which belongs to no boot. */
    @Test
    void theClassesThatCountWhatItAllocatesAreLoadedByTheFirstQuestion(@TempDir Path folder) throws Exception {
        Path log = folder.resolve("classes.log");
        Process process = start(List.of("-Xlog:class+load:file=" + log), "name=empty");
        BufferedReader answers = process.inputReader(StandardCharsets.UTF_8);
        int port = listening(process);
        process.outputWriter().write(Protocol.greeting() + "\n");
        assertThat(get(port, "/health").statusCode()).isEqualTo(200);
        assertThat(classesOfManagement(log)).isEmpty();
        allocated(process, answers);
        assertThat(classesOfManagement(log)).isNotEmpty();
        process.outputWriter().close();
        assertThat(process.waitFor(10, TimeUnit.SECONDS)).isTrue();
    }

    private static List<String> classesOfManagement(Path log) throws IOException {
        try (Stream<String> lines = Files.lines(log)) {
            return lines.filter(line -> line.contains("sun.management.") || line.contains("java.lang.management."))
                    .toList();
        }
    }

    @Test
    void shutdownIsAPost() throws Exception {
        Process process = start("name=empty");
        int port = listening(process);
        assertThat(get(port, "/shutdown").statusCode()).isEqualTo(405);
        http.send(
                HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/shutdown"))
                        .POST(HttpRequest.BodyPublishers.noBody())
                        .build(),
                HttpResponse.BodyHandlers.discarding());
        assertThat(process.waitFor(10, TimeUnit.SECONDS)).isTrue();
    }

    @Test
    void badArgumentsAreOneLineAndExitCodeOne() throws Exception {
        Process process = start("name=m1", "topology=line:0", "work=messages", "transport=rest", "at=127.0.0.1:1");
        assertThat(new String(process.getErrorStream().readAllBytes(), StandardCharsets.UTF_8).lines())
                .singleElement()
                .asString()
                .contains("line:0")
                .contains("expected");
        assertThat(process.waitFor()).isEqualTo(1);
    }

    /** Threads of the technology that are no daemons would keep the process for as long as they live. */
    @Test
    void aFaultAtTheStartEndsTheProcessAtOnceAndIsTold() throws Exception {
        Process process = start("name=m1", "topology=line:1", "work=messages", "transport=faulty", "at=127.0.0.1:1");
        assertThat(process.waitFor(20, TimeUnit.SECONDS)).isTrue();
        assertThat(process.exitValue()).isEqualTo(1);
        assertThat(new String(process.getErrorStream().readAllBytes(), StandardCharsets.UTF_8))
                .startsWith("service: java.lang.IllegalStateException: planted");
    }

    @Test
    void commandsAreAnsweredInOrderAndWhatIsNoneIsPassedOver() throws Exception {
        Process process = start("name=empty");
        listening(process);
        try (PrintWriter commands = new PrintWriter(process.outputWriter(StandardCharsets.UTF_8), true)) {
            commands.println(Protocol.greeting());
            commands.println("nonsense");
            commands.println(Protocol.line(new ServiceCommand.ResetHops("7")));
            commands.println(Protocol.line(new ServiceCommand.TellServed()));
            commands.println(Protocol.line(new ServiceCommand.TellHops(7)));
            BufferedReader events = process.inputReader(StandardCharsets.UTF_8);
            assertThat(Protocol.read(events.readLine(), ServiceEvent.class)).isInstanceOf(ServiceEvent.Served.class);
            assertThat(Protocol.read(events.readLine(), ServiceEvent.class))
                    .isEqualTo(new ServiceEvent.Hops(List.of()));
        }
        assertThat(process.waitFor(10, TimeUnit.SECONDS)).isTrue();
        assertThat(new String(process.getErrorStream().readAllBytes(), StandardCharsets.UTF_8))
                .startsWith("service: no ServiceCommand: nonsense");
    }

    @Test
    void anotherVersionOfTheProtocolIsRefusedInOneLineThatNamesBoth() throws Exception {
        int other = Protocol.VERSION + 1;
        Process process = start("name=empty");
        listening(process);
        try (PrintWriter commands = new PrintWriter(process.outputWriter(StandardCharsets.UTF_8), true)) {
            commands.println(Protocol.greeting().replace(":" + Protocol.VERSION, ":" + other));
            assertThat(new String(process.getErrorStream().readAllBytes(), StandardCharsets.UTF_8).lines())
                    .singleElement()
                    .asString()
                    .startsWith("service: protocol: version " + other + " from the lab")
                    .contains("version " + Protocol.VERSION + ",");
        }
        assertThat(process.waitFor()).isEqualTo(1);
    }

    @Test
    void aNeighbourThatIsNotNamedIsAnError() {
        ServiceSettings settings = ServiceSettings.parse(
                new String[] {"name=m1", "topology=line:2", "work=messages", "transport=rest", "at=127.0.0.1:1"});
        assertThatThrownBy(() -> settings.role().orElseThrow().locationOf("m2"))
                .isInstanceOf(BadInput.class)
                .hasMessageContaining("neighbour.m2");
    }
}
