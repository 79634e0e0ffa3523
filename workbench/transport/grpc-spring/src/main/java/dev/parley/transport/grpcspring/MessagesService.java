package dev.parley.transport.grpcspring;

import com.google.protobuf.Message;
import dev.parley.encoding.protobuf.ProtobufCodec;
import dev.parley.encoding.protobuf.messages.GatheredText;
import dev.parley.encoding.protobuf.messages.GatheredTypes;
import dev.parley.encoding.protobuf.messages.MessagesGrpc;
import dev.parley.encoding.protobuf.messages.TestModelAllTypesList;
import dev.parley.encoding.protobuf.messages.TestModelOnlyText;
import dev.parley.spi.Handler;
import dev.parley.spi.Operation;
import dev.parley.spi.messages.Messages;
import io.grpc.stub.StreamObserver;
import org.springframework.grpc.server.service.GrpcService;

/** The contract {@code messages} as a gRPC service. */
@GrpcService
class MessagesService extends MessagesGrpc.MessagesImplBase {
    private final Handler handler;

    MessagesService(Handler handler) {
        this.handler = handler;
    }

    @Override
    public void onlyText(TestModelOnlyText request, StreamObserver<TestModelOnlyText> observer) {
        answer(Messages.ONLY_TEXT, request, observer);
    }

    @Override
    public void allTypes(TestModelAllTypesList request, StreamObserver<TestModelAllTypesList> observer) {
        answer(Messages.ALL_TYPES, request, observer);
    }

    @Override
    public void gatherText(TestModelOnlyText request, StreamObserver<GatheredText> observer) {
        answer(Messages.GATHER_TEXT, request, observer);
    }

    @Override
    public void gatherTypes(TestModelAllTypesList request, StreamObserver<GatheredTypes> observer) {
        answer(Messages.GATHER_TYPES, request, observer);
    }

    @SuppressWarnings("unchecked") // each record has one generated message, and the methods above name it
    private <Q extends Record, R extends Record, A extends Message, B extends Message> void answer(
            Operation<Q, R> operation, A request, StreamObserver<B> observer) {
        ProtobufCodec<Q, A> requests = (ProtobufCodec<Q, A>) ProtobufCodec.of(operation.request());
        ProtobufCodec<R, B> replies = (ProtobufCodec<R, B>) ProtobufCodec.of(operation.reply());
        B reply = replies.toMessage()
                .apply(handler.handle(operation, requests.toRecord().apply(request)));
        observer.onNext(reply);
        observer.onCompleted();
    }
}
