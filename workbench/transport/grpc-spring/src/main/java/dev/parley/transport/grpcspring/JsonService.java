package dev.parley.transport.grpcspring;

import dev.parley.encoding.protobuf.json.JsonGrpc;
import dev.parley.encoding.protobuf.json.Nothing;
import dev.parley.encoding.protobuf.json.Order;
import dev.parley.encoding.protobuf.json.Receipt;
import dev.parley.spi.Handler;
import dev.parley.spi.json.Json;
import io.grpc.stub.StreamObserver;
import org.springframework.grpc.server.service.GrpcService;

/** The contract {@code json} as a gRPC service. */
@GrpcService
class JsonService extends JsonGrpc.JsonImplBase {
    private final Answers answers;

    JsonService(Handler handler) {
        this.answers = new Answers(handler);
    }

    @Override
    public void get(Nothing request, StreamObserver<Nothing> observer) {
        answers.unary(Json.GET, request, observer);
    }

    @Override
    public void post(Order request, StreamObserver<Receipt> observer) {
        answers.unary(Json.POST, request, observer);
    }
}
