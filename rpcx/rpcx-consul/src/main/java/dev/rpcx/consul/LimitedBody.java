package dev.rpcx.consul;

import java.io.IOException;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import org.jspecify.annotations.Nullable;

/**
 * Collects the body of an answer of limited size. A larger body is an error and ends the connection, so that whoever
 * answers in the registry's place cannot fill the heap.
 */
final class LimitedBody implements HttpResponse.BodySubscriber<byte[]> {
    /** Max bytes of a body: about five thousand instances as the registry describes them. */
    static final int MAX_BYTES = 8 << 20;

    private final HttpResponse.BodySubscriber<byte[]> whole = HttpResponse.BodySubscribers.ofByteArray();
    private Flow.@Nullable Subscription subscription;
    private long bytes;
    private boolean ended;

    @Override
    public CompletionStage<byte[]> getBody() {
        return whole.getBody();
    }

    @Override
    public void onSubscribe(Flow.Subscription given) {
        subscription = given;
        whole.onSubscribe(given);
    }

    @Override
    public void onNext(List<ByteBuffer> buffers) {
        for (ByteBuffer buffer : buffers) {
            bytes += buffer.remaining();
        }
        if (ended) {
            return;
        }
        if (bytes <= MAX_BYTES) {
            whole.onNext(buffers);
            return;
        }
        ended = true;
        if (subscription != null) {
            subscription.cancel();
        }
        whole.onError(new IOException("an answer of more than " + MAX_BYTES + " bytes"));
    }

    @Override
    public void onError(Throwable failure) {
        if (!ended) {
            whole.onError(failure);
        }
    }

    @Override
    public void onComplete() {
        if (!ended) {
            whole.onComplete();
        }
    }
}
