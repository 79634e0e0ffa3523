package dev.rpcx.internal.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.CallContext;
import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.Publishers;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.internal.schema.LockFile;
import dev.rpcx.internal.schema.MethodSchema;
import dev.rpcx.internal.schema.Schema;
import dev.rpcx.schema.Field;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Flow;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests calls of methods by name, with the bytes of their messages. A message here is a field 1 that is a varint. */
@Timeout(60)
class EncodedCallsTest {
    record Number(@Field(1) int value) {}

    record Text(@Field(1) String value) {}

    /** A service whose messages the server would misread. */
    interface Changed {
        Text next(Text text);
    }

    @RPCXServer("numbers")
    static final class Numbers {
        @Method
        Number next(Number number) {
            return new Number(number.value + 1);
        }

        @Method("up-to")
        Flow.Publisher<Number> upTo(Number number) {
            List<Number> all = new ArrayList<>();
            for (int i = 1; i <= number.value; i++) {
                all.add(new Number(i));
            }
            return Publishers.of(all);
        }

        @Method
        CompletableFuture<Number> sum(Flow.Publisher<Number> numbers) {
            CompletableFuture<Number> sum = new CompletableFuture<>();
            numbers.subscribe(new Collector<Number>(all ->
                    sum.complete(new Number(all.stream().mapToInt(Number::value).sum()))));
            return sum;
        }

        @Method
        Flow.Publisher<Number> same(Flow.Publisher<Number> numbers) {
            return numbers;
        }

        @Method
        String note() {
            return String.valueOf(CallContext.current().orElseThrow().metadata().get("note"));
        }
    }

    /** Passes on all items of a stream together. */
    private record Collector<T>(List<T> items, Consumer<List<T>> end) implements Flow.Subscriber<T> {
        Collector(Consumer<List<T>> end) {
            this(new ArrayList<>(), end);
        }

        @Override
        public void onSubscribe(Flow.Subscription subscription) {
            subscription.request(Long.MAX_VALUE);
        }

        @Override
        public void onNext(T item) {
            items.add(item);
        }

        @Override
        public void onError(Throwable thrown) {
            throw new AssertionError(thrown);
        }

        @Override
        public void onComplete() {
            end.accept(items);
        }
    }

    private final Server server = Server.builder(RegistryServer.registry(new Numbers()))
            .host("127.0.0.1")
            .classic(true)
            .build()
            .start();
    private final List<String> seen = new ArrayList<>();
    private final Client client = Client.builder()
            .interceptor((call, next) -> {
                seen.add(call.service() + "/" + call.method());
                return next.proceed(call.with("note", "seen"));
            })
            .build();
    private final EncodedCalls calls = client.create(EncodedCalls.class, "127.0.0.1", server.port());

    @AfterEach
    void stop() {
        client.close();
        server.stop(Duration.ofMillis(200));
    }

    private static byte[] number(int value) {
        return new byte[] {8, (byte) value};
    }

    private static List<byte[]> all(Flow.Publisher<byte[]> stream) {
        CompletableFuture<List<byte[]>> items = new CompletableFuture<>();
        stream.subscribe(new Collector<byte[]>(items::complete));
        return items.join();
    }

    private static RPCXException failure(CompletableFuture<byte[]> call) {
        try {
            call.join();
        } catch (CompletionException e) {
            return (RPCXException) RPCXException.cause(e);
        }
        throw new AssertionError("the call has not failed");
    }

    @Test
    void aMethodIsCalledByNameWithBytes() {
        assertThat(calls.call("numbers", "next", number(41)).join()).isEqualTo(number(42));
        assertThat(calls.call("numbers", "next", new byte[0]).join()).isEqualTo(number(1));
        assertThat(seen).containsExactly("numbers/next", "numbers/next");
    }

    @Test
    void streamsGoEachWay() {
        Flow.Publisher<byte[]> numbers = Publishers.of(List.of(number(1), number(2), number(3)));
        assertThat(all(calls.receive("numbers", "up-to", number(3)))).containsExactly(number(1), number(2), number(3));
        assertThat(calls.send("numbers", "sum", numbers).join()).isEqualTo(number(6));
        assertThat(all(calls.exchange("numbers", "same", numbers))).containsExactly(number(1), number(2), number(3));
    }

    @Test
    void interceptorsAddTheirMetadata() {
        assertThat(calls.call("numbers", "note", new byte[0]).join()).isEqualTo(new byte[] {10, 4, 's', 'e', 'e', 'n'});
    }

    @ParameterizedTest
    @ValueSource(strings = {"nothing", "none"})
    void aMethodThatIsNotThereIsNotExecuted(String method) {
        RPCXException refused = failure(calls.call("numbers", method, number(1)));
        assertThat(refused.code()).isEqualTo(RPCXException.Code.NOT_FOUND);
        assertThat(refused.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
    }

    @Test
    void bytesThatTheServerCannotReadAreNotExecuted() {
        RPCXException refused = failure(calls.call("numbers", "next", new byte[] {8}));
        assertThat(refused.code()).isEqualTo(RPCXException.Code.INVALID);
        assertThat(refused.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
    }

    @Test
    void aMethodWhoseMembersTheServerWouldMisreadIsNotCalled() throws Exception {
        MethodSchema changed =
                MethodSchema.of(Changed.class.getMethod("next", Text.class), null, new Schema(LockFile.none()));
        RPCXException refused = failure(calls.comparing(changed).call("numbers", "next", number(41)));
        assertThat(refused.code()).isEqualTo(RPCXException.Code.INVALID);
        assertThat(refused.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        assertThat(refused).hasMessageContaining("another schema").hasMessageContaining("Text.value");
        assertThat(calls.call("numbers", "next", number(41)).join()).isEqualTo(number(42));
    }

    @Test
    void theClassicWireHasNoSuchCalls() {
        try (Client classic = Client.builder().classic().build()) {
            assertThatThrownBy(() -> classic.create(EncodedCalls.class, "127.0.0.1", server.port()))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("(expected: the native one)");
        }
    }
}
