package dev.rpcx.internal.server;

import dev.rpcx.Metadata;
import dev.rpcx.RPCXException;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.WireFault;
import dev.rpcx.internal.wire.MetadataFields;
import dev.rpcx.internal.wire.MethodDictionary;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import java.nio.charset.StandardCharsets;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Reads what stands before the arguments of a request: the method by its number or its name, the time that is left, and
 * the metadata. It decides whether a request is one that the server can execute at all; whether there is room for it is
 * decided later. A connection has one such object, whose values are those of the request that was read last. Event loop
 * only.
 */
final class RequestReader {
    /** Most microseconds of a call's time. A time beyond what a clock can hold is as good as no limit. */
    private static final long MAX_MICROS = 1L << 50;

    private final ServerCore server;

    private @Nullable ServerMethod method;
    private Metadata metadata = Metadata.EMPTY;
    private int metadataCost;
    private long nanos;
    private RPCXException.@Nullable Code refusedAs;
    private String why = "";

    RequestReader(ServerCore server) {
        this.server = server;
    }

    /**
     * Reads up to the arguments, and says by {@link #refusedAs} whether the request is refused.
     *
     * @param defaultMicros time of a request that carries none
     * @throws WireFault if the bytes are no request
     */
    void read(int head, ByteBuf payload, boolean isNotice, long defaultMicros) {
        ServerMethod called = method(head, payload);
        long micros = (head & Wire.TIME) != 0 ? Varint.read(payload) : defaultMicros;
        int before = payload.readableBytes();
        Metadata given = (head & Wire.METADATA) != 0 ? MetadataFields.read(payload) : Metadata.EMPTY;
        method = called;
        metadata = Metadata.EMPTY;
        metadataCost = given == Metadata.EMPTY ? 0 : MetadataFields.cost(given, before - payload.readableBytes());
        refusedAs = null;
        if (called == null) {
            refuse(RPCXException.Code.NOT_FOUND, "no such service or method");
        } else if (isNotice && hasStream(called)) {
            refuse(RPCXException.Code.INVALID, "a notice of a method with a stream (expected: a request)");
        } else if (micros == 0) {
            refuse(RPCXException.Code.DEADLINE_EXCEEDED, "the call came without time");
        } else if (payload.readableBytes() > server.settings().maxMessageBytes()) {
            refuse(RPCXException.Code.TOO_LARGE, tooLarge());
        } else {
            nanos = nanos(called, micros);
            metadata = given;
        }
    }

    private @Nullable ServerMethod method(int head, ByteBuf payload) {
        if ((head & Wire.NAMED) == 0) {
            long number = Varint.read(payload);
            return number == (int) number ? server.method((int) number) : null;
        }
        return server.method(MethodDictionary.key(name(payload), name(payload)));
    }

    private static String name(ByteBuf payload) {
        int bytes = payload.isReadable() ? payload.readUnsignedByte() : Integer.MAX_VALUE;
        if (bytes > payload.readableBytes()) {
            throw new WireFault("a name is cut off");
        }
        return payload.readCharSequence(bytes, StandardCharsets.UTF_8).toString();
    }

    private static boolean hasStream(ServerMethod method) {
        return method.returnsStream() || method.items() != null;
    }

    private long nanos(ServerMethod called, long micros) {
        long given = TimeUnit.MICROSECONDS.toNanos(Math.min(micros < 0 ? Long.MAX_VALUE : micros, MAX_MICROS));
        return hasStream(called) ? given : Math.min(given, server.maxCallNanos());
    }

    private void refuse(RPCXException.Code code, String text) {
        refusedAs = code;
        why = text;
    }

    /** Text of the error for a request that is too large, whole or in parts. */
    String tooLarge() {
        return "a request of more than " + server.settings().maxMessageBytes() + " bytes";
    }

    /** Code with which the request is refused; null where it is not. */
    RPCXException.@Nullable Code refusedAs() {
        return refusedAs;
    }

    /** Text with which the request is refused. */
    String why() {
        return why;
    }

    /** Method of a request that is not refused. */
    ServerMethod method() {
        return Objects.requireNonNull(method);
    }

    /** Time that is left of a request that is not refused, within the server's longest. */
    long nanos() {
        return nanos;
    }

    /** Takes the metadata of the request, which may be large and are not kept here. */
    Metadata takeMetadata() {
        Metadata taken = metadata;
        metadata = Metadata.EMPTY;
        return taken;
    }

    /** Bytes of memory that the metadata take. */
    int metadataCost() {
        return metadataCost;
    }
}
