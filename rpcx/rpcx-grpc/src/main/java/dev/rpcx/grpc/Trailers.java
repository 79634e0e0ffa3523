package dev.rpcx.grpc;

import dev.rpcx.Metadata;
import dev.rpcx.RPCXException;
import dev.rpcx.internal.ProtoFields;
import dev.rpcx.internal.Varint;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.handler.codec.http2.DefaultHttp2Headers;
import io.netty.handler.codec.http2.Http2Headers;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Locale;

/**
 * The headers that end a call of gRPC: its status, and the metadata of the reply. What does not fit into the headers
 * that the client accepts is left out, the details of an error first, since a client fails a call whose headers are too
 * large. If nothing of the reply has been sent, these headers are the whole of it. {@code rpcx/spec/grpc.md} has the
 * table of codes.
 */
final class Trailers {
    /** Number of bytes that HPACK counts for each header beside its name and value. Source: RFC 7541, section 4.1. */
    private static final int HEADER_BYTES = 32;

    /** Largest length of the text of an error, with its escapes. The text of an error of RPCX has 2,000 characters. */
    private static final int MAX_MESSAGE = 4 * 1024;

    /** Room that the text of an error leaves for the other headers. */
    private static final int OTHER_BYTES = 512;

    private static final HexFormat HEX = HexFormat.of().withUpperCase();

    /** Status of a call that has succeeded, and statuses of failed calls. Source: gRPC, "Status codes". */
    private static final int OK = 0;

    private static final int CANCELLED = 1;
    private static final int UNKNOWN = 2;
    private static final int INVALID_ARGUMENT = 3;
    private static final int DEADLINE_EXCEEDED = 4;
    private static final int NOT_FOUND = 5;
    private static final int RESOURCE_EXHAUSTED = 8;
    private static final int UNIMPLEMENTED = 12;
    private static final int INTERNAL = 13;
    private static final int UNAVAILABLE = 14;
    private static final int UNAUTHENTICATED = 16;

    private final Http2Headers headers = new DefaultHttp2Headers(false);
    private long left;

    /** @param isWhole whether these headers are the whole reply */
    private Trailers(boolean isWhole, long maxBytes) {
        left = maxBytes;
        if (isWhole) {
            headers.status(GrpcHeaders.STATUS_OK);
            headers.set(GrpcHeaders.CONTENT_TYPE, GrpcHeaders.GRPC);
            left -= 2L * HEADER_BYTES + ":status".length() + GrpcHeaders.STATUS_OK.length();
            left -= GrpcHeaders.CONTENT_TYPE.length() + GrpcHeaders.GRPC.length();
        }
    }

    /**
     * Returns the trailers of a call that has succeeded.
     *
     * @param maxBytes size of the headers that the client accepts
     */
    static Http2Headers ok(Metadata metadata, long maxBytes) {
        Trailers made = new Trailers(false, maxBytes);
        made.add(GrpcHeaders.STATUS, String.valueOf(OK));
        GrpcMetadata.add(metadata, made);
        return made.headers;
    }

    /**
     * Returns the trailers of a call that has failed.
     *
     * @param isWhole whether these headers are the whole reply
     * @param typePrefix what stands in front of the name of a detail in the URL of its type
     * @param maxBytes size of the headers that the client accepts
     */
    static Http2Headers of(RPCXException error, boolean isWhole, String typePrefix, long maxBytes) {
        Trailers made = new Trailers(isWhole, maxBytes);
        made.add(GrpcHeaders.STATUS, String.valueOf(status(error)));
        made.add(GrpcHeaders.EXECUTED, executed(error));
        made.add(GrpcHeaders.CODE, error.code().name().toLowerCase(Locale.ROOT));
        if (status(error) == UNIMPLEMENTED) {
            // The reason can be the encoding of the client's messages. The client has to be told then which are known.
            made.add(GrpcHeaders.ACCEPT_ENCODING, GrpcHeaders.ENCODINGS);
        }
        long room = Math.min(MAX_MESSAGE, made.left - OTHER_BYTES);
        String text = percentEncoded(error.getMessage(), (int) Math.max(0, room));
        if (!text.isEmpty()) {
            made.add(GrpcHeaders.MESSAGE, text);
        }
        GrpcMetadata.add(error.metadata(), made);
        if (!error.details().isEmpty()) {
            made.add(GrpcHeaders.DETAILS, GrpcMetadata.base64(details(error, typePrefix)));
        }
        return made.headers;
    }

    /** Adds a header, unless the headers would become larger than the client accepts. */
    void add(CharSequence name, CharSequence value) {
        long bytes = (long) HEADER_BYTES + name.length() + value.length();
        if (bytes <= left) {
            left -= bytes;
            headers.add(name, value);
        }
    }

    /**
     * Returns the status of gRPC for an error. A service or method that does not exist is UNIMPLEMENTED, as clients of
     * gRPC expect. If a handler itself answers with this code, the status is NOT_FOUND.
     */
    private static int status(RPCXException error) {
        return switch (error.code()) {
            case CANCELLED -> CANCELLED;
            case DEADLINE_EXCEEDED -> DEADLINE_EXCEEDED;
            case UNAVAILABLE -> UNAVAILABLE;
            case NOT_FOUND -> error.executed() == RPCXException.Executed.NOT_EXECUTED ? UNIMPLEMENTED : NOT_FOUND;
            case INVALID -> INVALID_ARGUMENT;
            case HANDLER_FAILED -> UNKNOWN;
            case TOO_LARGE, OVERLOADED -> RESOURCE_EXHAUSTED;
            case UNAUTHENTICATED -> UNAUTHENTICATED;
            case PROTOCOL -> INTERNAL;
        };
    }

    private static String executed(RPCXException error) {
        return switch (error.executed()) {
            case NOT_EXECUTED -> "not";
            case EXECUTED -> "yes";
            case MAYBE -> "maybe";
        };
    }

    /**
     * Returns a text as {@code grpc-message} has it: all bytes of its UTF-8 but the printable ones of ASCII are escaped
     * by a percent sign and two digits, and so is the percent sign itself.
     *
     * @param max largest length of the result; a text that is longer is cut between two characters
     */
    static String percentEncoded(String text, int max) {
        StringBuilder encoded = new StringBuilder();
        int at = 0;
        while (at < text.length()) {
            int character = text.codePointAt(at);
            at += Character.charCount(character);
            int before = encoded.length();
            if (character >= ' ' && character < 0x7F && character != '%') {
                encoded.append((char) character);
            } else {
                for (byte each : Character.toString(character).getBytes(StandardCharsets.UTF_8)) {
                    encoded.append('%').append(HEX.toHexDigits(each));
                }
            }
            if (encoded.length() > max) {
                encoded.setLength(before);
                break;
            }
        }
        return encoded.toString();
    }

    /**
     * Returns an error as a {@code google.rpc.Status}: number 1 is the status, 2 the text, and 3 the list of details,
     * each of them a {@code google.protobuf.Any} of a URL (1) and a message (2).
     */
    private static byte[] details(RPCXException error, String typePrefix) {
        ByteBuf status = Unpooled.buffer();
        ProtoFields.writeNumber(status, 1, status(error));
        ProtoFields.writeText(status, 2, error.getMessage());
        for (RPCXException.Detail detail : error.details()) {
            ByteBuf any = Unpooled.buffer();
            ProtoFields.writeText(any, 1, typePrefix + detail.name());
            writeBytes(any, 2, Unpooled.wrappedBuffer(detail.message()));
            writeBytes(status, 3, any);
        }
        return ByteBufUtil.getBytes(status);
    }

    private static void writeBytes(ByteBuf out, int field, ByteBuf bytes) {
        out.writeByte(field << 3 | 2);
        Varint.write(out, bytes.readableBytes());
        out.writeBytes(bytes);
    }
}
