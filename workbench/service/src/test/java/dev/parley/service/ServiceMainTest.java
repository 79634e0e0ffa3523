package dev.parley.service;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.parley.model.BadInput;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class ServiceMainTest {
    private final HttpClient http = HttpClient.newHttpClient();

    private static Process start(String... args) throws IOException {
        List<String> command = new ArrayList<>(List.of(
                ProcessHandle.current().info().command().orElseThrow(),
                "-cp",
                System.getProperty("java.class.path"),
                ServiceMain.class.getName()));
        command.addAll(List.of(args));
        return new ProcessBuilder(command).start();
    }

    private static String firstLine(Process process) throws IOException {
        return new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8)).readLine();
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
        int port = Integer.parseInt(firstLine(process).replace("listening health=", ""));
        assertThat(get(port, "/health").body()).contains("\"UP\"");
        assertThat(get(port, "/metrics").body())
                .contains("# TYPE process_cpu_seconds_total counter")
                .contains("process_resident_memory_bytes ");
        process.getOutputStream().close();
        assertThat(process.waitFor(10, TimeUnit.SECONDS)).isTrue();
        assertThat(process.exitValue()).isZero();
    }

    private static long allocated(Process process, BufferedReader answers) throws IOException {
        process.outputWriter().write("served\n");
        process.outputWriter().flush();
        String[] words = answers.readLine().split(" ");
        assertThat(words).hasSize(4).startsWith("served", "0", "0");
        return Long.parseLong(words[3]);
    }

    /** A request takes kilobytes; a thousand answers to the lab would take hundreds of them, if they counted. */
    @Test
    void whatItAllocatesIsToldWithoutWhatTellingTakes() throws Exception {
        Process process = start("name=empty");
        BufferedReader answers = process.inputReader(StandardCharsets.UTF_8);
        int port = Integer.parseInt(answers.readLine().replace("listening health=", ""));
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

    @Test
    void shutdownIsAPost() throws Exception {
        Process process = start("name=empty");
        int port = Integer.parseInt(firstLine(process).replace("listening health=", ""));
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

    @Test
    void aNeighbourThatIsNotNamedIsAnError() {
        ServiceSettings settings = ServiceSettings.parse(
                new String[] {"name=m1", "topology=line:2", "work=messages", "transport=rest", "at=127.0.0.1:1"});
        assertThatThrownBy(() -> settings.role().orElseThrow().locationOf("m2"))
                .isInstanceOf(BadInput.class)
                .hasMessageContaining("neighbour.m2");
    }
}
