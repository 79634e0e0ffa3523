package dev.parley.transport.grpcspring;

import dev.parley.encoding.protobuf.messages.GatheredText;
import dev.parley.encoding.protobuf.messages.GatheredTypes;
import dev.parley.encoding.protobuf.messages.MessagesGrpc;
import dev.parley.encoding.protobuf.messages.TestModelAllTypesList;
import dev.parley.encoding.protobuf.messages.TestModelOnlyText;
import dev.parley.spi.Handler;
import dev.parley.spi.messages.Messages;
import io.grpc.stub.StreamObserver;
import org.springframework.grpc.server.service.GrpcService;

/** The contract {@code messages} as a gRPC service. */
@GrpcService
class MessagesService extends MessagesGrpc.MessagesImplBase {
    private final Answers answers;

    MessagesService(Handler handler) {
        this.answers = new Answers(handler);
    }

    @Override
    public void onlyText(TestModelOnlyText request, StreamObserver<TestModelOnlyText> observer) {
        answers.unary(Messages.ONLY_TEXT, request, observer);
    }

    @Override
    public void allTypes(TestModelAllTypesList request, StreamObserver<TestModelAllTypesList> observer) {
        answers.unary(Messages.ALL_TYPES, request, observer);
    }

    @Override
    public void gatherText(TestModelOnlyText request, StreamObserver<GatheredText> observer) {
        answers.unary(Messages.GATHER_TEXT, request, observer);
    }

    @Override
    public void gatherTypes(TestModelAllTypesList request, StreamObserver<GatheredTypes> observer) {
        answers.unary(Messages.GATHER_TYPES, request, observer);
    }
}
