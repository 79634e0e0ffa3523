package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import java.security.Principal;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Interceptors of a server that proceed later, on a thread of another call or of none. */
@Timeout(60)
class InterceptedCallsTest {
    private record Named(String name) implements Principal {
        @Override
        public String getName() {
            return name;
        }
    }

    @RPCXServer("who")
    static final class Service {
        final AtomicInteger begun = new AtomicInteger();

        @Method
        String who(String text) {
            begun.incrementAndGet();
            return CallContext.current()
                    .flatMap(CallContext::principal)
                    .map(Principal::getName)
                    .orElse("nobody");
        }
    }

    @RPCXClient(remoteServerName = "who")
    interface Calls {
        CompletableFuture<String> who(String text);
    }

    private final Service service = new Service();

    /** Goes on with a call, when it is run. */
    private final Map<String, Runnable> held = new ConcurrentHashMap<>();

    private final Queue<Throwable> thrown = new ConcurrentLinkedQueue<>();
    private Server server;
    private Client client;

    @AfterEach
    void stop() {
        client.close();
        server.stop(Duration.ofMillis(200));
    }

    private Calls serving(boolean isClassic, Duration time, Interceptor... interceptors) {
        Server.Builder builder =
                Server.builder(RegistryServer.registry(service)).classic(isClassic);
        for (Interceptor each : interceptors) {
            builder.interceptor(each);
        }
        server = builder.maxCallTime(time).build().start();
        Client.Builder clients = Client.builder().callTimeout(Duration.ofSeconds(10));
        client = (isClassic ? clients.classic() : clients).build();
        return client.create(Calls.class, "127.0.0.1", server.port());
    }

    /** Keeps each call until somebody has it go on, on whatever thread that is. */
    private Object holding(Interceptor.Invocation call, Interceptor.Next next) {
        CompletableFuture<Object> result = new CompletableFuture<>();
        held.put(String.valueOf(call.arguments()[0]), () -> {
            try {
                result.complete(next.proceed(call));
            } catch (Throwable t) {
                thrown.add(t);
                result.completeExceptionally(t);
            }
        });
        return result;
    }

    /** As an interceptor that finds out who calls, in a real one by a token. */
    private static Object authenticating(Interceptor.Invocation call, Interceptor.Next next) throws Throwable {
        CallContext.current().orElseThrow().authenticate(new Named(String.valueOf(call.arguments()[0])));
        return next.proceed(call);
    }

    /** The caller may send the call again: what was answered in the handler's place has not executed it. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void anInterceptorsOwnAnswerThatCannotBeSentWasNotExecuted(boolean isClassic) {
        Calls calls = serving(
                isClassic, Duration.ofSeconds(30), (call, next) -> switch (String.valueOf(call.arguments()[0])) {
                    case "number" -> 5;
                    case "large" -> "x".repeat(Wire.MAX_MESSAGE_BYTES);
                    case "behind" -> {
                        next.proceed(call);
                        yield 5;
                    }
                    default -> next.proceed(call);
                });
        for (String text : List.of("number", "large", "behind")) {
            assertThatThrownBy(() -> calls.who(text).join())
                    .as(text)
                    .hasCauseInstanceOf(RPCXException.class)
                    .extracting(Throwable::getCause)
                    .extracting(e -> ((RPCXException) e).code(), e -> ((RPCXException) e).executed())
                    .containsExactly(
                            text.equals("large") ? RPCXException.Code.TOO_LARGE : RPCXException.Code.HANDLER_FAILED,
                            text.equals("behind")
                                    ? RPCXException.Executed.EXECUTED
                                    : RPCXException.Executed.NOT_EXECUTED);
        }
        assertThat(service.begun).hasValue(1);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void anExceptionWithoutATextArrivesWithTheNameOfItsCode(boolean isClassic) {
        Calls calls = serving(isClassic, Duration.ofSeconds(30), (call, next) -> {
            throw new RPCXException(RPCXException.Code.NOT_FOUND, null);
        });
        assertThatThrownBy(() -> calls.who("nobody").join())
                .hasCauseInstanceOf(RPCXException.class)
                .extracting(Throwable::getCause)
                .extracting(Throwable::getMessage)
                .isEqualTo("NOT_FOUND");
    }

    enum Where {
        /** On the thread of another call, within its own interceptor. */
        OTHER_CALL,
        NO_CALL,
        /** Within a time of its own that an interceptor of that other call has taken. */
        OTHER_CALLS_TIME
    }

    @ParameterizedTest
    @EnumSource(Where.class)
    void whoeverGoesOnWithACallTheCallIsItsOwn(Where where) throws Exception {
        Interceptor first = (call, next) -> {
            if (!call.arguments()[0].equals("alice") || where == Where.NO_CALL) {
                return holding(call, next);
            }
            CallContext.current().orElseThrow().authenticate(new Named("alice"));
            if (where == Where.OTHER_CALL) {
                held.get("bob").run();
            } else {
                CallContext.within(Duration.ofSeconds(5), () -> {
                    held.get("bob").run();
                    return null;
                });
            }
            assertThat(CallContext.current().flatMap(CallContext::principal)).contains(new Named("alice"));
            return next.proceed(call);
        };
        Calls calls = serving(false, Duration.ofSeconds(30), first, InterceptedCallsTest::authenticating);
        CompletableFuture<String> bob = calls.who("bob");
        await().until(() -> held.containsKey("bob"));
        if (where == Where.NO_CALL) {
            held.get("bob").run();
            assertThat(CallContext.current()).isEmpty();
        } else {
            assertThat(calls.who("alice").get()).isEqualTo("alice");
        }
        assertThat(bob.get()).isEqualTo("bob");
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void noHandlerBeginsWhenTheTimeOfItsCallIsOver(boolean isClassic) {
        Calls calls = serving(isClassic, Duration.ofMillis(200), this::holding);
        RPCXException late = failure(calls.who("bob"));
        assertThat(late.code()).isEqualTo(RPCXException.Code.DEADLINE_EXCEEDED);
        // the server says it, and knows it
        assertThat(late.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        goesOnInVain();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void norWhenItsCallerIsGone(boolean isClassic) {
        Calls calls = serving(isClassic, Duration.ofSeconds(30), this::holding);
        CompletableFuture<String> bob = calls.who("bob");
        await().until(() -> held.containsKey("bob"));
        client.close();
        assertThat(failure(bob).code()).isIn(RPCXException.Code.UNAVAILABLE, RPCXException.Code.CANCELLED);
        await().until(() -> server.connections() == 0);
        goesOnInVain();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void norWhenAnInterceptorHasAnswered(boolean isClassic) throws Exception {
        Calls calls = serving(isClassic, Duration.ofSeconds(30), (call, next) -> {
            Object ignored = holding(call, next);
            return ignored == null ? "never" : "cached";
        });
        assertThat(calls.who("bob").get()).isEqualTo("cached");
        goesOnInVain();
    }

    private void goesOnInVain() {
        held.get("bob").run();
        assertThat(service.begun).hasValue(0);
        assertThat(thrown).singleElement().satisfies(t -> assertThat(t).hasMessageContaining("the call has ended"));
    }

    /** A handler that has run once does not run again for a call that has ended meanwhile. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void norOnceMore(boolean isClassic) throws Exception {
        CountDownLatch answered = new CountDownLatch(1);
        CompletableFuture<Throwable> again = new CompletableFuture<>();
        Calls calls = serving(isClassic, Duration.ofSeconds(30), (call, next) -> {
            Object result = next.proceed(call);
            Thread later = new Thread(() -> {
                try {
                    answered.await();
                    next.proceed(call);
                    again.complete(null);
                } catch (Throwable t) {
                    again.complete(t);
                }
            });
            later.start();
            return result;
        });
        assertThat(calls.who("bob").get()).isEqualTo("nobody");
        answered.countDown();
        assertThat(again.get()).hasMessageContaining("the call has ended");
        assertThat(service.begun).hasValue(1);
    }

    private static RPCXException failure(CompletableFuture<String> call) {
        try {
            throw new AssertionError(call.join());
        } catch (CompletionException e) {
            return (RPCXException) e.getCause();
        }
    }
}
