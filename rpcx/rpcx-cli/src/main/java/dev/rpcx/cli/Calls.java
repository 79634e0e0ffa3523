package dev.rpcx.cli;

import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.Descriptors.MethodDescriptor;
import dev.rpcx.Client;
import dev.rpcx.Endpoint;
import dev.rpcx.Publishers;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.internal.client.EncodedCalls;
import dev.rpcx.internal.schema.DescribedService;
import dev.rpcx.internal.schema.MethodSchema;
import dev.rpcx.internal.schema.ProtoFile;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.io.StringWriter;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Flow;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JsonGenerator;

/**
 * What the commands {@code list}, {@code describe}, {@code health} and {@code call} do at one server.
 *
 * @param remote how the server is talked to
 * @param at where it listens
 * @param in where the items of a stream come from, and a request that is not an argument
 */
record Calls(Remote remote, Endpoint at, InputStream in, PrintStream out, PrintStream err) {
    /** Stands for JSON that comes from the input. */
    private static final String FROM_INPUT = "-";

    /** Largest size of a request: 4 MiB. Source: rpcx/spec/schema.md, "Limits". */
    private static final int MAX_REQUEST_BYTES = 4 * 1024 * 1024;

    /**
     * Thrown for what is not a mistake in what was asked, such as a fault of the server or of the network. The text is
     * in words of this tool.
     */
    static final class Failure extends RuntimeException {
        private static final long serialVersionUID = 1L;

        final int exitCode;

        Failure(int exitCode, String text, @Nullable Throwable cause) {
            super(text, cause);
            this.exitCode = exitCode;
        }
    }

    /** Service of a server that describes its services. */
    @RPCXClient(remoteServerName = "rpcx.reflection")
    interface Reflection {
        String METHOD = "rpcx.reflection/services";

        List<DescribedService> services();
    }

    /**
     * A call that can be made.
     *
     * @param request the encoded request; empty if the method takes a stream
     */
    private record Prepared(
            String service, String name, MethodDescriptor method, MethodSchema schema, byte[] request) {}

    static String words(RPCXException e) {
        return e.code() + ", " + e.executed() + ": " + e.getMessage();
    }

    /** @param ofClasses descriptions made of classes; empty to ask the server */
    int list(Descriptions ofClasses) {
        return with(client -> {
            List<String> published = published(client);
            Descriptions known = ofClasses.methods().isEmpty() ? askedAtMost(client, published) : ofClasses;
            show("the list has come, but it", () -> published.forEach(name -> printMethod(name, known.method(name))));
        });
    }

    /** Returns what a server says of its services; nothing if it says nothing to this caller. */
    private Descriptions askedAtMost(Client client, List<String> published) {
        try {
            return asked(client, published);
        } catch (RPCXException e) {
            if (e.code() == RPCXException.Code.UNAUTHENTICATED) {
                return Descriptions.NONE;
            }
            throw e;
        }
    }

    private void printMethod(String name, @Nullable MethodDescriptor method) {
        if (!remote.isJson()) {
            out.println(Printable.line(method == null ? name : name + Signature.of(method)));
            return;
        }
        printJson(line -> {
            line.writeStringProperty("method", name);
            if (method != null) {
                line.writeStringProperty("request", Signature.request(method));
                line.writeStringProperty("reply", Signature.reply(method));
            }
        });
    }

    /** Prints one line of JSON, an object whose members the given code writes. */
    private void printJson(Consumer<JsonGenerator> members) {
        out.println(json(members));
    }

    /** Returns an object of JSON as one line, in which the characters that a terminal would obey are escaped. */
    static String json(Consumer<JsonGenerator> members) {
        StringWriter text = new StringWriter();
        try (JsonGenerator line = JsonRequest.JSON.createGenerator(text)) {
            line.writeStartObject();
            members.accept(line);
            line.writeEndObject();
        }
        return Printable.line(text.toString());
    }

    int describe(String service) {
        return with(client -> {
            Map<String, FileDescriptor> files = described(client).files();
            FileDescriptor file = files.get(service);
            if (file == null) {
                throw new Mistake(Printable.clipped(service) + ": no such service"
                        + Printable.nearest(service, files.keySet()) + " (expected: one of "
                        + Printable.clipped(String.join(", ", files.keySet())) + ")");
            }
            show(
                    "the description has come, but it",
                    () -> out.println(Printable.lines(ProtoFile.text(file.toProto()))));
        });
    }

    int health() {
        return with(client -> {
            long begin = System.nanoTime();
            int methods = published(client).size();
            long ms = (System.nanoTime() - begin) / 1_000_000;
            if (remote.isJson()) {
                printJson(line -> {
                    line.writeBooleanProperty("up", true);
                    line.writeNumberProperty("millis", ms);
                    line.writeNumberProperty("methods", methods);
                });
            } else {
                out.printf("up: connected and answered in %d ms, %d methods%n", ms, methods);
            }
        });
    }

    /**
     * Calls a method, and prints its result, or its items as they come.
     *
     * @param name name of the method as {@code service/method}
     * @param json the request; null for an empty one, or for the items of a stream from the input
     * @param ofClasses descriptions made of classes; empty to ask the server
     */
    int call(String name, @Nullable String json, Descriptions ofClasses) {
        Prepared prepared = ofClasses.methods().isEmpty() ? null : prepare(ofClasses, name, json);
        return with(client -> invoke(client, prepared == null ? prepare(described(client), name, json) : prepared));
    }

    private List<String> published(Client client) {
        return client.published(at.host(), at.port());
    }

    /** Returns what a server says of its services; nothing if it says nothing. */
    private Descriptions asked(Client client, List<String> published) {
        if (!published.contains(Reflection.METHOD)) {
            return Descriptions.NONE;
        }
        Reflection reflection = client.create(Reflection.class, at.host(), at.port());
        try {
            return Descriptions.of(remote.calling(reflection::services), Map.of());
        } catch (IllegalStateException e) {
            throw new Failure(Rpcx.FAILED, String.valueOf(e.getMessage()), e);
        }
    }

    private Descriptions described(Client client) {
        Descriptions known = asked(client, published(client));
        if (known.files().isEmpty()) {
            throw new Mistake(at.host() + ":" + at.port() + " does not describe its services (expected: a server that"
                    + " was built with reflection(), or --class and the interface of the service)");
        }
        return known;
    }

    private Prepared prepare(Descriptions known, String name, @Nullable String json) {
        int slash = name.lastIndexOf('/');
        MethodDescriptor method = known.method(name);
        if (slash < 1 || method == null) {
            throw new Mistake(Printable.clipped(name) + ": no such method"
                    + Printable.nearest(name, known.methods().keySet()) + " (expected: service/method, one of "
                    + Printable.clipped(String.join(", ", known.methods().keySet())) + ")");
        }
        byte[] request = {};
        if (!method.isClientStreaming()) {
            String text = FROM_INPUT.equals(json) ? input() : json == null ? "{}" : json;
            request = JsonRequest.read(text, method.getInputType());
            if (request.length > MAX_REQUEST_BYTES) {
                throw new Mistake(
                        "the request has " + request.length + " bytes (expected: at most " + MAX_REQUEST_BYTES + ")");
            }
        } else if (json != null && !json.equals(FROM_INPUT)) {
            throw new Mistake(Printable.clipped(json) + ": stands there for a stream (expected: JSON objects from the"
                    + " standard input, a line each)");
        }
        return new Prepared(name.substring(0, slash), name.substring(slash + 1), method, known.schema(name), request);
    }

    private String input() {
        try {
            return StandardCharsets.UTF_8
                    .newDecoder()
                    .decode(ByteBuffer.wrap(in.readAllBytes()))
                    .toString();
        } catch (CharacterCodingException e) {
            throw new Mistake("standard input: not UTF-8 (expected: a JSON object)");
        } catch (IOException e) {
            throw new Mistake("standard input: not readable (expected: a JSON object)");
        }
    }

    private int with(Consumer<Client> task) {
        try (Client client = remote.client(err)) {
            task.accept(client);
            return 0;
        } catch (RPCXException e) {
            throw explained(e);
        }
    }

    private void invoke(Client client, Prepared call) {
        EncodedCalls calls =
                client.create(EncodedCalls.class, at.host(), at.port()).comparing(call.schema);
        try {
            if (call.method.isClientStreaming()) {
                sendItems(calls, call, new JsonLines(in, call.method.getInputType()));
            } else if (call.method.isServerStreaming()) {
                printItems(
                        remote.calling(() -> calls.receive(call.service, call.name, call.request)),
                        call.method.getOutputType());
            } else {
                printResult(
                        remote.calling(() -> calls.call(call.service, call.name, call.request)),
                        call.method.getOutputType());
            }
        } catch (RPCXException e) {
            throw e.details().isEmpty() ? e : detailed(e, call.method.getFile());
        }
    }

    private void sendItems(EncodedCalls calls, Prepared call, JsonLines lines) {
        Flow.Publisher<byte[]> items = Publishers.of(lines, () -> {});
        try {
            if (call.method.isServerStreaming()) {
                printItems(
                        remote.calling(() -> calls.exchange(call.service, call.name, items)),
                        call.method.getOutputType());
            } else {
                printResult(
                        remote.calling(() -> calls.send(call.service, call.name, items)), call.method.getOutputType());
            }
        } catch (RPCXException e) {
            Mistake mistake = lines.mistake();
            if (mistake == null) {
                throw e;
            }
            // The call has ended because of what stands in the input, but it may have begun.
            throw e.executed() == RPCXException.Executed.NOT_EXECUTED
                    ? mistake
                    : new Failure(Rpcx.FAILED, e.executed() + ": the stream has ended: " + mistake.getMessage(), e);
        }
    }

    /** Returns the error with its details in its text: as JSON, if the description of the service has them. */
    private static RPCXException detailed(RPCXException e, FileDescriptor file) {
        String details =
                e.details().stream().map(detail -> detail(detail, file)).collect(Collectors.joining(", ", " (", ")"));
        return new RPCXException(e.code(), e.getMessage() + details, e.executed(), e);
    }

    private static String detail(RPCXException.Detail detail, FileDescriptor file) {
        Descriptor type = file.findMessageTypeByName(detail.name());
        if (type == null) {
            return detail.toString();
        }
        StringWriter json = new StringWriter();
        try (JsonGenerator out = JsonRequest.JSON.createGenerator(json)) {
            JsonReply.write(type, detail.message(), out);
        } catch (IllegalStateException unreadable) {
            return detail.toString();
        }
        return detail.name() + " " + json;
    }

    private void printResult(CompletableFuture<byte[]> called, Descriptor type) {
        byte[] reply;
        try {
            reply = called.join();
        } catch (CompletionException e) {
            throw failure(RPCXException.cause(e));
        }
        // void is a message that says nothing
        if (!type.getFullName().equals("google.protobuf.Empty")) {
            show("the call was executed, but its result", () -> JsonReply.print(type, reply, remote.isJson(), out));
        }
    }

    private void printItems(Flow.Publisher<byte[]> stream, Descriptor type) {
        Items items = new Items();
        stream.subscribe(items);
        try {
            byte[] next = items.next();
            for (int count = 1; next != null; count++) {
                byte[] item = next;
                show("item " + count + " of the stream has come, but it", () -> JsonReply.print(type, item, true, out));
                // this hands the line on, and says whether anybody still reads
                if (out.checkError()) {
                    return;
                }
                next = items.next();
            }
        } catch (Throwable e) {
            throw failure(e);
        } finally {
            items.cancel();
        }
    }

    /** Returns the exception with which a call has failed. A fault of this side is no mistake in what was asked. */
    private static RuntimeException failure(Throwable e) {
        if (e instanceof RPCXException || e instanceof Failure || e instanceof Mistake) {
            return (RuntimeException) e;
        }
        if (e instanceof InterruptedException) {
            Thread.currentThread().interrupt();
        }
        return new Failure(Rpcx.FAILED, "MAYBE: the call has failed on this side: " + e, e);
    }

    /**
     * Prints what a server has sent, which may need more memory than there is.
     *
     * @param what beginning of the error's text, which says what has come
     */
    private static void show(String what, Runnable printing) {
        try {
            printing.run();
        } catch (RuntimeException | Error e) {
            String why = e instanceof StackOverflowError
                    ? "it is too deep"
                    : e instanceof OutOfMemoryError
                            ? "no memory is left for it"
                            : e instanceof IllegalStateException ? String.valueOf(e.getMessage()) : e.toString();
            throw new Failure(Rpcx.FAILED, what + " cannot be shown: " + why, e);
        }
    }

    /**
     * Returns the error, with the most likely cause if a server listens and says nothing. A call that may have been
     * executed has another exit code than one that has not reached its server, since a script may repeat the latter.
     */
    private RuntimeException explained(RPCXException e) {
        if (e.code() != RPCXException.Code.UNAVAILABLE) {
            return e;
        }
        boolean isUnsent = e.executed() == RPCXException.Executed.NOT_EXECUTED;
        boolean isHeard =
                isUnsent && !remote.isTls() && !String.valueOf(e.getMessage()).contains("TLS") && isConnectable();
        return new Failure(
                isUnsent ? Rpcx.UNWELL : Rpcx.FAILED, words(e) + (isHeard ? " (does it speak TLS?)" : ""), e);
    }

    /**
     * Whether a connection can be made. If so, the network and the port work, and the fault is that the server's answer
     * is not understood.
     */
    private boolean isConnectable() {
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress(at.host(), at.port()), (int)
                    remote.time().toMillis());
            return true;
        } catch (IOException | RuntimeException e) {
            return false;
        }
    }
}
