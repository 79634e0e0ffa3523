package dev.rpcx.grpc;

import dev.rpcx.internal.schema.DescribedFiles;
import dev.rpcx.schema.Field;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Flow;
import org.jspecify.annotations.Nullable;

/**
 * Answers of gRPC's reflection, by which tools such as grpcurl find out which services a server has. The service
 * of this reflection is not among them. Both versions have the same messages. Source: grpc/reflection/v1/reflection.proto.
 *
 * @param described what the server tells of its services
 */
record ServerReflection(DescribedFiles described) {
    private static final int NOT_FOUND = 5;
    private static final int UNIMPLEMENTED = 12;

    /** A question. One of the components behind the first one is present. */
    record Request(
            @Field(1) String host,
            @Field(3) Optional<String> fileByFilename,
            @Field(4) Optional<String> fileContainingSymbol,
            @Field(5) Optional<Extension> fileContainingExtension,
            @Field(6) Optional<String> allExtensionNumbersOfType,
            @Field(7) Optional<String> listServices) {}

    record Extension(
            @Field(1) String containingType, @Field(2) int extensionNumber) {}

    /** An answer. One of the components behind the first two is present. */
    record Response(
            @Field(1) String validHost,
            @Field(2) Request originalRequest,
            @Field(4) Optional<Files> files,
            @Field(5) Optional<Extensions> extensions,
            @Field(6) Optional<Services> services,
            @Field(7) Optional<Failure> failure) {
        static Response of(Request request, Files files) {
            return new Response(
                    request.host(), request, Optional.of(files), Optional.empty(), Optional.empty(), Optional.empty());
        }

        static Response of(Request request, Extensions extensions) {
            return new Response(
                    request.host(),
                    request,
                    Optional.empty(),
                    Optional.of(extensions),
                    Optional.empty(),
                    Optional.empty());
        }

        static Response of(Request request, Services services) {
            return new Response(
                    request.host(),
                    request,
                    Optional.empty(),
                    Optional.empty(),
                    Optional.of(services),
                    Optional.empty());
        }

        static Response of(Request request, Failure failure) {
            return new Response(
                    request.host(),
                    request,
                    Optional.empty(),
                    Optional.empty(),
                    Optional.empty(),
                    Optional.of(failure));
        }
    }

    record Files(@Field(1) List<byte[]> descriptors) {}

    record Extensions(@Field(1) String baseType, @Field(2) List<Integer> numbers) {}

    record Services(@Field(1) List<Service> services) {}

    record Service(@Field(1) String name) {}

    /** @param code status of gRPC */
    record Failure(@Field(1) int code, @Field(2) String text) {}

    Response answer(Request request) {
        if (request.fileByFilename().isPresent()) {
            return file(request, request.fileByFilename().get());
        }
        if (request.fileContainingSymbol().isPresent()) {
            return file(
                    request,
                    described.symbols().get(request.fileContainingSymbol().get()));
        }
        if (request.allExtensionNumbersOfType().isPresent()) {
            String type = request.allExtensionNumbersOfType().get();
            return described.symbols().containsKey(type)
                    ? Response.of(request, new Extensions(type, List.of()))
                    : notFound(request, "no such type");
        }
        if (request.listServices().isPresent()) {
            return Response.of(
                    request,
                    new Services(described.services().stream().map(Service::new).toList()));
        }
        return request.fileContainingExtension().isPresent()
                ? notFound(request, "no such extension")
                : Response.of(request, new Failure(UNIMPLEMENTED, "no question that this server knows"));
    }

    private Response file(Request request, @Nullable String name) {
        List<byte[]> files = name == null ? null : described.files().get(name);
        return files == null ? notFound(request, "no such file or symbol") : Response.of(request, new Files(files));
    }

    private static Response notFound(Request request, String text) {
        return Response.of(request, new Failure(NOT_FOUND, text));
    }

    /** Returns the answers to these questions, one for each as it comes. */
    Flow.Publisher<Response> answers(Flow.Publisher<Request> requests) {
        return answers -> requests.subscribe(new Flow.Subscriber<>() {
            @Override
            public void onSubscribe(Flow.Subscription subscription) {
                answers.onSubscribe(subscription);
            }

            @Override
            public void onNext(Request request) {
                answers.onNext(answer(request));
            }

            @Override
            public void onError(Throwable thrown) {
                answers.onError(thrown);
            }

            @Override
            public void onComplete() {
                answers.onComplete();
            }
        });
    }
}
