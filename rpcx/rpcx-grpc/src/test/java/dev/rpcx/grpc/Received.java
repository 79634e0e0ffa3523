package dev.rpcx.grpc;

import com.google.protobuf.DynamicMessage;
import io.grpc.stub.ClientCallStreamObserver;
import io.grpc.stub.ClientResponseObserver;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** What a client of gRPC gets in answer to a stream. The future completes, or fails, with the end of the answer. */
final class Received implements ClientResponseObserver<DynamicMessage, DynamicMessage> {
    final List<Object> values = Collections.synchronizedList(new ArrayList<>());
    final CompletableFuture<Void> end = new CompletableFuture<>();

    private final int requested;
    private volatile ClientCallStreamObserver<DynamicMessage> call;

    Received() {
        this(Integer.MAX_VALUE);
    }

    /** @param requested number of items that the client asks for at first; {@link #request} asks for more */
    Received(int requested) {
        this.requested = requested;
    }

    void request(int items) {
        call.request(items);
    }

    void cancel() {
        call.cancel("by the test", null);
    }

    @Override
    public void beforeStart(ClientCallStreamObserver<DynamicMessage> begun) {
        call = begun;
        begun.disableAutoRequestWithInitial(requested);
    }

    @Override
    public void onNext(DynamicMessage message) {
        values.add(GrpcClient.value(message));
    }

    @Override
    public void onError(Throwable thrown) {
        end.completeExceptionally(thrown);
    }

    @Override
    public void onCompleted() {
        end.complete(null);
    }
}
