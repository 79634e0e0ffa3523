package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.rpcx.codec.CodecException;
import dev.rpcx.schema.SchemaException;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the details of errors, and what errors of interceptors say about the handler. */
@Timeout(60)
class ErrorDetailsTest {
    record BadField(String name, List<Integer> positions) {}

    record Retry(Duration after) {}

    /** Has types of the same names, as a client has whose code is another project. */
    static final class Others {
        record BadField(String name) {}

        record Retry(Duration after) {
            Retry {
                if (after != null) {
                    throw new IllegalStateException("never again");
                }
            }
        }
    }

    @RPCXServer("detailed")
    static final class Service {
        private final Calls behind;

        Service(Calls behind) {
            this.behind = behind;
        }

        @Method
        String fail(String text) {
            throw new RPCXException(RPCXException.Code.INVALID, text)
                    .withDetail(new BadField("age", List.of(1, 2)))
                    .withDetail(new Retry(Duration.ofSeconds(3)));
        }

        @Method
        String passOn(String text) {
            return behind.fail(text);
        }
    }

    @RPCXClient(remoteServerName = "detailed")
    interface Calls {
        String fail(String text);

        String passOn(String text);
    }

    private static RPCXException failure(Runnable call) {
        return catchThrowableOfType(RPCXException.class, call::run);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aHandlersDetailsArriveAndAreReadByTheirNames(boolean isClassic) {
        Client.Builder builder = Client.builder();
        try (Client client = (isClassic ? builder.classic() : builder).build();
                Server first = Server.builder(RegistryServer.registry(new Service(null)))
                        .classic(true)
                        .build()
                        .start()) {
            Calls calls = client.create(Calls.class, "127.0.0.1", first.port());
            try (Server second = Server.builder(RegistryServer.registry(new Service(calls)))
                    .classic(true)
                    .build()
                    .start()) {
                Calls passing = client.create(Calls.class, "127.0.0.1", second.port());
                assertDetailed(failure(() -> calls.fail("no")));
                assertDetailed(failure(() -> passing.passOn("no")));
            }
        }
    }

    private static void assertDetailed(RPCXException error) {
        assertThat(error.code()).isEqualTo(RPCXException.Code.INVALID);
        assertThat(error).hasMessage("no");
        assertThat(error.details()).extracting(RPCXException.Detail::name).containsExactly("BadField", "Retry");
        assertThat(error.detail(BadField.class)).contains(new BadField("age", List.of(1, 2)));
        assertThat(error.detail(Retry.class)).contains(new Retry(Duration.ofSeconds(3)));
        assertThat(error.detail(Others.BadField.class)).contains(new Others.BadField("age"));
        assertThat(error.detail(String.class)).isEmpty();
        assertThatThrownBy(() -> error.detail(Others.Retry.class))
                .isInstanceOf(CodecException.class)
                .hasMessageContaining("never again");
    }

    @Test
    void detailsHaveBoundsAndNames() {
        RPCXException error = new RPCXException(RPCXException.Code.INVALID, "no");
        assertThat(error.details()).isEmpty();
        assertThat(error.withDetails(List.of())).isSameAs(error);
        RPCXException.Detail one = new RPCXException.Detail("one", new byte[1], false);
        assertThat(error.withDetails(List.of(one)).details()).containsExactly(one);
        assertThat(error.withDetails(List.of(one)).withDetails(List.of()).details())
                .isEmpty();
        assertThat(one).hasToString("one of 1 bytes");
        assertThatThrownBy(() -> error.withDetails(Collections.nCopies(17, one)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("details: 17 of them (expected: at most 16)");
        assertThatThrownBy(() -> error.withDetails(List.of(new RPCXException.Detail("one", new byte[8190], false))))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("details: 8193 bytes (expected: at most 8192 for all of them, with their names)");
        assertThatThrownBy(() -> new RPCXException.Detail("", new byte[0], false))
                .hasMessage("name: 0 bytes (expected: 1 to 255 bytes)");
        assertThatThrownBy(() -> new RPCXException.Detail("\u00e9".repeat(128), new byte[0], false))
                .hasMessage("name: 256 bytes (expected: 1 to 255 bytes)");
        assertThatThrownBy(() -> error.withDetail(new Object())).isInstanceOf(SchemaException.class);
        assertThatThrownBy(() -> error.withDetail(new BadField(null, List.of())))
                .isInstanceOf(CodecException.class);
        assertThatThrownBy(() -> error.withDetail(null))
                .isInstanceOf(NullPointerException.class)
                .hasMessageStartingWith("detail: null (expected: ");
    }

    @Test
    void aCopyKeepsWhatTheExceptionSays() {
        IllegalStateException cause = new IllegalStateException("why");
        RPCXException error = new RPCXException(
                        RPCXException.Code.UNAVAILABLE, "no", RPCXException.Executed.MAYBE, cause)
                .withDetail(new BadField("age", List.of()));
        assertThat(error.executed()).isEqualTo(RPCXException.Executed.MAYBE);
        assertThat(error).hasMessage("no").hasCause(cause);
        assertThat(error.isExecutedOpen()).isFalse();
        assertThat(new RPCXException(RPCXException.Code.INVALID, null)
                        .withDetail(new BadField("age", List.of()))
                        .isExecutedOpen())
                .isTrue();
    }

    @Test
    void anErrorWithDetailsCanBeSerialized() throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeObject(
                    new RPCXException(RPCXException.Code.INVALID, "no").withDetail(new BadField("age", List.of(5))));
        }
        try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()))) {
            RPCXException read = (RPCXException) in.readObject();
            assertThat(read.detail(BadField.class)).contains(new BadField("age", List.of(5)));
        }
    }

    /** A caller may send such a call again, or to another instance. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void whatAnInterceptorThrowsInPlaceOfTheHandlerSaysNotExecutedUnlessItSaysOtherwise(boolean isClassic) {
        RPCXException.Executed executed = RPCXException.Executed.EXECUTED;
        Interceptor refusing = (call, next) -> {
            switch (String.valueOf(call.arguments()[0])) {
                case "plain" ->
                    throw new RPCXException(RPCXException.Code.UNAUTHENTICATED, "no")
                            .withDetail(new BadField("age", List.of()));
                case "executed" -> throw new RPCXException(RPCXException.Code.UNAUTHENTICATED, "no", executed, null);
                case "behind" -> {
                    try {
                        return next.proceed(call);
                    } catch (RPCXException e) {
                        throw new RPCXException(RPCXException.Code.UNAUTHENTICATED, "no");
                    }
                }
                default -> {
                    return next.proceed(call);
                }
            }
        };
        Client.Builder builder = Client.builder();
        try (Client client = (isClassic ? builder.classic() : builder).build();
                Server server = Server.builder(RegistryServer.registry(new Service(null)))
                        .classic(true)
                        .interceptor(refusing)
                        .build()
                        .start()) {
            Calls calls = client.create(Calls.class, "127.0.0.1", server.port());
            RPCXException plain = failure(() -> calls.fail("plain"));
            assertThat(plain.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
            assertThat(plain.detail(BadField.class)).isPresent();
            assertThat(failure(() -> calls.fail("executed")).executed()).isEqualTo(executed);
            assertThat(failure(() -> calls.fail("behind")).executed()).isEqualTo(executed);
            assertThat(failure(() -> calls.fail("handler")).executed()).isEqualTo(executed);
        }
    }
}
