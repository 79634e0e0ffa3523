package dev.rpcx.internal.call;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.Client;
import dev.rpcx.Interceptor;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXFuture;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeoutException;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests what interceptors of a client throw, and how it reaches the caller. */
@Timeout(60)
class ClientInterceptorsTest {
    @RPCXServer("plain")
    static final class Service {
        @Method
        String hello(String name) {
            return "Hello " + name;
        }

        @Method
        int length(String name) {
            return name.length();
        }
    }

    @RPCXClient(remoteServerName = "plain")
    interface Calls {
        String hello(String name);

        @Method("hello")
        String declaring(String name) throws IOException;

        @Method("hello")
        CompletableFuture<String> later(String name);

        @Method("hello")
        RPCXFuture<String> laterStill(String name);

        int length(String name);

        @Method("hello")
        void unread(String name);
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
                    assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
                })
                .hasMessageContaining("an interceptor of this client has failed")
                .hasCauseInstanceOf(FileNotFoundException.class);
    }

    private static RPCXException failure(ThrowingCallable call) {
        try {
            call.call();
        } catch (Throwable e) {
            return (RPCXException) RPCXException.cause(e);
        }
        throw new AssertionError("the call has not failed");
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aCallThatAnInterceptorRefusesWasNotExecuted(boolean isClassic) {
        Calls calls = calls(isClassic, (call, next) -> {
            throw new RPCXException(RPCXException.Code.UNAUTHENTICATED, "nobody");
        });
        for (ThrowingCallable call : List.<ThrowingCallable>of(
                () -> calls.hello("x"), () -> calls.later("x").join(), () -> calls.unread("x"))) {
            RPCXException refused = failure(call);
            assertThat(refused.code()).isEqualTo(RPCXException.Code.UNAUTHENTICATED);
            assertThat(refused.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
            assertThat(refused).hasMessage("nobody");
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aCallThatAnInterceptorFailsBehindMayHaveBeenExecuted(boolean isClassic) {
        Calls calls = calls(isClassic, (call, next) -> {
            next.proceed(call);
            throw new TimeoutException("behind the call");
        });
        assertThat(failure(() -> calls.hello("x")).executed()).isEqualTo(RPCXException.Executed.MAYBE);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aCallThatHasBeenRefusedIsNotSentLater(boolean isClassic) {
        List<ThrowingCallable> later = new ArrayList<>();
        Calls calls = calls(isClassic, (call, next) -> {
            later.add(() -> next.proceed(call.with("a", "b")));
            throw new RPCXException(RPCXException.Code.UNAUTHENTICATED, "nobody");
        });
        assertThat(failure(() -> calls.hello("x")).executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        assertThatThrownBy(later.get(0))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("the call has ended, since an interceptor failed before it was sent");
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

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void anErrorOfAnInterceptorEndsTheFutureTooAndComesFromABlockingMethod(boolean isClassic) {
        AssertionError odd = new AssertionError("odd");
        Calls calls = calls(isClassic, (call, next) -> {
            throw odd;
        });
        CompletableFuture<String> later = calls.later("x");
        assertThatThrownBy(later::join).hasCause(odd);
        assertThatThrownBy(() -> calls.hello("x")).isSameAs(odd);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aResultThatTheMethodCannotReturnIsTheInterceptorsFailure(boolean isClassic) {
        List<Object> answers = new ArrayList<>();
        Calls calls = calls(isClassic, (call, next) -> answers.get(0));
        answers.add(5);
        assertFailed(() -> calls.hello("x"), "plain/hello with java.lang.Integer (expected: java.lang.String)");
        assertThat(calls.length("x")).isEqualTo(5);
        CompletableFuture<String> later = calls.later("x");
        assertFailed(
                later::join, "plain/hello with java.lang.Integer (expected: java.util.concurrent.CompletableFuture<");
        // what an interceptor returns for a void method is ignored
        calls.unread("x");
        answers.set(0, null);
        assertThat(calls.hello("x")).isNull();
        assertFailed(() -> calls.length("x"), "plain/length with null (expected: int)");
        CompletableFuture<String> none = calls.later("x");
        assertFailed(none::join, "plain/hello with null (expected: java.util.concurrent.CompletableFuture<");
    }

    private static final class Stub extends RPCXFuture<String> {}

    /** The test uses a call's own future, a dependent future, and a future of a user's class. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aMethodMayBringAnyFutureOfThatType(boolean isClassic) {
        Calls calls = calls(isClassic, (call, next) -> switch (String.valueOf(call.arguments()[0])) {
            case "own" -> next.proceed(call);
            case "dependent" -> ((RPCXFuture<?>) next.proceed(call)).thenApply(text -> text + ", again");
            case "another" -> new Stub();
            default -> new CompletableFuture<>();
        });
        RPCXFuture<String> own = calls.laterStill("own");
        assertThat(own).isInstanceOf(CallFuture.class);
        assertThat(own.join()).isEqualTo("Hello own");
        assertThat(calls.laterStill("dependent").join()).isEqualTo("Hello dependent, again");
        RPCXFuture<String> another = calls.laterStill("another");
        assertThat(another).isInstanceOf(Stub.class).isNotDone();
        assertThat(another.thenApply(String::strip)).isNotInstanceOf(RPCXFuture.class);
        assertFailed(
                calls.laterStill("none")::join,
                "plain/hello with java.util.concurrent.CompletableFuture (expected: dev.rpcx.RPCXFuture<");
    }

    private static void assertFailed(ThrowingCallable call, String text) {
        assertThatThrownBy(() -> {
                    try {
                        call.call();
                    } catch (CompletionException e) {
                        throw RPCXException.cause(e);
                    }
                })
                .isInstanceOfSatisfying(RPCXException.class, e -> {
                    assertThat(e.code()).isEqualTo(RPCXException.Code.CANCELLED);
                    assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
                })
                .hasMessageContaining("an interceptor of this client has failed: it answers " + text);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aCallThatIsNoneIsNotGoneOnWith(boolean isClassic) {
        Calls calls = calls(isClassic, (call, next) -> next.proceed(null));
        assertThatThrownBy(() -> calls.hello("x"))
                .isInstanceOf(NullPointerException.class)
                .hasMessageStartingWith("call: null (expected: ");
    }

    @Test
    void metadataWithHalfASurrogatePairIsRefusedAndAWholeOneIsSent() {
        String[] text = {"a\ud83d\ude00b"};
        Calls calls = calls(false, (call, next) -> next.proceed(call.with("note", text[0])));
        assertThat(calls.hello("x")).isEqualTo("Hello x");
        for (String half : new String[] {"a\ud800b", "a\udc00b", "a\ud800", "\udc00\ud800"}) {
            text[0] = half;
            assertThatThrownBy(() -> calls.hello("x"))
                    .isInstanceOfSatisfying(RPCXException.class, e -> {
                        assertThat(e.code()).isEqualTo(RPCXException.Code.INVALID);
                        assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
                    })
                    .hasMessageContaining("the metadata entry \"note\": half a surrogate pair");
        }
    }
}
