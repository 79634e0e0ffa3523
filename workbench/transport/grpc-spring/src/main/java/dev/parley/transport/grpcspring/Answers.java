package dev.parley.transport.grpcspring;

import com.google.protobuf.Message;
import dev.parley.encoding.protobuf.Chunks;
import dev.parley.encoding.protobuf.ProtobufCodec;
import dev.parley.spi.Handler;
import dev.parley.spi.Operation;
import io.grpc.stub.StreamObserver;

/** What every {@code @GrpcService} here does with a request: to a record, to the handler, and back. */
record Answers(Handler handler) {
    /** Spring's own limit for one message stands at 4 MiB; this one is of a whole stream. */
    private static final long MAX_STREAM_BYTES = 64L << 20;

    @SuppressWarnings("unchecked") // each record has one generated message, and the services name it
    <Q extends Record, R extends Record, A extends Message, B extends Message> void unary(
            Operation<Q, R> operation, A request, StreamObserver<B> observer) {
        ProtobufCodec<Q, A> requests = (ProtobufCodec<Q, A>) ProtobufCodec.of(operation.request());
        ProtobufCodec<R, B> replies = (ProtobufCodec<R, B>) ProtobufCodec.of(operation.reply());
        B reply = replies.toMessage()
                .apply(handler.handle(operation, requests.toRecord().apply(request)));
        Chunks.of(replies)
                .ifPresentOrElse(chunks -> chunks.split(reply).forEach(observer::onNext), () -> observer.onNext(reply));
        observer.onCompleted();
    }

    /** A request that comes in pieces. */
    @SuppressWarnings("unchecked") // as above
    <Q extends Record, A extends Message, B extends Message> StreamObserver<A> streamed(
            Operation<Q, ?> operation, StreamObserver<B> observer) {
        ProtobufCodec<Q, A> requests = (ProtobufCodec<Q, A>) ProtobufCodec.of(operation.request());
        Chunks.Joining<A> joining = new Chunks.Joining<>(Chunks.of(requests).orElseThrow(), MAX_STREAM_BYTES);
        return new StreamObserver<>() {
            @Override
            public void onNext(A piece) {
                joining.add(piece);
            }

            @Override
            public void onError(Throwable cancelled) {
                // the caller is gone with half a content: nothing of it is handled
            }

            @Override
            public void onCompleted() {
                unary(operation, joining.whole(), observer);
            }
        };
    }
}
