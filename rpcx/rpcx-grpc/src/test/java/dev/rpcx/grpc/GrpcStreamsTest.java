package dev.rpcx.grpc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.google.protobuf.DynamicMessage;
import dev.rpcx.internal.ledger.Ledger;
import io.grpc.CallOptions;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.StreamObserver;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Tests streams of items in both directions, made by grpc-java. */
class GrpcStreamsTest {
    private Served served;
    private GrpcClient client;

    @BeforeEach
    void start() {
        served = new Served();
        client = served.client();
    }

    @AfterEach
    void stop() {
        client.close();
        served.close();
    }

    private static Status.Code codeOf(Throwable thrown) {
        return ((StatusRuntimeException) thrown).getStatus().getCode();
    }

    @Test
    void theItemsOfAServerComeInTheirOrder() {
        List<Object> items = new ArrayList<>();
        client.items(CallOptions.DEFAULT, "Count", 10_000).forEachRemaining(each -> items.add(GrpcClient.value(each)));
        assertThat(items).hasSize(10_000);
        for (int i = 0; i < items.size(); i++) {
            assertThat(items.get(i)).isEqualTo(i);
        }
    }

    @Test
    void aStreamWithoutItemsEnds() {
        assertThat(client.items(CallOptions.DEFAULT, "Count", 0).hasNext()).isFalse();
    }

    @Test
    void aStreamThatFailsBringsItsItemsFirst() {
        Iterator<DynamicMessage> items = client.items(CallOptions.DEFAULT, "Break", 2);
        assertThat(GrpcClient.value(items.next())).isEqualTo(0);
        assertThat(GrpcClient.value(items.next())).isEqualTo(1);
        assertThatThrownBy(items::hasNext)
                .satisfies(thrown -> assertThat(codeOf(thrown)).isEqualTo(Status.Code.UNAVAILABLE))
                .hasMessageContaining("no more");
    }

    @Test
    void largeItemsPass() {
        List<Integer> lengths = new ArrayList<>();
        client.items(CallOptions.DEFAULT, "Large", 20, 1_000_000)
                .forEachRemaining(each -> lengths.add(((String) GrpcClient.value(each)).length()));
        assertThat(lengths).hasSize(20).containsOnly(1_000_000);
    }

    /** The client's window takes a MiB, and the translator some more, but not the 400 MB that the stream has. */
    @Test
    void aClientThatTakesNoItemsStopsThePublisher() {
        Received received = new Received(1);
        ClientCalls.asyncServerStreamingCall(
                client.begin("Large"), GrpcClient.request("Large", 4_000, 100_000), received);
        await().until(() -> received.values.size() == 1);
        // another call on the same connection is not held up
        assertThat(client.call("Hello", "Ada")).isEqualTo("Hello Ada");
        assertThat(served.counter.made).hasValueLessThan(100);
        received.request(20);
        await().until(() -> received.values.size() == 21);
        received.cancel();
        await().until(received.end::isDone);
        assertThat(served.counter.made).hasValueLessThan(200);
    }

    @Test
    void theItemsOfAClientAreAddedUp() throws Exception {
        Received received = new Received();
        StreamObserver<DynamicMessage> items = ClientCalls.asyncClientStreamingCall(client.begin("Total"), received);
        for (int i = 1; i <= 1_000; i++) {
            items.onNext(GrpcClient.request("Total", i));
        }
        items.onCompleted();
        received.end.get(30, TimeUnit.SECONDS);
        assertThat(received.values).containsExactly(500_500);
    }

    @Test
    void aClientsStreamWithoutItemsIsOne() throws Exception {
        Received received = new Received();
        ClientCalls.asyncClientStreamingCall(client.begin("Total"), received).onCompleted();
        received.end.get(30, TimeUnit.SECONDS);
        assertThat(received.values).containsExactly(0);
    }

    /** What a client sends before the handler wants it stays within the window of its stream. */
    @Test
    void itemsThatTheHandlerDoesNotWantYetWait() throws Exception {
        Received received = new Received();
        StreamObserver<DynamicMessage> items = ClientCalls.asyncClientStreamingCall(client.begin("Late"), received);
        for (int i = 0; i < 100; i++) {
            items.onNext(GrpcClient.request("Late", "x".repeat(10_000)));
        }
        items.onCompleted();
        assertThat(served.counter.begun.await(30, TimeUnit.SECONDS)).isTrue();
        await().until(() -> Ledger.auditAll().contains("ITEM_BYTES_IN"));
        // other calls go on although the window of that stream is full
        assertThat(client.call("Length", "x".repeat(500_000))).isEqualTo(500_000);
        served.counter.released.complete("");
        received.end.get(30, TimeUnit.SECONDS);
        assertThat(received.values).containsExactly(1_000_000);
    }

    @Test
    void itemsGoBothWaysAtTheSameTime() throws Exception {
        Received received = new Received();
        StreamObserver<DynamicMessage> items = ClientCalls.asyncBidiStreamingCall(client.begin("Echo"), received);
        for (int i = 0; i < 10; i++) {
            items.onNext(GrpcClient.request("Echo", "item " + i));
            int expected = i + 1;
            await().until(() -> received.values.size() == expected);
        }
        items.onCompleted();
        received.end.get(30, TimeUnit.SECONDS);
        assertThat(received.values).hasSize(10).startsWith("item 0").endsWith("item 9");
    }

    @Test
    void anItemAboveTheServersLimitEndsTheCall() {
        try (Served small = new Served(builder -> builder.maxMessageBytes(1_000));
                GrpcClient caller = small.client()) {
            Received received = new Received();
            StreamObserver<DynamicMessage> items = ClientCalls.asyncBidiStreamingCall(caller.begin("Echo"), received);
            items.onNext(GrpcClient.request("Echo", "x".repeat(2_000)));
            assertThatThrownBy(() -> received.end.get(30, TimeUnit.SECONDS))
                    .isInstanceOf(ExecutionException.class)
                    .satisfies(
                            thrown -> assertThat(codeOf(thrown.getCause())).isEqualTo(Status.Code.RESOURCE_EXHAUSTED));
            assertThat(caller.call("Hello", "Ada")).isEqualTo("Hello Ada");
        }
    }

    @Test
    void aStreamThatTheClientCancelsFailsAtTheHandler() throws Exception {
        Received received = new Received();
        ClientCalls.asyncClientStreamingCall(client.begin("Total"), received).onNext(GrpcClient.request("Total", 1));
        assertThat(served.counter.begun.await(30, TimeUnit.SECONDS)).isTrue();
        received.cancel();
        assertThat(served.counter.cancelled.await(30, TimeUnit.SECONDS)).isTrue();
    }

    @Test
    void itemsInGzipAreTaken() throws Exception {
        Received received = new Received();
        StreamObserver<DynamicMessage> items = ClientCalls.asyncBidiStreamingCall(
                client.channel.newCall(GrpcClient.method("Echo"), CallOptions.DEFAULT.withCompression("gzip")),
                received);
        String large = "y".repeat(200_000);
        items.onNext(GrpcClient.request("Echo", large));
        items.onNext(GrpcClient.request("Echo", ""));
        items.onNext(GrpcClient.request("Echo", "small"));
        items.onCompleted();
        received.end.get(30, TimeUnit.SECONDS);
        assertThat(received.values).containsExactly(large, "", "small");
    }
}
