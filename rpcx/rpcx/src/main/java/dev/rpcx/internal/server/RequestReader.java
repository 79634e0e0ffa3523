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
 * Reads the part of a request that precedes the arguments: the method, the remaining time and the metadata. Refuses a
 * request that the server cannot execute, for example one for an unknown method; {@link Admission} later refuses
 * requests for which there is no room. The getters return values of the request that was read last. Used only on the
 * event loop.
 */
final class RequestReader {
    /**
     * Maximum time of a call, in microseconds: about 36 years. A longer time in a request is shortened to this maximum,
     * since the call's deadline in nanoseconds could overflow otherwise.
     */
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
     * Reads a request up to its arguments. Afterwards {@link #refusedAs} says whether the request is refused.
     *
     * @param head head of the request's first frame; flags in the head say which fields the request has
     * @param payload bytes of the request in that frame; this method leaves the arguments unread
     * @param isNotice whether the request is a notice, that is, a one-way call, whose caller does not get the result
     * @param defaultMicros time of the call, in microseconds, for a request that does not contain a time
     * @throws WireFault if the bytes are not a request
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
            refuse(RPCXException.Code.NOT_FOUND, ServerCallErrors.NOT_PUBLISHED);
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

    /** Returns the text of the error for a request that is larger than the server allows. */
    String tooLarge() {
        return "a request of more than " + server.settings().maxMessageBytes() + " bytes";
    }

    /** Returns the error code with which the request is refused; null if the request is not refused. */
    RPCXException.@Nullable Code refusedAs() {
        return refusedAs;
    }

    /** Returns the error text with which the request is refused. May be called only if the request is refused. */
    String why() {
        return why;
    }

    /** Returns the method that the request calls. May be called only if the request is not refused. */
    ServerMethod method() {
        return Objects.requireNonNull(method);
    }

    /**
     * Returns how much time is left for the call, in nanoseconds. For a method without a stream, the result is at most
     * the server's maximum time of a call. May be called only if the request is not refused.
     */
    long nanos() {
        return nanos;
    }

    /**
     * Returns the metadata of the request; empty if the request is refused. If this method is called again for the same
     * request, the result is empty.
     */
    Metadata takeMetadata() {
        Metadata taken = metadata;
        metadata = Metadata.EMPTY;
        return taken;
    }

    /** Returns how many bytes of memory the metadata of the request take at most; 0 if the request has no metadata. */
    int metadataCost() {
        return metadataCost;
    }
}
