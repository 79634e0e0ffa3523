package dev.parley.transport.springweb;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.parley.model.BadInput;
import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Operation;
import dev.parley.spi.messages.Messages;
import dev.parley.spi.messages.TestModelOnlyText;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.net.BindException;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class SpringMvcServerTest {
    private static final Handler ECHO = new Handler() {
        @Override
        public <Q extends Record, R extends Record> R handle(Operation<Q, R> operation, Q request) {
            return operation.reply().cast(request);
        }
    };

    private record Failing(RuntimeException thrown) implements Handler {
        @Override
        public <Q extends Record, R extends Record> R handle(Operation<Q, R> operation, Q request) {
            throw thrown;
        }
    }

    /** Below those that systems give to whoever connects, so that no client of another test has it meanwhile. */
    private static Location.Socket free() throws IOException {
        while (true) {
            int port = ThreadLocalRandom.current().nextInt(10_000, 32_768);
            try (ServerSocket _ = new ServerSocket(port)) {
                return new Location.Socket("127.0.0.1", port);
            } catch (BindException taken) {
                // the next one
            }
        }
    }

    private static HttpResponse<byte[]> post(Location at, String path, String body) throws Exception {
        try (HttpClient http = HttpClient.newHttpClient()) {
            return http.send(
                    HttpRequest.newBuilder(URI.create("http://" + at + path))
                            .header("Content-Type", "application/json")
                            .POST(HttpRequest.BodyPublishers.ofString(body))
                            .build(),
                    HttpResponse.BodyHandlers.ofByteArray());
        }
    }

    private static CallException fault(HttpResponse<byte[]> response) {
        return Problems.read(response.statusCode(), response.body());
    }

    @Test
    void twoServersLiveSideBySideAndKeepStandardOutputClean() throws Exception {
        Location one = free();
        Location two = free();
        PrintStream before = System.out;
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
        try (SpringMvcServer _ = new SpringMvcServer(Messages.CONTRACT, one, ECHO, List.of());
                SpringMvcServer _ = new SpringMvcServer(Messages.CONTRACT, two, ECHO, List.of())) {
            for (Location at : List.of(one, two)) {
                HttpResponse<byte[]> reply = post(at, "/messages/onlyText", "{\"textField\":\"" + at + "\"}");
                assertThat(new String(reply.body(), StandardCharsets.UTF_8))
                        .isEqualTo("{\"textField\":\"" + at + "\"}");
            }
        } finally {
            System.setOut(before);
        }
        assertThat(printed.toString(StandardCharsets.UTF_8)).isEmpty();
    }

    @ParameterizedTest
    @EnumSource(Code.class)
    void everyCodeComesBackAsItself(Code code) throws Exception {
        Location at = free();
        try (SpringMvcServer _ = new SpringMvcServer(
                Messages.CONTRACT, at, new Failing(new CallException(code, "because of ü")), List.of())) {
            HttpResponse<byte[]> response = post(at, "/messages/onlyText", "{\"textField\":\"x\"}");
            assertThat(response.headers().firstValue("Content-Type").orElseThrow())
                    .startsWith("application/problem+json");
            assertThat(Problems.code(response.statusCode())).isEqualTo(code);
            assertThat(fault(response)).hasMessage("because of ü").returns(code, CallException::code);
        }
    }

    @Test
    void whatSpringRefusesHasACodeToo() throws Exception {
        Location at = free();
        try (SpringMvcServer _ =
                new SpringMvcServer(Messages.CONTRACT, at, new Failing(new IllegalStateException("boom")), List.of())) {
            assertThat(fault(post(at, "/messages/onlyText", "{\"textField\":\"x\"}")))
                    .hasMessage("boom")
                    .returns(Code.REMOTE_ERROR, CallException::code);
            assertThat(fault(post(at, "/messages/onlyText", "no JSON")).code()).isEqualTo(Code.PROTOCOL);
            assertThat(fault(post(at, "/messages/other", "{}")).code()).isEqualTo(Code.NOT_FOUND);
        }
    }

    @Test
    void aPortThatIsTakenIsSaidInOneLine() throws Exception {
        try (ServerSocket taken = new ServerSocket(0)) {
            Location at = new Location.Socket("127.0.0.1", taken.getLocalPort());
            assertThatThrownBy(() -> new SpringMvcServer(Messages.CONTRACT, at, ECHO, List.of()))
                    .isInstanceOfSatisfying(
                            CallException.class, e -> assertThat(e.code()).isEqualTo(Code.UNAVAILABLE))
                    .hasMessageContaining(at.toString());
        }
    }

    @Test
    void aContractWithoutAControllerIsRefused() {
        Contract other = new Contract(
                "other",
                List.of(new Operation<>("x", Operation.Kind.QUERY, TestModelOnlyText.class, TestModelOnlyText.class)));
        assertThatThrownBy(() -> new SpringMvcServer(other, free(), ECHO, List.of()))
                .isInstanceOf(BadInput.class)
                .hasMessageContaining("messages");
    }
}
