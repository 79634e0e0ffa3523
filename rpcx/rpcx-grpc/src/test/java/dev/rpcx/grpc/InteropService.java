package dev.rpcx.grpc;

import dev.rpcx.CallContext;
import dev.rpcx.Method;
import dev.rpcx.Publishers;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.schema.Field;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.concurrent.SubmissionPublisher;
import java.util.concurrent.TimeUnit;

/**
 * The service that the interoperability tests of gRPC call, in records of RPCX. Fields that the tests of a server do not
 * use are left out. Source: grpc/testing/test.proto, messages.proto, and doc/interop-test-descriptions.md of gRPC.
 */
@RPCXServer("TestService")
final class InteropService {
    /** The package of the service in its {@code .proto}. */
    static final String PACKAGE = "grpc.testing";

    /** Metadata that the server sends back to the client that has sent it. */
    private static final String ECHO = "x-grpc-test-echo-trailing-bin";

    private static final int UNKNOWN = 2;

    record Payload(@Field(1) int type, @Field(2) byte[] body) {}

    record EchoStatus(@Field(1) int code, @Field(2) String message) {}

    record SimpleRequest(
            @Field(2) int responseSize,
            @Field(3) Optional<Payload> payload,
            @Field(7) Optional<EchoStatus> responseStatus) {}

    record SimpleResponse(@Field(1) Payload payload) {}

    record StreamingInputCallRequest(@Field(1) Optional<Payload> payload) {}

    record StreamingInputCallResponse(@Field(1) int aggregatedPayloadSize) {}

    record ResponseParameters(@Field(1) int size, @Field(2) int intervalMicros) {}

    record StreamingOutputCallRequest(
            @Field(2) List<ResponseParameters> responseParameters,
            @Field(3) Optional<Payload> payload,
            @Field(7) Optional<EchoStatus> responseStatus) {}

    record StreamingOutputCallResponse(@Field(1) Payload payload) {}

    @Method("emptyCall")
    void emptyCall() {
        echo();
    }

    @Method("unaryCall")
    SimpleResponse unaryCall(SimpleRequest request) {
        echo();
        throwIfAsked(request.responseStatus());
        return new SimpleResponse(zeros(request.responseSize()));
    }

    @Method("streamingInputCall")
    CompletableFuture<StreamingInputCallResponse> streamingInputCall(
            Flow.Publisher<StreamingInputCallRequest> requests) {
        CompletableFuture<StreamingInputCallResponse> reply = new CompletableFuture<>();
        requests.subscribe(new Flow.Subscriber<>() {
            private int bytes;

            @Override
            public void onSubscribe(Flow.Subscription subscription) {
                subscription.request(Long.MAX_VALUE);
            }

            @Override
            public void onNext(StreamingInputCallRequest request) {
                bytes += request.payload().map(payload -> payload.body().length).orElse(0);
            }

            @Override
            public void onError(Throwable thrown) {
                reply.completeExceptionally(thrown);
            }

            @Override
            public void onComplete() {
                reply.complete(new StreamingInputCallResponse(bytes));
            }
        });
        return reply;
    }

    @Method("streamingOutputCall")
    Flow.Publisher<StreamingOutputCallResponse> streamingOutputCall(StreamingOutputCallRequest request) {
        return Publishers.of(request.responseParameters().stream().map(InteropService::response));
    }

    @Method("fullDuplexCall")
    Flow.Publisher<StreamingOutputCallResponse> fullDuplexCall(Flow.Publisher<StreamingOutputCallRequest> requests) {
        echo();
        SubmissionPublisher<StreamingOutputCallResponse> responses = new SubmissionPublisher<>();
        requests.subscribe(new Flow.Subscriber<>() {
            @Override
            public void onSubscribe(Flow.Subscription subscription) {
                subscription.request(Long.MAX_VALUE);
            }

            @Override
            public void onNext(StreamingOutputCallRequest request) {
                try {
                    throwIfAsked(request.responseStatus());
                    request.responseParameters().forEach(each -> responses.submit(response(each)));
                } catch (RPCXException asked) {
                    responses.closeExceptionally(asked);
                }
            }

            @Override
            public void onError(Throwable thrown) {
                responses.closeExceptionally(thrown);
            }

            @Override
            public void onComplete() {
                responses.close();
            }
        });
        return responses;
    }

    private static StreamingOutputCallResponse response(ResponseParameters parameters) {
        if (parameters.intervalMicros() > 0) {
            // The client of the test asks for this pause.
            try {
                TimeUnit.MICROSECONDS.sleep(parameters.intervalMicros());
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
        return new StreamingOutputCallResponse(zeros(parameters.size()));
    }

    private static Payload zeros(int bytes) {
        return new Payload(0, new byte[bytes]);
    }

    private static void throwIfAsked(Optional<EchoStatus> status) {
        if (status.isPresent() && status.get().code() != 0) {
            if (status.get().code() != UNKNOWN) {
                throw new RPCXException(
                        RPCXException.Code.INVALID,
                        "response_status.code: " + status.get().code() + " (expected: 2)");
            }
            throw new RPCXException(
                    RPCXException.Code.HANDLER_FAILED, status.get().message());
        }
    }

    private static void echo() {
        CallContext context = CallContext.current().orElseThrow();
        String value = context.metadata().get(ECHO);
        if (value != null) {
            context.reply(ECHO, value);
        }
    }
}
