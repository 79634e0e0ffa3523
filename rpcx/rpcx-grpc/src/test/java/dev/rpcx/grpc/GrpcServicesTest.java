package dev.rpcx.grpc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.google.protobuf.ByteString;
import com.google.protobuf.DescriptorProtos.DescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.DescriptorProtos.ServiceDescriptorProto;
import com.google.protobuf.InvalidProtocolBufferException;
import dev.rpcx.Server;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.health.v1.HealthCheckRequest;
import io.grpc.health.v1.HealthCheckResponse;
import io.grpc.health.v1.HealthGrpc;
import io.grpc.reflection.v1.ErrorResponse;
import io.grpc.reflection.v1.ExtensionRequest;
import io.grpc.reflection.v1.ServerReflectionGrpc;
import io.grpc.reflection.v1.ServerReflectionRequest;
import io.grpc.reflection.v1.ServerReflectionResponse;
import io.grpc.reflection.v1.ServiceResponse;
import io.grpc.stub.StreamObserver;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Calls the services that gRPC defines by the stubs of grpc-java. */
class GrpcServicesTest {
    private static final String COUNTER = "com.acme.count.Counter";
    private static final String FILE = "com/acme/count.proto";
    private static final String PERSON =
            GrpcClient.request("Older").getDescriptorForType().getFullName();

    private Served served;
    private GrpcClient client;

    @BeforeEach
    void start() {
        served = new Served(Server.Builder::reflection);
        client = served.client();
    }

    @AfterEach
    void stop() {
        client.close();
        served.close();
    }

    /** The answers to a stream, which have come when the future is complete. */
    private static final class Answers<T> implements StreamObserver<T> {
        private final List<T> values = Collections.synchronizedList(new ArrayList<>());
        private final CompletableFuture<List<T>> end = new CompletableFuture<>();

        @Override
        public void onNext(T value) {
            values.add(value);
        }

        @Override
        public void onError(Throwable thrown) {
            end.completeExceptionally(thrown);
        }

        @Override
        public void onCompleted() {
            end.complete(values);
        }
    }

    private static Status.Code failure(ThrowingCallable call) {
        return catchThrowableOfType(StatusRuntimeException.class, call)
                .getStatus()
                .getCode();
    }

    private static HealthCheckRequest of(String service) {
        return HealthCheckRequest.newBuilder().setService(service).build();
    }

    private List<ServerReflectionResponse> ask(ServerReflectionRequest.Builder... requests) throws Exception {
        Answers<ServerReflectionResponse> answers = new Answers<>();
        StreamObserver<ServerReflectionRequest> questions =
                ServerReflectionGrpc.newStub(client.channel).serverReflectionInfo(answers);
        Stream.of(requests).forEach(request -> questions.onNext(request.build()));
        questions.onCompleted();
        return answers.end.get(30, TimeUnit.SECONDS);
    }

    private static ServerReflectionRequest.Builder question() {
        return ServerReflectionRequest.newBuilder().setHost("here");
    }

    private static FileDescriptorProto parsed(ByteString file) {
        try {
            return FileDescriptorProto.parseFrom(file);
        } catch (InvalidProtocolBufferException e) {
            throw new IllegalStateException(e);
        }
    }

    private static List<FileDescriptorProto> files(ServerReflectionResponse answer) {
        return answer.getFileDescriptorResponse().getFileDescriptorProtoList().stream()
                .map(GrpcServicesTest::parsed)
                .toList();
    }

    @Test
    void aServerThatAnswersIsHealthyAndSoAreItsServices() {
        HealthGrpc.HealthBlockingStub health = HealthGrpc.newBlockingStub(client.channel);
        for (String service : new String[] {"", COUNTER}) {
            assertThat(health.check(of(service)).getStatus())
                    .as(service)
                    .isEqualTo(HealthCheckResponse.ServingStatus.SERVING);
        }
        assertThat(failure(() -> health.check(of("com.acme.count.Other")))).isEqualTo(Status.Code.NOT_FOUND);
    }

    @Test
    void aClientIsToldThatHealthCannotBeWatched() {
        HealthGrpc.HealthBlockingStub health = HealthGrpc.newBlockingStub(client.channel);
        assertThat(failure(() -> health.watch(of("")).hasNext())).isEqualTo(Status.Code.UNIMPLEMENTED);
    }

    @Test
    void theServicesOfTheServerAreListed() throws Exception {
        ServerReflectionResponse answer = ask(question().setListServices("*")).get(0);
        assertThat(answer.getValidHost()).isEqualTo("here");
        assertThat(answer.getOriginalRequest())
                .isEqualTo(question().setListServices("*").build());
        assertThat(answer.getListServicesResponse().getServiceList())
                .map(ServiceResponse::getName)
                .containsExactly(COUNTER, HealthGrpc.SERVICE_NAME);
    }

    /** Oracle: the descriptor of grpc-java. */
    @Test
    void theHealthChecksAreDescribedAsTheirFileDescribesThem() throws Exception {
        FileDescriptorProto told = files(ask(question().setFileContainingSymbol(HealthGrpc.SERVICE_NAME))
                        .get(0))
                .get(0);
        FileDescriptorProto theirs =
                HealthCheckRequest.getDescriptor().getFile().toProto();
        assertThat(told.getName()).isEqualTo(theirs.getName());
        for (DescriptorProto type : told.getMessageTypeList()) {
            assertThat(theirs.getMessageTypeList())
                    .anySatisfy(their -> assertThat(stripped(their)).isEqualTo(stripped(type)));
        }
        assertThat(theirs.getService(0).getMethodList())
                .containsAll(told.getService(0).getMethodList());
    }

    /** Returns a message without the names in JSON, which are computed where they are missing. */
    private static DescriptorProto stripped(DescriptorProto type) {
        DescriptorProto.Builder stripped = type.toBuilder();
        stripped.getFieldBuilderList().forEach(FieldDescriptorProto.Builder::clearJsonName);
        return stripped.build();
    }

    @Test
    void aFileIsFoundByItsNameAndByWhatItHasAndComesWithItsImports() throws Exception {
        List<ServerReflectionResponse> answers = ask(
                question().setFileByFilename(FILE),
                question().setFileContainingSymbol(COUNTER),
                question().setFileContainingSymbol(COUNTER + ".Hello"),
                question().setFileContainingSymbol(PERSON));
        assertThat(answers).hasSize(4);
        for (ServerReflectionResponse answer : answers) {
            List<FileDescriptorProto> files = files(answer);
            FileDescriptorProto own = files.get(0);
            assertThat(own.getName()).isEqualTo(FILE);
            assertThat(own.getPackage()).isEqualTo("com.acme.count");
            assertThat(own.getServiceList())
                    .map(ServiceDescriptorProto::getName)
                    .containsExactly("Counter");
            assertThat(files).map(FileDescriptorProto::getName).containsAll(own.getDependencyList());
        }
        String imported = files(answers.get(0)).get(0).getDependency(0);
        assertThat(files(ask(question().setFileByFilename(imported)).get(0))
                        .get(0)
                        .getName())
                .isEqualTo(imported);
    }

    @Test
    void whatIsNotThereIsNotFoundAndTheStreamGoesOn() throws Exception {
        List<ServerReflectionResponse> answers = ask(
                question().setFileByFilename("other.proto"),
                question().setFileContainingSymbol("com.acme.count.Other"),
                question().setAllExtensionNumbersOfType("com.acme.count.Other"),
                question()
                        .setFileContainingExtension(
                                ExtensionRequest.newBuilder().setContainingType(PERSON)),
                question(),
                question().setAllExtensionNumbersOfType(PERSON));
        assertThat(answers.subList(0, 5))
                .map(ServerReflectionResponse::getErrorResponse)
                .map(ErrorResponse::getErrorCode)
                .containsExactly(5, 5, 5, 5, 12);
        assertThat(answers.get(5).getAllExtensionNumbersResponse().getBaseTypeName())
                .isEqualTo(PERSON);
    }

    @Test
    @SuppressWarnings("deprecation") // the stubs of the older version are deprecated
    void olderToolsAskForTheVersionBefore() throws Exception {
        Answers<io.grpc.reflection.v1alpha.ServerReflectionResponse> answers = new Answers<>();
        StreamObserver<io.grpc.reflection.v1alpha.ServerReflectionRequest> questions =
                io.grpc.reflection.v1alpha.ServerReflectionGrpc.newStub(client.channel)
                        .serverReflectionInfo(answers);
        questions.onNext(io.grpc.reflection.v1alpha.ServerReflectionRequest.newBuilder()
                .setListServices("")
                .build());
        questions.onCompleted();
        assertThat(answers.end
                        .get(30, TimeUnit.SECONDS)
                        .get(0)
                        .getListServicesResponse()
                        .getServiceList())
                .map(io.grpc.reflection.v1alpha.ServiceResponse::getName)
                .containsExactly(COUNTER, HealthGrpc.SERVICE_NAME);
    }

    @Test
    void aServerDescribesNothingUnlessItIsToldTo() {
        try (Served silent = new Served();
                GrpcClient caller = silent.client()) {
            assertThat(HealthGrpc.newBlockingStub(caller.channel)
                            .check(of(COUNTER))
                            .getStatus())
                    .isEqualTo(HealthCheckResponse.ServingStatus.SERVING);
            Answers<ServerReflectionResponse> answers = new Answers<>();
            ServerReflectionGrpc.newStub(caller.channel)
                    .serverReflectionInfo(answers)
                    .onNext(question().setListServices("*").build());
            assertThat(answers.end)
                    .failsWithin(30, TimeUnit.SECONDS)
                    .withThrowableThat()
                    .withMessageContaining("UNIMPLEMENTED");
        }
    }
}
