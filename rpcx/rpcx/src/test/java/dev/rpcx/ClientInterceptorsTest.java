package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What interceptors of a client throw, and how its callers meet it. */
@Timeout(60)
class ClientInterceptorsTest {
    @RPCXServer("plain")
    static final class Service {
        @Method
        String hello(String name) {
            return "Hello " + name;
        }
    }

    @RPCXClient(remoteServerName = "plain")
    interface Calls {
        String hello(String name);

        @Method("hello")
        String declaring(String name) throws IOException;

        @Method("hello")
        CompletableFuture<String> later(String name);
    }

    private final Server server = Server.builder(RegistryServer.registry(new Service()))
            .classic(true)
            .build()
            .start();
    private Client client;

    @AfterEach
    void stop() {
        client.close();
        server.stop(Duration.ofMillis(200));
    }

    private Calls calls(boolean isClassic, Interceptor interceptor) {
        Client.Builder builder = Client.builder().interceptor(interceptor);
        client = (isClassic ? builder.classic() : builder).build();
        return client.create(Calls.class, "127.0.0.1", server.port());
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aCheckedExceptionIsTheOneDeclaredOrACause(boolean isClassic) {
        Calls calls = calls(isClassic, (call, next) -> {
            throw new FileNotFoundException("no key");
        });
        assertThatThrownBy(() -> calls.declaring("x"))
                .isInstanceOf(FileNotFoundException.class)
                .hasMessage("no key");
        assertThatThrownBy(() -> calls.hello("x"))
                .isInstanceOfSatisfying(RPCXException.class, e -> {
                    assertThat(e.code()).isEqualTo(RPCXException.Code.CANCELLED);
                    assertThat(e.executed()).isEqualTo(RPCXException.Executed.MAYBE);
                })
                .hasMessageContaining("an interceptor of this client has failed")
                .hasCauseInstanceOf(FileNotFoundException.class);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void anAsynchronousMethodEndsItsFutureWithWhatItsInterceptorsThrow(boolean isClassic) {
        RPCXException refusal = RPCXException.refused(RPCXException.Code.UNAUTHENTICATED, "nobody");
        Calls calls = calls(isClassic, (call, next) -> {
            switch (String.valueOf(call.arguments()[0])) {
                case "refused" -> throw refusal;
                case "checked" -> throw new TimeoutException("late");
                case "unchecked" -> throw new IllegalStateException("odd");
                default -> {
                    return next.proceed(call);
                }
            }
        });
        assertThatThrownBy(() -> calls.hello("refused")).isSameAs(refusal);
        assertThat(calls.later("refused")).isCompletedExceptionally();
        assertThatThrownBy(calls.later("refused")::join).hasCause(refusal);
        CompletableFuture<String> checked = calls.later("checked");
        assertThatThrownBy(checked::join)
                .hasCauseInstanceOf(RPCXException.class)
                .hasRootCauseInstanceOf(TimeoutException.class);
        assertThatThrownBy(calls.later("unchecked")::join).hasCauseInstanceOf(IllegalStateException.class);
        assertThat(calls.later("x").join()).isEqualTo("Hello x");
    }
}
