package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Runs the Go client of {@code rpcx/spec/go} against this server. The client is written only from the wire's page. It
 * also breaks the rules of the page, and expects what the page says about that. The test needs Go 1.21 or later, and no
 * network.
 */
@Timeout(300)
class GoClientTest {
    private static final Path CLIENT = Path.of("..", "spec", "go");
    private static final Path TARGET = Path.of("target", "go").toAbsolutePath();

    @BeforeAll
    static void go() throws Exception {
        assumeTrue(
                hasGo(),
                "no go of version 1.21 or later on the PATH: the Go client written from the page was left out");
        Files.createDirectories(TARGET);
    }

    @Test
    void aGoClientWrittenFromThePageAlonePassesItsChecks() throws Exception {
        Path check = TARGET.resolve("check");
        Ended build = run(List.of("go", "build", "-o", check.toString(), "./check"));
        assertThat(build.status()).as(build.said()).isZero();
        Server server = Server.builder(RegistryServer.registry(new SpecTest.Spec()))
                .classic(true)
                .build()
                .start();
        try {
            List<String> command = new ArrayList<>(List.of(check.toString()));
            if (LongForm.ON) {
                command.add("-slow");
            }
            command.addAll(List.of("127.0.0.1", String.valueOf(server.port())));
            Ended checked = run(command);
            assertThat(checked.status()).as(checked.said()).isZero();
            assertThat(checked.said()).contains("\nok, ");
            LongForm.figure(
                    2,
                    "the Go client of rpcx/spec/go, written from wire.md alone, says of this server: %s",
                    checked.said()
                            .substring(checked.said().lastIndexOf("\nok, ") + 1)
                            .strip());
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    @Test
    void goVetFindsNothing() throws Exception {
        Ended vet = run(List.of("go", "vet", "./..."));
        assertThat(vet.status()).as(vet.said()).isZero();
    }

    private record Ended(int status, String said) {}

    /**
     * Runs a command in the client's folder. Go uses the user's own cache if there is one. With a cache in the build's
     * folder, each clean build would compile Go's library again, which takes a minute.
     */
    private static Ended run(List<String> command) throws IOException, InterruptedException {
        ProcessBuilder builder =
                new ProcessBuilder(command).directory(CLIENT.toFile()).redirectErrorStream(true);
        builder.environment().put("GOFLAGS", "-mod=mod -buildvcs=false");
        builder.environment().put("GOPROXY", "off");
        builder.environment().put("GOTOOLCHAIN", "local");
        builder.environment().put("CGO_ENABLED", "0");
        if (!builder.environment().containsKey("HOME")) {
            builder.environment().putIfAbsent("GOCACHE", TARGET.resolve("cache").toString());
        }
        builder.environment().put("GOPATH", TARGET.resolve("path").toString());
        Process process = builder.start();
        String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        return new Ended(process.waitFor(), said);
    }

    private static boolean hasGo() throws InterruptedException {
        try {
            Process process = new ProcessBuilder("go", "version")
                    .redirectErrorStream(true)
                    .start();
            String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            Matcher version = Pattern.compile("go version go1\\.(\\d+)").matcher(said);
            return process.waitFor() == 0 && version.find() && Integer.parseInt(version.group(1)) >= 21;
        } catch (IOException notThere) {
            return false;
        }
    }
}
