package dev.rpcx.grpc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.google.common.util.concurrent.ListenableFuture;
import com.google.protobuf.DynamicMessage;
import dev.rpcx.Server;
import dev.rpcx.Tokens;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.ClientCalls;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Tests calls with one request and one reply, made by grpc-java. */
class GrpcCallsTest {
    private static final Metadata.Key<String> EXECUTED =
            Metadata.Key.of("rpcx-executed", Metadata.ASCII_STRING_MARSHALLER);
    private static final Metadata.Key<String> CODE = Metadata.Key.of("rpcx-code", Metadata.ASCII_STRING_MARSHALLER);

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

    private static StatusRuntimeException failure(ThrowingCallable call) {
        return catchThrowableOfType(StatusRuntimeException.class, call);
    }

    private static Metadata.Key<String> ascii(String name) {
        return Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER);
    }

    private static Metadata.Key<byte[]> binary(String name) {
        return Metadata.Key.of(name, Metadata.BINARY_BYTE_MARSHALLER);
    }

    private static Metadata metadata(String name, String value) {
        Metadata metadata = new Metadata();
        metadata.put(ascii(name), value);
        return metadata;
    }

    @Test
    void aMethodIsCalledByItsNameInTheExportedFile() {
        assertThat(client.call("Hello", "Ada")).isEqualTo("Hello Ada");
    }

    @Test
    void severalParametersAreTheFieldsOfTheRequest() {
        assertThat(client.call("Add", 3, -4)).isEqualTo(-1);
    }

    @Test
    void aMessageIsTheRequestAndTheReplyItself() {
        DynamicMessage reply = client.reply(CallOptions.DEFAULT, "Older", "Ada", 36);
        assertThat(reply.getAllFields().values()).containsExactly("Ada", 37);
    }

    @Test
    void aMethodWithoutParametersAndResultHasEmptyMessages() {
        DynamicMessage reply = client.reply(CallOptions.DEFAULT, "Nothing");
        assertThat(reply.getDescriptorForType().getFullName()).isEqualTo("google.protobuf.Empty");
        assertThat(served.counter.executed).hasValue(1);
    }

    @Test
    void manyCallsAtOnceGetTheirOwnReplies() throws Exception {
        List<ListenableFuture<DynamicMessage>> replies = new ArrayList<>();
        for (int i = 0; i < 500; i++) {
            replies.add(ClientCalls.futureUnaryCall(client.begin("Hello"), GrpcClient.request("Hello", "caller " + i)));
        }
        for (int i = 0; i < replies.size(); i++) {
            assertThat(GrpcClient.value(replies.get(i).get(30, TimeUnit.SECONDS)))
                    .isEqualTo("Hello caller " + i);
        }
    }

    @Test
    void largeMessagesPassInBothDirections() {
        assertThat(client.call("Length", "x".repeat(3_000_000))).isEqualTo(3_000_000);
        assertThat((String) client.call("Letters", 3_000_000)).hasSize(3_000_000);
    }

    @Test
    void aRequestAboveTheServersLimitIsRefused() {
        try (Served small = new Served(builder -> builder.maxMessageBytes(1_000))) {
            try (GrpcClient caller = small.client()) {
                StatusRuntimeException failure = failure(() -> caller.call("Length", "x".repeat(1_000)));
                assertThat(failure.getStatus().getCode()).isEqualTo(Status.Code.RESOURCE_EXHAUSTED);
                assertThat(failure.getTrailers().get(CODE)).isEqualTo("too_large");
                assertThat(failure.getTrailers().get(EXECUTED)).isEqualTo("not");
            }
        }
    }

    @Test
    void aHandlersErrorHasStatusTextDetailsAndWhetherItWasExecuted() {
        StatusRuntimeException failure = failure(() -> client.call("Fail", "20 % größer\n"));
        assertThat(failure.getStatus().getCode()).isEqualTo(Status.Code.INVALID_ARGUMENT);
        assertThat(failure.getStatus().getDescription()).isEqualTo("20 % größer\n");
        assertThat(failure.getTrailers().get(EXECUTED)).isEqualTo("yes");
        assertThat(failure.getTrailers().get(CODE)).isEqualTo("invalid");
        com.google.rpc.Status details = StatusProto.fromThrowable(failure);
        assertThat(details.getCode()).isEqualTo(3);
        assertThat(details.getDetailsList()).hasSize(1);
        assertThat(details.getDetails(0).getTypeUrl()).isEqualTo("type.googleapis.com/com.acme.count.BadField");
        assertThat(details.getDetails(0).getValue().toByteArray()).containsExactly(0x0A, 3, 'a', 'g', 'e');
    }

    @Test
    void aServerDescribesItsServicesOverGrpcToo() {
        try (Served describing = new Served(Server.Builder::reflection)) {
            try (GrpcClient caller = describing.client()) {
                MethodDescriptor<DynamicMessage, DynamicMessage> services = GrpcClient.method("Nothing").toBuilder()
                        .setFullMethodName("com.acme.count.RpcxReflection/Services")
                        .build();
                DynamicMessage reply = ClientCalls.blockingUnaryCall(
                        caller.channel, services, CallOptions.DEFAULT, GrpcClient.request("Nothing"));
                assertThat(reply.getUnknownFields().getField(1).getLengthDelimitedList())
                        .hasSize(1);
                assertThat(caller.call("Hello", "Ada")).isEqualTo("Hello Ada");
            }
        }
    }

    @Test
    void aPathThatIsNoMethodIsUnimplementedAndNotExecuted() {
        for (String path : new String[] {
            "com.acme.count.Counter/Unknown", "com.acme.count.Other/Hello", "Counter/Hello", "counter/hello"
        }) {
            MethodDescriptor<DynamicMessage, DynamicMessage> wrong = GrpcClient.method("Hello").toBuilder()
                    .setFullMethodName(path)
                    .build();
            StatusRuntimeException failure = failure(() -> ClientCalls.blockingUnaryCall(
                    client.channel, wrong, CallOptions.DEFAULT, GrpcClient.request("Hello", "Ada")));
            assertThat(failure.getStatus().getCode()).as(path).isEqualTo(Status.Code.UNIMPLEMENTED);
            assertThat(failure.getStatus().getDescription()).isEqualTo("no such service or method");
            assertThat(failure.getTrailers().get(EXECUTED)).isEqualTo("not");
        }
        assertThat(served.counter.executed).hasValue(0);
    }

    @Test
    void metadataPassInBothDirections() {
        assertThat(client.call(metadata("who", "alice"), "Header", "who")).isEqualTo("alice");
        assertThat(client.trailers.get().get(ascii("answer"))).isEqualTo("of who");
        // a value that is no text of a header comes as a binary one
        assertThat(client.trailers.get().get(binary("accent-bin")))
                .isEqualTo("größer".getBytes(StandardCharsets.UTF_8));
    }

    @Test
    void binaryMetadataAreBase64ToTheHandler() {
        Metadata metadata = new Metadata();
        metadata.put(binary("trace-bin"), new byte[] {0, 1, (byte) 0xFF});
        assertThat(client.call(metadata, "Header", "trace-bin")).isEqualTo("AAH/");
    }

    @Test
    void anErrorHasTheMetadataOfTheReply() {
        StatusRuntimeException failure = failure(() -> client.call("Header", "absent"));
        assertThat(failure.getStatus().getCode()).isEqualTo(Status.Code.NOT_FOUND);
        assertThat(failure.getTrailers().get(ascii("answer"))).isEqualTo("of absent");
    }

    @Test
    void moreEntriesOfMetadataThanRpcxTakesAreRefused() {
        Metadata metadata = new Metadata();
        for (int i = 0; i < 65; i++) {
            metadata.put(ascii("n" + i), "");
        }
        StatusRuntimeException failure = failure(() -> client.call(metadata, "Header", "n1"));
        assertThat(failure.getStatus().getCode()).isEqualTo(Status.Code.RESOURCE_EXHAUSTED);
        assertThat(failure.getStatus().getDescription()).contains("65 entries");
    }

    @Test
    void theDeadlineOfTheClientIsThatOfTheHandler() {
        client.reply(CallOptions.DEFAULT.withDeadlineAfter(20, TimeUnit.SECONDS), "Remaining");
        assertThat(served.counter.remainingNanos).isPositive().isLessThanOrEqualTo(TimeUnit.SECONDS.toNanos(20));
    }

    @Test
    void withoutADeadlineACallHasTheServersLongestTime() {
        client.reply(CallOptions.DEFAULT, "Remaining");
        assertThat(served.counter.remainingNanos)
                .isGreaterThan(TimeUnit.MINUTES.toNanos(59))
                .isLessThanOrEqualTo(TimeUnit.HOURS.toNanos(1));
    }

    @Test
    void aCallWhoseTimeIsOverIsCancelledAtTheServer() throws Exception {
        StatusRuntimeException failure =
                failure(() -> client.reply(CallOptions.DEFAULT.withDeadlineAfter(200, TimeUnit.MILLISECONDS), "Wait"));
        assertThat(failure.getStatus().getCode()).isEqualTo(Status.Code.DEADLINE_EXCEEDED);
        assertThat(served.counter.cancelled.await(30, TimeUnit.SECONDS)).isTrue();
    }

    @Test
    void aCallThatTheClientCancelsIsCancelledAtTheServer() throws Exception {
        ClientCall<DynamicMessage, DynamicMessage> call = client.begin("Wait");
        ClientCalls.futureUnaryCall(call, GrpcClient.request("Wait"));
        assertThat(served.counter.begun.await(30, TimeUnit.SECONDS)).isTrue();
        call.cancel("by the test", null);
        assertThat(served.counter.cancelled.await(30, TimeUnit.SECONDS)).isTrue();
    }

    @Test
    void aConnectionThatIsLostCancelsItsCalls() throws Exception {
        ClientCalls.futureUnaryCall(client.begin("Wait"), GrpcClient.request("Wait"));
        assertThat(served.counter.begun.await(30, TimeUnit.SECONDS)).isTrue();
        client.close();
        assertThat(served.counter.cancelled.await(30, TimeUnit.SECONDS)).isTrue();
    }

    @Test
    void gzipIsTakenAndAnsweredInGzip() {
        CallOptions gzip = CallOptions.DEFAULT.withCompression("gzip");
        String text = "x".repeat(1_000_000);
        assertThat(GrpcClient.value(client.reply(gzip, "Length", text))).isEqualTo(1_000_000);
        assertThat(GrpcClient.value(client.reply(gzip, "Hello", text))).isEqualTo("Hello " + text);
        assertThat(GrpcClient.value(client.reply(gzip, "Hello", "Ada"))).isEqualTo("Hello Ada");
    }

    @Test
    void aMessageThatIsTooLargeOnlyWhenInflatedIsRefused() {
        try (Served small = new Served(builder -> builder.maxMessageBytes(100_000))) {
            try (GrpcClient caller = small.client()) {
                StatusRuntimeException failure = failure(() ->
                        caller.reply(CallOptions.DEFAULT.withCompression("gzip"), "Length", "x".repeat(3_000_000)));
                assertThat(failure.getStatus().getCode()).isEqualTo(Status.Code.RESOURCE_EXHAUSTED);
                assertThat(failure.getStatus().getDescription()).contains("100000 bytes");
            }
        }
    }

    @Test
    void aBearerTokenIsTheTokenOfAServerThatRequiresOne() {
        byte[] secret = "sixteen bytes or more".getBytes(StandardCharsets.UTF_8);
        AliceToken token = new AliceToken(secret);
        try (Served strict = new Served(builder ->
                builder.interceptor(Tokens.requiring(principal -> principal.equals("alice") ? secret : null)))) {
            try (GrpcClient caller = strict.client()) {
                assertThat(failure(() -> caller.call("Principal")).getStatus().getCode())
                        .isEqualTo(Status.Code.UNAUTHENTICATED);
                String text = token.of("counter", "principal");
                assertThat(caller.call(metadata("authorization", "Bearer " + text), "Principal"))
                        .isEqualTo("alice");
                // a token is good for one call, also on this wire
                assertThat(failure(() -> caller.call(metadata("authorization", "Bearer " + text), "Principal"))
                                .getStatus()
                                .getCode())
                        .isEqualTo(Status.Code.UNAUTHENTICATED);
                assertThat(caller.call(metadata("rpcx-token", token.of("counter", "principal")), "Principal"))
                        .isEqualTo("alice");
            }
        }
    }

    @Test
    void authorizationIsAnEntryWhereNoTokenIsRequired() {
        assertThat(client.call(metadata("authorization", "Bearer abc"), "Header", "authorization"))
                .isEqualTo("Bearer abc");
    }
}
